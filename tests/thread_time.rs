//! Where the time of threads went, case by case, through the public pipe: on a CPU, without one,
//! asleep for a lock of the kernel or of user space, or on something that is no lock at all.

mod streams;

use lockprof::model::{GroupBy, Nanos};
use lockprof::render::{Renderer, Table};
use lockprof::report::{Instead, Report, ThreadTime};
use lockprof::source::{At, Synthetic};
use proptest::prelude::*;
use streams::{MUTEX, Reading, at};

/// Functions of 0x100 bytes each, from `FIRST` on.
const FIRST: u64 = 0xffff_ffff_8100_0000;
const FUNCTIONS: [&str; 22] = [
    "_text",
    "__schedule",
    "schedule",
    "io_schedule",
    "rwsem_down_write_slowpath",
    "down_write",
    "do_mprotect_pkey",
    "xlog_wait_on_iclog",
    "xfs_log_force_seq",
    "xfs_file_fsync",
    "folio_wait_bit_common",
    "filemap_fault",
    "futex_wait_queue",
    "futex_wait",
    "do_futex",
    "__x64_sys_futex",
    "__mutex_lock",
    "anon_pipe_write",
    "_raw_spin_unlock_irqrestore",
    "asm_sysvec_apic_timer_interrupt",
    "do_epoll_wait",
    "worker_thread",
];
const MS: u64 = 1_000_000;

/// A stack, innermost first, behind `__schedule < schedule`.
fn asleep(names: &str) -> Vec<u64> {
    stack(&format!("__schedule < schedule < {names}"))
}

fn stack(names: &str) -> Vec<u64> {
    let ip = |name: &str| {
        let at = FUNCTIONS.iter().position(|function| *function == name);
        FIRST + at.unwrap_or_else(|| panic!("no function {name}")) as u64 * 0x100 + 0x10
    };
    names.split(" < ").map(ip).collect()
}

fn reading() -> Reading {
    let line = |(name, at): (&&str, u64)| format!("{:x} T {name}\n", FIRST + at * 0x100);
    let kallsyms: String = FUNCTIONS.iter().zip(0..).map(line).collect();
    let kallsyms = Box::leak(kallsyms.into_boxed_str());
    Reading { kallsyms, wakings: true, sleeps: true, ..Reading::default() }
}

/// CPU 0, on which one task runs, sleeps and is woken by the idle task. Times in ms.
struct Cpu0<'a> {
    s: &'a mut Synthetic,
    task: i32,
    now: u64,
}

impl Cpu0<'_> {
    /// `task` gets the CPU at `now`.
    fn of(s: &mut Synthetic, task: i32, now: u64) -> Cpu0<'_> {
        s.sched_switch(at(now * MS, 0, 0), 0, task, (&[], &[]));
        Cpu0 { s, task, now }
    }

    /// It runs, sleeps on `stack`, is runnable, for so many ms, and runs again.
    fn sleeps(&mut self, (ran, slept, stood): (u64, u64, u64), stack: &str) -> &mut Self {
        self.leave(ran, 1, stack);
        self.now += slept;
        self.s.waking(at(self.now * MS, 0, 0), self.task, &[]);
        self.come(stood)
    }

    fn leave(&mut self, ran: u64, state: u64, stack: &str) {
        self.now += ran;
        let moment = at(self.now * MS, 0, self.task);
        self.s.sched_switch(moment, state, 0, (&asleep(stack), &[]));
    }

    fn come(&mut self, stood: u64) -> &mut Self {
        self.now += stood;
        self.s.sched_switch(at(self.now * MS, 0, 0), 0, self.task, (&[], &[]));
        self
    }

    fn exits(&mut self, ran: u64) {
        self.now += ran;
        self.s.exit(at(self.now * MS, 0, self.task));
    }
}

fn thread_time(report: &Report) -> &ThreadTime {
    report.thread_time.as_ref().expect("a recording with switches")
}

