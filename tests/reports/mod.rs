//! Reports built by hand, and goldens to compare their renderings with.
//!
//! `LOCKPROF_BLESS=1 cargo test --test 'render_*'` writes the goldens anew; look at the diff.

#![allow(dead_code, reason = "every test binary uses its own part")]

#[path = "../golden/mod.rs"]
mod golden;

use lockprof::analyse::PartTime;
use lockprof::correlate::{Counts, SleepCounts};
use lockprof::model::{
    Cpu, GroupBy, HandOverKind, HolderTimes, LockAddr, LockKind, LockType, Mode, Nanos, QueueStat,
    SortKey, Spun, Stat, Uncharged, WaitStat,
};
use lockprof::render::Renderer;
use lockprof::report::{
    BlameStack, ChainLink, ChainRow, ChargedName, CpuStack, Header, LockName, NameEvidence, Report,
    Row, RowKey, SleepTime, Split, StackShare, TaskName, ThreadTime, Trust, UserLock, WaitChains,
};

pub(crate) const RWSEM_R: LockType = LockType::new(LockKind::Rwsem, Mode::Read);
pub(crate) const RWSEM_W: LockType = LockType::new(LockKind::Rwsem, Mode::Write);
pub(crate) const SPINLOCK: LockType = LockType::new(LockKind::Spinlock, Mode::Exclusive);
pub(crate) const SEMAPHORE: LockType = LockType::new(LockKind::Semaphore, Mode::Exclusive);
pub(crate) const MUTEX: LockType = LockType::new(LockKind::Mutex, Mode::Exclusive);

/// Statistics of `(how many, how long in ns)` waits.
pub(crate) fn waits(groups: &[(u64, u64)]) -> WaitStat {
    let mut ended = Stat::default();
    for &(count, ns) in groups {
        for _ in 0..count {
            ended.add(Nanos(ns));
            ended.own += Nanos(ns);
        }
    }
    WaitStat { ended, ..WaitStat::default() }
}

/// The same with so many CPU samples, 1 ms apart, that saw spinning.
pub(crate) fn spun(mut stat: WaitStat, samples: u64) -> WaitStat {
    stat.spun = Spun { samples, time: Nanos(samples * 1_000_000) };
    stat
}

pub(crate) fn lock(name: &str, evidence: NameEvidence) -> LockName {
    LockName { name: name.into(), evidence }
}

fn key() -> RowKey {
    RowKey {
        lock_type: None,
        lock_kind: None,
        caller: None,
        wrappers: Vec::new(),
        lock: None,
        lock_addr: None,
        lock_owner: None,
        task: None,
        cgroup: None,
        releaser: None,
    }
}

pub(crate) fn site_row(lock_type: LockType, caller: &str, lock: LockName, stat: WaitStat) -> Row {
    let caller = (!caller.is_empty()).then(|| caller.to_string());
    let key = RowKey { lock_type: Some(lock_type), caller, lock: Some(lock), ..key() };
    let splits = vec![Split::new(lock_type, stat.clone())];
    Row { key, stat, splits, ..Row::default() }
}

fn summed(splits: &[Split]) -> WaitStat {
    let mut all = WaitStat::default();
    splits.iter().for_each(|split| all.merge(&split.stat));
    all
}

pub(crate) fn lock_row(kind: LockKind, name: LockName, addr: u64, splits: Vec<Split>) -> Row {
    let key = RowKey {
        lock_kind: Some(kind),
        lock: Some(name),
        lock_addr: Some(LockAddr(addr)),
        ..key()
    };
    Row { key, stat: summed(&splits), splits, ..Row::default() }
}

pub(crate) fn task_row(comm: &str, pid: i32, tid: i32, splits: Vec<Split>) -> Row {
    let key = RowKey { task: Some(TaskName { comm: comm.into(), pid, tid }), ..key() };
    Row { key, stat: summed(&splits), splits, ..Row::default() }
}

