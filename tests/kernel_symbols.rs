//! The book of the kernel against the lock functions of real kernels, and against kallsyms texts.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lockprof::kernel::{Anchored, Kernel, Role, Verdict, fold, verdict};
use lockprof::model::{Context, LockKind, Mode};

fn fixtures() -> impl Iterator<Item = (PathBuf, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kernel-lock-functions");
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "txt")).map(|path| {
        let text = std::fs::read_to_string(&path).unwrap();
        (path, text)
    })
}

/// Names of functions in a list: `sched<TAB>name`, `t name`, or the name alone.
fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            ["t" | "T" | "w" | "W" | "sched" | "lock", name] | [name] => Some(name),
            _ => None,
        }
    })
}

fn is_known(name: &str) -> bool {
    verdict(fold(name)) != Verdict::Unknown
}

#[test]
fn every_function_in_the_lock_sections_of_thirteen_kernels_has_a_row() {
    let mut files = 0;
    for (path, text) in fixtures() {
        files += 1;
        if !path.to_string_lossy().contains(".lockfuncs.") {
            continue;
        }
        let unknown: BTreeSet<_> =
            listed(&text).filter(|name| !is_known(name) && !name.ends_with("_text_end")).collect();
        assert!(unknown.is_empty(), "{}: no row for {unknown:?}", path.display());
    }
    assert_eq!(files, 13);
}

#[test]
fn every_function_of_kernel_locking_in_the_lists_of_names_has_a_row() {
    // The lists hold whatever looks like a lock; these beginnings are kernel/locking/'s own.
    let own = [
        "__down",
        "__mutex",
        "__percpu_down",
        "__pv_queued",
        "__raw_callee_save___",
        "__rt_mutex",
        "__up",
        "__ww_mutex",
        "_raw_",
        "arch_read_lock",
        "arch_spin",
        "arch_write_lock",
        "down",
        "lockref_",
        "mutex_",
        "native_queued",
        "osq_",
        "percpu_down",
        "percpu_rwsem",
        "percpu_up",
        "queued_",
        "resilient_",
        "rt_mutex_",
        "rwsem_",
        "up",
        "ww_mutex",
    ];
    let mut checked = 0;
    for (path, text) in fixtures() {
        let names = listed(&text).filter(|name| own.iter().any(|start| name.starts_with(start)));
        for name in names {
            assert!(is_known(name), "{}: no row for {name}", path.display());
            checked += 1;
        }
    }
    assert!(checked > 800, "{checked}");
}

#[test]
fn names_that_only_look_like_locks_are_none() {
    for name in [
        "__bad_area_nosemaphore",
        "bad_area_nosemaphore.cold",
        "hugetlb_fault_mutex_hash",
        "mutex_is_locked",
        "__mutex_init",
        "__init_rwsem",
        "__percpu_init_rwsem",
        "percpu_free_rwsem",
        "is_rwsem_reader_owned",
        "rwsem_owner",
        "file_rwsem",
        "net_rwsem",
        "cgroup_threadgroup_rwsem",
        "__percpu_rwsem_rc_cpu_hotplug_lock",
        "rwsem_key.7",
        "__flags__raw_spin_unlock",
        "__SCT__tp_func_mmap_lock_released",
        "dmi_entry_raw_read",
        "dmi_sel_raw_read_helper",
        "tracing_mark_raw_write",
        "hctx_queued_write",
        "mem_cgroup_write",
        "lockdown_read",
        "mutex_spin_wait",
        "spin_lock_set",
        "up_to_date",
        "down_below",
        "acpi_os_create_semaphore",
        "flush_smp_call_function_queue",
        "perf_trace_init",
        "bpf_prog_load",
        "lock_mm_and_find_vma",
        "lock_vma_under_rcu",
        "futex_wait_setup",
        "wait_for_completion",
        "folio_wait_bit_common",
        "try_to_wake_up",
        "release_sock",
        // Called by whoever spins on an owner, and by the scheduler.
        "__raw_callee_save___kvm_vcpu_is_preempted",
    ] {
        let found = verdict(fold(name));
        assert!(!matches!(found, Verdict::Lock(_)), "{name}: {found:?}");
    }
}

