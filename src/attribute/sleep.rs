//! On what a task slept that left its CPU with this stack.
//!
//! ```text
//!   __schedule schedule io_schedule ...   the scheduler, by the table: says how, not on what
//!   rwsem_down_write_slowpath             lock code right behind it: a wait for that lock
//!   futex_do_wait __futex_wait ...        a lock of user space
//!   __wait_for_common wait_for_completion the rest of .sched.text: waits for whoever called it
//!   __flush_workqueue                     on this
//! ```
//!
//! Only the first frame behind the scheduler's counts: lock code further down does not wait for its
//! lock while it waits for a disk, a completion or a grace period of RCU.

use super::path;
use crate::kernel::{Kernel, KernelFrame, Role};
use crate::model::{LockKind, LockType, Mode, SleepOn};

/// What the frames of the innermost context, innermost first, sleep on. `addresses` are theirs.
pub(super) fn on(kernel: &Kernel, addresses: &[u64], frames: &[KernelFrame]) -> SleepOn {
    let has = |frame: &KernelFrame, role| frame.lock.is_some_and(|row| row.role == role);
    let behind = |frame: &KernelFrame| !has(frame, Role::Schedule) && !has(frame, Role::Recording);
    let Some(first) = frames.iter().position(behind) else { return SleepOn::Unknown };
    let rest = frames.get(first..).unwrap_or(&[]);
    if waits_for_futex(rest) {
        let entry = rest.iter().find(|frame| !frame.lock_code && !has(frame, Role::Futex));
        return SleepOn::Futex(entry.and_then(|frame| frame.function));
    }
    if rest.first().is_some_and(blocks) {
        let lock = path::at(frames, first, kernel.preempt_rt()).map(|path| path.lock_type);
        let unknown = LockType::new(LockKind::Unknown, Mode::Exclusive);
        return SleepOn::Lock(lock.unwrap_or(unknown));
    }
    let generic = |ip: u64, frame: &KernelFrame| frame.lock.is_none() && kernel.in_lock_text(ip);
    let mut rest = addresses.iter().zip(frames).skip(first);
    let on = rest.find(|(ip, frame)| behind(frame) && !generic(**ip, frame));
    on.and_then(|(_, frame)| frame.function).map_or(SleepOn::Unknown, SleepOn::Other)
}

/// Whether a task that this frame had switched out waits for its lock.
fn blocks(frame: &KernelFrame) -> bool {
    frame.lock.is_some_and(|row| row.is_lock_code() && row.role.may_block())
}

/// Whether these frames, the first of them behind the scheduler's, wait for a futex.
fn waits_for_futex(frames: &[KernelFrame]) -> bool {
    let row = |frame: &KernelFrame| frame.lock.filter(|row| row.is_lock_code());
    let is_futex = frames.first().and_then(|frame| frame.lock);
    is_futex.is_some_and(|row| row.role == Role::Futex)
        || frames.iter().map_while(row).any(|row| row.waits_for_pi_futex())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Functions of 0x100 bytes each; those of `.sched.text` come first.
    const SCHED_TEXT: [&str; 8] = [
        "__sched_text_start",
        "__schedule",
        "schedule",
        "io_schedule",
        "__wait_for_common",
        "wait_for_completion",
        "rwsem_down_write_slowpath",
        "__sched_text_end",
    ];
    const TEXT: [&str; 18] = [
        "_text",
        "down_write",
        "xfs_file_fsync",
        "xlog_wait_on_iclog",
        "folio_wait_bit_common",
        "__flush_workqueue",
        "futex_wait_queue_me",
        "futex_do_wait",
        "do_futex",
        "__x64_sys_futex",
        "rt_mutex_slowlock_block",
        "rt_mutex_wait_proxy_lock",
        "futex_lock_pi",
        "percpu_down_write",
        "__vma_start_write",
        "dup_mmap",
        "perf_trace_sched_switch",
        "__lock_sock",
    ];

    fn names() -> impl Iterator<Item = (&'static str, u64)> {
        SCHED_TEXT.into_iter().chain(TEXT).zip((0..).map(|at| 0x1000 + at * 0x100))
    }

    /// What this stack sleeps on, in words.
    fn of(stack: &str) -> String {
        let line = |(name, at): (&str, u64)| format!("{at:x} T {name}\n");
        let kernel = Kernel::from_kallsyms(names().map(line).collect::<String>().as_bytes());
        let ip = |name: &str| names().find(|known| known.0 == name).expect(name).1 + 0x10;
        let ips: Vec<u64> = stack.split(" < ").map(ip).collect();
        let frames: Vec<KernelFrame> = ips.iter().map(|&ip| kernel.frame(ip)).collect();
        match on(&kernel, &ips, &frames) {
            SleepOn::Lock(lock) => format!("lock {lock}"),
            SleepOn::Futex(entry) => format!("futex {}", entry.map_or("-", |f| kernel.name(f))),
            SleepOn::Other(function) => kernel.name(function).to_owned(),
            SleepOn::Unknown => "unknown".to_owned(),
        }
    }

    #[test]
    fn the_first_frame_behind_the_scheduler_says_what_a_task_sleeps_on() {
        for (stack, wanted) in [
            ("__schedule < schedule < rwsem_down_write_slowpath < down_write", "lock rwsem:W"),
            ("__schedule < __schedule < schedule < down_write < xfs_file_fsync", "lock rwsem:W"),
            ("perf_trace_sched_switch < __schedule < schedule < down_write", "lock rwsem:W"),
            ("__schedule < schedule < percpu_down_write < dup_mmap", "lock pcpu-sem:W"),
            ("__schedule < schedule < __vma_start_write < dup_mmap", "lock unknown"),
            ("__schedule < schedule < __lock_sock", "lock unknown"),
            ("__schedule < schedule < xlog_wait_on_iclog < xfs_file_fsync", "xlog_wait_on_iclog"),
            (
                "__schedule < schedule < io_schedule < folio_wait_bit_common",
                "folio_wait_bit_common",
            ),
            ("__schedule < schedule", "unknown"),
        ] {
            assert_eq!(of(stack), wanted, "{stack}");
        }
    }

    #[test]
    fn a_lock_that_is_held_or_asked_for_further_down_is_not_what_a_task_sleeps_on() {
        for (stack, wanted) in [
            ("schedule < folio_wait_bit_common < down_write", "folio_wait_bit_common"),
            ("schedule < wait_for_completion < __flush_workqueue", "__flush_workqueue"),
            ("schedule < __wait_for_common < wait_for_completion < down_write", "down_write"),
            ("schedule < wait_for_completion < percpu_down_write", "percpu_down_write"),
        ] {
            assert_eq!(of(stack), wanted, "{stack}");
        }
    }

    #[test]
    fn a_futex_is_a_user_lock_in_every_era_with_priority_inheritance_too() {
        for stack in [
            "__schedule < schedule < futex_wait_queue_me < do_futex < __x64_sys_futex",
            "__schedule < schedule < futex_do_wait < do_futex < __x64_sys_futex",
            "schedule < rt_mutex_slowlock_block < rt_mutex_wait_proxy_lock < futex_lock_pi \
             < do_futex < __x64_sys_futex",
        ] {
            assert_eq!(of(stack), "futex __x64_sys_futex", "{stack}");
        }
    }
}
