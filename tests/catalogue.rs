//! The catalogue of locks against the functions of real kernels.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::thread;

use lockprof::attribute::catalogue::{Path, Step, entries, syscall};
use lockprof::kernel::{Kernel, Places, Wanted, find};

/// The only reason besides kernels and modules that no list has a function.
const INLINED: &str = "inlined";

fn kernels() -> Vec<Kernel> {
    let folders = fs::read_dir("tests/fixtures/recordings").unwrap();
    let lists = folders.map(|folder| folder.unwrap().path().join("kallsyms.xz"));
    let lists: Vec<PathBuf> = lists.filter(|list| list.exists()).collect();
    thread::scope(|scope| {
        let threads: Vec<_> = lists.into_iter().map(|list| scope.spawn(|| kernel(list))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn kernel(kallsyms: PathBuf) -> Kernel {
    let wanted = Wanted { explicit: Some(&kallsyms), ..Wanted::default() };
    find(&wanted, &Places::of_this_machine()).unwrap().0
}

fn known(kernels: &[Kernel], name: &str) -> bool {
    kernels.iter().any(|kernel| kernel.has_function(name))
}

/// Functions of a path that no kernel of the fixtures has.
fn unknown(kernels: &[Kernel], path: &Path) -> Vec<String> {
    let missing = |step: &Step| match *step {
        Step::Function(name) => (!known(kernels, name)).then(|| name.to_owned()),
        // Prefixes stand for what file systems will have.
        Step::Prefix(_) => None,
        Step::Syscall(name) => {
            let entries = ["__x64_sys_", "__do_sys_", "__se_sys_", "ksys_", "sys_"];
            let one = entries.iter().any(|prefix| known(kernels, &format!("{prefix}{name}")));
            (!one).then(|| format!("{name}(2)"))
        }
    };
    path.steps.iter().filter_map(missing).collect()
}

#[test]
fn every_function_of_a_path_is_in_a_real_kernel_or_says_why_not() {
    let kernels = kernels();
    assert_eq!(kernels.len(), 7);
    let mut bad = Vec::new();
    for (entry, path) in entries().flat_map(|entry| entry.paths.iter().map(move |p| (entry, p))) {
        let unknown = unknown(&kernels, path);
        match path.only {
            None if !unknown.is_empty() => bad.push(format!("{}: no {unknown:?}", entry.name)),
            Some(why) if unknown.is_empty() => {
                bad.push(format!("{}: {:?} is there, and marked {why}", entry.name, path.steps));
            }
            _ => {}
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
fn a_mark_is_a_range_of_kernels_a_module_or_inlined() {
    let marks: BTreeSet<&str> =
        entries().flat_map(|entry| &entry.paths).filter_map(|path| path.only).collect();
    for mark in marks {
        let range = mark.split_once('-').is_some_and(|(first, last)| {
            [first, last].iter().all(|text| text.split('.').all(|part| part.parse::<u32>().is_ok()))
        });
        let module = mark.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        assert!(range || module || mark == INLINED, "{mark}");
    }
}

#[test]
fn a_system_call_is_told_from_its_entry_on_every_architecture() {
    for entry in ["__x64_sys_brk", "__arm64_sys_brk", "__s390x_sys_brk", "SyS_brk", "sys_brk"] {
        assert_eq!(syscall(entry), Some("brk"), "{entry}");
    }
    assert_eq!(syscall("brk"), None);
}