/// The parts in ms: on CPU, runnable, kernel locks, user locks, other sleep, unknown.
fn parts(report: &Report) -> [u64; 6] {
    let time = thread_time(report);
    let parts = [
        time.on_cpu,
        time.runnable,
        time.kernel_locks,
        time.user_locks,
        time.other_sleep(),
        time.unknown,
    ];
    assert_eq!(time.total(), parts.iter().copied().sum::<Nanos>());
    parts.map(|part| part.0 / MS)
}

fn page(report: &Report) -> String {
    let mut page = Vec::new();
    Table { width: 200, ..Table::default() }
        .render(report, &mut page)
        .expect("writing to memory cannot fail");
    String::from_utf8(page).expect("a page is UTF-8")
}

const FSYNC: &str = "xlog_wait_on_iclog < xfs_log_force_seq < xfs_file_fsync";
const FUTEX: &str = "futex_wait_queue < futex_wait < do_futex < __x64_sys_futex";
const RWSEM: &str = "rwsem_down_write_slowpath < down_write < do_mprotect_pkey";

#[test]
fn the_parts_say_on_what_a_thread_spent_its_time() {
    let report = reading().report(GroupBy::Site, |s| {
        let mut cpu = Cpu0::of(s, 7, 1);
        cpu.sleeps((10, 59, 1), FSYNC).sleeps((10, 20, 0), FUTEX).sleeps((5, 4, 3), RWSEM);
        cpu.leave(2, 256, "do_mprotect_pkey");
        cpu.come(6).exits(3);
    });
    assert_eq!(parts(&report), [30, 10, 4, 20, 59, 0]);
    let time = thread_time(&report);
    let slept: Vec<_> = time.sleeps.iter().map(|s| (s.function.as_deref(), s.sum.count)).collect();
    assert_eq!(slept, [(Some("xlog_wait_on_iclog"), 1)]);
    assert_eq!(time.threads, 1);
    assert!(page(&report).contains(
        "thread time 123 ms of 1 thread: 30 ms on CPU, 10 ms runnable, 4 ms asleep for kernel locks, \
         20 ms futex, 59 ms other sleep (xlog_wait_on_iclog 59 ms)"
    ));
}

#[test]
fn a_sleep_without_a_stack_is_a_lock_wait_where_a_contention_event_says_so() {
    let reading = Reading { sleeps: false, switches: true, ..reading() };
    let report = reading.report(GroupBy::Site, |s| {
        s.switch(at(MS, 0, 7), false);
        s.begin(at(2 * MS, 0, 7), 0xa0, MUTEX, &stack("__mutex_lock < anon_pipe_write"));
        s.switch(at(3 * MS, 0, 7), true);
        s.waking(at(9 * MS, 1, 8), 7, &[]);
        s.switch(at(10 * MS, 0, 7), false);
        s.end(at(11 * MS, 0, 7), 0xa0, 0);
        s.switch(at(20 * MS, 0, 7), true);
        s.waking(at(25 * MS, 1, 8), 7, &[]);
        s.switch(at(26 * MS, 0, 7), false);
        s.exit(at(27 * MS, 0, 7));
    });
    assert_eq!(parts(&report), [2 + 10 + 1, 1 + 1, 6, 0, 5, 0]);
    assert_eq!(thread_time(&report).sleeps[0].function, None);
}

#[test]
fn what_lost_records_hide_is_unknown_and_part_of_the_whole() {
    let report = reading().report(GroupBy::Site, |s| {
        let mut cpu = Cpu0::of(s, 7, 1);
        cpu.sleeps((10, 20, 0), FSYNC);
        cpu.leave(10, 1, FSYNC);
        let lost = cpu.now + 30;
        cpu.s.lost(at(lost * MS, 0, 0), 5);
        cpu.now = lost;
        cpu.come(9).exits(1);
    });
    assert_eq!(parts(&report), [21, 0, 0, 0, 20, 39]);
}