pub(crate) fn report(by: GroupBy, rows: Vec<Row>) -> Report {
    let mut total = WaitStat::default();
    rows.iter().for_each(|row| total.merge(&row.stat));
    Report {
        header: header(),
        by,
        sort: SortKey::Wait,
        top: 20,
        trust: trust(total.wait()),
        thread_time: None,
        user_locks: Vec::new(),
        total,
        rows,
        chains: WaitChains::default(),
        blame_stacks: Vec::new(),
        charged: Vec::new(),
        cpu_stacks: Vec::new(),
    }
}

fn header() -> Header {
    Header {
        target: "xfs_repair -o bhash=500000 -o ag_stride=2 /dev/loop0".into(),
        kernel: "6.18.5".into(),
        cpus: 2,
        elapsed: Nanos(2_140_000_000),
        threads: 33,
        exit_status: Some(0),
        cpu_time: Some(Nanos(3_400_000_000)),
    }
}

fn trust(wait: Nanos) -> Trust {
    Trust {
        records: 31_000,
        counts: Counts {
            begins: 4_312,
            ends: 2_926,
            begun: 2_926,
            phases: 1_386,
            ended: 2_926,
            ..Counts::default()
        },
        cpu_samples: 3_400,
        cpu_event: Some(("cpu-clock".into(), Nanos(1_003_009))),
        floor: Some(Nanos(3_400)),
        caller_named: wait,
        charged: None,
        lock_named: Nanos(wait.0 / 100 * 97),
        wait,
        kernel_symbols: "from the recording".into(),
        rung: "contention events (5.19 and later)".into(),
        recorder_cpu: Some(Nanos(48_000_000)),
        ..Trust::default()
    }
}

/// Sites as `xfs_repair` shows them: readers and writers of mmap_lock, a buffer lock behind a
/// wrapper, a spinlock near the floor, a site without a symbol.
pub(crate) fn sites() -> Report {
    let mmap_lock = || lock("mmap_lock", NameEvidence::Path);
    let writers = spun(waits(&[(400, 800_000), (380, 2_500_000), (30, 21_000_000)]), 240);
    let readers = waits(&[(200, 1_600_000), (140, 3_000_000), (4, 31_000_000)]);
    let mut buffer = site_row(
        SEMAPHORE,
        "xfs_read_agi",
        lock("semaphore @ xfs_read_agi", NameEvidence::Caller),
        waits(&[(20, 600_000), (3, 4_000_000)]),
    );
    buffer.key.wrappers = vec!["xfs_buf_lock".into()];
    let pi_lock = lock("p->pi_lock", NameEvidence::Embedded);
    let unknown = lock("mutex @ [unknown]", NameEvidence::Caller);
    report(
        GroupBy::Site,
        vec![
            site_row(RWSEM_W, "do_mprotect_pkey", mmap_lock(), writers),
            site_row(RWSEM_R, "lock_mm_and_find_vma", mmap_lock(), readers),
            buffer,
            site_row(SPINLOCK, "try_to_wake_up", pi_lock, waits(&[(1_700, 6_500), (48, 88_000)])),
            site_row(MUTEX, "", unknown, waits(&[(1, 90_000)])),
        ],
    )
}

