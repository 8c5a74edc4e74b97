//! Why a command could not be started, in the words of the one who typed it.
//!
//! In: [`WorkloadError`], and a look at the file that it names. Out: advice.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use lockprof_collectors::workload::WorkloadError;
use rustix::io::Errno;

use super::hint::Advice;

pub(super) fn advice(error: &WorkloadError) -> Option<Advice> {
    let WorkloadError::Exec { program, source } = error else { return None };
    let exec_format = source.raw_os_error() == Some(Errno::NOEXEC.raw_os_error());
    match source.kind() {
        ErrorKind::NotFound => Some(not_found(program)),
        ErrorKind::PermissionDenied => Some(not_executable(program)),
        _ if exec_format => Some(Advice::new(
            "it is neither a program of this machine nor a script that names its interpreter \
             behind #!. Name the interpreter:",
            [format!("lockprof record -- sh {}", quoted(program))],
        )),
        _ => None,
    }
}

fn not_found(program: &OsStr) -> Advice {
    if !program.as_encoded_bytes().contains(&b'/') {
        return Advice::say("is it spelt right, installed, and in PATH?");
    }
    if !Path::new(program).exists() {
        return Advice::say("is the path right?");
    }
    Advice::new(
        "the file exists; the interpreter or loader that it names does not. This shows it:",
        [format!("head -n 1 {}", quoted(program))],
    )
}

fn not_executable(program: &OsStr) -> Advice {
    let Ok(metadata) = Path::new(program).metadata() else {
        return Advice::say("a directory on the way to it is closed to this user.");
    };
    if metadata.is_dir() {
        return Advice::say("it is a directory.");
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        let allow = format!("chmod +x {}", quoted(program));
        return Advice::new("the file is not executable. If it is a program or a script:", [allow]);
    }
    let look = format!("ls -l {}", quoted(program));
    Advice::new(
        "it is executable, but not for this user, or not where it is (a mount with noexec):",
        [look],
    )
}

/// `text` as a shell takes it for one word.
pub(super) fn quoted(text: &OsStr) -> String {
    let text = text.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_when_a_shell_would_split_or_expand_them() {
        let cases = [
            ("/usr/bin/true", "/usr/bin/true"),
            ("my prog", "'my prog'"),
            ("$HOME", "'$HOME'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ];
        for (word, expected) in cases {
            assert_eq!(quoted(OsStr::new(word)), expected);
        }
    }
}