/// With `-p` only the target's own switches are recorded: when the others leave again is not known.
#[test]
fn tasks_that_attached_threads_switch_to_or_wake_have_no_time_of_their_own() {
    let reading = Reading { attached: Some(7), switches: true, ..reading() };
    let report = reading.report(GroupBy::Site, |s| {
        s.comm(0, 7, 7, "target", false);
        s.switch(at(MS, 0, 7), false);
        s.waking(at(5 * MS, 0, 7), 9, &[]);
        s.sched_switch(at(11 * MS, 0, 7), 1, 8, (&asleep(FSYNC), &[]));
        s.switch(at(11 * MS, 0, 7), true);
        s.switch(at(31 * MS, 0, 7), false);
        s.exit(at(41 * MS, 0, 7));
    });
    assert_eq!(thread_time(&report).threads, 1);
    assert_eq!(parts(&report), [20, 0, 0, 0, 20, 0]);
}

#[test]
fn what_an_attached_process_starts_has_its_own_time() {
    let reading = Reading { attached: Some(7), switches: true, ..reading() };
    let report = reading.report(GroupBy::Site, |s| {
        s.comm(0, 7, 7, "target", false);
        s.switch(at(MS, 0, 7), false);
        let child = |time| At { pid: 20, ..at(time * MS, 1, 20) };
        let grandchild = |time| At { pid: 30, ..at(time * MS, 1, 30) };
        s.fork(child(2), 7, 7);
        s.switch(child(4), false).fork(grandchild(6), 20, 20).switch(child(10), true);
        s.switch(grandchild(10), false).exit(grandchild(25));
        s.waking(child(30), 20, &[]).exit(child(30));
        s.exit(at(41 * MS, 0, 7));
    });
    assert_eq!(thread_time(&report).threads, 3);
    // The first: 40; the child: 2 runnable, 6 on the CPU, 20 asleep; the grandchild: 4 runnable, 15.
    assert_eq!(parts(&report), [40 + 6 + 15, 2 + 4, 0, 0, 20, 0]);
}

#[test]
fn a_recording_without_switches_has_no_thread_time() {
    let reading = Reading { sleeps: false, ..reading() };
    let report = reading.report(GroupBy::Site, |s| {
        s.begin(at(2 * MS, 0, 7), 0xa0, MUTEX, &[]).end(at(3 * MS, 0, 7), 0xa0, 0);
    });
    assert_eq!(report.thread_time, None);
    assert!(!page(&report).contains("thread time"));
}

#[test]
fn user_locks_are_listed_by_call_site_and_never_among_kernel_locks() {
    let report = reading().report(GroupBy::Site, |s| {
        s.comm(0, 7, 7, "worker", true);
        let mut cpu = Cpu0::of(s, 7, 1);
        for _ in 0..3 {
            cpu.sleeps((1, 20, 0), FUTEX);
        }
    });
    assert_eq!(report.rows, []);
    let [lock] = report.user_locks.as_slice() else { panic!("{:?}", report.user_locks) };
    assert_eq!((lock.task.comm.as_str(), lock.caller.as_deref()), ("worker", None));
    assert_eq!(lock.entry.as_deref(), Some("__x64_sys_futex"));
    assert_eq!(
        (lock.stat.count, lock.stat.own, lock.stat.max),
        (3, Nanos(60 * MS), Nanos(20 * MS))
    );
    let page = page(&report);
    assert!(page.contains("user locks (futex), no locks of the kernel: 60 ms"), "{page}");
    assert!(page.contains("__x64_sys_futex (no user stacks)"), "{page}");
}

#[test]
fn a_user_lock_is_told_by_who_asked_for_it_where_user_stacks_were_recorded() {
    let report = reading().report(GroupBy::Site, |s| {
        s.comm(0, 7, 7, "worker", true);
        s.sched_switch(at(MS, 0, 0), 0, 7, (&[], &[]));
        s.sched_switch(at(2 * MS, 0, 7), 1, 0, (&asleep(FUTEX), &[0x5010, 0x6010]));
        s.waking(at(9 * MS, 0, 0), 7, &[]);
    });
    assert_eq!(report.user_locks[0].caller.as_deref(), Some("[unknown+0x5010]"));
}

