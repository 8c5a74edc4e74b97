//! What a task did between two switches, case by case: each a script of records and the stretches that
//! it must give.

use lockprof::correlate::{Leaving, Moment, RunState, RunStates, StateTimes, Stretch};
use lockprof::model::{Cpu, Nanos, StackId, TaskId, Timestamp};
use proptest::prelude::*;

const T: TaskId = TaskId(7);
const STACK: StackId = StackId(3);

#[derive(Clone, Copy, Debug)]
enum Record {
    Born,
    Exec,
    In,
    /// PERF_RECORD_SWITCH of a task that goes to sleep: says so, without a stack.
    Sleeps,
    /// `sched:sched_switch` of one: with a stack.
    SleepsOn(StackId),
    Preempted,
    Dies,
    Waking,
    Exit,
    /// The ring of this CPU lost what came after the moment.
    Lost(Option<u32>, u64),
    Stop,
}

use Record::*;

/// Microsecond, CPU, record.
type At = (u64, u32, Record);

/// Feeds `(microsecond, cpu, record)`; the recording ends at 1 s.
fn fed(switches: bool, records: &[At]) -> (RunStates, Vec<Stretch>) {
    let mut states = RunStates::new(switches);
    let mut out = Vec::new();
    for &(time, cpu, record) in records {
        let at = Moment { time: us(time), cpu: Some(Cpu(cpu)), pid: 7, tid: 7 };
        let out = &mut |stretch| out.push(stretch);
        match record {
            Born => states.born(T, at, out),
            Exec => states.exec(T, at, out),
            In => states.switch_in(T, at, out),
            Sleeps => states.switch_out(T, at, Leaving::Asleep(StackId::EMPTY), out),
            SleepsOn(stack) => states.switch_out(T, at, Leaving::Asleep(stack), out),
            Preempted => states.switch_out(T, at, Leaving::Preempted, out),
            Dies => states.switch_out(T, at, Leaving::Dead, out),
            Waking => states.waking(T, at, out),
            Exit => states.exit(T, at, out),
            Lost(cpu, from) => states.lost(cpu.map(Cpu), us(from)),
            Stop => states.stop(at.time),
        }
    }
    states.finish(us(1_000_000), &mut |stretch| out.push(stretch));
    (states, out)
}

fn us(time: u64) -> Timestamp {
    Timestamp(time * 1000)
}

/// `r 0-10`: running from microsecond 0 to 10; `w` waits for a CPU, `s` sleeps, `S` sleeps on `STACK`.
fn words(stretches: &[Stretch]) -> String {
    let word = |stretch: &Stretch| {
        let state = match stretch.state {
            RunState::Running => 'r',
            RunState::Runnable => 'w',
            RunState::Asleep(STACK) => 'S',
            RunState::Asleep(_) => 's',
        };
        format!("{state} {}-{}", stretch.from.0 / 1000, stretch.to.0 / 1000)
    };
    stretches.iter().map(word).collect::<Vec<_>>().join(", ")
}

