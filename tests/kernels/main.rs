//! What lockprof recorded on real kernels under QEMU, and whether it is right.
//!
//! `run.sh` boots the kernels and calls `real_kernels` with LOCKPROF_KERNELS, the folder with what they
//! brought; without it the test is skipped aloud. It prints a table of kernels and checks. When a check
//! holds, it is tried again on the same recordings with something broken, where it has to fail.
//!
//! Two recordings of each kernel are in `tests/fixtures/guests`: what can be checked of them is checked in
//! every run of the tests, and what reports say of them is kept as goldens.

// Everything here is test code, the functions between the tests too.
#![allow(clippy::unwrap_used)]

#[path = "../aloud/mod.rs"]
mod aloud;
mod booted;
mod checks;
mod expected;
mod fault;
#[path = "../golden/mod.rs"]
mod golden;
mod recorded;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use booted::Booted;
use checks::{CHECKS, Check, Wrong};
use expected::Expected;
use fault::Fault;
use lockprof::render::{Renderer, Table};
use lockprof::report::Report;
use table::{Cell, Matrix};

/// The guests of one kernel, by name; an error where one is not there.
struct Kernel {
    version: String,
    expected: &'static Expected,
    events: Result<Booted, String>,
    spin: Result<Booted, String>,
}

impl Kernel {
    fn of(folder: &Path) -> Result<Kernel, String> {
        let version = folder.file_name().unwrap().to_str().unwrap().to_owned();
        if let Ok(why) = fs::read_to_string(folder.join("skipped")) {
            return Err(format!("{version}: {}", why.trim()));
        }
        let expected = expected::of(&version);
        let expected = expected.ok_or_else(|| format!("{version}: it is not in the matrix"))?;
        let guest = |name: &str| {
            let guest = Booted::of(&folder.join(name));
            match &guest.seconds {
                Ok(_) => Ok(guest),
                Err(why) => Err(format!("{version} {name}: {why}")),
            }
        };
        Ok(Kernel { expected, events: guest("events"), spin: guest("spin"), version })
    }

    fn guest(&self, name: &str) -> Result<&Booted, &String> {
        if name == "events" { self.events.as_ref() } else { self.spin.as_ref() }
    }

    fn cell(&self, check: &Check) -> Cell {
        if !(check.applies)(self.expected) {
            return Cell::NotHere;
        }
        match self.guest(check.guest) {
            Ok(guest) => Cell::Said((check.run)(self.expected, guest)),
            Err(_) => Cell::Skipped,
        }
    }

    /// What a check says that holds and goes on to hold with such a fault.
    fn unnoticed(&self, check: &Check, fault: Fault) -> Option<String> {
        let guest = self.guest(check.guest).ok()?;
        (check.run)(self.expected, guest).ok()?;
        let word = (check.run)(self.expected, &guest.with(fault)).ok()?;
        Some(format!("{}: {}: ok {word} with {fault:?}", self.version, check.name))
    }

    fn seconds(&self, guest: &str) -> Cell {
        match self.guest(guest).map(|guest| guest.seconds.clone()) {
            Ok(seconds) => {
                Cell::Said(seconds.map(|seconds| format!("{seconds:.0} s")).map_err(Wrong::Failed))
            }
            Err(_) => Cell::Skipped,
        }
    }
}

/// Kernels in the order of the matrix, and those that are not there, with the reason.
fn kernels(folder: &Path) -> (Vec<Kernel>, Vec<String>) {
    let mut folders: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let place = |path: &Path| {
        let version = path.file_name().and_then(|name| name.to_str());
        expected::KERNELS.iter().position(|kernel| version == Some(kernel.version))
    };
    folders.sort_by_key(|path| (place(path).is_none(), place(path)));
    let (mut kernels, mut skipped) = (Vec::new(), Vec::new());
    for folder in folders {
        match Kernel::of(&folder) {
            Ok(kernel) => kernels.push(kernel),
            Err(why) => skipped.push(why),
        }
    }
    (kernels, skipped)
}