/// The same with full stacks under their rows and CPU samples.
pub(crate) fn stacks() -> Report {
    let mut report = sites();
    let text = |frames: &[&str]| frames.iter().map(|f| f.to_string()).collect::<Vec<_>>();
    let writer = |user: &[&str], stat| StackShare {
        kernel: text(&[
            "rwsem_down_write_slowpath+0x1b3",
            "down_write_killable+0x4d",
            "do_mprotect_pkey+0xc1",
            "__x64_sys_mprotect+0x1b",
            "do_syscall_64+0x84",
            "entry_SYSCALL_64_after_hwframe+0x76",
        ]),
        user: text(user),
        lock_type: RWSEM_W,
        lock: lock("mmap_lock", NameEvidence::Path),
        stat,
    };
    report.rows[0].stacks = vec![
        writer(
            &["mprotect+0xb", "grow_heap+0x5a", "_int_malloc+0x2d1", "malloc+0x1c0"],
            spun(waits(&[(400, 800_000), (280, 2_500_000), (30, 21_000_000)]), 200),
        ),
        writer(&["mprotect+0xb", "heap_trim+0x90"], spun(waits(&[(90, 2_500_000)]), 40)),
    ];
    report.rows[1].stacks = vec![StackShare {
        kernel: text(&[
            "rwsem_down_read_slowpath+0x2a0",
            "down_read_killable+0x6e",
            "lock_mm_and_find_vma+0x9b",
            "do_user_addr_fault+0x1dd",
            "exc_page_fault+0x78",
        ]),
        user: text(&["memset+0x11", "process_inodes+0x240"]),
        lock_type: RWSEM_R,
        lock: lock("mmap_lock", NameEvidence::Path),
        stat: waits(&[(200, 1_600_000), (140, 3_000_000), (4, 31_000_000)]),
    }];
    let cpu = |lock_type, kernel: &[&str], samples| CpuStack {
        lock_type,
        kernel: text(kernel),
        user: text(&["mprotect+0xb", "grow_heap+0x5a"]),
        comm: "xfs_repair".into(),
        samples,
        time: Nanos(samples * 1_000_000),
    };
    report.cpu_stacks = vec![
        cpu(Some(RWSEM_W), &["rwsem_spin_on_owner+0x33", "down_write+0x10"], 240),
        cpu(None, &[], 3_160),
    ];
    report
}

/// Locks: two address spaces, one of them with readers and writers.
pub(crate) fn locks() -> Report {
    let split = |lock_type, stat| Split::new(lock_type, stat);
    let mmap_lock = || lock("mmap_lock", NameEvidence::Path);
    report(
        GroupBy::Lock,
        vec![
            lock_row(
                LockKind::Rwsem,
                mmap_lock(),
                0xffff_8881_03f4_a1c8,
                vec![
                    split(RWSEM_R, waits(&[(344, 2_300_000)])),
                    split(RWSEM_W, spun(waits(&[(812, 1_100_000)]), 90)),
                ],
            ),
            lock_row(
                LockKind::Rwsem,
                mmap_lock(),
                0xffff_8881_0811_0040,
                vec![split(RWSEM_R, waits(&[(7, 1_000_000)]))],
            ),
        ],
    )
}

/// Tasks: a thread, and threads of one name folded together.
/// The same, and who waits behind whom.
pub(crate) fn readers_writers() -> Report {
    let mut report = locks();
    let row = &mut report.rows[0];
    for split in &mut row.splits {
        let behind = &mut split.stat.behind;
        let traced = split.stat.ended.own + split.stat.open_time;
        let share = |percent: u64| Nanos(traced.0 / 100 * percent);
        behind.writer = share(71);
        match split.lock_type.mode {
            Mode::Read => behind.queued_writer = share(20),
            _ => behind.reader = share(24),
        }
        behind.woken = share(3);
    }
    row.queue = Some(QueueStat {
        busy: Nanos(1_900_000_000),
        readers: Nanos(800_000_000),
        writers: Nanos(1_900_000_000),
        most_readers: 12,
        most_writers: 29,
        convoys: 212,
        convoy_waits: 1_030,
        convoy_hand_overs: 900,
        convoy_time: Nanos(1_800_000_000),
        longest_waits: 88,
        longest_time: Nanos(312_000_000),
        doubtful: 0,
    });
    report
}

pub(crate) fn tasks() -> Report {
    let split = |lock_type, stat| Split::new(lock_type, stat);
    report(
        GroupBy::Task,
        vec![
            task_row(
                "xfs_repair",
                4711,
                4720,
                vec![
                    split(RWSEM_R, waits(&[(300, 2_000_000)])),
                    split(RWSEM_W, waits(&[(700, 2_000_000)])),
                ],
            ),
            task_row("kworker/u#:#", 0, 0, vec![split(SPINLOCK, waits(&[(90, 12_000)]))]),
        ],
    )
}

/// Who let whom wait: a releaser with holds, one that passed the lock on, and nobody.
pub(crate) fn blame() -> Report {
    blame_of("xfs_repair")
}

