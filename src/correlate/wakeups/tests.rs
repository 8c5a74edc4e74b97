//! Hand-overs in bounded memory.

use super::*;
use crate::model::{Context, Cpu, LockType, Mode};

const LOCK: LockId = LockId { addr: LockAddr(0xa), kind: LockKind::Rwsem };

fn hand_over(wakeups: &mut Wakeups, time: u64, begin: u64) -> Option<Hold> {
    let by = Releaser { task: TaskRef(1), stack: StackId(1), kind: HandOverKind::Release };
    let wait = OpenWait { lock: Identity::At(LOCK), begin: Timestamp(begin) };
    let waking = Waking { time: Timestamp(time), waker: TaskId(1), by, wait };
    wakeups.hand_over(TaskId(7), &waking)
}

fn wait(begin: u64, end: u64) -> Wait {
    Wait {
        task: TaskRef(7),
        context: Context::Task,
        cpu: Cpu(0),
        lock_type: LockType::new(LOCK.kind, Mode::Write),
        lock: LOCK.addr,
        begin: Timestamp(begin),
        end: Timestamp(end),
        nested: Nanos::ZERO,
        spun: Nanos::ZERO,
        writer_ahead: None,
        outcome: Outcome::Acquired,
        kernel_stack: StackId(2),
        user_stack: StackId::EMPTY,
    }
}

fn pieces(wakeups: &Wakeups, wait: &Wait) -> Vec<Piece> {
    let mut pieces = Vec::new();
    wakeups.cut(wait, Identity::at(wait), &mut |piece| pieces.push(piece));
    pieces
}

#[test]
fn hand_overs_before_every_open_wait_are_forgotten() {
    let mut wakeups = Wakeups::new(false);
    for n in 1..=10 {
        hand_over(&mut wakeups, n * 1_000_000, 0);
    }
    let open = OpenWait { lock: Identity::At(LOCK), begin: Timestamp(8_000_000) };
    wakeups.forget([open].into_iter());
    assert_eq!(wakeups.kept, 2);
    assert_eq!(pieces(&wakeups, &wait(8_000_000, 11_000_000)).len(), 3);
    wakeups.forget(std::iter::empty());
    assert!(wakeups.locks.is_empty());
}

#[test]
fn a_wait_without_end_does_not_make_memory_grow_and_its_pieces_add_up() {
    let mut wakeups = Wakeups::new(false);
    let open = OpenWait { lock: Identity::At(LOCK), begin: Timestamp(1) };
    let last = 3 * KEPT_AT_MOST as u64;
    for n in 1..=last {
        hand_over(&mut wakeups, n * 1_000_000, 1);
        if wakeups.is_full() {
            wakeups.forget([open].into_iter());
        }
        assert!(wakeups.kept <= KEPT_AT_MOST);
    }
    let wait = wait(1, (last + 1) * 1_000_000);
    let pieces = pieces(&wakeups, &wait);
    assert_eq!(pieces[0].end, PieceEnd::Uncharged(Uncharged::NoWaking));
    assert!(pieces.windows(2).all(|pair| pair[0].to == pair[1].from));
    let sum: Nanos = pieces.iter().map(|piece| piece.to.since(piece.from)).sum();
    assert_eq!(sum, wait.full());
}