#[test]
fn records_of_a_task_become_stretches() {
    #[rustfmt::skip]
    let cases: [(&str, &[At], &str); 25] = [
        ("a sleep lasts until the first waking",
         &[(0, 0, In), (10, 0, SleepsOn(STACK)), (30, 1, Waking), (35, 1, Waking), (40, 0, In), (50, 0, Exit)],
         "r 0-10, S 10-30, w 30-40, r 40-50"),
        ("two records of one switch-out are one, and the stack stays",
         &[(0, 0, In), (10, 0, SleepsOn(STACK)), (12, 0, Sleeps), (30, 1, Waking), (40, 0, In), (50, 0, Exit)],
         "r 0-10, S 10-30, w 30-40, r 40-50"),
        ("the second record may bring the stack",
         &[(0, 0, In), (10, 0, Sleeps), (12, 0, SleepsOn(STACK)), (30, 1, Waking), (40, 0, In), (50, 0, Exit)],
         "r 0-10, S 10-30, w 30-40, r 40-50"),
        ("a waking between both records of a switch-out ends the sleep",
         &[(0, 0, In), (10, 0, SleepsOn(STACK)), (11, 1, Waking), (12, 0, Sleeps), (40, 0, In), (50, 0, Exit)],
         "r 0-10, S 10-11, w 11-40, r 40-50"),
        ("a sleep without a stack is a sleep",
         &[(0, 0, In), (10, 0, Sleeps), (30, 1, Waking), (40, 0, In), (50, 0, Exit)],
         "r 0-10, s 10-30, w 30-40, r 40-50"),
        ("a preempted task is runnable at once",
         &[(0, 0, In), (10, 0, Preempted), (12, 0, Preempted), (40, 1, In), (50, 1, Exit)],
         "r 0-10, w 10-40, r 40-50"),
        ("a waking of a task that runs changes nothing",
         &[(0, 0, In), (5, 1, Waking), (9_000, 0, SleepsOn(STACK)), (9_500, 1, Waking), (9_600, 0, In), (9_700, 0, Exit)],
         "r 0-9000, S 9000-9500, w 9500-9600, r 9600-9700"),
        ("a waking long before a sleep is not its waking, though none follows",
         &[(0, 0, In), (5, 1, Waking), (9_000, 0, SleepsOn(STACK)), (9_600, 0, In), (9_700, 0, Exit)],
         "r 0-9000, S 9000-9600, r 9600-9700"),
        ("a waking in flight while its task goes to sleep leaves it runnable",
         &[(0, 0, In), (9, 1, Waking), (10, 0, SleepsOn(STACK)), (12, 0, Sleeps), (30, 0, In), (50, 0, Exit)],
         "r 0-10, w 10-30, r 30-50"),
        ("a waking in flight is forgotten when another follows",
         &[(0, 0, In), (9, 1, Waking), (10, 0, SleepsOn(STACK)), (20, 1, Waking), (30, 0, In), (50, 0, Exit)],
         "r 0-10, S 10-20, w 20-30, r 30-50"),
        ("both records of a switch-in are one",
         &[(0, 0, In), (3, 0, In), (10, 0, Preempted), (40, 0, In), (50, 0, Exit)],
         "r 0-10, w 10-40, r 40-50"),
        ("a new task waits for its first CPU",
         &[(0, 0, Born), (10, 1, In), (50, 1, Exit)],
         "w 0-10, r 10-50"),
        ("a task that was woken before anything is known of it was runnable since",
         &[(5, 0, Waking), (10, 0, In), (50, 0, Exit)],
         "w 5-10, r 10-50"),
        ("a task that leaves its CPU before anything is known of it",
         &[(5, 0, SleepsOn(STACK)), (10, 0, Waking), (20, 0, In), (50, 0, Exit)],
         "S 5-10, w 10-20, r 20-50"),
        ("a switch-in on another CPU: when it left the first is not known",
         &[(0, 0, In), (10, 1, In), (50, 1, Exit)],
         "r 10-50"),
        ("a switch-out on another CPU: when it came there is not known",
         &[(0, 0, In), (10, 1, Preempted), (20, 1, In), (50, 1, Exit)],
         "w 10-20, r 20-50"),
        ("a second switch-out much later: it came to its CPU unseen",
         &[(0, 0, In), (10, 0, Sleeps), (5_000, 0, Preempted), (5_100, 0, In), (5_200, 0, Exit)],
         "r 0-10, w 5000-5100, r 5100-5200"),
        ("an ended task does nothing until its number is used again",
         &[(0, 0, In), (10, 0, Exit), (11, 0, Preempted), (12, 0, In), (13, 0, Sleeps), (90, 0, Born), (95, 0, In), (99, 0, Exit)],
         "r 0-10, w 90-95, r 95-99"),
        ("or until an exec goes on under its number",
         &[(0, 0, In), (10, 0, Exit), (12, 0, Exec), (20, 0, Exec), (30, 0, Dies), (40, 0, In)],
         "r 0-10, r 12-30"),
        ("a loss on its CPU: it may have left, until it is heard of",
         &[(0, 0, In), (20, 0, Lost(Some(0), 10)), (30, 0, Preempted), (40, 0, In), (50, 0, Exit)],
         "r 0-10, w 30-40, r 40-50"),
        ("a loss elsewhere does not touch a task that runs",
         &[(0, 0, In), (20, 1, Lost(Some(1), 10)), (30, 0, Preempted), (40, 0, In), (50, 0, Exit)],
         "r 0-30, w 30-40, r 40-50"),
        ("a loss anywhere may have been the waking of a task that sleeps",
         &[(0, 0, In), (5, 0, Sleeps), (20, 1, Lost(Some(1), 10)), (30, 0, Waking), (40, 0, In), (50, 0, Exit)],
         "r 0-5, s 5-10, w 30-40, r 40-50"),
        ("a loss that nobody can place touches everything",
         &[(0, 0, In), (20, 1, Lost(None, 10)), (40, 0, In), (50, 0, Exit)],
         "r 0-10, r 40-50"),
        ("a waking tells nothing of a task whose switches are not all recorded",
         &[(0, 0, Stop), (5, 1, Waking), (9, 0, In), (10, 0, SleepsOn(STACK)), (11, 1, Waking), (20, 0, In)],
         "S 10-11"),
        ("without records of switches only sleeps are known",
         &[(0, 0, In), (10, 0, Stop), (20, 0, SleepsOn(STACK)), (30, 1, Waking), (40, 0, In), (50, 0, SleepsOn(STACK)), (60, 1, Waking)],
         "r 0-10, S 20-30, S 50-60"),
    ];
    for (name, records, expected) in cases {
        let (_, stretches) = fed(true, records);
        assert_eq!(words(&stretches), expected, "{name}");
    }
}

