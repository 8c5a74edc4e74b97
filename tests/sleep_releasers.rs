//! Who let a task wait whose wait is known by its sleep alone, case by case, through the public pipe:
//! locks that have a name are charged as those that have an address, of others only what is known.

mod streams;

use lockprof::model::GroupBy;
use lockprof::report::{ChargedName, Report};
use lockprof::source::{At, Synthetic};
use streams::symbols::Symbols;
use streams::{Reading, at, in_softirq};

const FUNCTIONS: Symbols = Symbols(&[
    "_text",
    "schedule",
    "rwsem_down_write_slowpath",
    "down_write",
    "do_mprotect_pkey",
    "do_unlinkat",
    "percpu_down_write",
    "cgroup_attach_lock",
    "wake_up_q",
    "rwsem_wake",
    "up_write",
    "__mutex_unlock_slowpath",
    "rcuwait_wake_up",
    "percpu_up_read",
    "do_exit",
    "futex_do_wait",
]);
/// Sleeps for the mmap_lock, of which a process has one.
const MPROTECT: &[&str] =
    &["schedule", "rwsem_down_write_slowpath", "down_write", "do_mprotect_pkey"];
/// Sleeps for an i_rwsem, of which every directory has one.
const UNLINK: &[&str] = &["schedule", "rwsem_down_write_slowpath", "down_write", "do_unlinkat"];
const RELEASE: &[&str] = &["wake_up_q", "rwsem_wake", "up_write", "do_mprotect_pkey"];
const US: u64 = 1_000;

/// A thread of a process that is named after it.
#[derive(Clone, Copy)]
struct Thread {
    pid: i32,
    tid: i32,
}

/// Threads of one process.
const fn thread(tid: i32) -> Thread {
    Thread { pid: 5, tid }
}

impl Thread {
    fn at(self, time: u64) -> At {
        At { pid: self.pid, ..at(time * US, self.tid as u32, self.tid) }
    }

    /// It goes to sleep.
    fn sleeps(self, s: &mut Synthetic, time: u64, names: &[&str]) {
        s.sched_switch(self.at(time), 2, 0, (&FUNCTIONS.stack(names), &[]));
    }

    /// It has a CPU again.
    fn runs(self, s: &mut Synthetic, time: u64) {
        s.sched_switch(At { pid: 0, ..at(time * US, self.tid as u32, 0) }, 0, self.tid, (&[], &[]));
    }

    fn wakes(self, s: &mut Synthetic, time: u64, woken: Thread, names: &[&str]) {
        s.waking(self.at(time), woken.tid, &FUNCTIONS.stack(names));
    }
}

/// Who is charged with how many us: a task, or why nobody.
fn charges(report: &Report) -> Vec<(String, u64)> {
    let who = |name: &ChargedName| match name {
        ChargedName::Releaser { task, .. } => task.tid.to_string(),
        ChargedName::Nobody(why) => why.name().to_owned(),
    };
    let rows = report
        .rows
        .iter()
        .filter_map(|row| Some((who(row.key.releaser.as_ref()?), row.stat.wait().0 / US)));
    let mut rows: Vec<(String, u64)> = rows.filter(|(_, time)| *time > 0).collect();
    rows.sort();
    rows
}

/// The report by releaser on threads 1 to 4 of process 5 and what they do.
fn report(write: impl FnOnce(&mut Synthetic)) -> Report {
    let kallsyms = FUNCTIONS.kallsyms();
    let reading =
        Reading { kallsyms, wakings: true, sleeps: true, contention: false, ..Reading::default() };
    let report = reading.report(GroupBy::Releaser, |s| {
        for tid in 1..=4 {
            s.comm(0, 5, tid, "worker", false);
        }
        (1..=4).for_each(|tid| thread(tid).runs(s, 10));
        write(s);
        s.cpu_sample(at(9_000 * US, 0, 0), &[], &[]);
    });
    let rows: u64 = report.rows.iter().map(|row| row.stat.wait().0).sum();
    assert_eq!(rows, report.total.wait().0, "rows add up to all waiting");
    report
}

fn owned(charges: &[(&str, u64)]) -> Vec<(String, u64)> {
    charges.iter().map(|(who, time)| ((*who).to_owned(), *time)).collect()
}

/// 1 lets 2 go at 1000 us, 2 lets 3 go 10 us later; both wait on this stack since 100 us.
fn queue(s: &mut Synthetic, names: &[&str]) {
    thread(2).sleeps(s, 100, names);
    thread(3).sleeps(s, 100, names);
    thread(1).wakes(s, 1000, thread(2), RELEASE);
    thread(2).runs(s, 1005);
    thread(2).wakes(s, 1010, thread(3), RELEASE);
    thread(3).runs(s, 1012);
}

