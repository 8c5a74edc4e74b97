//! `report --tree`: the tree of a mail of August 2014 about mmap_sem under xfs_repair, kernel 3.16.
//!
//! A synthetic recording has the counts of that mail. lockprof must print its numbers, and what
//! `perf report` prints of the same file is the second witness.

// Everything here is test code, the functions between the tests too.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use lockprof::analyse::Detail;
use lockprof::kernel::Kernel;
use lockprof::model::{Filter, Nanos, Order, TreeQuery, Weighed};
use lockprof::pipeline::Pipeline;
use lockprof::recording::{End, KernelMap, Synthesizer, TracingData, Writer};
use lockprof::render::{Renderer, Table};
use lockprof::report::Tree;
use lockprof::source::{At, Replay, Round, Synthetic};

const TEXT: u64 = 0xffff_ffff_8100_0000;
/// How many of 40,000 samples have which stack, innermost first.
const STACKS: [(u32, &str); 21] = [
    (7726, "_raw_spin_unlock_irqrestore rwsem_wake call_rwsem_wake sys_mprotect"),
    (1501, "_raw_spin_unlock_irqrestore rwsem_wake call_rwsem_wake __do_page_fault do_page_fault"),
    (23, "_raw_spin_unlock_irqrestore rwsem_wake call_rwsem_wake sys_madvise"),
    (5244, "_raw_spin_unlock_irqrestore try_to_wake_up wake_up_process __rwsem_do_wake"),
    (143, "_raw_spin_unlock_irqrestore update_blocked_averages rebalance_domains"),
    (91, "_raw_spin_unlock_irqrestore pagevec_lru_move_fn __lru_cache_add"),
    (64, "_raw_spin_unlock_irqrestore prepare_to_wait"),
    (64, "_raw_spin_unlock_irqrestore __wake_up"),
    (64, "_raw_spin_unlock_irqrestore blk_flush_plug_list"),
    (4798, "_raw_spin_unlock_irq finish_task_switch __schedule schedule"),
    (3677, "_raw_spin_unlock_irq rwsem_down_write_failed call_rwsem_down_write_failed down_write"),
    (793, "_raw_spin_unlock_irq rwsem_down_read_failed call_rwsem_down_read_failed down_read"),
    (58, "_raw_spin_unlock_irq run_timer_softirq"),
    (14, "_raw_spin_unlock_irq worker_thread kthread"),
    (2088, "native_read_tsc delay_tsc"),
    (1556, "rwsem_down_write_failed call_rwsem_down_write_failed down_write sys_mprotect"),
    (4000, "clear_page_c_e __alloc_pages_nodemask do_anonymous_page"),
    (4000, "page_fault"),
    (2000, "copy_user_enhanced_fast_string generic_file_aio_read"),
    (1000, "xfs_buf_find xfs_buf_get_map"),
    (1096, "system_call"),
];

fn functions() -> Vec<&'static str> {
    let mut functions: Vec<_> = STACKS.iter().flat_map(|(_, stack)| stack.split(' ')).collect();
    functions.sort_unstable();
    functions.dedup();
    functions
}

fn kallsyms() -> String {
    let mut text = format!("{TEXT:x} T _text\n{TEXT:x} T _stext\n");
    for (at, name) in (1..).zip(functions()) {
        text += &format!("{:x} T {name}\n", TEXT + at * 0x1000);
    }
    text + &format!("{:x} T _etext\n", TEXT + 0x10_0000)
}

/// One round: every stack as often as it was, in turns.
fn synthetic() -> Synthetic {
    let functions = functions();
    let address =
        |name: &str| TEXT + (functions.binary_search(&name).unwrap() as u64 + 1) * 0x1000 + 0x10;
    let mut synthetic = Synthetic::new();
    let mut time = 0;
    for (count, stack) in STACKS {
        let frames: Vec<u64> = stack.split(' ').map(address).collect();
        for _ in 0..count {
            time += 1_000_000;
            synthetic.cpu_sample(At::new(time, 0, 7), &frames, &[]);
        }
    }
    synthetic
}