#[test]
fn plain_io_blames_no_lock_and_is_named() {
    let report = reading().report(GroupBy::Site, |s| {
        let mut cpu = Cpu0::of(s, 7, 1);
        for _ in 0..10 {
            cpu.sleeps((1, 8, 1), "io_schedule < folio_wait_bit_common < filemap_fault");
            // A lock is held further down, and its code is on the stack.
            cpu.sleeps((1, 4, 1), "folio_wait_bit_common < down_write < do_mprotect_pkey");
        }
    });
    assert_eq!((report.rows.len(), report.total.contended()), (0, 0));
    let verdict = thread_time(&report).verdict().expect("a verdict");
    assert_eq!(verdict.instead, Instead::Slept("folio_wait_bit_common".into()));
    let page = page(&report);
    assert!(page.contains(
        "waiting for kernel locks is 0 % of the time off CPU; for 86 % of it the threads slept in \
         folio_wait_bit_common"
    ));
    assert!(page.contains("no lock waits recorded"), "{page}");
}

#[test]
fn interrupt_work_under_an_unlock_blames_no_lock() {
    let report = reading().report(GroupBy::Site, |s| {
        let mut cpu = Cpu0::of(s, 7, 1);
        let work = "worker_thread < asm_sysvec_apic_timer_interrupt < _raw_spin_unlock_irqrestore \
                    < do_mprotect_pkey";
        for ms in 2..90 {
            cpu.s.cpu_sample(at(ms * MS, 0, 7), &stack(work), &[]);
        }
        cpu.exits(100);
    });
    assert_eq!((report.rows.len(), report.total.spun.samples), (0, 0));
    assert_eq!(parts(&report), [100, 0, 0, 0, 0, 0]);
    assert!(page(&report).contains(
        "waiting for kernel locks is 0 % of the threads' time; for 100 % of it the threads were on a CPU"
    ));
}

#[test]
fn an_idle_machine_blames_no_lock_and_says_that_its_threads_slept() {
    let report = reading().report(GroupBy::Site, |s| {
        let mut cpu = Cpu0::of(s, 7, 1);
        cpu.sleeps((1, 998, 0), "do_epoll_wait").sleeps((1, 999, 0), "do_epoll_wait");
        let mut cpu = Cpu0::of(cpu.s, 8, 2100);
        cpu.sleeps((1, 99, 0), "worker_thread");
    });
    assert_eq!(report.rows, []);
    let page = page(&report);
    assert!(page.contains("% of it the threads slept in do_epoll_wait"), "{page}");
}

#[test]
fn locks_that_are_the_problem_get_no_verdict() {
    let report = reading().report(GroupBy::Site, |s| {
        let mut cpu = Cpu0::of(s, 7, 1);
        for _ in 0..5 {
            cpu.sleeps((1, 8, 1), RWSEM).sleeps((1, 8, 1), FSYNC);
        }
    });
    assert_eq!(report.rows.len(), 1);
    assert_eq!(thread_time(&report).verdict(), None);
}

#[test]
fn the_verdict_knows_of_locks_that_a_filter_leaves_out() {
    let mut s = Synthetic::new();
    let mut cpu = Cpu0::of(&mut s, 7, 1);
    for _ in 0..5 {
        cpu.sleeps((1, 8, 1), RWSEM).sleeps((1, 8, 1), FSYNC);
    }
    let pipeline = reading().pipeline([s.take_round()]);
    let mut query = streams::ask(GroupBy::Site);
    query.filter.caller = vec!["anon_pipe_write".into()];
    let report = pipeline.report(&query);
    assert_eq!(report.rows, []);
    assert_eq!(thread_time(&report).verdict(), None);
    query.filter.tid = vec![99];
    assert_eq!(thread_time(&pipeline.report(&query)).total(), Nanos::ZERO);
}

