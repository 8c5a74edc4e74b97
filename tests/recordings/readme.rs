//! The page of the fixtures tells of every file, and of no other.

use std::collections::BTreeSet;
use std::fs;

use crate::fixtures::{KERNELS, names_of, root};

const MOST_OF_ONE: u64 = 1 << 20;
const MOST_OF_ALL: u64 = 20 << 20;

#[test]
fn the_page_lists_the_command_and_the_size_of_every_recording() {
    let page = fs::read_to_string(root().join("README.md")).unwrap();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let listed: BTreeSet<String> =
        rows.iter().map(|row| row[0].trim_matches('`').to_owned()).collect();
    let of_kernel = |kernel: &str| -> Vec<String> {
        names_of(kernel).iter().map(|name| format!("{kernel}/{name}.data")).collect()
    };
    let found: BTreeSet<String> = KERNELS.into_iter().flat_map(of_kernel).collect();
    assert_eq!(listed, found);
    for row in rows {
        let [file, _, command, bytes] = row.as_slice() else { panic!("{row:?}") };
        assert!(command.starts_with("`perf record "), "{file}: {command}");
        let size = fs::metadata(root().join(file.trim_matches('`'))).unwrap().len();
        let said = bytes.split(" of ").next().unwrap().replace(',', "");
        assert!(said == "whole" || said == size.to_string(), "{file}: {size} bytes, not {bytes}");
    }
}

#[test]
fn the_fixtures_are_small_and_every_kernel_has_its_symbols() {
    let mut all = 0;
    let mut folders = BTreeSet::new();
    for folder in fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path()) {
        if !folder.is_dir() {
            continue;
        }
        folders.insert(folder.file_name().unwrap().to_str().unwrap().to_owned());
        for file in fs::read_dir(&folder).unwrap() {
            let file = file.unwrap();
            let size = file.metadata().unwrap().len();
            assert!(size <= MOST_OF_ONE, "{}: {size} bytes", file.path().display());
            all += size;
        }
        assert!(folder.join("kallsyms.xz").is_file(), "{}", folder.display());
    }
    assert!(all <= MOST_OF_ALL, "{all} bytes");
    assert_eq!(folders, KERNELS.map(str::to_owned).into());
}
