//! How begins and ends make waits, case by case, through the public pipe.

mod streams;

use lockprof::model::{GroupBy, Nanos, WaitStat};
use lockprof::report::Report;
use lockprof::source::{At, Synthetic};
use streams::{
    MUTEX, READ, READER, RT, RT_KALLSYMS, RT_MUTEX, RW_WRITER, Reading, SEM, SPIN, WRITE, WRITER,
    at, ended, in_softirq, of_task, of_type,
};

/// What a stream must come to: counts by `(begun, phases, restarts, joined)`, waits by
/// `(ended, open, uncertain)`, unmatched ends, and the total own time.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    begins: (u64, u64, u64, u64),
    waits: (u64, u64, u64),
    unmatched: u64,
    own: u64,
}

fn outcome(report: &Report) -> Outcome {
    let counts = report.trust.counts;
    assert!(counts.balance(), "{counts:?}");
    Outcome {
        begins: (counts.begun, counts.phases, counts.restarts, counts.joined),
        waits: (counts.ended, counts.open, counts.uncertain),
        unmatched: counts.unmatched,
        own: report.total.ended.own.0,
    }
}

type Write = fn(&mut Synthetic);

/// `(what happens, the records, what comes out)`
const CASES: &[(&str, Write, Outcome)] = &[
    (
        "a plain wait",
        |s| {
            s.begin(at(100, 0, 7), 0xa, SPIN, &[]).end(at(130, 0, 7), 0xa, 0);
        },
        Outcome { begins: (1, 0, 0, 0), waits: (1, 0, 0), unmatched: 0, own: 30 },
    ),
    (
        "a mutex waiter spins and sleeps twice",
        |s| {
            s.begin(at(100, 0, 7), 0xa, SPIN | MUTEX, &[])
                .begin(at(110, 0, 7), 0xa, MUTEX, &[])
                .begin(at(120, 1, 7), 0xa, SPIN | MUTEX, &[])
                .begin(at(130, 1, 7), 0xa, MUTEX, &[])
                .end(at(140, 0, 7), 0xa, 0);
        },
        Outcome { begins: (1, 3, 0, 0), waits: (1, 0, 0), unmatched: 0, own: 40 },
    ),
    (
        "the same phase again is a lost end",
        |s| {
            s.begin(at(100, 0, 7), 0xa, SPIN | MUTEX, &[])
                .begin(at(500, 0, 7), 0xa, SPIN | MUTEX, &[])
                .end(at(510, 0, 7), 0xa, 0);
        },
        Outcome { begins: (1, 0, 1, 0), waits: (1, 0, 1), unmatched: 0, own: 10 },
    ),
    (
        "a reader asks again: a lost end",
        |s| {
            s.begin(at(100, 0, 7), 0xa, READ, &[]).begin(at(500, 0, 7), 0xa, READ, &[]).end(
                at(520, 0, 7),
                0xa,
                0,
            );
        },
        Outcome { begins: (1, 0, 1, 0), waits: (1, 0, 1), unmatched: 0, own: 20 },
    ),
    (
        "the idle task of two CPUs waits for one lock",
        |s| {
            s.begin(at(100, 0, 0), 0xa, SPIN, &[])
                .begin(at(110, 1, 0), 0xa, SPIN, &[])
                .end(at(140, 0, 0), 0xa, 0)
                .end(at(150, 1, 0), 0xa, 0);
        },
        Outcome { begins: (2, 0, 0, 0), waits: (2, 0, 0), unmatched: 0, own: 80 },
    ),
    (
        "an end before any begin",
        |s| {
            s.end(at(90, 0, 7), 0xa, 0).begin(at(100, 0, 7), 0xa, SEM, &[]).end(
                at(101, 0, 7),
                0xa,
                0,
            );
        },
        Outcome { begins: (1, 0, 0, 0), waits: (1, 0, 0), unmatched: 1, own: 1 },
    ),
    (
        "a spin ends on another CPU: not its end",
        |s| {
            s.begin(at(100, 0, 7), 0xa, SPIN, &[]).end(at(110, 1, 7), 0xa, 0);
        },
        Outcome { begins: (1, 0, 0, 0), waits: (0, 1, 0), unmatched: 1, own: 0 },
    ),
    (
        "a sleeper wakes up on another CPU",
        |s| {
            s.begin(at(100, 0, 7), 0xa, WRITE, &[]).end(at(190, 1, 7), 0xa, 0);
        },
        Outcome { begins: (1, 0, 0, 0), waits: (1, 0, 0), unmatched: 0, own: 90 },
    ),
    (
        "waits that cross: no second counts twice",
        |s| {
            s.begin(at(0, 0, 7), 0xa, READ, &[])
                .begin(at(10, 0, 7), 0xb, READ, &[])
                .end(at(100, 0, 7), 0xa, 0)
                .end(at(200, 0, 7), 0xb, 0);
        },
        Outcome { begins: (2, 0, 0, 0), waits: (2, 0, 0), unmatched: 0, own: 200 },
    ),
    (
        "three waits cross",
        |s| {
            s.begin(at(0, 0, 7), 0xa, READ, &[])
                .begin(at(10, 0, 7), 0xb, READ, &[])
                .begin(at(40, 0, 7), 0xc, READ, &[])
                .end(at(50, 0, 7), 0xb, 0)
                .end(at(100, 0, 7), 0xa, 0)
                .end(at(120, 0, 7), 0xc, 0);
        },
        Outcome { begins: (3, 0, 0, 0), waits: (3, 0, 0), unmatched: 0, own: 120 },
    ),
    (
        "a begin and its end at one moment, at the end of time",
        |s| {
            s.begin(at(u64::MAX, 0, 7), 0xa, SEM, &[]).end(at(u64::MAX, 0, 7), 0xa, 0);
        },
        Outcome { begins: (1, 0, 0, 0), waits: (1, 0, 0), unmatched: 0, own: 0 },
    ),
];