#[test]
fn a_task_that_was_not_seen_to_leave_its_cpu_does_not_run_on_it_beside_the_next() {
    const NEXT: TaskId = TaskId(8);
    for (next_cpu, wanted) in [(0, "r 50-60"), (1, "r 0-60")] {
        let (mut states, mut out) = (RunStates::new(true), Vec::new());
        let at = |time, cpu| Moment { time: us(time), cpu: Some(Cpu(cpu)), pid: 7, tid: 7 };
        states.switch_in(T, at(0, 0), &mut |stretch| out.push(stretch));
        states.switch_in(NEXT, at(10, next_cpu), &mut |_| ());
        states.switch_in(T, at(50, 0), &mut |stretch| out.push(stretch));
        states.exit(T, at(60, 0), &mut |stretch| out.push(stretch));
        assert_eq!(words(&out), wanted, "the next runs on CPU {next_cpu}");
    }
}

#[test]
fn the_state_of_a_task_during_any_piece_of_time_can_be_asked_afterwards() {
    let records = [
        (0, 0, In),
        (10, 0, SleepsOn(STACK)),
        (30, 1, Waking),
        (40, 0, In),
        (70, 0, Lost(Some(0), 60)),
        (80, 0, Preempted),
        (90, 0, In),
    ];
    let (states, _) = fed(true, &records);
    let times = |running: u64, runnable: u64, asleep: u64, unknown: u64| StateTimes {
        running: Nanos(running * 1000),
        runnable: Nanos(runnable * 1000),
        asleep: Nanos(asleep * 1000),
        unknown: Nanos(unknown * 1000),
    };
    for (from, to, expected) in [
        (0, 100, times(10 + 20 + 10, 20, 20, 20)),
        (5, 15, times(5, 0, 5, 0)),
        (25, 35, times(0, 5, 5, 0)),
        (50, 70, times(10, 0, 0, 10)),
        (12, 13, times(0, 0, 1, 0)),
        (20, 20, times(0, 0, 0, 0)),
    ] {
        assert_eq!(states.during(T, us(from), us(to)), expected, "{from}..{to}");
    }
    let nobody = states.during(TaskId(8), us(0), us(10));
    assert_eq!(nobody, times(0, 0, 0, 10));
}

