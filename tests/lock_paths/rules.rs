//! What counts, what is left out, and what is said of it: on made-up samples.

use std::sync::LazyLock;

use lockprof::analyse::{Detail, Slicing};
use lockprof::kernel::Kernel;
use lockprof::model::{Filter, Nanos, PathQuery};
use lockprof::pipeline::Pipeline;
use lockprof::recording::{RecordedTarget, Settings};
use lockprof::render::{Csv, Json, PATHS_SCHEMA, Renderer, Table};
use lockprof::report::Paths;
use lockprof::source::{At, Synthetic};
use serde_json::Value;

use crate::{percent, stack, words};

const FUNCTIONS: [&str; 10] = [
    "osq_lock",
    "rwsem_down_write_slowpath",
    "down_write",
    "do_mprotect_pkey",
    "_raw_spin_unlock_irqrestore",
    "default_send_IPI_mask_sequence_phys",
    "perf_swevent_event",
    "io_schedule",
    "finish_task_switch",
    "schedule",
];
const SLICING: Slicing = Slicing { width: Nanos(7_000_001), recent: Nanos::ZERO };
const SPIN: [usize; 4] = [0, 1, 2, 3];
const SHOOTDOWN: [usize; 2] = [5, 3];

/// Kallsyms text of these functions, and the address in each.
static ADDRESSES: LazyLock<Vec<u64>> = LazyLock::new(|| stack(&FUNCTIONS).1);

fn frames(functions: &[usize]) -> Vec<u64> {
    functions.iter().map(|&function| ADDRESSES[function]).collect()
}

/// Samples: how many, of which task, with which stack.
type Samples<'a> = (u64, i32, &'a [usize]);

struct Run {
    kernel: Kernel,
    /// The command that was recorded, with the whole machine beside it.
    command: Option<i32>,
    query: PathQuery,
}

impl Default for Run {
    fn default() -> Run {
        Run { kernel: stack(&FUNCTIONS).0, command: None, query: PathQuery::default() }
    }
}