/// The same with hostile names.
pub(crate) fn hostile_blame() -> Report {
    let mut report = blame_of(&HOSTILE.concat());
    for row in &mut report.rows {
        row.stat.holder = HolderTimes { asleep: row.stat.wait(), ..HolderTimes::default() };
        row.holder_slept = vec![(HOSTILE.concat(), row.stat.wait())];
    }
    report.charged = report.rows.clone();
    report
}

fn blame_of(name: &str) -> Report {
    let releaser = |kind, wrappers: &[&str]| ChargedName::Releaser {
        task: TaskName { comm: name.into(), pid: 4711, tid: 4720 },
        caller: Some(name.into()),
        wrappers: wrappers.iter().map(|&wrapper| wrapper.into()).collect(),
        kind,
    };
    let row = |releaser, stat: WaitStat| Row {
        key: RowKey {
            releaser: Some(releaser),
            ..site_row(RWSEM_W, name, lock("mmap_lock", NameEvidence::Path), waits(&[])).key
        },
        splits: vec![Split::new(RWSEM_W, stat.clone())],
        stat,
        ..Row::default()
    };
    let first = row(releaser(HandOverKind::Release, &["xfs_iunlock"]), waits(&[(400, 2_000_000)]));
    let hold = Some(waits(&[(40, 1_900_000), (1, 31_000_000)]).ended);
    let nobody = |why| ChargedName::Nobody(why);
    let mut rest = row(nobody(Uncharged::NoWaking), waits(&[]));
    rest.key = RowKey { releaser: Some(nobody(Uncharged::NoWaking)), ..RowKey::default() };
    rest.stat.ended.own = Nanos(90_000_000);
    rest.splits[0].stat = rest.stat.clone();
    let rows = vec![
        Row { hold, via: Nanos(260_000_000), ..first },
        row(releaser(HandOverKind::PassOn, &[]), waits(&[(12, 500_000)])),
        row(nobody(Uncharged::Own), waits(&[(300, 70_000)])),
        rest,
    ];
    let mut report = report(GroupBy::Blame, rows);
    report.trust.charged = Some(Nanos(806_000_000));
    report.chains = chains_of(name, &report.rows[0]);
    report.blame_stacks = blame_stacks_of(name, &report.rows);
    report
}

/// The same rows as stacks.
fn blame_stacks_of(name: &str, rows: &[Row]) -> Vec<BlameStack> {
    let text = |frames: &[&str]| frames.iter().map(|f| f.to_string()).collect::<Vec<_>>();
    let stack = |row: &Row| {
        let charged = row.key.releaser.clone().expect("who is charged");
        let release = ["up_write+0x98", name, "__x64_sys_mprotect+0x1f", "do_syscall_64+0x84"];
        BlameStack {
            lock_type: RWSEM_W,
            lock: lock("mmap_lock", NameEvidence::Path),
            kernel: text(&[name, "__x64_sys_mprotect+0x1b", "do_syscall_64+0x84"]),
            user: text(&["mprotect+0xb", "grow_heap+0x5a", name]),
            releaser: if row.is_uncharged() { Vec::new() } else { text(&release) },
            charged,
            wait: row.stat.wait(),
        }
    };
    rows.iter().map(stack).collect()
}

/// Part of what the releaser of `row` is charged with goes on to another, and to a third.
fn chains_of(name: &str, row: &Row) -> WaitChains {
    let released = row.key.releaser.clone().expect("a releaser");
    let waiter = RowKey { releaser: None, ..row.key.clone() };
    let log = lock("log lock", NameEvidence::Path);
    let disk = lock(&format!("mutex @ {name}"), NameEvidence::Caller);
    let waited = |lock_type, lock| Some(site_row(lock_type, name, lock, waits(&[])).key);
    let root = |tid| ChargedName::Releaser {
        task: TaskName { comm: format!("{name}:7"), pid: tid, tid },
        caller: Some("xlog_cil_push_work".into()),
        wrappers: Vec::new(),
        kind: HandOverKind::Release,
    };
    let link = |by, waited| ChainLink { by, waited };
    let short = [link(released.clone(), waited(RWSEM_R, log.clone())), link(root(90), None)];
    let long = [
        link(released.clone(), waited(RWSEM_R, log)),
        link(root(90), waited(MUTEX, disk)),
        link(root(91), None),
    ];
    let chain = |links: &[ChainLink], groups| ChainRow {
        waiter: waiter.clone(),
        links: links.to_vec(),
        stat: waits(groups).ended,
    };
    let roots = [(root(90), 240), (root(91), 20), (released, 546)];
    let mut roots: Vec<_> =
        roots.into_iter().map(|(root, ms)| (root, Nanos(ms * 1_000_000))).collect();
    roots.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    WaitChains {
        rows: vec![chain(&short, &[(120, 2_000_000)]), chain(&long, &[(10, 2_000_000)])],
        roots,
        cut: Nanos(3_000_000),
    }
}

