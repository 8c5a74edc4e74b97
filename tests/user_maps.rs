//! The maps of processes over time, as stories: what is where after each step.

use lockprof::decode::{Body, Comm, Event, Mmap, TaskChange};
use lockprof::model::Timestamp;
use lockprof::stacks::Stacks;
use lockprof::unwind::{Maps, Object};

/// One step of a story. Times count up from 1.
#[derive(Clone, Copy, Debug)]
enum Step {
    Map(i32, u64, u64, u64, &'static str),
    /// pid, tid, parent's pid.
    Fork(i32, i32, i32),
    /// A fork of before the recording: no time.
    Old(i32, i32),
    Exec(i32),
    Name(i32),
    Exit(i32, i32),
    /// In this process this address is NAME+offset.
    At(i32, u64, &'static str, u64),
}
use Step::{At, Exec, Exit, Fork, Map, Name, Old};

const UNKNOWN: &str = "unknown";

fn task(pid: i32, tid: i32, parent_pid: i32) -> TaskChange {
    TaskChange { pid, tid, parent_pid, parent_tid: parent_pid }
}

fn body(step: Step) -> Option<Body<'static>> {
    Some(match step {
        Map(pid, addr, len, pgoff, name) => Body::Mmap(Mmap {
            pid,
            addr,
            len,
            pgoff,
            kernel: pid == -1,
            name: name.as_bytes(),
            build_id: None,
        }),
        Fork(pid, tid, parent) => Body::Fork(task(pid, tid, parent)),
        Old(pid, parent) => Body::Fork(task(pid, pid, parent)),
        Exec(pid) => Body::Comm(Comm { pid, tid: pid, exec: true, name: b"new" }),
        Name(pid) => Body::Comm(Comm { pid, tid: pid, exec: false, name: b"new" }),
        Exit(pid, tid) => Body::Exit(task(pid, tid, 1)),
        At(..) => return None,
    })
}

fn event(time: u64, body: Body<'_>) -> Event<'_> {
    Event {
        time: Timestamp(time),
        cpu: None,
        pid: 0,
        tid: 0,
        instance: 0,
        cgroup: None,
        offset: 0,
        body,
    }
}

fn chain(ips: &[u64]) -> Vec<u8> {
    ips.iter().flat_map(|ip| ip.to_le_bytes()).collect()
}

fn name(object: &Object) -> String {
    match object {
        Object::Unknown => UNKNOWN.to_owned(),
        Object::BrokenStack => "broken".to_owned(),
        Object::File { path: name, .. } | Object::Special { name, .. } => {
            String::from_utf8_lossy(name).into_owned()
        }
        Object::Anonymous { pid } => format!("anon {pid}"),
    }
}

fn frames(maps: &mut Maps, stacks: &mut Stacks, pid: i32, ips: &[u64]) -> Vec<(String, u64)> {
    let id = maps.resolve(pid, &chain(ips), stacks);
    let frames = stacks.user(id).iter();
    frames.map(|frame| (name(maps.objects().get(frame.object)), frame.offset)).collect()
}

const STORIES: &[(&str, &[Step])] = &[
    (
        "an address is an offset in its file",
        &[
            Map(7, 0x1000, 0x1000, 0x5000, "/a"),
            At(7, 0x1234, "/a", 0x5234),
            At(7, 0x2000, UNKNOWN, 0x2000),
            At(8, 0x1234, UNKNOWN, 0x1234),
        ],
    ),
    (
        "memory without a file belongs to the process that mapped it",
        &[
            Map(7, 0x1000, 0x1000, 0x5000, "//anon"),
            At(7, 0x1234, "anon 7", 0x1234),
            Fork(8, 8, 7),
            At(8, 0x1234, "anon 7", 0x1234),
        ],
    ),
    (
        "what is mapped over is gone",
        &[
            Map(7, 0x1000, 0x3000, 0, "/a"),
            At(7, 0x2010, "/a", 0x1010),
            Map(7, 0x2000, 0x1000, 0, "/b"),
            At(7, 0x2010, "/b", 0x10),
            At(7, 0x3010, "/a", 0x2010),
        ],
    ),
    (
        "a child has its parent's maps, then its own",
        &[
            Map(7, 0x1000, 0x1000, 0, "/a"),
            Fork(8, 8, 7),
            At(8, 0x1010, "/a", 0x10),
            Map(8, 0x1000, 0x1000, 0, "/b"),
            At(8, 0x1010, "/b", 0x10),
            At(7, 0x1010, "/a", 0x10),
            Map(7, 0x3000, 0x1000, 0, "/c"),
            At(8, 0x3010, UNKNOWN, 0x3010),
        ],
    ),
    (
        "a thread shares its process' maps",
        &[Map(7, 0x1000, 0x1000, 0, "/a"), Fork(7, 9, 7), Exit(7, 9), At(7, 0x1010, "/a", 0x10)],
    ),
    (
        "exec drops the maps, a new name does not",
        &[
            Map(7, 0x1000, 0x1000, 0, "/a"),
            Name(7),
            At(7, 0x1010, "/a", 0x10),
            Exec(7),
            At(7, 0x1010, UNKNOWN, 0x1010),
            Map(7, 0x1000, 0x1000, 0, "/b"),
            At(7, 0x1010, "/b", 0x10),
        ],
    ),
    (
        "exec of the child leaves the parent's maps",
        &[
            Map(7, 0x1000, 0x1000, 0, "/a"),
            Fork(8, 8, 7),
            Exec(8),
            At(7, 0x1010, "/a", 0x10),
            At(8, 0x1010, UNKNOWN, 0x1010),
        ],
    ),
    (
        "threads run on after the first one ended",
        &[Map(7, 0x1000, 0x1000, 0, "/a"), Exit(7, 7), At(7, 0x1010, "/a", 0x10)],
    ),
    (
        "a reused pid has nothing of the process before it",
        &[
            Map(7, 0x1000, 0x1000, 0, "/a"),
            Map(5, 0x8000, 0x1000, 0, "/sh"),
            Exit(7, 7),
            Fork(7, 7, 5),
            At(7, 0x1010, UNKNOWN, 0x1010),
            At(7, 0x8010, "/sh", 0x10),
            Fork(7, 7, 99),
            At(7, 0x8010, UNKNOWN, 0x8010),
        ],
    ),
    (
        "a fork without a time is no fork",
        &[Map(5, 0x8000, 0x1000, 0, "/sh"), Old(7, 5), At(7, 0x8010, UNKNOWN, 0x8010)],
    ),
    (
        "the kernel and foreign pid namespaces map nothing",
        &[
            Map(-1, 0x1000, 0x1000, 0, "[kernel.kallsyms]_text"),
            Map(0, 0x1000, 0x1000, 0, "/a"),
            At(-1, 0x1010, UNKNOWN, 0x1010),
            At(0, 0x1010, UNKNOWN, 0x1010),
        ],
    ),
    (
        "pages of the kernel",
        &[
            Map(7, 0x7000, 0x2000, 0, "[vdso]"),
            At(7, 0x7b20, "[vdso]", 0xb20),
            At(7, 0xffff_ffff_ff60_0400, "[vsyscall]", 0x400),
            At(8, 0xffff_ffff_ff60_0400, "[vsyscall]", 0x400),
        ],
    ),
];

#[test]
fn stories_of_processes() {
    for (story, steps) in STORIES {
        let (mut maps, mut stacks) = (Maps::default(), Stacks::default());
        for (time, &step) in (1..).zip(*steps) {
            let time = if matches!(step, Old(..)) { 0 } else { time };
            if let Some(body) = body(step) {
                maps.apply(&event(time, body));
            }
            if let At(pid, addr, object, offset) = step {
                let found = frames(&mut maps, &mut stacks, pid, &[addr]);
                assert_eq!(found, [(object.to_owned(), offset)], "{story}: {step:?}");
            }
        }
    }
}

#[test]
fn a_stack_is_cut_where_it_leaves_the_maps() {
    let (mut maps, mut stacks) = (Maps::default(), Stacks::default());
    maps.apply(&event(1, body(Map(7, 0x1000, 0x1000, 0, "/a")).unwrap()));
    let text = 0x6542_7869_6e55_2f34;
    let mut names = |ips: &[u64]| -> Vec<(String, u64)> { frames(&mut maps, &mut stacks, 7, ips) };
    let frame = |name: &str, offset| (name.to_owned(), offset);
    assert_eq!(names(&[0x1010, text, 0x1020]), [frame("/a", 0x10), frame("broken", 0)]);
    assert_eq!(names(&[0x1010, text + 8]), [frame("/a", 0x10), frame("broken", 0)]);
    assert_eq!(names(&[text, 0x1021]), [frame(UNKNOWN, text), frame("/a", 0x20)]);
    assert_eq!(names(&[0x1010, 0x1021, 0]), [frame("/a", 0x10), frame("/a", 0x20)]);
    assert_eq!(names(&[]), []);
}