#[test]
fn every_case_of_pairing_comes_to_its_counts_and_times() {
    for (case, write, expected) in CASES {
        let report = Reading::default().report(GroupBy::Site, write);
        assert_eq!(&outcome(&report), expected, "{case}");
    }
}

#[test]
fn a_semaphore_and_its_own_spinlock_share_an_address() {
    let report = Reading::default().report(GroupBy::Site, |s| {
        s.begin(at(100, 0, 7), 0xa, SEM, &[])
            .begin(at(110, 0, 7), 0xa, SPIN, &[])
            .end(at(115, 0, 7), 0xa, 0)
            .begin(at(200, 1, 7), 0xa, SPIN, &[])
            .end(at(206, 1, 7), 0xa, 0)
            .end(at(300, 1, 7), 0xa, 0);
    });
    let counts = report.trust.counts;
    assert_eq!((counts.begun, counts.restarts, counts.unmatched), (3, 0, 0));
    assert_eq!(ended(&of_type(&report, "semaphore")), (1, 200, 200 - 5 - 6));
    assert_eq!(ended(&of_type(&report, "spinlock")), (2, 11, 11));
}

#[test]
fn what_contention_end_returned_is_the_outcome() {
    let outcomes = [(0, (0, 0)), (-4, (1, 0)), (-35, (0, 1)), (-110, (1, 0)), (1, (0, 0))];
    for (ret, expected) in outcomes {
        let report = Reading::default().report(GroupBy::Site, |s| {
            s.begin(at(100, 0, 7), 0xa, WRITE, &[]).end(at(150, 0, 7), 0xa, ret);
        });
        let WaitStat { failed, backed_off, .. } = report.total;
        assert_eq!((failed, backed_off), expected, "ret {ret}");
        assert_eq!(ended(&report.total), (1, 50, 50), "ret {ret}");
    }
}

#[test]
fn a_wait_open_at_exit_or_at_the_end_lasted_at_least_until_then() {
    let report = Reading::default().report(GroupBy::Task, |s| {
        s.comm(1, 7, 7, "ends", false)
            .comm(1, 8, 8, "stays", false)
            .begin(at(100, 0, 7), 0xa, WRITE, &[])
            .begin(at(100, 1, 8), 0xa, WRITE, &[])
            .exit(at(160, 0, 7))
            .cpu_sample(at(400, 0, 9), &[], &[]);
    });
    for (comm, time) in [("ends", 60), ("stays", 300)] {
        let stat = &of_task(&report, comm).stat;
        assert_eq!((stat.open, stat.open_time), (1, Nanos(time)), "{comm}");
        assert_eq!((stat.ended.count, stat.ended.max), (0, Nanos(0)), "{comm}");
    }
    assert_eq!(report.trust.counts.open, 2);
}