/// What is made of each kernel, on a thread each.
fn side_by_side<T: Send>(kernels: &[Kernel], make: impl Fn(&Kernel) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let make = &make;
        let threads: Vec<_> = kernels.iter().map(|k| scope.spawn(move || make(k))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn matrix(kernels: &[Kernel], mut skipped: Vec<String>) -> Matrix {
    let guests = kernels.iter().flat_map(|kernel| [&kernel.events, &kernel.spin]);
    skipped.extend(guests.filter_map(|guest| guest.as_ref().err().cloned()));
    let columns = kernels.iter().map(|kernel| kernel.version.clone()).collect();
    let mut names: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
    names.extend(["4 CPUs: boot and all commands", "8 CPUs: the same"]);
    let mut lines: Vec<(String, Vec<Cell>)> =
        names.into_iter().map(|name| (name.to_owned(), Vec::new())).collect();
    let column = |kernel: &Kernel| -> Vec<Cell> {
        let cells = CHECKS.iter().map(|check| kernel.cell(check));
        cells.chain(["events", "spin"].map(|guest| kernel.seconds(guest))).collect()
    };
    for column in side_by_side(kernels, column) {
        lines.iter_mut().zip(column).for_each(|((_, cells), cell)| cells.push(cell));
    }
    Matrix { columns, lines, skipped }
}

/// Checks that hold although something is broken that they are there to notice.
fn blind(kernels: &[Kernel]) -> Vec<String> {
    side_by_side(kernels, blind_for).concat()
}

fn blind_for(kernel: &Kernel) -> Vec<String> {
    let mut blind = Vec::new();
    for (fault, names) in fault::NOTICED {
        let checks = CHECKS.iter().filter(|check| names.contains(&check.name));
        let checks = checks.filter(|check| (check.applies)(kernel.expected));
        blind.extend(checks.filter_map(|check| kernel.unnoticed(check, fault)));
    }
    blind
}

#[test]
fn real_kernels() {
    let Some(folder) = std::env::var_os("LOCKPROF_KERNELS") else {
        return aloud::skipped("LOCKPROF_KERNELS is not set: tests/kernels/run.sh boots kernels");
    };
    let (kernels, skipped) = kernels(Path::new(&folder));
    let matrix = matrix(&kernels, skipped);
    println!("\n{matrix}");
    let blind = blind(&kernels);
    assert!(blind.is_empty(), "checks that notice nothing: {blind:#?}");
    let failures = matrix.failures();
    assert!(failures.is_empty(), "{} checks failed", failures.len());
}

/// The recordings that travelled.
fn travelled() -> Vec<Kernel> {
    let folder = |expected: &'static Expected| {
        // Relative to the package, where tests run: the path is part of what reports say.
        let folder = Path::new("tests/fixtures/guests").join(expected.version);
        let events = Ok(Booted::travelled(&folder));
        let spin = Err("it did not travel".into());
        Kernel { version: expected.version.into(), expected, events, spin }
    };
    expected::KERNELS.iter().map(folder).collect()
}

#[test]
fn recordings_that_travelled_say_on_this_machine_what_their_kernels_did() {
    let kernels = travelled();
    for kernel in &kernels {
        for check in CHECKS.iter().filter(|check| check.travels && (check.applies)(kernel.expected))
        {
            let said = (check.run)(kernel.expected, kernel.events.as_ref().unwrap());
            assert!(said.is_ok(), "{}: {}: {said:?}", kernel.version, check.name);
        }
    }
}

#[test]
fn each_check_fails_on_recordings_that_are_broken_for_it() {
    let blind = blind(&travelled());
    assert!(blind.is_empty(), "checks that notice nothing: {blind:#?}");
}

#[test]
fn reports_of_recordings_that_travelled() {
    for kernel in travelled() {
        let guest = kernel.events.unwrap();
        for name in guest.names() {
            let recorded = guest.recorded(&name).unwrap();
            let mut tables = String::new();
            for (by, report) in [("site", &recorded.by_site), ("lock", &recorded.by_lock)] {
                let mut table = Vec::new();
                let report = Report { top: 10, ..report.clone() };
                Table::default().render(&report, &mut table).unwrap();
                tables += &format!("$ lockprof report {name}.data --by {by} --top 10\n");
                tables += &String::from_utf8(table).unwrap();
                tables += "\n";
            }
            let tables = tables.trim_end().to_owned() + "\n";
            golden::assert_golden(&format!("guests/{}-{name}.txt", kernel.version), &tables);
        }
    }
}
