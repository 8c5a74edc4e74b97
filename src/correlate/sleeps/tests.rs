//! Runs of sleeps, case by case.

use super::*;
use crate::model::{LockKind, Mode};

const US: u64 = 1_000;

/// `(state, length in us)`, one after the other: `S` asleep in a lock, `T` in another, `-` asleep
/// elsewhere, `r` runnable, `p` preempted in the code of the lock of `S`, `s` woken while it went to
/// sleep there, `c` on a CPU, `?` unknown.
fn waits(stretches: &[(char, u64)]) -> Vec<(u64, u64, Outcome)> {
    let (mut sleeps, mut found) = (Sleeps::new(true), Vec::new());
    let mut out = |observation| {
        if let Observation::Slept(wait, _) = observation {
            found.push((wait.begin.0 / US, wait.end.0 / US, wait.outcome));
        }
    };
    let task = TaskId(7);
    let mut now = Timestamp(0);
    for &(what, length) in stretches {
        let (from, to) = (now, Timestamp(now.0 + length * US));
        let (state, stack) = match what {
            'S' => (RunState::Asleep(StackId(1)), 1),
            'T' => (RunState::Asleep(StackId(2)), 2),
            '-' => (RunState::Asleep(StackId(3)), 0),
            'p' => (RunState::Runnable, 4),
            's' => (RunState::Runnable, 1),
            'r' => (RunState::Runnable, 0),
            'c' => (RunState::Running, 0),
            _ => (RunState::Running, 99),
        };
        now = to;
        if stack < 99 {
            let stretch = Stretch { task, from, to, state };
            sleeps.stretch(&stretch, (stack > 0).then(|| lock(stack)), &mut out);
        }
    }
    sleeps.finish(&mut out);
    assert_eq!(sleeps.counts().waits, found.len() as u64);
    found
}

fn lock(stack: u32) -> LockSleep {
    LockSleep {
        task: TaskRef(0),
        lock_type: LockType::new(LockKind::Rwsem, Mode::Write),
        lock: Identity::SleptForBy(TaskId(7), LockKind::Rwsem),
        kinds: KindSet::default(),
        caller: Some(FunctionId(if stack == 2 { 2 } else { 1 })),
        kernel_stack: StackId(stack),
        user_stack: StackId::EMPTY,
        asleep: stack != 4,
    }
}

#[test]
fn a_wait_lasts_from_the_switch_out_until_the_task_runs_again() {
    use Outcome::{Acquired, Open};
    for (stretches, wanted) in [
        (&[('c', 50), ('S', 20), ('r', 5), ('c', 900)][..], &[(50, 75, Acquired)][..]),
        (&[('-', 20), ('r', 5), ('c', 900)], &[]),
        (&[('S', 20), ('r', 5), ('c', 10)], &[(0, 25, Acquired)]),
        (&[('c', 10), ('S', 20)], &[(10, 30, Open)]),
        (&[('c', 10), ('s', 40), ('c', 900)], &[(10, 50, Acquired)]),
        (&[('S', 10), ('r', 3), ('c', 7), ('s', 40), ('c', 900)], &[(0, 60, Acquired)]),
        (&[('T', 10), ('r', 3), ('c', 7), ('s', 9)], &[(0, 13, Acquired), (20, 29, Open)]),
        (&[('S', 20), ('r', 5), ('c', 10), ('-', 30), ('r', 1)], &[(0, 25, Acquired)]),
    ] {
        assert_eq!(waits(stretches), wanted, "{stretches:?}");
    }
}

#[test]
fn sleeps_on_one_stack_with_little_cpu_time_between_them_are_one_wait() {
    use Outcome::Acquired;
    let again = |between: &[(char, u64)], last: char| {
        let mut all = vec![('S', 20), ('r', 5)];
        all.extend(between);
        all.extend([(last, 30), ('c', 900)]);
        waits(&all)
    };
    let two = |end, from, to| vec![(0, end, Acquired), (from, to, Acquired)];
    assert_eq!(again(&[('c', 99)], 'S'), [(0, 154, Acquired)]);
    assert_eq!(again(&[('c', 100)], 'S'), two(25, 125, 155));
    assert_eq!(again(&[('c', 99)], 'T'), two(25, 124, 154));
    assert_eq!(again(&[('c', 60), ('r', 500), ('c', 30)], 'S'), [(0, 645, Acquired)]);
    assert_eq!(again(&[('c', 60), ('r', 500), ('c', 40)], 'S'), two(25, 625, 655));
}

#[test]
fn preemption_in_lock_code_is_no_sleep_and_part_of_the_wait_that_it_adjoins() {
    use Outcome::Acquired;
    for (stretches, wanted) in [
        (&[('c', 10), ('p', 400), ('c', 500)][..], &[][..]),
        (&[('c', 10), ('p', 400), ('c', 20), ('S', 30), ('c', 500)], &[(10, 460, Acquired)]),
        (&[('S', 30), ('r', 2), ('c', 8), ('p', 60), ('c', 500)], &[(0, 100, Acquired)]),
        (&[('p', 400), ('c', 20), ('T', 30), ('c', 500)], &[(420, 450, Acquired)]),
    ] {
        assert_eq!(waits(stretches), wanted, "{stretches:?}");
    }
}

#[test]
fn records_missing_behind_a_sleep_leave_its_end_uncertain() {
    assert_eq!(waits(&[('S', 20), ('?', 70), ('c', 500)]), [(0, 90, Outcome::Uncertain)]);
    assert_eq!(waits(&[('S', 20), ('c', 5), ('?', 70), ('c', 500)]), [(0, 20, Outcome::Acquired)]);
}
