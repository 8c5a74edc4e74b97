//! The file: whose it is, what becomes of the one before, what stands in it for those who come later.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::Value;

use super::machine::{FILE, LOCKPROF, Machine, skip, text};

#[test]
fn the_recording_is_private_and_the_one_before_is_kept() {
    let Some(machine) = Machine::or_skip() else { return };
    machine.record(["--", "true"]);
    let place = machine.place(FILE);
    assert_eq!(place.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let first = std::fs::read(&place).unwrap();
    let output = machine.record(["--", "true"]);
    let said = text(&output.stderr);
    assert!(said.contains("the recording that was there is now lockprof.data.old"), "{said}");
    assert_eq!(std::fs::read(machine.place("lockprof.data.old")).unwrap(), first);
}

#[test]
fn under_sudo_it_belongs_to_the_user_who_called_it() {
    let Some(machine) = Machine::or_skip() else { return };
    if !rustix::process::geteuid().is_root() {
        return skip("only root can give files away").unwrap_or_default();
    }
    let mut record = machine.lockprof(["record", "--", "true"]);
    let output = record.env("SUDO_UID", "4321").env("SUDO_GID", "1234").output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let file = machine.place(FILE).metadata().unwrap();
    assert_eq!((file.uid(), file.gid()), (4321, 1234));
}

#[test]
fn another_user_who_sees_no_kernel_symbols_gets_them_from_the_recording() {
    let Some(machine) = Machine::with_tools_or_skip(&["setpriv"]) else { return };
    if !rustix::process::geteuid().is_root() {
        return skip("only root can become another user").unwrap_or_default();
    }
    machine.record(["--", LOCKPROF, "hammer", "mmap-sem", "--seconds", "1s"]);
    // The build directory and the test's own may be closed to others.
    let program = machine.place("lockprof");
    std::fs::copy(LOCKPROF, &program).unwrap();
    for (place, mode) in
        [(machine.place(""), 0o755), (program.clone(), 0o755), (machine.place(FILE), 0o644)]
    {
        std::fs::set_permissions(place, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let symbols = machine.command(nobody).args(["cat", "/proc/kallsyms"]).output().unwrap();
    let visible =
        |line: &str| line.split(' ').next().is_some_and(|at| !at.trim_matches('0').is_empty());
    if text(&symbols.stdout).lines().any(visible) {
        return skip("every user sees kernel symbols here").unwrap_or_default();
    }
    let mut report = machine.command(nobody);
    let output = report.arg(&program).args(["report", FILE, "--format", "json"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["trust"]["kernel_symbols"], "from the recording");
    let rows = report["rows"].as_array().unwrap();
    let callers: Vec<&str> = rows.iter().filter_map(|row| row["caller"].as_str()).collect();
    assert!(callers.contains(&"do_mprotect_pkey"), "{callers:?}");
}
