//! Decoded events as text, one line each: `lockprof script`.
//!
//! ```text
//! time (s)        cpu   pid/tid  common_pid  event: fields; frame < caller < ...
//! 6856.356441271 [000] 10591/10593 10593 lock:contention_begin: lock_addr=0xffff888627d2ba40 flags=SPIN; ...
//! ```
//!
//! In: an event and the book of the recorded kernel. Kernel frames are symbols with offsets, user
//! frames are addresses: objects and maps are not known here. `-` stands where a record says nothing.

use std::fmt;
use std::io;

use super::escape::visible;
use crate::decode::{
    Body, Callchain, CpuSample, Event, Ksymbol, Mmap, MmapLock, MmapLockStep, SchedSwitch, Switch,
    TaskChange, words,
};
use crate::kernel::Kernel;
use crate::model::Context;
use crate::recording::EventDesc;

/// Writes the events of one recording.
#[derive(Clone, Copy, Debug)]
pub struct Script<'a> {
    events: &'a [EventDesc],
    kernel: &'a Kernel,
}

impl<'a> Script<'a> {
    /// For a recording of these events of this kernel.
    pub fn new(events: &'a [EventDesc], kernel: &'a Kernel) -> Script<'a> {
        Script { events, kernel }
    }

    /// Writes one event as one line.
    ///
    /// # Errors
    /// Only those of `out`.
    pub fn write(&self, event: &Event<'_>, out: &mut dyn io::Write) -> io::Result<()> {
        let who = event.body.who();
        write!(out, "{}.{:09} ", event.time.0 / 1_000_000_000, event.time.0 % 1_000_000_000)?;
        match event.cpu {
            Some(cpu) => write!(out, "[{:03}] ", cpu.0)?,
            None => out.write_all(b"[-] ")?,
        }
        write!(out, "{}/{} ", event.pid, event.tid)?;
        match who {
            Some(who) => write!(out, "{} ", who.task.0)?,
            None => out.write_all(b"- ")?,
        }
        let fields = Fields(&event.body).to_string();
        write!(out, "{}: {fields}", self.name(&event.body))?;
        if let Some(who) = who.filter(|who| who.context != Context::Task) {
            write!(out, " context={}", who.context)?;
        }
        let separator = if fields.is_empty() { "" } else { "; " };
        self.write_chain(chain(&event.body), separator, out)?;
        out.write_all(b"\n")
    }

    fn name(&self, body: &Body<'_>) -> impl fmt::Display {
        let of_event = |index: usize, fallback: &str| {
            let name = self.events.get(index).map_or("", |event| event.name.as_str());
            visible(if name.is_empty() { fallback } else { name }).into_owned()
        };
        match body {
            Body::ContentionBegin(_) => "lock:contention_begin".into(),
            Body::ContentionEnd(_) => "lock:contention_end".into(),
            Body::ContendedRelease(_) => "lock:contended_release".into(),
            Body::SchedWaking(_) => "sched:sched_waking".into(),
            Body::SchedSwitch(_) => "sched:sched_switch".into(),
            Body::MmapLock(event) => format!("mmap_lock:{}", mmap_lock_step(event.step)),
            Body::Tracepoint(index, ..) => of_event(*index, "tracepoint"),
            Body::CpuSample(sample) => of_event(sample.event, "sample"),
            Body::Mmap(_) => "MMAP".into(),
            Body::Comm(_) => "COMM".into(),
            Body::Fork(_) => "FORK".into(),
            Body::Exit(_) => "EXIT".into(),
            Body::Switch(_) => "SWITCH".into(),
            Body::Ksymbol(_) => "KSYMBOL".into(),
            Body::Cgroup(_) => "CGROUP".into(),
            Body::Lost(_) => "LOST".into(),
            Body::LostSamples(_) => "LOST_SAMPLES".into(),
            Body::Throttle => "THROTTLE".into(),
            Body::Other(_) => "OTHER".into(),
        }
    }

    /// Innermost frame first.
    fn write_chain(
        &self,
        chain: Callchain<'_>,
        mut separator: &str,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        for addr in words(chain.kernel) {
            match self.kernel.symbol(addr) {
                Some((name, offset)) => {
                    write!(out, "{separator}{}+{offset:#x}", visible(name))?;
                }
                None => write!(out, "{separator}{addr:#x}")?,
            }
            separator = " < ";
        }
        for addr in words(chain.user) {
            write!(out, "{separator}{addr:#x}")?;
            separator = " < ";
        }
        Ok(())
    }
}

