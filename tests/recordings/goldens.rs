//! What `lockprof report` says of each recording: tables by site, lock and task at width 100, and JSON
//! of one recording of each kernel.

use lockprof::render::{Json, Renderer, Table};
use lockprof::report::Report;

use crate::fixtures::recordings;
use crate::golden::assert_golden;

/// Rows shown, as `lockprof report` does unless told otherwise.
const TOP: usize = 20;

fn text(renderer: &dyn Renderer, report: &Report) -> String {
    let report = Report { top: TOP, ..report.clone() };
    let mut out = Vec::new();
    renderer.render(&report, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn goldens_of(kernel: &str, as_json: &str) {
    for recording in recordings().iter().filter(|recording| recording.kernel == kernel) {
        let name = &recording.name;
        let mut tables = String::new();
        for (by, report) in [
            ("site", &recording.by_site),
            ("lock", &recording.by_lock),
            ("task", &recording.by_task),
        ] {
            tables += &format!("$ lockprof report {name}.data --by {by}\n");
            tables += &text(&Table::default(), report);
            tables += "\n";
        }
        let tables = tables.trim_end_matches('\n').to_owned() + "\n";
        assert_golden(&format!("recordings/{kernel}/{name}.txt"), &tables);
        if name == as_json {
            let json = text(&Json, &recording.by_site);
            assert_golden(&format!("recordings/{kernel}/{name}.json"), &json);
        }
    }
}

#[test]
fn kernel_5_10() {
    goldens_of("5.10", "cpu-mmap");
}

#[test]
fn kernel_5_10_rt() {
    goldens_of("5.10-rt", "cpu-mmap");
}

#[test]
fn kernel_6_1() {
    goldens_of("6.1", "pairs-mmap");
}

#[test]
fn kernel_6_12() {
    goldens_of("6.12", "pairs-mmap");
}

#[test]
fn kernel_6_12_rt() {
    goldens_of("6.12-rt", "pairs-mmap");
}

#[test]
fn kernel_6_18() {
    goldens_of("6.18", "lost");
}

#[test]
fn kernel_7_2() {
    goldens_of("7.2", "pairs-mmap");
}
