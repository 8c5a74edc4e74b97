//! Kernels of other architectures, as data: their own function names in made-up recordings.
//!
//! The names are those of real images (`tests/fixtures/kernel-lock-functions`); what calls them is from the
//! kernel's sources. arm64 without preemption and s390x inline what lets go of spinlocks, so time with
//! interrupts off shows up nowhere there, which is not the same as none.

#![allow(clippy::unwrap_used)]

mod streams;

use std::path::Path;

use lockprof::analyse::Detail;
use lockprof::attribute::CpuPath;
use lockprof::kernel::Kernel;
use lockprof::model::{GroupBy, Nanos, PathQuery};
use lockprof::pipeline::Pipeline;
use lockprof::render::{Renderer, Table};
use lockprof::report::Paths;
use lockprof::source::Synthetic;

use streams::{READ, SEM, WRITE, ask, at};

/// A kernel: the list of its lock functions, and where its text is.
struct Image {
    list: &'static str,
    text: u64,
    /// Whether time with interrupts off shows up in a function of its own.
    irq_off: bool,
    /// Stacks of CPU samples, innermost first, with the path and the caller that they are of.
    samples: &'static [(&'static [&'static str], &'static str, &'static str)],
    /// Flags and stacks of waits, with type and caller.
    waits: &'static [(u32, &'static [&'static str], &'static str, &'static str)],
}

const ARM64: u64 = 0xffff_8000_0800_0000;
const PPC64: u64 = 0xc000_0000_0000_0000;
/// s390x has address spaces of their own for the kernel and for programs.
const S390X: u64 = 0x0010_0000;

const RWSEM_WAITS: &[(u32, &[&str], &str, &str)] = &[
    (
        READ,
        &["rwsem_down_read_slowpath", "down_read", "__do_sys_mincore"],
        "rwsem:R",
        "__do_sys_mincore",
    ),
    (
        WRITE,
        &["rwsem_down_write_slowpath", "down_write_killable", "do_mprotect_pkey"],
        "rwsem:W",
        "do_mprotect_pkey",
    ),
    (SEM, &["__down", "down", "xfs_buf_lock", "xfs_read_agi"], "semaphore", "xfs_read_agi"),
];

const IMAGES: [Image; 6] = [
    Image {
        list: "debian-6.1.176-arm64.lockfuncs.txt",
        text: ARM64,
        irq_off: false,
        samples: &[
            // The unlocked fast path is inlined: the slow path stands right below its caller.
            (
                &["queued_spin_lock_slowpath", "futex_wait_setup"],
                "Spin spinlock",
                "futex_wait_setup",
            ),
            (
                &["rwsem_spin_on_owner", "rwsem_down_write_slowpath", "do_mprotect_pkey"],
                "Spin rwsem:W",
                "do_mprotect_pkey",
            ),
            (
                &["osq_lock", "__mutex_lock.constprop.0", "__mutex_lock_slowpath", "pipe_write"],
                "Spin mutex",
                "pipe_write",
            ),
        ],
        waits: RWSEM_WAITS,
    },
    Image {
        list: "debian-6.12.117-rt-arm64.lockfuncs.txt",
        text: ARM64,
        irq_off: true,
        samples: &[
            (
                &["queued_spin_lock_slowpath", "_raw_spin_lock", "futex_wait_setup"],
                "Spin spinlock",
                "futex_wait_setup",
            ),
            (
                &[
                    "_raw_spin_unlock_irqrestore",
                    "try_to_wake_up",
                    "rt_mutex_wake_up_q",
                    "pipe_write",
                ],
                "IrqOff spinlock",
                "try_to_wake_up",
            ),
        ],
        waits: &[
            (
                streams::RT | READ,
                &["__rwbase_read_lock", "down_read", "__do_sys_mincore"],
                "rwsem:R (rt)",
                "__do_sys_mincore",
            ),
            (
                streams::RT | WRITE,
                &["rwbase_write_lock", "down_write_killable", "do_mprotect_pkey"],
                "rwsem:W (rt)",
                "do_mprotect_pkey",
            ),
        ],
    },
    Image {
        list: "debian-6.1.176-ppc64le.lockfuncs.txt",
        text: PPC64,
        irq_off: true,
        samples: &[
            (
                &["__pv_queued_spin_lock_slowpath", "_raw_spin_lock", "futex_wait_setup"],
                "Spin spinlock",
                "futex_wait_setup",
            ),
            (
                &["native_queued_spin_lock_slowpath", "_raw_spin_lock_irqsave", "eventfd_write"],
                "Spin spinlock",
                "eventfd_write",
            ),
            (&["_raw_spin_unlock_irqrestore", "eventfd_write"], "IrqOff spinlock", "eventfd_write"),
        ],
        waits: RWSEM_WAITS,
    },
    Image {
        list: "debian-6.12.107-ppc64le.lockfuncs.txt",
        text: PPC64,
        irq_off: true,
        samples: &[(
            &[
                "queued_spin_lock_mcs_queue",
                "queued_spin_lock_slowpath",
                "_raw_spin_lock",
                "do_exit",
            ],
            "Spin spinlock",
            "do_exit",
        )],
        waits: RWSEM_WAITS,
    },
    Image {
        list: "debian-6.1.176-s390x.names.txt",
        text: S390X,
        irq_off: false,
        samples: &[
            (&["arch_spin_lock_wait", "futex_wait_setup"], "Spin spinlock", "futex_wait_setup"),
            (
                &["rwsem_spin_on_owner", "rwsem_down_write_slowpath", "do_mprotect_pkey"],
                "Spin rwsem:W",
                "do_mprotect_pkey",
            ),
        ],
        waits: RWSEM_WAITS,
    },
    Image {
        list: "debian-6.12.107-s390x.names.txt",
        text: S390X,
        irq_off: false,
        samples: &[
            (&["arch_spin_relax", "arch_spin_lock_wait", "do_exit"], "Spin spinlock", "do_exit"),
            (&["arch_write_lock_wait", "do_exit"], "Spin rwlock:W", "do_exit"),
        ],
        waits: RWSEM_WAITS,
    },
];

impl Image {
    /// Functions of the list, then those that only the stacks have.
    fn functions(&self) -> Vec<String> {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kernel-lock-functions");
        let text = std::fs::read_to_string(folder.join(self.list)).unwrap();
        let name = |line: &str| line.split_whitespace().last().map(str::to_owned);
        let mut names: Vec<String> =
            text.lines().filter(|line| !line.starts_with('#')).filter_map(name).collect();
        let stacks = self.samples.iter().map(|(stack, ..)| stack);
        let stacks = stacks.chain(self.waits.iter().map(|(_, stack, ..)| stack));
        for name in stacks.flat_map(|stack| stack.iter()) {
            if !names.iter().any(|known| known == name) {
                names.push((*name).to_owned());
            }
        }
        names
    }

    fn kallsyms(&self) -> String {
        let line =
            |(at, name): (u64, &String)| format!("{:016x} T {name}\n", self.text + at * 0x100);
        (1..).zip(&self.functions()).map(line).collect()
    }

    fn addresses(&self, stack: &[&str]) -> Vec<u64> {
        let functions = self.functions();
        let place = |name: &&str| functions.iter().position(|known| known == name).unwrap() as u64;
        stack.iter().map(|name| self.text + (place(name) + 1) * 0x100 + 0x10).collect()
    }

    fn paths(&self, stack: &[&str]) -> Paths {
        let mut synthetic = Synthetic::new();
        let kernel = (Kernel::from_kallsyms(self.kallsyms().as_bytes()), "a test".into());
        let detail = Detail { cpu_stacks: true, ..Detail::default() };
        let mut pipeline =
            Pipeline::new(synthetic.origin(), kernel, detail, &Default::default()).unwrap();
        synthetic.cpu_sample(at(1_000_000, 0, 7), &self.addresses(stack), &[0x1000]);
        pipeline.push(synthetic.take_round());
        pipeline.finish();
        pipeline.paths(&PathQuery::default())
    }
}

fn words(path: CpuPath) -> String {
    match path {
        CpuPath::Lock(role, lock_type) => format!("{role:?} {lock_type}"),
        other => format!("{other:?}"),
    }
}

#[test]
fn samples_in_lock_code_of_other_architectures_have_their_path_and_their_caller() {
    for image in IMAGES {
        for (stack, path, caller) in image.samples {
            let paths = image.paths(stack);
            let [row] = paths.rows.as_slice() else { panic!("{}: {:?}", image.list, paths.rows) };
            let got = words(row.path);
            assert!(got.starts_with(path), "{}: {stack:?} is {got}, not {path}", image.list);
            let got = row.parts.first().and_then(|part| part.caller.as_deref());
            assert_eq!(got, Some(*caller), "{}: {stack:?}", image.list);
            assert!(paths.unclassified.is_empty(), "{}: {:?}", image.list, paths.unclassified);
        }
    }
}

#[test]
fn waits_of_other_architectures_have_their_type_and_their_site() {
    for image in IMAGES {
        for (flags, stack, lock_type, caller) in image.waits {
            let mut synthetic = Synthetic::new();
            synthetic.begin(at(1_000, 0, 7), 0x1234_5678, *flags, &image.addresses(stack));
            synthetic.end(at(5_000, 0, 7), 0x1234_5678, 0);
            let kernel = (Kernel::from_kallsyms(image.kallsyms().as_bytes()), "a test".into());
            let mut pipeline =
                Pipeline::new(synthetic.origin(), kernel, Detail::default(), &Default::default())
                    .unwrap();
            pipeline.push(synthetic.take_round());
            pipeline.finish();
            let report = pipeline.report(&ask(GroupBy::Site));
            let [row] = report.rows.as_slice() else {
                panic!("{}: {:#?}", image.list, report.rows)
            };
            let got = row.key.lock_type.map(|found| found.to_string());
            assert_eq!(got.as_deref(), Some(*lock_type), "{}: {stack:?}", image.list);
            assert_eq!(row.key.caller.as_deref(), Some(*caller), "{}: {stack:?}", image.list);
            assert_eq!(row.stat.ended.total, Nanos(4_000), "{}", image.list);
        }
    }
}

#[test]
fn kernels_that_inline_the_unlock_functions_say_that_irq_off_time_is_not_measurable() {
    const SAID: &str = "irq-off  spinlock  not measurable on this kernel";
    for image in IMAGES {
        let paths = image.paths(image.samples[0].0);
        assert_eq!(paths.irq_off_measurable, image.irq_off, "{}", image.list);
        let mut table = Vec::new();
        Table::default().render(&paths, &mut table).unwrap();
        let table = String::from_utf8(table).unwrap();
        assert_eq!(table.contains(SAID), !image.irq_off, "{}: {table}", image.list);
    }
}