/// Nothing waited.
pub(crate) fn empty() -> Report {
    let mut empty = report(GroupBy::Site, Vec::new());
    empty.trust.counts = Counts::default();
    empty
}

/// Threads that wait for a log, and for locks of their own: hardly for locks of the kernel.
pub(crate) fn threads() -> Report {
    let row = site_row(
        MUTEX,
        "xlog_cil_commit",
        lock("mutex @ xlog_cil_commit", NameEvidence::Caller),
        waits(&[(40, 2_500_000)]),
    );
    let mut report = report(GroupBy::Site, vec![row]);
    let log = ["xlog_wait_on_iclog", "xlog_force_lsn", "__flush_workqueue", "do_wait"];
    report.thread_time = Some(thread_time(&log));
    report.user_locks = vec![
        user_lock("fs_mark", Some("main_loop"), &["__lll_lock_wait", "pthread_mutex_lock"]),
        user_lock("fs_mark", None, &[]),
    ];
    report.trust.sleeps = Some(SleepCounts { waits: 2, sleeps: 7 });
    report
}

/// Their names are hostile.
pub(crate) fn hostile_threads() -> Report {
    let mut report = threads();
    report.thread_time = Some(thread_time(&HOSTILE));
    report.user_locks =
        HOSTILE.iter().map(|name| user_lock(name, Some(name), &[name, name])).collect();
    report
}

fn thread_time(functions: &[&str]) -> ThreadTime {
    let sleep = |(at, name): (u64, &&str)| SleepTime {
        function: Some(name.to_string()),
        sum: PartTime { count: 100, time: Nanos(9_000_000_000 / (1 + at)) },
    };
    ThreadTime {
        threads: 9,
        on_cpu: Nanos(1_200_000_000),
        runnable: Nanos(2_050_000_000),
        kernel_locks: Nanos(90_000_000),
        user_locks: Nanos(1_000_000_000),
        sleeps: (0..).zip(functions).map(sleep).collect(),
        unknown: Nanos(31_000_000),
        lock_wait: Nanos(100_000_000),
        ..ThreadTime::default()
    }
}

fn user_lock(comm: &str, caller: Option<&str>, wrappers: &[&str]) -> UserLock {
    UserLock {
        task: TaskName { comm: comm.into(), pid: 4711, tid: 0 },
        caller: caller.map(str::to_owned),
        wrappers: wrappers.iter().map(|name| name.to_string()).collect(),
        entry: Some("__x64_sys_futex".into()),
        stat: waits(&[(100, 4_000_000), (2, 50_000_000)]).ended,
    }
}

/// Everything that can go wrong has gone wrong.
pub(crate) fn doubtful() -> Report {
    let mut report = sites();
    report.total.open = 3;
    report.total.open_time = Nanos(12_000_000);
    report.total.uncertain = 4;
    report.total.uncertain_time = Nanos(12_300_000_000);
    report.total.failed = 1;
    report.total.backed_off = 2;
    let trust = &mut report.trust;
    trust.lost = vec![
        (Some(Cpu(0)), 24),
        (Some(Cpu(3)), 1_000),
        (None, 2),
        (Some(Cpu(1)), 5),
        (Some(Cpu(7)), 1),
    ];
    trust.counts.unmatched = 7;
    trust.counts.restarts = 1;
    trust.throttled = 2;
    trust.out_of_order = 5;
    trust.folded_keys = 120;
    trust.unreadable = vec![("record of 0 bytes".into(), 2)];
    trust.cpus_changed = vec![3, 5];
    trust.cpu_event = None;
    trust.notes = vec!["spinlocks were left out (--no-spin)".into()];
    report
}