impl Run {
    fn paths(self, samples: &[Samples<'_>]) -> Paths {
        let mut synthetic = Synthetic::new();
        let mut time = 0;
        for &(count, tid, functions) in samples {
            let stack = frames(functions);
            for _ in 0..count {
                time += 1_000_000;
                synthetic.cpu_sample(At::new(time, 0, tid), &stack, &[0x1000]);
            }
        }
        self.of(synthetic)
    }

    fn of(self, mut synthetic: Synthetic) -> Paths {
        let mut origin = synthetic.origin();
        origin.settings = self.command.map(|pid| Settings {
            target: RecordedTarget::Command { command: vec!["sh".into()], pid },
            followed_system_wide: true,
            ..Settings::default()
        });
        let detail = Detail { cpu_stacks: true, slicing: Some(SLICING), ..Detail::default() };
        let kernel = (self.kernel, "a test".into());
        let mut pipeline = Pipeline::new(origin, kernel, detail, &self.query.filter).unwrap();
        pipeline.push(synthetic.take_round());
        pipeline.finish();
        pipeline.paths(&self.query)
    }
}

fn text<R>(renderer: &dyn Renderer<R>, report: &R) -> String {
    let mut out = Vec::new();
    renderer.render(report, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn table(paths: &Paths) -> String {
    text(&Table::default(), paths)
}

#[test]
fn useful_work_is_the_remainder_and_stands_first() {
    let paths = Run::default().paths(&[(60, 7, &SPIN), (30, 7, &[]), (10, 7, &SHOOTDOWN)]);
    let rows: Vec<_> = paths.rows.iter().map(|row| (words(row.path), row.spun.samples)).collect();
    assert_eq!(rows, [("Work".into(), 40), ("Spin rwsem:W".into(), 60)]);
    let sum: Nanos = paths.rows.iter().map(|row| row.spun.time).sum();
    assert_eq!((sum, paths.total.time), (Nanos(100_000_000), Nanos(100_000_000)));
    let work: Vec<_> = paths.rows[0].parts.iter().map(|part| part.function.as_str()).collect();
    assert_eq!(work, ["[user]", "default_send_IPI_mask_sequence_phys"]);
    let spin = &paths.rows[1].parts[0];
    assert_eq!((spin.function.as_str(), spin.caller.as_deref()), ("osq_lock", Some(FUNCTIONS[3])));
}

#[test]
fn a_function_with_time_on_several_callers_is_said_once() {
    let paths = Run::default().paths(&[(30, 7, &[0, 1, 2, 3]), (10, 7, &[0, 1, 2, 5])]);
    let table = text(&Table { width: 140, ..Table::default() }, &paths);
    assert!(table.contains("spin  rwsem:W  osq_lock\n"), "{table}");
    let callers = "<- do_mprotect_pkey 75 %, default_send_IPI_mask_sequence_phys 25 %";
    assert!(table.contains(callers), "{table}");
}

#[test]
fn idle_cpus_are_in_no_share() {
    let paths = Run::default().paths(&[(900, 0, &[]), (10, 7, &SPIN)]);
    assert_eq!((percent(&paths, "Spin"), paths.idle.samples, paths.machine), (100.0, 900, None));
    assert!(table(&paths).contains("900 samples of idle CPUs left out"));
}

#[test]
fn a_command_recorded_with_the_whole_machine_has_two_shares() {
    let run = Run { command: Some(7), ..Run::default() };
    let paths = run.paths(&[(10, 7, &SPIN), (10, 7, &[]), (60, 9, &SPIN), (500, 0, &[])]);
    let spin = paths.rows.iter().find(|row| words(row.path) == "Spin rwsem:W").unwrap().spun;
    assert_eq!((spin.samples, paths.share(spin)), (10, 0.5));
    assert_eq!(paths.machine_share(spin), Some(0.125));
    let table = table(&paths);
    assert!(table.contains("it is 25 % of the machine's 80 ms"), "{table}");
    assert!(table.contains("machine"), "{table}");
}

#[test]
fn a_filter_by_task_keeps_the_share_of_the_whole() {
    let filter = Filter { tid: vec![9], ..Filter::default() };
    let run = Run { query: PathQuery { filter, ..PathQuery::default() }, ..Run::default() };
    let paths = run.paths(&[(30, 7, &SPIN), (10, 9, &[])]);
    assert_eq!((percent(&paths, "Work"), paths.total.samples), (100.0, 10));
    assert_eq!(paths.machine.map(|machine| machine.samples), Some(40));
}

#[test]
fn the_cost_of_recording_is_a_path_of_its_own() {
    let paths = Run::default().paths(&[(10, 7, &[6, 0, 1, 2, 3]), (30, 7, &SPIN)]);
    assert_eq!((percent(&paths, "Recording"), percent(&paths, "Spin")), (25.0, 75.0));
    assert!(table(&paths).contains("25 % the cost of recording it"));
}

#[test]
fn work_that_only_looks_like_a_lock_blames_none() {
    let paths = Run::default().paths(&[(50, 7, &SHOOTDOWN), (50, 7, &[7, 3])]);
    assert_eq!(paths.lock_time(), Nanos::ZERO);
    let table = table(&paths);
    assert!(table.contains("default_send_IPI_mask_sequence_phys"), "{table}");
    assert!(table.contains("0 % in lock code, 100 % useful work"), "{table}");
}

#[test]
fn a_kernel_without_unlock_functions_says_that_irq_off_is_not_measurable() {
    let inlined =
        || stack(&FUNCTIONS.map(|f| if f.starts_with("_raw") { "eventfd_write" } else { f })).0;
    let paths = Run { kernel: inlined(), ..Run::default() }.paths(&[(10, 7, &SPIN)]);
    assert!(!paths.irq_off_measurable);
    let table = table(&paths);
    assert!(table.contains("irq-off  spinlock  not measurable on this kernel"), "{table}");
    assert!(Run::default().paths(&[(10, 7, &SPIN)]).irq_off_measurable);
}

#[test]
fn without_symbols_kernel_time_is_unknown_and_not_useful_work() {
    let run = Run { kernel: Kernel::from_kallsyms(b""), ..Run::default() };
    let paths = run.paths(&[(30, 7, &SPIN), (10, 7, &[])]);
    assert_eq!((percent(&paths, "Unknown"), percent(&paths, "Work")), (75.0, 25.0));
    assert!(table(&paths).contains("warning: no kernel symbols"));
}

#[test]
fn a_recording_without_samples_says_what_to_record() {
    let paths = Run::default().paths(&[]);
    assert!(table(&paths).contains("has no CPU samples"), "{}", table(&paths));
    assert_eq!(text(&Csv, &paths).lines().count(), 1);
}

#[test]
fn paths_that_are_not_shown_are_summed_up() {
    let query = PathQuery { top: 1, ..PathQuery::default() };
    let paths = Run { query, ..Run::default() }.paths(&[(30, 7, &[]), (10, 7, &SPIN)]);
    assert!(table(&paths).contains("... 1 more path, 10 ms (25 %): --top 0"));
}

#[test]
fn json_keeps_the_promise_of_its_schema() {
    let schema: Value = serde_json::from_str(PATHS_SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let samples: [Samples<'_>; 3] = [(30, 7, &SPIN), (10, 9, &[6, 0]), (10, 0, &[])];
    let command = || Run { command: Some(7), ..Run::default() };
    for paths in [Run::default().paths(&samples), command().paths(&samples), command().paths(&[])] {
        let json: Value = serde_json::from_str(&text(&Json, &paths)).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&json)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{errors:#?}");
        let sum: u64 =
            json["paths"].as_array().unwrap().iter().filter_map(|row| row["cpu_ns"].as_u64()).sum();
        assert_eq!(Some(sum), json["total"]["cpu_ns"].as_u64());
    }
}

#[test]
fn csv_has_a_record_for_every_function_and_caller() {
    let paths = Run::default().paths(&[(30, 7, &SPIN), (10, 7, &[])]);
    assert_eq!(
        text(&Csv, &paths),
        "path,lock_type,function,caller,cpu_ns,share,machine_share,samples\r\n\
         work,,[user],,10000000,0.250000,,10\r\n\
         spin,rwsem:W,osq_lock,do_mprotect_pkey,30000000,0.750000,,30\r\n"
    );
}

/// Samples on a grid of 1 ms: how late, with which stack.
fn on_a_grid(raw: bool, samples: impl Iterator<Item = (u64, &'static [usize])>) -> Paths {
    let mut synthetic = Synthetic::new();
    for (n, (late, functions)) in (1..).zip(samples) {
        let at = At::new(n * 1_000_000 + late + n % 5 * 10, 0, 7);
        synthetic.cpu_sample(at, &frames(functions), &[]);
    }
    let run = Run { query: PathQuery { raw, ..PathQuery::default() }, ..Run::default() };
    run.of(synthetic)
}

/// Of each 40 samples so many are so late in a stack, in turns.
fn sections() -> impl Iterator<Item = (u64, &'static [usize])> {
    (0..800).map(|n| match n % 40 {
        0..=3 => (9_000, &UNLOCK_IN_WRITER[..]),
        4 => (1_000, &UNLOCK_IN_WRITER[..]),
        5..=9 => (9_000, &UNLOCK_OF_NO_LOCK[..]),
        _ => (1_000, &SHOOTDOWN[..]),
    })
}

const UNLOCK_IN_WRITER: [usize; 4] = [4, 1, 2, 3];
const UNLOCK_OF_NO_LOCK: [usize; 2] = [4, 3];
#[test]
fn late_samples_of_an_unlock_are_charged_to_the_wait_lock_that_the_lock_code_held() {
    let paths = on_a_grid(false, sections());
    // 180 of 200 samples are late: 90 % of the 100 in the writer move.
    let inside = paths.rows.iter().find(|row| words(row.path) == "WaitLock rwsem").unwrap();
    assert_eq!((inside.spun.samples, inside.spun.time), (90, Nanos(90_000_000)));
    assert_eq!(inside.parts[0].function, "rwsem_down_write_slowpath");
    let irq_off = paths.rows.iter().find(|row| words(row.path) == "IrqOff spinlock").unwrap();
    assert_eq!(irq_off.spun.samples, 110);
    assert_eq!(paths.rows.iter().map(|row| row.spun.samples).sum::<u64>(), 800);
    let table = text(&Table { width: 200, ..Table::default() }, &paths);
    assert!(table.contains("180 of 200 in _raw_spin_unlock_irqrestore; 90 ms changed"), "{table}");
}

#[test]
fn a_context_switch_begun_by_the_task_before_is_a_path_of_its_own() {
    let switch = |n: u64| match n % 10 {
        0 => (20_000, &[8, 9, 1, 2, 3][..]),
        1 => (20_000, &[4, 8, 9, 1, 2, 3][..]),
        _ => (1_000, &SHOOTDOWN[..]),
    };
    let paths = on_a_grid(false, (0..800).map(switch));
    assert_eq!(percent(&paths, "ContextSwitch"), 20.0, "{}", table(&paths));
    let raw = on_a_grid(true, (0..800).map(switch));
    assert_eq!((percent(&raw, "Block rwsem:W"), percent(&raw, "IrqOff")), (10.0, 10.0));
}

#[test]
fn bars_over_time_add_up_to_their_paths_where_time_was_moved_as_well() {
    for raw in [false, true] {
        let paths = on_a_grid(raw, sections());
        assert_eq!(paths.rows.len(), if raw { 2 } else { 3 });
        for row in &paths.rows {
            assert!(row.history.len() > 100, "{} slices", row.history.len());
            assert_eq!(row.history.iter().copied().sum::<Nanos>(), row.spun.time, "{:?}", row.path);
        }
    }
}

#[test]
fn raw_shows_samples_as_taken() {
    let paths = on_a_grid(true, sections());
    assert_eq!((percent(&paths, "IrqOff"), percent(&paths, "Spin")), (25.0, 0.0));
    assert!(table(&paths).contains("skid: samples as taken"), "{}", table(&paths));
}

#[test]
fn samples_on_no_grid_stay_where_they_were_taken() {
    let place = |n: u64| n * 611_953 % 1_000_000;
    let stack = |n: u64| if n.is_multiple_of(2) { &SHOOTDOWN[..] } else { &UNLOCK_IN_WRITER[..] };
    let paths = on_a_grid(false, (0..400).map(|n| (place(n), stack(n))));
    assert_eq!(percent(&paths, "IrqOff"), 50.0);
    assert!(table(&paths).contains("skid: the samples keep no grid"), "{}", table(&paths));
}
