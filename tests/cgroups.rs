//! In which cgroup tasks wait: by the samples that say so, through the public pipe.

mod streams;

use lockprof::kernel::Kernel;
use lockprof::model::{Filter, GroupBy, Query};
use lockprof::pipeline::Pipeline;
use lockprof::report::{Report, Row};
use lockprof::source::Synthetic;
use streams::{WRITE, ask, at};

const STACK: &[u64] = &[0xffff_ffff_8100_0010];

/// The pipe with what `write` writes in it.
fn pipeline(write: impl FnOnce(&mut Synthetic)) -> Pipeline {
    let mut synthetic = Synthetic::new();
    write(&mut synthetic);
    let kernel = (Kernel::from_kallsyms(b""), "a test".into());
    let origin = synthetic.origin_of_cgroups();
    let mut pipeline = Pipeline::new(origin, kernel, Default::default(), &Filter::default())
        .expect("the layout of synthetic records");
    pipeline.push(synthetic.take_round());
    pipeline.finish();
    pipeline
}

/// A wait of `ns`, begun at `time`.
fn wait(s: &mut Synthetic, time: u64, tid: i32, ns: u64) {
    s.begin(at(time, 0, tid), 0xa0, WRITE, STACK).end(at(time + ns, 0, tid), 0xa0, 0);
}

/// `(cgroup, how many waits, how long)`, sorted.
fn rows<'a>(report: &'a Report) -> Vec<(&'a str, u64, u64)> {
    let name = |row: &'a Row| row.key.cgroup.as_deref().expect("a cgroup");
    let row = |row: &'a Row| (name(row), row.stat.contended(), row.stat.wait().0);
    let mut rows: Vec<_> = report.rows.iter().map(row).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn a_task_that_moves_waits_in_both_cgroups() {
    let pipeline = pipeline(|s| {
        s.in_cgroup(1).cgroup(at(1, 0, 0), 25, "/a").cgroup(at(1, 0, 0), 26, "/a/b");
        s.in_cgroup(25);
        wait(s, 100, 7, 10);
        wait(s, 120, 7, 10);
        s.in_cgroup(26);
        wait(s, 200, 7, 30);
        wait(s, 300, 8, 5);
        s.in_cgroup(25);
        wait(s, 400, 7, 1);
    });
    let report = pipeline.report(&ask(GroupBy::Cgroup));
    assert_eq!(rows(&report), [("/a", 3, 21), ("/a/b", 2, 35)]);
    // A task is one thread all the same, and one row by task.
    assert_eq!(report.header.threads, 2);
    assert_eq!(pipeline.report(&ask(GroupBy::Task)).rows.len(), 2);
}

#[test]
fn a_wait_belongs_to_the_cgroup_in_which_it_began() {
    let pipeline = pipeline(|s| {
        s.in_cgroup(25).cgroup(at(1, 0, 0), 25, "/a");
        s.begin(at(100, 0, 7), 0xa0, WRITE, STACK);
        s.in_cgroup(26).end(at(150, 0, 7), 0xa0, 0);
    });
    assert_eq!(rows(&pipeline.report(&ask(GroupBy::Cgroup))), [("/a", 1, 50)]);
}

#[test]
fn a_cgroup_that_no_record_names_has_its_id_for_a_name() {
    let pipeline = pipeline(|s| {
        s.in_cgroup(77);
        wait(s, 100, 7, 10);
    });
    assert_eq!(rows(&pipeline.report(&ask(GroupBy::Cgroup))), [("[cgroup 77]", 1, 10)]);
}

#[test]
fn a_filter_takes_a_cgroup_with_all_below_it() {
    let pipeline = pipeline(|s| {
        s.in_cgroup(1);
        for (id, path) in [(25, "/a"), (26, "/a/b"), (27, "/ab")] {
            s.cgroup(at(1, 0, 0), id, path);
        }
        for (tid, id) in [(7, 25), (8, 26), (9, 27)] {
            s.in_cgroup(id);
            wait(s, 100 * tid as u64, tid, 10);
            s.cpu_sample(at(100 * tid as u64 + 50, 0, tid), STACK, &[]);
        }
    });
    let filter = Filter { cgroup: vec!["/a".into()], ..Filter::default() };
    let report = pipeline.report(&Query { filter, ..ask(GroupBy::Cgroup) });
    assert_eq!(rows(&report), [("/a", 1, 10), ("/a/b", 1, 10)]);
}

#[test]
fn without_cgroups_in_the_samples_tasks_have_none() {
    let mut synthetic = Synthetic::new();
    wait(&mut synthetic, 100, 7, 10);
    let pipeline = streams::Reading::default().pipeline([synthetic.take_round()]);
    assert!(!pipeline.has_cgroups());
    assert_eq!(rows(&pipeline.report(&ask(GroupBy::Cgroup))), [("[not recorded]", 1, 10)]);
}
