//! The workloads as a caller sees them. They contend for locks of this process or of one directory
//! of its own, need no rights, and are run for some hundredths of a second.

use std::error::Error as _;
use std::time::Duration;

use lockprof_hammer::{
    Convoy, DirectoryRwsem, Error, Fairness, FdTable, Hold, MmapSem, Outcome, PipeMutex,
    SCHEMA_VERSION, Schedule,
};

const SECONDS: Duration = Duration::from_millis(60);

fn mmap_sem(readers: usize, writers: usize, hold: Hold) -> MmapSem {
    MmapSem { readers, writers, seconds: SECONDS, hold }
}

/// What holds for every workload, whatever the machine is busy with.
fn assert_conserved(outcome: &Outcome) {
    assert!(outcome.elapsed_ns >= SECONDS.as_nanos() as u64, "{outcome}");
    for group in &outcome.groups {
        let waiting = group.waiting;
        assert!(group.ops > 0, "{outcome}");
        assert!(waiting.wait_total_ns <= waiting.call_total_ns, "{outcome}");
        assert!(waiting.call_total_ns <= outcome.elapsed_ns * group.threads as u64, "{outcome}");
        assert!(waiting.preempted_ns <= waiting.runnable_ns, "{outcome}");
        assert!(group.call_avg_ns <= group.call_max_ns, "{outcome}");
        assert!(group.comm.len() < 16, "the kernel would cut {}", group.comm);
        let about_an_equal_share =
            |fairness: Fairness| fairness.least_share <= 1.0 && fairness.most_share >= 1.0;
        assert!(group.fairness.is_some_and(about_an_equal_share), "{outcome}");
    }
}

#[test]
fn every_workload_does_operations_and_its_times_add_up() {
    let outcomes = [
        mmap_sem(2, 2, Hold::Short).run(),
        mmap_sem(1, 2, Hold::For(Duration::from_millis(1))).run(),
        Convoy { short_threads: 3, seconds: SECONDS, hold: Hold::Long }.run(),
        DirectoryRwsem { threads: 3, seconds: SECONDS, parent: std::env::temp_dir() }.run(),
        PipeMutex { threads: 3, seconds: SECONDS }.run(),
        FdTable { threads: 3, seconds: SECONDS }.run(),
    ];
    for outcome in outcomes {
        assert_conserved(&outcome.unwrap());
    }
}

#[test]
fn readers_and_writers_are_counted_apart_and_an_empty_side_is_left_out() {
    let both = mmap_sem(1, 2, Hold::Short).run().unwrap();
    assert_eq!(both.group("readers").unwrap().threads, 1);
    assert_eq!(both.group("writers").unwrap().threads, 2);
    let writers = mmap_sem(0, 1, Hold::Short).run().unwrap();
    assert!(writers.group("readers").is_none());
}

#[test]
fn a_hold_takes_about_the_cpu_time_asked_for_on_both_sides() {
    let hold = Duration::from_millis(2);
    let outcome = mmap_sem(1, 1, Hold::For(hold)).run().unwrap();
    for group in &outcome.groups {
        let ratio = group.uncontended_ns as f64 / hold.as_nanos() as f64;
        assert!((0.4..2.5).contains(&ratio), "{} hold {ratio} of what was asked", group.name);
    }
}

#[test]
fn short_threads_of_a_convoy_wait_for_the_long_hold() {
    let hold = Duration::from_millis(8);
    let convoy = Convoy { short_threads: 2, seconds: 10 * hold, hold: Hold::For(hold) };
    let outcome = convoy.run().unwrap();
    let (long, short) = (outcome.group("long").unwrap(), outcome.group("short").unwrap());
    assert!(short.uncontended_ns * 100 < long.uncontended_ns, "{outcome}");
    assert!(short.call_max_ns > short.uncontended_ns * 100, "{outcome}");
    // Alone, 99 parts of 100 of a short call under contention are waiting or preemption.
    let waiting = short.waiting;
    let own = waiting.call_total_ns - waiting.wait_total_ns - waiting.preempted_ns.unwrap_or(0);
    assert!(own * 10 < waiting.call_total_ns, "{outcome}");
}