#[test]
fn a_spin_in_an_interrupt_is_taken_out_of_the_wait_it_interrupts() {
    let report = Reading::default().report(GroupBy::Task, |s| {
        s.comm(1, 7, 7, "waiter", false)
            .begin(at(100, 0, 7), 0xa, SPIN | MUTEX, &[])
            .begin(in_softirq(120, 0, 7), 0xb, SPIN, &[])
            .end(in_softirq(150, 0, 7), 0xb, 0)
            .end(at(200, 0, 7), 0xa, 0);
    });
    assert_eq!(ended(&of_task(&report, "waiter").stat), (1, 100, 70));
    assert_eq!(ended(&of_task(&report, "[softirq]").stat), (1, 30, 30));
}

#[test]
fn waits_left_open_nest_as_ended_ones_do() {
    let report = Reading::default().report(GroupBy::Site, |s| {
        s.begin(at(100, 0, 7), 0xa, WRITE, &[])
            .begin(at(120, 0, 7), 0xb, SPIN, &[])
            .begin(in_softirq(150, 0, 7), 0xc, SPIN, &[])
            .cpu_sample(at(200, 1, 9), &[], &[]);
    });
    assert_eq!((report.total.open, report.total.open_time), (3, Nanos(100)));
    assert_eq!(of_type(&report, "rwsem:W").open_time, Nanos(20));
}

#[test]
fn a_spin_over_a_mutex_on_another_cpu_is_another_threads() {
    let report = Reading::default().report(GroupBy::Site, |s| {
        s.begin(at(100, 0, 7), 0xa, SPIN | MUTEX, &[])
            .begin(at(120, 1, 8), 0xb, SPIN, &[])
            .end(at(150, 1, 8), 0xb, 0)
            .end(at(200, 0, 7), 0xa, 0);
    });
    assert_eq!(of_type(&report, "mutex").ended.own, Nanos(100));
}

/// A thread of a pid namespace whose number there is `tid`.
fn namespaced(time: u64, cpu: u32, common_pid: i32, tid: i32) -> At {
    At { pid: tid, tid, common_pid, ..At::new(time, cpu, tid) }
}

#[test]
fn in_a_pid_namespace_waits_are_paired_by_the_global_pid() {
    let report = Reading::default().report(GroupBy::Task, |s| {
        // Two tasks outside the namespace: both have tid 0. One inside is exiting: -1.
        s.begin(namespaced(100, 0, 500, 0), 0xa, WRITE, &[])
            .begin(namespaced(110, 1, 501, 0), 0xa, WRITE, &[])
            .begin(namespaced(120, 0, 5876, 4), 0xa, WRITE, &[])
            .end(namespaced(150, 0, 500, 0), 0xa, 0)
            .end(namespaced(160, 1, 501, 0), 0xa, 0)
            .end(namespaced(170, 0, 5876, -1), 0xa, 0);
    });
    let counts = report.trust.counts;
    assert_eq!((counts.ended, counts.unmatched, counts.restarts), (3, 0, 0));
    assert_eq!(report.rows.len(), 3);
}

#[test]
fn in_a_pid_namespace_names_and_exits_are_those_of_its_own_threads() {
    let report = Reading::default().report(GroupBy::Task, |s| {
        s.comm(1, 4, 4, "inside", false)
            .begin(namespaced(100, 0, 5876, 4), 0xa, WRITE, &[])
            // A kernel thread whose global pid is that of the exiting thread inside.
            .begin(namespaced(110, 1, 9, 0), 0xa, WRITE, &[])
            .exit(at(120, 0, 9))
            .exit(at(130, 0, 4))
            .end(namespaced(200, 1, 9, 0), 0xa, 0);
    });
    assert_eq!(of_task(&report, "inside").stat.open_time, Nanos(30));
    assert_eq!((report.total.ended.count, report.total.open), (1, 1));
}