/// Writes the recording as perf.data.
fn write(path: &Path) {
    let mut synthetic = synthetic();
    let mut origin = synthetic.origin();
    origin.events.retain(|event| event.name == "cpu-clock");
    origin.kallsyms = Some(kallsyms().into_bytes());
    let mut writer = Writer::create(path, &origin, &TracingData::default()).unwrap();
    let mut kernel = Synthesizer::new(origin.events[0].attr.sample_type);
    let name = "[kernel.kallsyms]_text";
    kernel.kernel_map(&KernelMap { start: TEXT, len: 0x20_0000, pgoff: TEXT, name });
    writer.append(kernel.bytes()).unwrap();
    writer.append(&synthetic.take_round().bytes).unwrap();
    writer.finished_round().unwrap();
    writer.finish(&End::default(), &[], None).unwrap();
}

fn tree(path: &Path, query: &TreeQuery) -> Tree {
    let mut replay = Replay::open(path).unwrap();
    let mut origin = replay.take_origin();
    origin.command_line = vec!["xfs_repair".into(), "/dev/vda".into()];
    let kernel = Kernel::from_kallsyms(origin.kallsyms.as_deref().unwrap());
    let detail = Detail { cpu_stacks: true, ..Detail::default() };
    let names = (kernel, "of the recording".to_owned());
    let mut pipeline = Pipeline::new(origin, names, detail, &Filter::default()).unwrap();
    let mut round = Round::default();
    while replay.next_round(&mut round).unwrap() {
        pipeline.push(std::mem::take(&mut round));
    }
    pipeline.finish();
    pipeline.tree(query)
}

fn text(tree: &Tree) -> String {
    let mut out = Vec::new();
    Table::default().render(tree, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// `--levels 3`, as the mail has it unfolded.
fn query() -> TreeQuery {
    TreeQuery { levels: 3, ..TreeQuery::default() }
}

fn recording() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mail.data");
    write(&path);
    (dir, path)
}

#[test]
fn the_tree_of_the_mail_has_the_numbers_of_the_mail() {
    let (_dir, path) = recording();
    let got = text(&tree(&path, &query()));
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/tree/mail-of-2014.txt");
    if std::env::var_os("LOCKPROF_BLESS").is_some() {
        std::fs::create_dir_all(golden.parent().unwrap()).unwrap();
        std::fs::write(&golden, &got).unwrap();
    }
    let of_mail = "
-   37.30%  [kernel]  [k] _raw_spin_unlock_irqrestore
   - _raw_spin_unlock_irqrestore
      - 62.00% rwsem_wake
         - call_rwsem_wake
              83.52% sys_mprotect
            + 16.23% __do_page_fault
";
    assert!(got.contains(of_mail), "{got}");
    for line in [
        "      - 35.15% try_to_wake_up\n",
        "      - 0.96% update_blocked_averages\n",
        "      - 0.61% pagevec_lru_move_fn\n",
        "-   23.35%  [kernel]  [k] _raw_spin_unlock_irq\n",
        "      - 51.37% finish_task_switch\n",
        "      - 39.37% rwsem_down_write_failed\n",
        "      - 8.49% rwsem_down_read_failed\n",
        "        0.62% run_timer_softirq\n",
        "-    3.89%  [kernel]  [k] rwsem_down_write_failed\n",
    ] {
        assert!(got.contains(line), "{line}{got}");
    }
    assert!(!got.contains("native_read_tsc"), "no lock code, no tree: {got}");
    let want = std::fs::read_to_string(&golden).unwrap_or_default();
    assert!(want == got, "LOCKPROF_BLESS=1 writes it anew.\n--- golden\n{want}\n--- now\n{got}");
}

/// How often each `62.00% rwsem_wake` stands in a text.
fn numbers(text: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((before, after)) = line.split_once('%') else { continue };
        let number: String = before.chars().rev().take_while(|c| !" |-".contains(*c)).collect();
        let number: String = number.chars().rev().collect();
        let name = after.trim_start_matches(['-', ' ']).trim_start_matches("[kernel]");
        let name = name.trim().trim_start_matches("[k]").trim();
        let named = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        if number.parse::<f64>().is_ok() && named {
            *found.entry(format!("{number}% {name}")).or_default() += 1;
        }
    }
    found
}