fn schedule(hold: Hold, every: Duration) -> Schedule {
    Schedule { waiters: 2, seconds: 8 * every, hold, every }
}

#[test]
fn waiters_of_a_schedule_wait_about_as_long_as_they_must() {
    let hold = Duration::from_millis(8);
    let outcome = schedule(Hold::For(hold), 3 * hold).run().unwrap();
    let waiters = outcome.group("waiters").unwrap();
    let expected = waiters.expected_wait_ns.unwrap();
    // They come into the middle half of a hold, which may take longer than asked for.
    assert!(expected > 0, "{outcome}");
    assert!(outcome.group("holder").unwrap().expected_wait_ns.is_none());
    // A hold ends a little after the lock is let go, by the holder's clock.
    assert!(waiters.waiting.call_total_ns > expected / 2, "{outcome}");
    assert!(outcome.to_string().contains("by the schedule"), "{outcome}");
}

#[test]
fn a_schedule_without_time_between_its_holds_is_refused() {
    let hold = Duration::from_millis(8);
    let error = schedule(Hold::For(hold), hold).run().unwrap_err();
    assert!(error.to_string().contains("8ms every 8ms"), "{error}");
    assert!(matches!(schedule(Hold::Short, hold).run(), Err(Error::ShortConvoy)));
}

#[test]
fn a_convoy_of_short_holds_is_refused() {
    let convoy = Convoy { short_threads: 2, seconds: SECONDS, hold: Hold::Short };
    assert!(matches!(convoy.run(), Err(Error::ShortConvoy)));
}

#[test]
fn nobody_waits_for_data_in_a_pipe_with_many_threads() {
    let outcome = PipeMutex { threads: 100, seconds: SECONDS }.run().unwrap();
    assert!(outcome.groups.iter().all(|group| group.ops >= 100), "{outcome}");
}

#[test]
fn a_directory_is_empty_again_afterwards() {
    let parent = std::env::temp_dir().join(format!("hammer-test-{}", std::process::id()));
    std::fs::create_dir(&parent).unwrap();
    let settings = DirectoryRwsem { threads: 2, seconds: SECONDS, parent: parent.clone() };
    let outcome = settings.run();
    // Fails when something is left in it.
    std::fs::remove_dir(&parent).unwrap();
    outcome.unwrap();
}

#[test]
fn a_parent_that_is_not_there_is_named_in_the_error() {
    let settings =
        DirectoryRwsem { threads: 1, seconds: SECONDS, parent: "/nonexistent/parent".into() };
    let error = settings.run().unwrap_err();
    assert!(error.to_string().contains("/nonexistent/parent/"), "{error}");
    assert!(error.source().is_some());
}

#[test]
fn no_threads_and_no_time_are_refused() {
    assert!(matches!(mmap_sem(0, 0, Hold::Long).run(), Err(Error::NoThreads)));
    let no_time = MmapSem { seconds: Duration::ZERO, ..mmap_sem(1, 1, Hold::Short) };
    assert!(matches!(no_time.run(), Err(Error::NoTime)));
}

#[test]
fn json_has_a_version_units_in_its_names_and_reads_back() {
    let outcome = mmap_sem(1, 1, Hold::For(Duration::from_millis(1))).run().unwrap();
    let json = serde_json::to_value(&outcome).unwrap();
    assert_eq!(json["schema_version"], SCHEMA_VERSION);
    assert_eq!(json["groups"][1]["name"], "writers");
    assert_eq!(
        json["groups"][1]["waiting"]["wait_total_ns"],
        outcome.group("writers").unwrap().waiting.wait_total_ns
    );
    assert_eq!(serde_json::from_value::<Outcome>(json).unwrap(), outcome);
}

#[test]
fn text_names_each_group_its_call_and_its_waiting() {
    let text = mmap_sem(1, 2, Hold::Short).run().unwrap().to_string();
    for part in ["mmap_lock", "1 readers", "mincore", "2 writers", "mprotect", "waiting", "Jain"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}
