//! Who let waiters wait, told by sleeps and wakings alone, against what contention events tell of the
//! same recordings.

use std::collections::BTreeMap;
use std::io::Read;

use lockprof::kernel::Kernel;
use lockprof::model::{Filter, GroupBy, LockTypePattern, Query};
use lockprof::pipeline::Pipeline;
use lockprof::report::ChargedName;

use crate::fixtures::{hiding_contention, pipeline, root, without_contention_events};

/// Shares of the waiting for locks of a type, by the task that is charged or why none is.
type Shares = BTreeMap<String, f64>;

fn shares(pipeline: &Pipeline, kind: &str) -> Shares {
    let lock_type = vec![kind.parse::<LockTypePattern>().unwrap()];
    let filter = Filter { lock_type, ..Filter::default() };
    let query = Query { by: GroupBy::Releaser, top: 0, filter, ..Query::default() };
    let report = pipeline.report(&query);
    let mut shares = Shares::new();
    for row in &report.rows {
        let who = match row.key.releaser.as_ref().unwrap() {
            ChargedName::Releaser { task, .. } => format!("{} {}", task.comm, task.tid),
            ChargedName::Nobody(why) => why.name().to_owned(),
        };
        *shares.entry(who).or_default() += report.share(&row.stat);
    }
    shares
}

fn share(shares: &Shares, who: &str) -> f64 {
    shares.get(who).copied().unwrap_or_default()
}

/// How much of the waiting both charge to the same.
fn same(a: &Shares, b: &Shares) -> f64 {
    a.iter().map(|(who, of_a)| of_a.min(share(b, who))).sum()
}

/// Tasks, without the reasons why none is charged.
fn tasks(shares: &Shares) -> impl Iterator<Item = (&String, f64)> {
    shares.iter().filter(|(who, _)| who.contains(' ')).map(|(who, share)| (who, *share))
}

#[test]
fn a_convoy_is_charged_to_its_holder_also_without_contention_events() {
    let holder = "longhold 14009";
    let traced = share(&shares(&pipeline("6.18", "convoy"), "rwsem"), holder);
    let slept = share(&shares(&without_contention_events("6.18", "convoy"), "rwsem"), holder);
    println!("{holder}: {traced:.3} by contention events, {slept:.3} by sleeps");
    assert!(traced > 0.97 && slept > 0.97, "{traced} {slept}");
}

/// On 7.2 `contended_release` is hidden as well, which tells more than wakings do.
#[test]
fn an_mmap_lock_is_charged_to_the_same_with_and_without_contention_events() {
    for (kernel, least) in [("6.1", 0.95), ("6.12", 0.95), ("6.18", 0.98), ("7.2", 0.85)] {
        let traced = shares(&pipeline(kernel, "pairs-mmap"), "rwsem");
        let slept = shares(&without_contention_events(kernel, "pairs-mmap"), "rwsem");
        let same = same(&traced, &slept);
        println!("{kernel}: {same:.3} of the waiting is charged to the same");
        assert!(same > least, "{kernel}: {same} {traced:?} {slept:?}");
    }
}

/// A kernel on which nothing says that these functions take the mmap_lock.
fn with_other_names(kernel: &str) -> Kernel {
    let packed = std::fs::File::open(root().join(kernel).join("kallsyms.xz")).unwrap();
    let mut text = String::new();
    lzma_rust2::XzReader::new(packed, true).read_to_string(&mut text).unwrap();
    let text = text.replace(" do_mprotect_pkey\n", " do_one\n").replace("_sys_mincore\n", "_two\n");
    Kernel::from_kallsyms(text.as_bytes())
}

#[test]
fn of_a_lock_without_a_name_nobody_is_charged_with_what_another_held() {
    for (kernel, name, known) in [
        ("6.18", "convoy", 0.09),
        ("6.1", "pairs-mmap", 0.7),
        ("6.12", "pairs-mmap", 0.7),
        ("6.18", "pairs-mmap", 0.3),
        ("7.2", "pairs-mmap", 0.7),
    ] {
        let traced = shares(&pipeline(kernel, name), "rwsem");
        let other = (with_other_names(kernel), "other names".to_owned());
        let slept = shares(&hiding_contention(kernel, name, other), "rwsem");
        println!("{kernel}/{name}: {:.3} charged to the same", same(&traced, &slept));
        assert!(same(&traced, &slept) > known, "{kernel}/{name}: {traced:?} {slept:?}");
        for (who, charged) in tasks(&slept) {
            let truth = share(&traced, who);
            assert!(charged < truth + 0.005, "{kernel}/{name}: {who} {charged} of {truth}");
        }
        assert!(share(&slept, "waited_itself") > 0.1, "{kernel}/{name}: {slept:?}");
    }
}

#[test]
fn kernels_without_contention_events_tell_who_let_waiters_wait() {
    for (kernel, name, kind, charged) in [
        ("5.10", "pairs-mmap", "rwsem", 0.7),
        ("5.10", "pairs-pipe", "mutex", 0.4),
        ("5.10-rt", "pairs-mmap", "rwsem", 0.7),
        ("5.10-rt", "pairs-pipe", "rt-mutex", 0.25),
    ] {
        let shares = shares(&pipeline(kernel, name), kind);
        let tasks: f64 = tasks(&shares).map(|(_, share)| share).sum();
        println!("{kernel}/{name}: {tasks:.3} charged, {shares:?}");
        assert!(tasks > charged, "{kernel}/{name}: {shares:?}");
        assert!(share(&shares, "no_waking") < 0.01, "{kernel}/{name}: {shares:?}");
    }
}