/// Names that want to act on a terminal, a spreadsheet, an SVG or a stack line.
pub(crate) const HOSTILE: [&str; 8] = [
    "\x1b]0;owned\x07\x1b[31mred",
    "</title><script>alert(1)</script>",
    "a;b\nc 12",
    "=cmd|' /C calc'!A0",
    "quo\"te,comma",
    "evil\u{202e}gpj.exe\u{9b}2J",
    "lossy \u{fffd}\u{fffd}\u{ffff}\0",
    "(5 ns, 1%) ]]>--><!-- &amp; 7 8",
];

/// Every name of a report is hostile.
pub(crate) fn hostile() -> Report {
    let rows = HOSTILE.iter().enumerate().map(|(at, name)| {
        let stat = waits(&[(10 * (9 - at as u64), 1_000_000)]);
        let mut row = site_row(MUTEX, name, lock(name, NameEvidence::Symbol), stat.clone());
        row.key.wrappers = vec![name.to_string()];
        row.stacks = vec![StackShare {
            kernel: vec![name.to_string(), format!("{name}+0x1f")],
            user: vec![name.to_string()],
            lock_type: MUTEX,
            lock: lock(name, NameEvidence::Symbol),
            stat,
        }];
        row
    });
    let mut report = report(GroupBy::Site, rows.collect());
    let all = HOSTILE.concat();
    report.header.target = all.clone();
    report.header.kernel = all.clone();
    report.trust.kernel_symbols = all.clone();
    report.trust.rung = all.clone();
    report.trust.cpu_event = Some((all.clone(), Nanos(1_000_000)));
    report.trust.unreadable = vec![(all.clone(), 1)];
    report.trust.notes = vec![all];
    report
}

/// Hostile names of tasks.
pub(crate) fn hostile_tasks() -> Report {
    let stat = || waits(&[(5, 1_000_000)]);
    let split = || vec![Split::new(MUTEX, stat())];
    report(GroupBy::Task, HOSTILE.iter().map(|name| task_row(name, 1, 2, split())).collect())
}

/// Hostile paths of cgroups.
pub(crate) fn hostile_cgroups() -> Report {
    let rows = hostile_tasks().rows.into_iter().zip(HOSTILE).map(|(mut row, path)| {
        (row.key.task, row.key.cgroup) = (None, Some(path.into()));
        row
    });
    report(GroupBy::Cgroup, rows.collect())
}

/// Locks with hostile names, of processes with hostile names.
pub(crate) fn hostile_locks() -> Report {
    let rows = hostile().rows.into_iter().zip(HOSTILE).map(|(mut row, name)| {
        row.key.lock_kind = row.key.lock_type.take().map(|lock_type| lock_type.kind);
        (row.key.caller, row.key.lock_addr) = (None, Some(LockAddr(0xffff_8881_0000_0010)));
        row.key.lock_owner = Some(TaskName { comm: name.into(), pid: 7, tid: 0 });
        row
    });
    report(GroupBy::Lock, rows.collect())
}

/// What `renderer` makes of `report`.
pub(crate) fn bytes(renderer: &dyn Renderer, report: &Report) -> Vec<u8> {
    let mut out = Vec::new();
    renderer.render(report, &mut out).expect("writing to memory cannot fail");
    out
}

pub(crate) fn text(renderer: &dyn Renderer, report: &Report) -> String {
    String::from_utf8(bytes(renderer, report)).expect("every format is UTF-8")
}

/// Compares with `tests/goldens/render/NAME`, or writes it when `LOCKPROF_BLESS` is set.
pub(crate) fn assert_golden(name: &str, got: &str) {
    golden::assert_golden(&format!("render/{name}"), got);
}
