//! One path, whatever the compiler and the kernel made of its frames.

use lockprof::attribute::Facts;

use crate::{stack, words};

/// The path of a stack, written `leaf < caller < ...`.
fn path(frames: &str) -> String {
    let functions: Vec<&str> = frames.split(" < ").collect();
    let (kernel, frames) = stack(&functions);
    words(Facts::of(&kernel, &frames).cpu_path())
}

/// Path, the stack of a 3.x kernel, and stacks of later ones.
const SAME: [(&str, &[&str]); 12] = [
    (
        "Spin rwsem:W",
        &[
            "rwsem_spin_on_owner < rwsem_down_write_failed < call_rwsem_down_write_failed \
             < down_write < sys_mprotect",
            "osq_lock < rwsem_optimistic_spin < rwsem_down_write_slowpath < down_write_killable \
             < do_mprotect_pkey",
            "osq_lock < rwsem_down_write_slowpath < down_write_killable < do_mprotect_pkey",
            "rwsem_down_write_slowpath < xfs_ilock",
        ],
    ),
    (
        "Wake rwsem",
        &[
            "__rwsem_do_wake < rwsem_wake < call_rwsem_wake < sys_mprotect",
            "wake_up_q < rwsem_wake.isra.0 < up_write < do_mprotect_pkey",
            "wake_up_q < rwsem_wake.isra.0 < do_mprotect_pkey",
            "rwsem_mark_wake < rwsem_wake.isra.0 < up_read < lock_mm_and_find_vma",
        ],
    ),
    (
        "IrqOff spinlock",
        &[
            "_raw_spin_unlock_irqrestore < rwsem_wake < call_rwsem_wake < sys_mprotect",
            "_raw_spin_unlock_irqrestore < try_to_wake_up < wake_up_q < rwsem_wake.isra.0 \
             < up_write < do_mprotect_pkey",
            "_raw_spin_unlock_irq < rwsem_down_write_slowpath < down_write",
        ],
    ),
    (
        "Block rwsem:R",
        &[
            "__schedule < schedule < rwsem_down_read_failed < call_rwsem_down_read_failed \
             < down_read < __do_page_fault",
            "finish_task_switch.isra.0 < __schedule < schedule < schedule_preempt_disabled \
             < rwsem_down_read_slowpath < down_read < __do_sys_mincore",
        ],
    ),
    (
        "WaitLock rwsem",
        &[
            "_raw_spin_lock_irq < rwsem_down_write_failed < call_rwsem_down_write_failed",
            "native_queued_spin_lock_slowpath < _raw_spin_lock_irq < rwsem_down_write_slowpath \
             < down_write_killable",
        ],
    ),
    (
        "Acquire rwsem:R",
        &["down_read < __do_page_fault", "down_read_killable < lock_mm_and_find_vma"],
    ),
    ("Release rwsem:W", &["up_write < sys_mprotect", "up_write < do_mprotect_pkey"]),
    (
        "Spin mutex",
        &[
            "mutex_spin_on_owner < __mutex_lock_slowpath < mutex_lock < pipe_write",
            "osq_lock < __mutex_lock.constprop.0 < pipe_write",
        ],
    ),
    (
        "Wake mutex",
        &[
            "wake_up_process < __mutex_unlock_slowpath < mutex_unlock < pipe_write",
            "try_to_wake_up < __mutex_unlock_slowpath.isra.0 < anon_pipe_write",
        ],
    ),
    (
        "Spin spinlock",
        &[
            "native_queued_spin_lock_slowpath < _raw_spin_lock < futex_wait_setup",
            "native_queued_spin_lock_slowpath < pte_offset_map_lock",
            "queued_spin_lock_slowpath < futex_wait_setup",
            "arch_spin_lock_wait < futex_wait_setup",
        ],
    ),
    (
        "Recording",
        &[
            "perf_swevent_event < perf_tp_event < perf_trace_contention_begin < __mutex_lock",
            "perf_trace_sched_wakeup_template < ttwu_do_activate < try_to_wake_up",
        ],
    ),
    (
        "Work",
        &[
            "clear_page_c < do_anonymous_page < handle_mm_fault < __do_page_fault",
            "smp_call_function_many_cond < flush_tlb_mm_range < do_mprotect_pkey",
            "wait_for_completion < xfs_buf_iowait",
        ],
    ),
];

#[test]
fn names_of_3_x_and_of_later_kernels_land_in_one_path() {
    for (wanted, stacks) in SAME {
        for frames in stacks {
            assert_eq!(path(frames), wanted, "{frames}");
        }
    }
}

#[test]
fn an_interrupt_on_top_of_lock_code_is_not_the_lock() {
    let frames = "run_timer_softirq < handle_softirqs < asm_sysvec_apic_timer_interrupt \
                  < rwsem_spin_on_owner < rwsem_down_write_slowpath < down_write";
    assert_eq!(path(frames), "Work");
    let frames = "_raw_spin_unlock_irqrestore < hrtimer_interrupt \
                  < asm_sysvec_apic_timer_interrupt < clear_page_erms";
    assert_eq!(path(frames), "IrqOff spinlock");
}

#[test]
fn a_preemption_on_the_way_out_of_an_interrupt_is_no_sleep_for_the_lock() {
    let frames = "__schedule < preempt_schedule_irq < irqentry_exit \
                  < asm_sysvec_apic_timer_interrupt < rwsem_spin_on_owner \
                  < rwsem_down_write_slowpath < down_write";
    assert_eq!(path(frames), "Work");
}