#[test]
fn perf_report_of_the_same_file_has_the_same_numbers() {
    let (dir, path) = recording();
    let symbols = dir.path().join("kallsyms");
    std::fs::write(&symbols, kallsyms()).unwrap();
    let run = Command::new("perf")
        .args(["report", "--stdio", "--no-children", "-g", "fractal,0.5,callee", "--sort", "sym"])
        .args([Path::new("--kallsyms"), &symbols, Path::new("-i"), &path])
        .output();
    let Ok(run) = run else { return eprintln!("skipped: there is no perf here") };
    let perf = String::from_utf8_lossy(&run.stdout);
    if !run.status.success() || !perf.contains("rwsem_wake") {
        let why = String::from_utf8_lossy(&run.stderr);
        return eprintln!("skipped: this perf does not read kallsyms of another kernel: {why}");
    }
    let (perfs, text) = (numbers(&perf), text(&tree(&path, &TreeQuery::default())));
    let ours = numbers(&text);
    let lines = ours.values().sum::<usize>();
    assert!(lines >= 12, "{text}");
    let missing: Vec<_> = ours.iter().filter(|(line, n)| perfs.get(*line) != Some(*n)).collect();
    assert!(missing.is_empty(), "{missing:?}\n--- perf\n{perf}\n--- lockprof\n{text}");
}

#[test]
fn absolute_percentages_are_of_all_cpu_time() {
    let (_dir, path) = recording();
    let got = text(&tree(&path, &TreeQuery { absolute: true, ..query() }));
    // 9,250 and 7,726 of 40,000 samples.
    assert!(got.contains("- 23.12% rwsem_wake\n"), "{got}");
    assert!(got.contains(" 19.31% sys_mprotect\n"), "{got}");
}

#[test]
fn caller_order_begins_where_the_kernel_was_entered() {
    let (_dir, path) = recording();
    let tree = tree(&path, &TreeQuery { order: Order::Caller, ..query() });
    // 7,726 samples as a waker and 1,556 as a writer.
    let mprotect = tree.roots.iter().find(|root| root.function == "sys_mprotect").unwrap();
    assert_eq!(mprotect.time, Nanos(9_282_000_000));
    let children: Vec<_> = mprotect.children.iter().map(|c| c.function.as_str()).collect();
    assert_eq!(children, ["call_rwsem_wake", "down_write"]);
    let inside: Nanos = tree.roots.iter().map(|root| root.time).sum();
    let of_locks = [14_920, 9_340, 1_556].iter().sum::<u64>() * 1_000_000;
    assert_eq!((inside, tree.total), (Nanos(of_locks), Nanos(40_000_000_000)));
}

#[test]
fn one_level_folds_everything() {
    let (_dir, path) = recording();
    let got = text(&tree(&path, &TreeQuery { levels: 1, ..query() }));
    assert!(
        got.contains("+   37.30%  [kernel]  [k] _raw_spin_unlock_irqrestore\n+   23.35%"),
        "{got}"
    );
}

#[test]
fn a_tree_over_waits_weighs_their_time() {
    let mut synthetic = Synthetic::new();
    let at = |time| At::new(time, 0, 7);
    let function = |n: u64| TEXT + n * 0x1000 + 0x10;
    let (slow, up) = (function(1), function(2));
    synthetic.begin(at(100), 0xa, 4, &[slow, up, function(3)]).end(at(400), 0xa, 0);
    synthetic.begin(at(500), 0xa, 4, &[slow, up, function(4)]).end(at(600), 0xa, 0);
    let names = ["rwsem_down_write_slowpath", "down_write", "do_mprotect_pkey", "vm_mmap_pgoff"];
    let line = |(n, name): (u64, &&str)| format!("{:x} T {name}\n", TEXT + n * 0x1000);
    let kallsyms: String = (1..).zip(&names).map(line).collect();
    let kernel = (Kernel::from_kallsyms(kallsyms.as_bytes()), "a test".to_owned());
    let mut pipeline =
        Pipeline::new(synthetic.origin(), kernel, Detail::default(), &Filter::default()).unwrap();
    pipeline.push(synthetic.take_round());
    pipeline.finish();
    let query = TreeQuery { over: Weighed::Waits, ..TreeQuery::default() };
    let got = text(&pipeline.tree(&query));
    let want = "
-  100.00%  [kernel]  [k] rwsem_down_write_slowpath
   - rwsem_down_write_slowpath
      - down_write
           75.00% do_mprotect_pkey
           25.00% vm_mmap_pgoff
";
    assert!(got.contains(want), "{got}");
    let empty = text(&pipeline.tree(&TreeQuery::default()));
    assert!(empty.contains("no CPU samples of what was asked for"), "{empty}");
}
