//! Spinning that no tracepoint sees, found by CPU samples: in the row of its site, never in counts, and
//! never twice.

mod streams;

use lockprof::model::{GroupBy, Nanos};
use lockprof::report::Report;
use lockprof::source::{At, Synthetic};
use streams::{MUTEX, READ, Reading, SPIN, WRITE, at, ended, of_type};

/// Functions of 0x100 bytes each, from `FIRST` on.
const FIRST: u64 = 0xffff_ffff_8100_0000;
const FUNCTIONS: [&str; 12] = [
    "_text",
    "rwsem_down_write_slowpath",
    "down_write",
    "do_mprotect_pkey",
    "native_queued_spin_lock_slowpath",
    "_raw_spin_lock_irq",
    "osq_lock",
    "mutex_lock",
    "asm_sysvec_apic_timer_interrupt",
    "run_timer_softirq",
    "queued_write_lock_slowpath",
    "perf_event_output_forward",
];

fn kallsyms() -> String {
    let line = |(name, at): (&&str, u64)| format!("{:x} T {name}\n", FIRST + at * 0x100);
    FUNCTIONS.iter().zip(0..).map(line).collect()
}

/// A stack of these functions, innermost first.
fn stack(names: &[&str]) -> Vec<u64> {
    let ip = |name: &&str| {
        let at =
            FUNCTIONS.iter().position(|function| function == name).expect("a function of the list");
        FIRST + at as u64 * 0x100 + 0x10
    };
    names.iter().map(ip).collect()
}

fn report(write: impl FnOnce(&mut Synthetic)) -> Report {
    let kallsyms = Box::leak(kallsyms().into_boxed_str());
    Reading { kallsyms, ..Reading::default() }.report(GroupBy::Site, write)
}

const MS: u64 = 1_000_000;
const WRITER: [&str; 3] = ["rwsem_down_write_slowpath", "down_write", "do_mprotect_pkey"];

/// What one sample of `names` comes to: the type it spins for, if it counts as untraced.
fn spun(open: impl FnOnce(&mut Synthetic), sampled: At, names: &[&str]) -> Vec<String> {
    let report = report(|s| {
        open(s);
        s.cpu_sample(sampled, &stack(names), &[]);
    });
    let spins = report.rows.iter().filter(|row| row.stat.spun.samples > 0);
    spins.filter_map(|row| row.key.lock_type).map(|lock_type| lock_type.to_string()).collect()
}

fn nothing(_: &mut Synthetic) {}

#[test]
fn a_writer_that_spins_before_it_queues_enters_the_row_of_its_waits() {
    let report = report(|s| {
        s.begin(at(100, 0, 7), 0xa, WRITE, &stack(&WRITER))
            .end(at(300, 0, 7), 0xa, 0)
            .cpu_sample(at(MS, 0, 7), &stack(&WRITER), &[])
            .cpu_sample(at(2 * MS, 0, 7), &stack(&WRITER), &[]);
    });
    let stat = of_type(&report, "rwsem:W");
    assert_eq!((stat.spun.samples, stat.spun.time), (2, Nanos(2 * MS)));
    assert_eq!((ended(&stat), stat.contended()), ((1, 200, 200), 1));
    assert_eq!((stat.traced(), stat.wait()), (Nanos(200), Nanos(2 * MS + 200)));
    assert_eq!(report.rows.len(), 1, "{:#?}", report.rows);
    assert_eq!(report.rows[0].key.caller.as_deref(), Some("do_mprotect_pkey"));
}

#[test]
fn a_sample_inside_an_open_wait_is_in_that_wait_already() {
    let open = |s: &mut Synthetic| {
        s.begin(at(100, 0, 7), 0xa, WRITE, &stack(&WRITER));
    };
    assert!(spun(open, at(MS, 0, 7), &WRITER).is_empty());
    // Another task waits for it too; that says nothing of this one.
    assert_eq!(spun(open, at(MS, 1, 8), &WRITER), ["rwsem:W"]);
}

#[test]
fn the_spinlock_inside_an_rwsem_is_part_of_an_open_wait_for_the_rwsem() {
    let names = ["native_queued_spin_lock_slowpath", "_raw_spin_lock_irq"];
    let wait_lock = [&names[..], &WRITER[..]].concat();
    let open = |s: &mut Synthetic| {
        s.begin(at(100, 0, 7), 0xa, WRITE, &stack(&WRITER));
    };
    assert!(spun(open, at(MS, 0, 7), &wait_lock).is_empty());
    assert_eq!(spun(nothing, at(MS, 0, 7), &wait_lock), ["spinlock"]);
}

#[test]
fn the_spinlock_inside_an_rwlock_is_part_of_an_open_wait_for_the_rwlock() {
    let inner =
        ["native_queued_spin_lock_slowpath", "queued_write_lock_slowpath", "do_mprotect_pkey"];
    let open = |s: &mut Synthetic| {
        s.begin(at(100, 0, 7), 0xa, SPIN | WRITE, &stack(&inner[1..]));
    };
    assert!(spun(open, at(MS, 0, 7), &inner).is_empty());
}

#[test]
fn a_frame_that_does_not_tell_its_lock_takes_it_from_its_callers() {
    let names = ["osq_lock", "mutex_lock", "do_mprotect_pkey"];
    assert_eq!(spun(nothing, at(MS, 0, 7), &names), ["mutex"]);
    let open = |s: &mut Synthetic| {
        s.begin(at(100, 0, 7), 0xa, SPIN | MUTEX, &[]);
    };
    assert!(spun(open, at(MS, 0, 7), &names).is_empty());
    // Nor does it tell without any caller: whatever the task waits for, it is that.
    assert!(spun(open, at(MS, 0, 7), &["osq_lock", "do_mprotect_pkey"]).is_empty());
}

#[test]
fn a_wait_for_another_kind_of_lock_hides_nothing() {
    let open = |s: &mut Synthetic| {
        s.begin(at(100, 0, 7), 0xa, READ, &[]);
    };
    let names = ["osq_lock", "mutex_lock", "do_mprotect_pkey"];
    assert_eq!(spun(open, at(MS, 0, 7), &names), ["mutex"]);
}

#[test]
fn what_an_interrupt_does_on_top_of_lock_code_is_not_spinning() {
    let interrupt = ["run_timer_softirq", "asm_sysvec_apic_timer_interrupt"];
    assert!(spun(nothing, at(MS, 0, 7), &[&interrupt[..], &WRITER[..]].concat()).is_empty());
}

#[test]
fn recording_and_idling_are_not_spinning() {
    let recording = [&["perf_event_output_forward"][..], &WRITER[..]].concat();
    assert!(spun(nothing, at(MS, 0, 7), &recording).is_empty());
    assert!(spun(nothing, at(MS, 0, 0), &WRITER).is_empty());
}