#[test]
fn a_thread_id_used_again_in_a_namespace_is_the_new_thread() {
    let report = Reading::default().report(GroupBy::Task, |s| {
        s.begin(namespaced(100, 0, 5000, 4), 0xa, WRITE, &[])
            .end(namespaced(110, 0, 5000, 4), 0xa, 0)
            .exit(at(120, 0, 4))
            .begin(namespaced(200, 0, 6000, 4), 0xa, WRITE, &[])
            .exit(at(260, 0, 4))
            .cpu_sample(at(900, 1, 0), &[], &[]);
    });
    assert_eq!((report.total.open, report.total.open_time), (1, Nanos(60)));
}

#[test]
fn a_pid_used_again_is_another_task() {
    let report = Reading::default().report(GroupBy::Task, |s| {
        s.comm(1, 7, 7, "first", false)
            .begin(at(100, 0, 7), 0xa, WRITE, &[])
            .end(at(110, 0, 7), 0xa, 0)
            .exit(at(120, 0, 7))
            .comm(130, 3, 3, "parent", false)
            .fork(At { pid: 7, ..at(140, 0, 7) }, 3, 3)
            .begin(at(150, 0, 7), 0xa, WRITE, &[])
            .end(at(170, 0, 7), 0xa, 0)
            .comm(180, 7, 7, "second", true)
            .begin(at(200, 0, 7), 0xa, WRITE, &[])
            .end(at(240, 0, 7), 0xa, 0);
    });
    let times = ["first", "parent", "second"].map(|comm| of_task(&report, comm).stat.ended.own.0);
    assert_eq!(times, [10, 20, 40]);
}

#[test]
fn an_exec_renames_the_task_but_not_its_past() {
    let report = Reading::default().report(GroupBy::Task, |s| {
        s.comm(1, 7, 7, "sh", false)
            .begin(at(100, 0, 7), 0xa, WRITE, &[])
            .comm(105, 7, 7, "xfs_repair", true)
            .end(at(110, 0, 7), 0xa, 0)
            .begin(at(120, 0, 7), 0xa, WRITE, &[])
            .end(at(150, 0, 7), 0xa, 0);
    });
    let times = ["sh", "xfs_repair"].map(|comm| of_task(&report, comm).stat.ended.own.0);
    assert_eq!(times, [10, 30]);
}

#[test]
fn a_recording_without_ends_gives_counts_and_no_times() {
    let reading = Reading { ends: false, ..Reading::default() };
    let report = reading.report(GroupBy::Site, |s| {
        for (time, lock) in (1..).zip(0..5000) {
            s.begin(at(time * 10, 0, 7), lock, WRITE, &[]);
        }
        s.begin(at(60_000, 0, 7), 0xa, SPIN | MUTEX, &[]).begin(at(60_010, 0, 7), 0xa, MUTEX, &[]);
    });
    let counts = report.trust.counts;
    assert!(counts.balance());
    assert_eq!((counts.begun, counts.phases, counts.uncertain), (5001, 1, 0));
    assert_eq!(report.total.contended(), 5001);
    assert_eq!((report.total.wait(), report.total.uncertain_time), (Nanos(0), Nanos(0)));
}

#[test]
fn ends_that_are_lost_unseen_make_no_pile_of_open_waits() {
    let report = Reading::default().report(GroupBy::Site, |s| {
        for (time, lock) in (1..).zip(0..20_000) {
            s.begin(at(time * 10, 0, 7), lock, WRITE, &[]).begin(
                at(time * 10 + 1, 1, 8),
                lock,
                SPIN,
                &[],
            );
        }
    });
    let counts = report.trust.counts;
    assert!(counts.balance());
    assert!(counts.open <= 32, "{} open", counts.open);
    assert_eq!(counts.open + counts.uncertain, 40_000);
}

const LOCK: u64 = 0xffff_8880_0000_1000;
const INNER: u64 = LOCK + 8;

fn on_rt(write: impl FnOnce(&mut Synthetic)) -> Report {
    let reading = Reading { kallsyms: RT_KALLSYMS, ..Reading::default() };
    let report = reading.report(GroupBy::Lock, write);
    assert!(report.trust.counts.balance(), "{:?}", report.trust.counts);
    report
}