#[test]
fn the_only_lock_of_a_process_is_cut_at_every_hand_over() {
    let report = report(|s| queue(s, MPROTECT));
    // 2 after its waking: 5 us; 3 after its: 2 us. 2 had it for 10 us, and 3 waited.
    assert_eq!(charges(&report), owned(&[("1", 1800), ("2", 10), ("own", 7)]));
    let holds: Vec<u64> =
        report.rows.iter().filter_map(|row| Some(row.hold.as_ref()?.total.0 / US)).collect();
    assert_eq!(holds, [900, 10]);
}

#[test]
fn who_waited_for_one_of_many_locks_is_charged_only_from_then_on() {
    let report = report(|s| queue(s, UNLINK));
    // Nobody knows whose 900 us of task 3 were, until 2 was let go.
    let wanted = [("1", 900), ("2", 10), ("own", 7), ("waited_itself", 900)];
    assert_eq!(charges(&report), owned(&wanted));
}

#[test]
fn locks_of_two_processes_are_two() {
    let stranger = Thread { pid: 6, tid: 4 };
    let report = report(|s| {
        s.comm(20, 6, 4, "stranger", false);
        thread(2).sleeps(s, 100, MPROTECT);
        stranger.sleeps(s, 200, MPROTECT);
        thread(3).wakes(s, 700, stranger, RELEASE);
        stranger.runs(s, 710);
        thread(1).wakes(s, 1000, thread(2), RELEASE);
        thread(2).runs(s, 1010);
    });
    assert_eq!(charges(&report), owned(&[("1", 900), ("3", 500), ("own", 20)]));
}

#[test]
fn who_lets_such_a_lock_go_has_waited_for_it_to_the_end() {
    // Again and again within 100 us of CPU time, on one stack: two waits, not a run of sleeps.
    let report = report(|s| {
        queue(s, MPROTECT);
        thread(2).sleeps(s, 1020, MPROTECT);
        thread(3).wakes(s, 1050, thread(2), RELEASE);
        thread(2).runs(s, 1055);
    });
    assert_eq!(report.total.contended(), 3);
    let wanted = [("1", 1800), ("2", 10), ("3", 30), ("own", 12)];
    assert_eq!(charges(&report), owned(&wanted));
}

#[test]
fn other_wakings_are_no_hand_overs() {
    for (what, softirq, names) in [
        ("of another kind", false, &["__mutex_unlock_slowpath", "do_exit"][..]),
        ("no lock code", false, &["wake_up_q", "do_exit"]),
        ("in an interrupt", true, RELEASE),
    ] {
        let report = report(|s| {
            thread(2).sleeps(s, 100, MPROTECT);
            let from = if softirq { in_softirq(1000 * US, 1, 1) } else { thread(1).at(1000) };
            s.waking(from, 2, &FUNCTIONS.stack(names));
            thread(2).runs(s, 1010);
        });
        assert_eq!(charges(&report), owned(&[("no_waking", 910)]), "{what}");
    }
}

#[test]
fn who_waits_for_the_readers_of_a_percpu_rwsem_is_let_go_by_the_last_one() {
    let report = report(|s| {
        thread(2).sleeps(s, 100, &["schedule", "percpu_down_write", "cgroup_attach_lock"]);
        thread(1).wakes(s, 700, thread(2), &["rcuwait_wake_up", "percpu_up_read", "do_exit"]);
        thread(2).runs(s, 710);
    });
    assert_eq!(charges(&report), owned(&[("1", 600), ("own", 10)]));
    let caller = |row: &lockprof::report::Row| match row.key.releaser.as_ref()? {
        ChargedName::Releaser { caller, .. } => caller.clone(),
        ChargedName::Nobody(_) => None,
    };
    assert_eq!(report.rows.iter().find_map(caller).as_deref(), Some("do_exit"));
}

#[test]
fn a_releaser_that_waited_for_another_lock_passes_its_part_on() {
    // 2 has the mmap_lock and waits for a directory until 3 lets it go; 4 waits for 2.
    let report = report(|s| {
        thread(2).sleeps(s, 100, UNLINK);
        thread(4).sleeps(s, 150, MPROTECT);
        thread(3).wakes(s, 600, thread(2), RELEASE);
        thread(2).runs(s, 610);
        thread(2).wakes(s, 800, thread(4), RELEASE);
        thread(4).runs(s, 805);
    });
    assert_eq!(charges(&report), owned(&[("2", 650), ("3", 500), ("own", 15)]));
    let chain = report.chains.rows.first().expect("a chain");
    assert_eq!((chain.links.len(), chain.stat.own.0 / US), (2, 450));
    let waited = chain.links[0].waited.as_ref().expect("what 2 waited for");
    assert_eq!(waited.caller.as_deref(), Some("do_unlinkat"));
    assert_eq!(waited.lock.as_ref().expect("its name").name, "i_rwsem");
}