#[test]
fn ranges_of_time_cut_the_parts_and_add_up() {
    let write = |s: &mut Synthetic| {
        Cpu0::of(s, 7, 1).sleeps((10, 30, 5), FSYNC).sleeps((5, 40, 10), FUTEX).exits(0);
    };
    let of = |from: u64, to: u64| {
        let time = Some((Nanos(from * MS), Nanos(to * MS)));
        let filter = lockprof::model::Filter { time, ..Default::default() };
        parts(&Reading { filter, ..reading() }.report(GroupBy::Site, write))
    };
    assert_eq!(of(0, 1000), [15, 15, 0, 40, 30, 0]);
    assert_eq!((of(0, 20), of(20, 1000)), ([10, 0, 0, 0, 10, 0], [5, 15, 0, 40, 20, 0]));
}

/// What a task does next: kind, and how long.
fn choices() -> impl Strategy<Value = Vec<(u8, u8, u8)>> {
    proptest::collection::vec((any::<u8>(), 0u8..3, 1u8..60), 1..120)
}

/// Three tasks, each on a CPU of its own, do what was chosen, one after the other on one clock. Gives
/// the sum of their lives in ns.
fn lives(s: &mut Synthetic, choices: &[(u8, u8, u8)]) -> u64 {
    let stacks = [FSYNC, FUTEX, RWSEM, "do_epoll_wait"].map(asleep);
    // Since when each lives, and whether it runs (0), sleeps (1), stands (2).
    let mut tasks: [Option<(u64, u8)>; 3] = [None; 3];
    let mut ended = [false; 3];
    let (mut now, mut sum) = (1000, 0);
    for &(what, who, length) in choices {
        now += u64::from(length) * 1000;
        let (cpu, task) = (u32::from(who), i32::from(who) + 7);
        let (here, idle) = (at(now, cpu, task), at(now, cpu, 0));
        let slot = &mut tasks[usize::from(who)];
        match (*slot, what % 8) {
            // Who was there before; whoever has its number later is born.
            (None, 0..=5) if !ended[usize::from(who)] => {
                s.sched_switch(idle, 0, task, (&[], &[]));
                *slot = Some((now, 0));
            }
            (None, _) => {
                s.fork(here, 1, 1);
                *slot = Some((now, 2));
            }
            (Some((born, 0)), 0) => {
                s.exit(here);
                sum += now - born;
                ended[usize::from(who)] = true;
                *slot = None;
            }
            (Some((born, 0)), choice) => {
                let preempted = choice >= 6;
                let stack = &stacks[usize::from(what / 8) % stacks.len()];
                s.sched_switch(here, if preempted { 256 } else { 1 }, 0, (stack, &[]));
                *slot = Some((born, if preempted { 2 } else { 1 }));
            }
            (Some((born, 1)), _) => {
                s.waking(idle, task, &[]);
                *slot = Some((born, 2));
            }
            (Some((born, _)), _) => {
                s.sched_switch(idle, 0, task, (&[], &[]));
                *slot = Some((born, 0));
            }
        }
    }
    sum + tasks.iter().flatten().map(|(born, _)| now - born).sum::<u64>()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_parts_add_up_to_the_lives_of_the_threads(choices in choices()) {
        let mut lived = 0;
        let report = reading().report(GroupBy::Site, |s| lived = lives(s, &choices));
        let time = thread_time(&report);
        prop_assert_eq!(time.total(), Nanos(lived));
        prop_assert_eq!(time.unknown, Nanos::ZERO);
        let user: u64 = report.user_locks.iter().map(|lock| lock.stat.own.0).sum();
        prop_assert_eq!(Nanos(user), time.user_locks);
        // Nothing waits for a lock that is not asleep, without a CPU or between two sleeps.
        prop_assert!(report.total.traced() >= time.kernel_locks);
        prop_assert!(report.total.traced() <= time.kernel_locks + time.runnable);
    }
}