fn chain<'a>(body: &Body<'a>) -> Callchain<'a> {
    match body {
        Body::ContentionBegin(begin) => begin.chain.split(),
        Body::ContentionEnd(end) => end.chain.split(),
        Body::ContendedRelease(release) => release.chain.split(),
        Body::SchedWaking(waking) => waking.chain.split(),
        Body::SchedSwitch(switch) => switch.chain.split(),
        Body::MmapLock(event) => event.chain.split(),
        Body::Tracepoint(_, _, chain) => chain.split(),
        Body::CpuSample(sample) => sample.chain.split(),
        _ => Callchain::default(),
    }
}

/// The fields of a body, under the names that the kernel gives them.
struct Fields<'a>(&'a Body<'a>);

impl fmt::Display for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Body::ContentionBegin(begin) => {
                write!(f, "lock_addr={} flags={}", begin.lock, begin.flags)
            }
            Body::ContentionEnd(end) => write!(f, "lock_addr={} ret={}", end.lock, end.ret),
            Body::ContendedRelease(release) => write!(f, "lock_addr={}", release.lock),
            Body::SchedWaking(waking) => write!(f, "pid={}", waking.woken.0),
            Body::SchedSwitch(switch) => sched_switch(f, switch),
            Body::MmapLock(event) => mmap_lock(f, event),
            Body::Tracepoint(..) | Body::Throttle => Ok(()),
            Body::CpuSample(sample) => cpu_sample(f, sample),
            Body::Mmap(mapped) => mmap(f, mapped),
            Body::Comm(comm) => {
                let exec = if comm.exec { " exec" } else { "" };
                write!(f, "pid={} tid={} comm={}{exec}", comm.pid, comm.tid, text(comm.name))
            }
            Body::Fork(change) | Body::Exit(change) => task_change(f, change),
            Body::Switch(change) => switch(f, *change),
            Body::Ksymbol(symbol) => ksymbol(f, symbol),
            Body::Cgroup(cgroup) => write!(f, "id={} path={}", cgroup.id, text(cgroup.path)),
            Body::Lost(lost) | Body::LostSamples(lost) => write!(f, "lost={lost}"),
            Body::Other(kind) => write!(f, "type={kind}"),
        }
    }
}

fn mmap_lock_step(step: MmapLockStep) -> &'static str {
    match step {
        MmapLockStep::StartLocking => "mmap_lock_start_locking",
        MmapLockStep::Acquired | MmapLockStep::NotAcquired => "mmap_lock_acquire_returned",
        MmapLockStep::Released => "mmap_lock_released",
    }
}

fn mmap_lock(f: &mut fmt::Formatter<'_>, event: &MmapLock<'_>) -> fmt::Result {
    write!(f, "mm={:#x} write={}", event.mm, event.write)?;
    match event.step {
        MmapLockStep::Acquired => f.write_str(" success=true"),
        MmapLockStep::NotAcquired => f.write_str(" success=false"),
        MmapLockStep::StartLocking | MmapLockStep::Released => Ok(()),
    }
}

fn sched_switch(f: &mut fmt::Formatter<'_>, switch: &SchedSwitch<'_>) -> fmt::Result {
    let SchedSwitch { prev, prev_state, next, .. } = switch;
    write!(f, "prev_pid={} prev_state={prev_state:#x} next_pid={}", prev.0, next.0)
}

fn cpu_sample(f: &mut fmt::Formatter<'_>, sample: &CpuSample<'_>) -> fmt::Result {
    write!(f, "ip={:#x} weight_ns={}", sample.ip, sample.weight.0)
}

fn mmap(f: &mut fmt::Formatter<'_>, mmap: &Mmap<'_>) -> fmt::Result {
    let Mmap { pid, addr, len, pgoff, .. } = mmap;
    let space = if mmap.kernel { "kernel" } else { "user" };
    write!(f, "pid={pid} addr={addr:#x} len={len:#x} pgoff={pgoff:#x} {space}")?;
    if let Some(id) = mmap.build_id {
        f.write_str(" build_id=")?;
        id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
    }
    write!(f, " filename={}", text(mmap.name))
}

fn task_change(f: &mut fmt::Formatter<'_>, change: &TaskChange) -> fmt::Result {
    let TaskChange { pid, tid, parent_pid, parent_tid } = change;
    write!(f, "pid={pid} tid={tid} ppid={parent_pid} ptid={parent_tid}")
}