fn role(name: &str) -> (Role, Option<LockKind>, Option<Mode>) {
    match verdict(fold(name)) {
        Verdict::Lock(row) => (row.role, row.kind, row.mode),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn lock_functions_of_every_era_have_their_roles() {
    use LockKind::{Mutex, PcpuSem, RtMutex, Rwlock, RwlockRt, Rwsem, Semaphore, Spinlock};
    let (r, w, x) = (Some(Mode::Read), Some(Mode::Write), Some(Mode::Exclusive));
    for (name, expected) in [
        // 3.x
        ("call_rwsem_down_write_failed", (Role::SpinBlock, Some(Rwsem), w)),
        ("call_rwsem_wake", (Role::Wake, Some(Rwsem), None)),
        ("rwsem_down_failed_common", (Role::Block, Some(Rwsem), None)),
        ("__ticket_spin_lock", (Role::Spin, Some(Spinlock), x)),
        ("_spin_unlock_irqrestore", (Role::IrqOn, Some(Spinlock), x)),
        // 5.x to 7.x
        ("rwsem_down_read_slowpath", (Role::SpinBlock, Some(Rwsem), r)),
        ("rwsem_down_write_slowpath", (Role::SpinBlock, Some(Rwsem), w)),
        // Readers spin too up to 5.10: the frames below tell.
        ("rwsem_spin_on_owner", (Role::Spin, Some(Rwsem), None)),
        ("rwsem_wake.isra.0", (Role::Wake, Some(Rwsem), None)),
        ("osq_lock", (Role::Spin, None, x)),
        ("native_queued_spin_lock_slowpath", (Role::Spin, Some(Spinlock), x)),
        (".slowpath", (Role::Wake, Some(Spinlock), x)),
        ("_raw_spin_unlock_irqrestore", (Role::IrqOn, Some(Spinlock), x)),
        ("queued_read_lock_slowpath", (Role::Spin, Some(Rwlock), r)),
        ("__mutex_lock.constprop.0", (Role::SpinBlock, Some(Mutex), x)),
        ("__mutex_unlock_slowpath.isra.0", (Role::Wake, Some(Mutex), x)),
        ("down", (Role::Acquire, Some(Semaphore), x)),
        ("__up.isra.0", (Role::Wake, Some(Semaphore), x)),
        ("percpu_down_write", (Role::Block, Some(PcpuSem), w)),
        ("schedule_preempt_disabled", (Role::Schedule, None, None)),
        // arm64, s390
        ("queued_spin_lock_slowpath", (Role::Spin, Some(Spinlock), x)),
        ("arch_spin_lock_wait", (Role::Spin, Some(Spinlock), x)),
        // PREEMPT_RT
        ("rtlock_slowlock_locked", (Role::SpinBlock, Some(RtMutex), x)),
        ("rt_spin_lock_slowlock_locked", (Role::SpinBlock, Some(RtMutex), x)),
        ("rwbase_write_lock", (Role::SpinBlock, Some(RwlockRt), w)),
        ("__rwbase_read_lock", (Role::SpinBlock, Some(RwlockRt), r)),
        // wrappers
        ("xfs_buf_lock", (Role::Wrapper, Some(Semaphore), x)),
        ("xfs_trans_read_buf_map", (Role::Wrapper, None, None)),
        ("xfs_ilock", (Role::Wrapper, Some(Rwsem), None)),
        ("raw_spin_rq_lock_nested", (Role::Wrapper, Some(Spinlock), x)),
        ("lock_rename", (Role::Wrapper, None, None)),
        // the recorder's own cost
        ("perf_swevent_event", (Role::Recording, None, None)),
        ("perf_trace_sched_switch", (Role::Recording, None, None)),
        ("__traceiter_contention_begin", (Role::Recording, None, None)),
        ("bpf_prog_6deef7357e7b4530_sd_fw_ingress", (Role::Recording, None, None)),
    ] {
        assert_eq!(role(name), expected, "{name}");
    }
}

#[test]
fn stacks_are_cut_at_interrupts_and_not_at_page_faults() {
    let context = |name: &str| match verdict(name) {
        Verdict::Lock(row) => row.interrupt(),
        _ => None,
    };
    for (name, expected) in [
        ("asm_sysvec_apic_timer_interrupt", Some(Context::Hardirq)),
        ("asm_common_interrupt", Some(Context::Hardirq)),
        ("do_IRQ", Some(Context::Hardirq)),
        ("el1h_64_irq", Some(Context::Hardirq)),
        ("handle_softirqs", Some(Context::Softirq)),
        ("__do_softirq", Some(Context::Softirq)),
        ("asm_exc_nmi", Some(Context::Nmi)),
        ("asm_exc_page_fault", None),
        ("do_user_addr_fault", None),
        ("irqentry_exit_to_user_mode", None),
        ("do_syscall_64", None),
    ] {
        assert_eq!(context(name), expected, "{name}");
    }
    assert_eq!(role("irqentry_exit_to_user_mode").0, Role::InterruptReturn);
}

const KALLSYMS: &str = "\
000000000002f380 A bpf_raw_tp_nest_level
ffffffff81000000 T srso_alias_untrain_ret
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81001000 t __pfx_rwsem_wake.isra.0
ffffffff81001010 t rwsem_wake.isra.0
ffffffff81001100 T up_write
ffffffff81001200 t rwsem_wake.cold
ffffffff81002000 T __sched_text_start
ffffffff81002000 t __schedule
ffffffff81002400 T wait_for_completion
ffffffff81002500 t a_future_lock
ffffffff81002600 T __sched_text_end
ffffffff81002700 T read_it
ffffffff81002700 t __read_it_too
ffffffff81002700 W weak_read_it
ffffffff81003000 T _etext
ffffffff81400000 D __start_rodata
ffffffff81400000 d __func__.0
ffffffff81500000 D tasklist_lock
ffffffffc0002000 t xfs_buf_lock\t[xfs]
ffffffffc0002100 t xfs_last\t[xfs]
ffffffffc0008000 b xfs_data\t[xfs]
ffffffffc0100000 t loop_first\t[loop]
";

fn book() -> Kernel {
    Kernel::from_kallsyms(KALLSYMS.as_bytes())
}

fn name(kernel: &Kernel, addr: u64) -> Option<&str> {
    kernel.function(addr).map(|function| kernel.name(function))
}

#[test]
fn an_address_lies_in_the_function_before_it() {
    let kernel = book();
    assert_eq!(name(&kernel, 0xffffffff81001100), Some("up_write"));
    assert_eq!(name(&kernel, 0xffffffff810011ff), Some("up_write"));
    assert_eq!(kernel.symbol(0xffffffff8100101f), Some(("rwsem_wake.isra.0", 15)));
    assert_eq!(name(&kernel, 0xffffffff80ffffff), None);
    assert_eq!(name(&kernel, 0x2f380), None, "an offset of a per-CPU variable is no address");
}

#[test]
fn variants_of_a_function_have_one_id() {
    let kernel = book();
    let parts = [0xffffffff81001000, 0xffffffff81001010, 0xffffffff81001200];
    let ids: BTreeSet<_> = parts.iter().map(|&addr| kernel.function(addr).unwrap()).collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(kernel.name(ids.into_iter().next().unwrap()), "rwsem_wake");
}

#[test]
fn of_several_names_the_table_and_then_the_global_one_counts() {
    let kernel = book();
    assert_eq!(name(&kernel, 0xffffffff81000000), Some("srso_alias_untrain_ret"));
    assert_eq!(name(&kernel, 0xffffffff81002000), Some("__schedule"));
    assert_eq!(name(&kernel, 0xffffffff81002700), Some("read_it"));
}

#[test]
fn text_ends_where_the_kernel_says_and_data_is_no_function() {
    let kernel = book();
    assert_eq!(kernel.symbol(0xffffffff81003000), None);
    assert_eq!(kernel.symbol(0xffffffff813fffff), None);
    assert_eq!(kernel.symbol(0xffffffff81500000), Some(("tasklist_lock", 0)));
    assert_eq!(kernel.function(0xffffffff81500000), None);
}

#[test]
fn a_kernel_that_lists_few_variables_names_no_place_behind_one() {
    let sparse = book();
    assert_eq!(sparse.symbol(0xffffffff81500040), None);
    let mut text = KALLSYMS.as_bytes().to_vec();
    for i in 0..1000u64 {
        text.extend(format!("{:x} D variable_{i}\n", 0xffffffff81600000 + i * 64).into_bytes());
    }
    let full = Kernel::from_kallsyms(&text);
    assert_eq!(full.symbol(0xffffffff81500040), Some(("tasklist_lock", 0x40)));
}

#[test]
fn addresses_far_behind_a_modules_last_symbol_are_unknown() {
    let kernel = book();
    assert_eq!(kernel.module(0xffffffffc0002000), Some("xfs"));
    assert_eq!(kernel.module(0xffffffff81001100), None);
    assert_eq!(name(&kernel, 0xffffffffc0002fff), Some("xfs_last"));
    assert_eq!(name(&kernel, 0xffffffffc0005000), None);
    assert_eq!(name(&kernel, 0xffffffffc0100010), Some("loop_first"));
    assert_eq!(name(&kernel, 0xffffffffc0200000), None);
    assert_eq!(name(&kernel, u64::MAX), None);
}

#[test]
fn lock_code_is_what_the_table_says_and_then_what_the_sections_say() {
    let kernel = book();
    let lock_code = |addr| kernel.frame(addr).lock_code;
    assert!(lock_code(0xffffffff81001100), "up_write has a row");
    assert!(!lock_code(0xffffffff81002000), "__schedule is a scheduler frame");
    assert!(!lock_code(0xffffffff81002400), "wait_for_completion has a negative row");
    assert!(lock_code(0xffffffff81002500), "a_future_lock lies in .sched.text");
    assert!(!lock_code(0xffffffff81002700), "read_it lies outside");
    assert!(!lock_code(0xffffffffc0002000), "xfs_buf_lock is a wrapper");
    assert_eq!(kernel.frame(0xffffffffc0002000).lock.unwrap().role, Role::Wrapper);
    assert_eq!(kernel.frame(0xffffffff81002400).lock, None);
    assert!(kernel.in_lock_text(0xffffffff81002400) && !kernel.in_lock_text(0xffffffff81002600));
    let without = Kernel::from_kallsyms(b"ffffffff81002400 T wait_for_completion\n");
    assert!(!without.in_lock_text(0xffffffff81002400));
}

#[test]
fn hidden_addresses_give_an_empty_book_that_says_so() {
    let kernel =
        Kernel::from_kallsyms(b"0000000000000000 T _text\n0000000000000000 t foo\t[bar]\n");
    assert!(kernel.is_empty() && kernel.addresses_hidden());
    let kernel = Kernel::from_kallsyms(b"\x7fELF no kallsyms at all");
    assert!(kernel.is_empty() && !kernel.addresses_hidden());
    assert!(!book().addresses_hidden());
}

#[test]
fn a_symbol_that_comes_while_recording_lies_over_older_ones() {
    let mut kernel = book();
    let at = 0xffffffffc0300000;
    kernel.add(at, 0x100, "bpf_prog_6deef7357e7b4530_first");
    kernel.add(at + 0x200, 0x100, "bpf_prog_6deef7357e7b4530_second");
    assert_eq!(kernel.symbol(at + 0xff), Some(("bpf_prog_6deef7357e7b4530_first", 0xff)));
    assert_eq!(kernel.symbol(at + 0x100), None);
    assert_eq!(kernel.frame(at).lock.unwrap().role, Role::Recording);
    kernel.add(at + 0x80, 0x200, "up_write.constprop.0");
    assert_eq!(kernel.function(at), None, "its bytes were used again");
    assert_eq!(kernel.function(at + 0x80), kernel.function(0xffffffff81001100));
    kernel.add(at, 0, "nothing");
    kernel.add(u64::MAX - 1, 16, "at_the_end");
    assert_eq!(name(&kernel, u64::MAX - 1), Some("at_the_end"));
}

#[test]
fn symbols_of_another_boot_are_moved_and_modules_forgotten() {
    let mut kernel = book();
    assert_eq!(kernel.anchor("_text", 0xffffffff81000000), Anchored::Same);
    assert_eq!(kernel.anchor("_end", 0xffffffff81000000), Anchored::Unknown);
    assert_eq!(kernel.anchor("_text", 0xffffffff9f000000), Anchored::Moved(0x1e000000));
    assert_eq!(name(&kernel, 0xffffffff9f001100), Some("up_write"));
    assert_eq!(name(&kernel, 0xffffffff81001100), None);
    assert_eq!(name(&kernel, 0xffffffffc0002000), None);
    assert!(kernel.frame(0xffffffff9f002500).lock_code);
    assert_eq!(kernel.anchor("_stext", 0xffffffff9f000000), Anchored::Same);
}

proptest::proptest! {
    #[test]
    fn any_text_gives_a_book_that_answers(
        text in "([0-9a-f]{8,17} [a-zA-Z] [._a-z]{0,6}[a-z.0-9]{0,8}(\t\\[[a-z]{0,3}\\]|)(\n|))*",
        noise in proptest::collection::vec(proptest::num::u8::ANY, 0..64),
        addr in proptest::num::u64::ANY,
    ) {
        let mut kernel = Kernel::from_kallsyms(&[text.as_bytes(), &noise].concat());
        let addresses = text.lines().filter_map(|line| line.split(' ').next());
        let addresses = addresses.filter_map(|word| u64::from_str_radix(word, 16).ok());
        for addr in addresses.chain([addr, 0, u64::MAX]) {
            for addr in [addr, addr.wrapping_add(1), addr.wrapping_sub(1)] {
                let symbol = kernel.symbol(addr);
                proptest::prop_assert!(symbol.is_none_or(|(_, offset)| offset <= addr));
                let function = kernel.function(addr);
                proptest::prop_assert!(function.is_none() || symbol.is_some());
                proptest::prop_assert_eq!(kernel.frame(addr).function, function);
            }
            kernel.add(addr, addr >> 32, "later");
            kernel.anchor("_text", addr);
        }
    }
}
