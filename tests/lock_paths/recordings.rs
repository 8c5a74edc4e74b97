//! The recordings of six kernels: goldens, and the shares that other tools found in them.

use std::io::Read;
use std::path::{Path, PathBuf};

use lockprof::analyse::Detail;
use lockprof::kernel::Kernel;
use lockprof::model::{Filter, PathQuery};
use lockprof::pipeline::Pipeline;
use lockprof::render::{Renderer, Table};
use lockprof::report::{PathSkid, Paths};
use lockprof::source::{Replay, Round};

use crate::percent;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn kernel(directory: &Path) -> Kernel {
    let file = std::fs::File::open(directory.join("kallsyms.xz")).unwrap();
    let mut text = Vec::new();
    lzma_rust2::XzReader::new(file, false).read_to_end(&mut text).unwrap();
    Kernel::from_kallsyms(&text)
}

/// The lock paths of `KERNEL/FILE`.
fn paths(name: &str) -> Paths {
    let file = root().join("fixtures/recordings").join(name).with_extension("data");
    let mut replay = Replay::open(&file).unwrap();
    let kernel = kernel(file.parent().unwrap());
    let detail = Detail { cpu_stacks: true, ..Detail::default() };
    let origin = replay.take_origin();
    let names = (kernel, "of the recorded kernel".to_owned());
    let mut pipeline = Pipeline::new(origin, names, detail, &Filter::default()).unwrap();
    let mut round = Round::default();
    while replay.next_round(&mut round).unwrap() {
        pipeline.push(std::mem::take(&mut round));
    }
    pipeline.finish();
    pipeline.paths(&PathQuery::default())
}

/// Every recording of CPU samples there is.
fn all() -> Vec<String> {
    let mut names = Vec::new();
    for kernel in std::fs::read_dir(root().join("fixtures/recordings")).unwrap() {
        let kernel = kernel.unwrap().path();
        for file in std::fs::read_dir(&kernel).into_iter().flatten() {
            let file = file.unwrap().path();
            let name = file.file_stem().unwrap().to_string_lossy().into_owned();
            if name.starts_with("cpu-") {
                let kernel = kernel.file_name().unwrap().to_string_lossy().into_owned();
                names.push(format!("{kernel}/{name}"));
            }
        }
    }
    names.sort();
    names
}

fn assert_golden(name: &str, got: &str) {
    let file = format!("{}.txt", name.replace('/', "-"));
    let path = root().join("goldens/paths").join(file);
    if std::env::var_os("LOCKPROF_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, got).unwrap();
        return;
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        want == got,
        "{} differs; LOCKPROF_BLESS=1 writes it anew.\n--- golden\n{want}\n--- now\n{got}",
        path.display()
    );
}

#[test]
fn every_recording_of_cpu_samples_gives_its_golden_and_knows_all_its_lock_functions() {
    let names = all();
    assert!(names.len() >= 20, "{names:?}");
    for name in names {
        let paths = paths(&name);
        assert!(paths.unclassified.is_empty(), "{name}: {:?}", paths.unclassified);
        let sum: u64 = paths.rows.iter().map(|row| row.spun.time.0).sum();
        assert_eq!(sum, paths.total.time.0, "{name}");
        let mut out = Vec::new();
        Table::default().render(&paths, &mut out).unwrap();
        assert_golden(&name, &String::from_utf8(out).unwrap());
    }
}

/// Readers of 5.10 spin for an rwsem; later ones only sleep. (How much of each: `docs/kernels.md`
/// counted other runs of the same workload, of 4 and 8 CPUs.)
#[test]
fn readers_spin_on_5_10_and_not_later() {
    assert!(percent(&paths("5.10/cpu-mmap"), "Spin rwsem:R") > 20.0);
    for name in ["6.1/cpu-mmap", "6.12/cpu-mmap", "7.2/cpu-mmap"] {
        let readers = percent(&paths(name), "Spin rwsem:R");
        assert!(readers < 3.0, "{name}: {readers}");
    }
}

#[test]
fn the_shares_are_those_that_were_counted_by_hand() {
    // Recording, path, least and most percent of the busy samples.
    let counted = [
        ("5.10/cpu-mmap", "Spin rwsem", 60.0, 80.0),
        ("6.1/cpu-mmap", "Spin rwsem:W", 20.0, 50.0),
        ("6.12/cpu-mmap", "Spin rwsem:W", 19.0, 50.0),
        ("7.2/cpu-mmap", "Spin rwsem:W", 24.0, 50.0),
        ("6.1/cpu-mmap", "IrqOff", 6.0, 14.0),
        ("6.1/cpu-append", "Spin rwsem:W", 80.0, 90.0),
        ("6.12/cpu-pipe", "Spin mutex", 60.0, 80.0),
    ];
    for (name, path, least, most) in counted {
        let share = percent(&paths(name), path);
        assert!((least..most).contains(&share), "{name}: {path} {share}");
    }
}

/// The emulated clocks of these recordings keep no grid: nothing may move.
#[test]
fn recordings_of_emulated_machines_are_not_corrected() {
    let paths = paths("6.1/cpu-pipe");
    assert_eq!(paths.skid, PathSkid::NoGrid);
}