fn switch(f: &mut fmt::Formatter<'_>, switch: Switch) -> fmt::Result {
    f.write_str(match (switch.out, switch.preempted) {
        (true, true) => "out preempted",
        (true, false) => "out",
        (false, _) => "in",
    })
}

fn ksymbol(f: &mut fmt::Formatter<'_>, symbol: &Ksymbol<'_>) -> fmt::Result {
    let gone = if symbol.unregister { " unregister" } else { "" };
    write!(f, "addr={:#x} len={:#x} name={}{gone}", symbol.addr, symbol.len, text(symbol.name))
}

/// Names are bytes that a program chose: nothing in them may act on a terminal or end the line.
fn text(bytes: &[u8]) -> String {
    visible(&String::from_utf8_lossy(bytes)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Decoder;
    use crate::order::{Dated, Dater, Order, Ordered};
    use crate::source::{At, Synthetic};

    fn lines(synthetic: &mut Synthetic, kallsyms: &[u8]) -> Vec<String> {
        let origin = synthetic.origin();
        let kernel = Kernel::from_kallsyms(kallsyms);
        let script = Script::new(&origin.events, &kernel);
        let decoder = Decoder::new(&origin.events).unwrap();
        let mut dater = Dater::new(&origin.events).unwrap();
        let mut order = Order::default();
        let mut out = Vec::new();
        let mut write = |ordered: Ordered| {
            for raw in ordered.records() {
                script.write(&decoder.decode(raw).unwrap(), &mut out).unwrap();
            }
        };
        order.push(Dated::new(synthetic.take_round(), &mut dater), &mut write);
        order.finish(&mut write);
        String::from_utf8(out).unwrap().lines().map(String::from).collect()
    }

    #[test]
    fn a_wait_is_a_begin_with_its_stack_and_an_end() {
        let mut synthetic = Synthetic::new();
        let at = |time| At { pid: 7, ..At::new(time, 1, 8) };
        synthetic.begin(at(1_000_000_005), 0xffff_8880_0000_1000, 4, &[0xffff_ffff_8100_0010, 9]);
        synthetic.end(At { common_flags: 0x10, ..at(1_000_000_905) }, 0xffff_8880_0000_1000, -35);
        assert_eq!(
            lines(&mut synthetic, b"ffffffff81000000 T down_write\nffffffff81001000 T x\n"),
            [
                "1.000000005 [001] 7/8 8 lock:contention_begin: lock_addr=0xffff888000001000 \
                 flags=WRITE; down_write+0x10 < 0x9",
                "1.000000905 [001] 7/8 8 lock:contention_end: lock_addr=0xffff888000001000 \
                 ret=-35 context=softirq",
            ]
        );
    }

    #[test]
    fn a_sample_shows_user_frames_as_addresses() {
        let mut synthetic = Synthetic::new();
        synthetic.cpu_sample(At::new(5, 0, 3), &[], &[0x1234, 0x5678]);
        assert_eq!(
            lines(&mut synthetic, b""),
            ["0.000000005 [000] 3/3 - cpu-clock: ip=0x1234 weight_ns=1000000; 0x1234 < 0x5678"]
        );
    }

    #[test]
    fn a_hostile_name_neither_ends_the_line_nor_reaches_the_terminal() {
        let mut synthetic = Synthetic::new();
        synthetic.comm(5, 3, 4, "a\x1b[31m\nb", true);
        assert_eq!(
            lines(&mut synthetic, b""),
            ["0.000000005 [000] 3/4 - COMM: pid=3 tid=4 comm=a\\x1b[31m\\nb exec"]
        );
    }

    #[test]
    fn every_other_record_says_what_it_is() {
        let mut synthetic = Synthetic::new();
        let at = At::new(5, 2, 4);
        synthetic.fork(at, 1, 1).lost(at, 17).switch(at, true).exit(at);
        let lines = lines(&mut synthetic, b"");
        let said: Vec<_> = lines.iter().map(|line| line.split_once("- ").unwrap().1).collect();
        assert_eq!(
            said,
            [
                "FORK: pid=4 tid=4 ppid=1 ptid=1",
                "LOST: lost=17",
                "SWITCH: out",
                "EXIT: pid=4 tid=4 ppid=0 ptid=0"
            ]
        );
    }
}
