//! The cpu collector: where CPUs spend their time, for spinning that no tracepoint sees.
//!
//! In: a frequency. Out: one event spec, hardware cycles where the machine has them and they count,
//! otherwise `cpu-clock`. What it costs: at 997 Hz about 0.4 % of a CPU with callchains. The odd
//! frequency keeps samples out of step with timers that tick at round ones.
//!
//! rwsem writers spin before they queue without any contention event, readers did too up to 5.10;
//! guests without paravirtual spinlocks never report a spinlock. Samples find them.

use std::hint::black_box;

use crate::Collector;
use crate::perf::attr::{event_type, flag, hardware, sample, software};
use crate::perf::count_own;
use crate::perf::plan::EventSpec;
use crate::procfs::tracefs::{TracefsError, Tracepoints};

/// Samples a second on each CPU when nothing else is asked for.
pub const DEFAULT_FREQUENCY: u32 = 997;

/// What the samples are taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuEvent {
    /// Hardware cycles; the interrupt is an NMI on most machines and sees code that runs with
    /// interrupts off.
    Cycles,
    /// A timer; it cannot fire while interrupts are off.
    CpuClock,
}

impl CpuEvent {
    /// The best that works here. A virtual machine may list cycles, open them and never count.
    pub fn detect() -> CpuEvent {
        let cycles = Cpu { event: CpuEvent::Cycles, frequency: DEFAULT_FREQUENCY }.spec();
        match count_own(&cycles, busy_loop) {
            Ok(count) if count > 0 => CpuEvent::Cycles,
            _ => CpuEvent::CpuClock,
        }
    }

    /// perf's name for it.
    pub fn name(self) -> &'static str {
        match self {
            CpuEvent::Cycles => "cycles",
            CpuEvent::CpuClock => "cpu-clock",
        }
    }
}

/// Work for about a millisecond.
fn busy_loop() {
    let mut state = 1_u64;
    for _ in 0..500_000 {
        state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

/// Records CPU samples with callchain. Idle CPUs give none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Taken from what.
    pub event: CpuEvent,
    /// Samples a second on each CPU; the kernel caps it at `perf_event_max_sample_rate`.
    pub frequency: u32,
}

impl Cpu {
    fn spec(self) -> EventSpec {
        let (kind, config) = match self.event {
            CpuEvent::Cycles => (event_type::HARDWARE, hardware::CPU_CYCLES),
            CpuEvent::CpuClock => (event_type::SOFTWARE, software::CPU_CLOCK),
        };
        let mut spec = EventSpec::new(self.event.name(), kind, config).with_callchain();
        spec.attr.sample_period = u64::from(self.frequency);
        spec.attr.flags |= flag::FREQ | flag::EXCLUDE_IDLE;
        spec.attr.sample_type |= sample::PERIOD;
        spec
    }
}

impl Collector for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn tracepoints(&self) -> &'static [&'static str] {
        &[]
    }

    fn events(&self, _: &Tracepoints) -> Result<Vec<EventSpec>, TracefsError> {
        Ok(vec![self.spec()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_a_frequency_their_period_and_a_callchain() {
        let cpu = Cpu { event: CpuEvent::CpuClock, frequency: 997 };
        let spec = cpu.events(&Tracepoints::default()).unwrap().remove(0);
        assert_eq!(spec.name, "cpu-clock");
        assert_eq!((spec.attr.kind, spec.attr.config), (1, 0));
        assert!(spec.attr.has(flag::FREQ));
        assert_eq!(spec.attr.sample_period, 997);
        assert!(spec.attr.samples(sample::PERIOD) && spec.attr.samples(sample::CALLCHAIN));
    }
}