#[test]
fn on_rt_a_readers_rt_mutex_is_part_of_its_wait_for_the_rwsem() {
    let report = on_rt(|s| {
        s.begin(at(100, 0, 7), LOCK, RT | READ, READER)
            .begin(at(110, 0, 7), INNER, RT, READER)
            .end(at(150, 0, 7), INNER, 0)
            .end(at(160, 0, 7), LOCK, 0);
    });
    assert_eq!(ended(&of_type(&report, "rwsem:R (rt)")), (1, 60, 60));
    assert_eq!(report.total.contended(), 1);
    assert_eq!((report.trust.counts.joined, report.trust.counts.joined_ends), (1, 1));
}

#[test]
fn on_rt_a_writers_two_halves_are_one_wait() {
    let report = on_rt(|s| {
        s.begin(at(100, 0, 7), INNER, RT, WRITER)
            .end(at(150, 0, 7), INNER, 0)
            .begin(at(155, 0, 7), LOCK, RT | WRITE, WRITER)
            .end(at(190, 0, 7), LOCK, 0);
    });
    assert_eq!(ended(&of_type(&report, "rwsem:W (rt)")), (1, 90, 90));
    assert_eq!(report.rows.len(), 1);
}

#[test]
fn on_rt_a_writers_first_half_may_be_its_whole_wait() {
    let report = on_rt(|s| {
        s.begin(at(100, 0, 7), INNER, RT, WRITER)
            .end(at(150, 0, 7), INNER, 0)
            .begin(at(300, 0, 7), INNER, RT, WRITER)
            .end(at(310, 0, 7), INNER, -4);
    });
    let stat = of_type(&report, "rwsem:W (rt)");
    assert_eq!((ended(&stat), stat.failed), ((2, 60, 60), 1));
    assert_eq!(report.rows[0].key.lock_addr.map(|lock| lock.0), Some(LOCK));
}

#[test]
fn on_rt_two_first_halves_at_once_are_both_counted() {
    let report = on_rt(|s| {
        s.begin(at(100, 0, 7), INNER, RT, WRITER)
            .begin(at(110, 0, 7), INNER + 64, RT, WRITER)
            .end(at(150, 0, 7), INNER + 64, 0)
            .end(at(160, 0, 7), INNER, 0);
    });
    assert_eq!(ended(&of_type(&report, "rwsem:W (rt)")), (2, 100, 60));
}

#[test]
fn on_rt_rwlocks_and_rt_mutexes_keep_their_types() {
    let report = on_rt(|s| {
        s.begin(at(100, 0, 7), INNER, RT, RW_WRITER)
            .end(at(150, 0, 7), INNER, 0)
            .begin(at(200, 0, 7), 0xb, RT, RT_MUTEX)
            .end(at(210, 0, 7), 0xb, 0);
    });
    assert_eq!(ended(&of_type(&report, "rwlock-rt:W")), (1, 50, 50));
    assert_eq!(ended(&of_type(&report, "rt-mutex")), (1, 10, 10));
}

#[test]
fn on_rt_a_reader_begins_once_even_in_a_recording_without_ends() {
    let reading = Reading { ends: false, kallsyms: RT_KALLSYMS, ..Reading::default() };
    let report = reading.report(GroupBy::Lock, |s| {
        s.begin(at(100, 0, 7), LOCK, RT | READ, READER).begin(at(110, 0, 7), INNER, RT, READER);
    });
    assert_eq!(report.total.contended(), 1);
    assert!(report.trust.counts.balance() && report.trust.counts.joined == 1);
}

#[test]
fn a_lock_that_is_waited_for_at_two_places_is_one_row_by_lock() {
    let reading = Reading { kallsyms: RT_KALLSYMS, ..Reading::default() };
    let (first, second) = (&RT_MUTEX[1..], &[RT_MUTEX[1] + 0x200]);
    let report = reading.report(GroupBy::Lock, |s| {
        s.begin(at(100, 0, 7), 0xa, SPIN, first)
            .end(at(110, 0, 7), 0xa, 0)
            .begin(at(200, 0, 7), 0xa, SPIN, second)
            .end(at(250, 0, 7), 0xa, 0);
    });
    assert_eq!(report.rows.len(), 1, "{:#?}", report.rows);
    let name = &report.rows[0].key.lock.as_ref().unwrap().name;
    assert_eq!(name, "spinlock @ do_madvise", "the place that waits most names it");
}