#[test]
fn what_is_under_way_counts_up_to_where_records_are_missing() {
    let mut states = RunStates::new(true);
    let at = |time| Moment { time: us(time), cpu: Some(Cpu(0)), pid: 7, tid: 7 };
    states.switch_in(T, at(10), &mut |_| {});
    assert_eq!(states.during(T, us(0), us(30)).running, Nanos(20_000));
    states.lost(Some(Cpu(0)), us(15));
    assert_eq!(states.during(T, us(0), us(30)).running, Nanos(5_000));
}

#[test]
fn memory_does_not_grow_with_tasks_switches_and_losses() {
    let mut states = RunStates::new(true);
    let mut sum = 0;
    let at = |time| Moment { time: us(time), cpu: Some(Cpu(0)), pid: 7, tid: 7 };
    let mut out = |stretch: Stretch| sum += stretch.to.since(stretch.from).0;
    for n in 1..200_000 {
        states.born(TaskId(n), at(n as u64), &mut out);
    }
    assert!(states.forgotten() >= 100_000);
    for n in 200_000..300_000 {
        states.switch_in(T, at(2 * n), &mut out);
        states.switch_out(T, at(2 * n + 1), Leaving::Preempted, &mut out);
        states.lost(Some(Cpu(1)), us(2 * n + 1));
    }
    // The latest stretches are there, the earliest are not.
    let all = states.during(T, us(400_000), us(600_000));
    assert_eq!(all.running, Nanos(4_096_000));
    assert!(sum >= 200_000_000, "{sum}");
}

#[test]
fn a_switch_out_is_read_by_its_state() {
    for (prev_state, leaving) in [
        (0, Leaving::Preempted),
        (0x100, Leaving::Preempted),
        (0x1000, Leaving::Preempted),
        (1, Leaving::Asleep(STACK)),
        (2, Leaving::Asleep(STACK)),
        (0x82, Leaving::Asleep(STACK)),
        (0x80, Leaving::Asleep(STACK)),
        (0x10, Leaving::Dead),
        (0x20, Leaving::Dead),
    ] {
        assert_eq!(Leaving::from_prev_state(prev_state, STACK), leaving, "{prev_state:#x}");
    }
}

fn record() -> impl Strategy<Value = Record> {
    prop_oneof![
        Just(Born),
        Just(Exec),
        Just(In),
        Just(Sleeps),
        Just(SleepsOn(STACK)),
        Just(Preempted),
        Just(Dies),
        Just(Waking),
        Just(Exit),
        (proptest::option::of(0..2u32), 0..2000u64).prop_map(|(cpu, from)| Lost(cpu, from)),
    ]
}

proptest! {
    #[test]
    fn stretches_never_overlap_and_states_add_up(
        steps in proptest::collection::vec((0..900u64, 0..2u32, record()), 0..60),
        cuts in proptest::collection::vec(0..60_000u64, 2),
    ) {
        let mut time = 0;
        let records: Vec<_> = steps
            .into_iter()
            .map(|(step, cpu, record)| { time += step; (time, cpu, record) })
            .collect();
        let (states, stretches) = fed(true, &records);
        prop_assert!(stretches.iter().all(|stretch| stretch.from < stretch.to));
        prop_assert!(stretches.windows(2).all(|pair| pair[0].to <= pair[1].from));
        let (from, to) = (us(cuts[0].min(cuts[1])), us(cuts[0].max(cuts[1])));
        let times = states.during(T, from, to);
        let sum = times.running + times.runnable + times.asleep + times.unknown;
        prop_assert_eq!(sum, to.since(from));
        let overlap = |stretch: &Stretch| stretch.to.min(to).since(stretch.from.max(from));
        let known: Nanos = stretches.iter().map(overlap).sum();
        prop_assert_eq!(times.unknown + known, to.since(from));
    }
}
