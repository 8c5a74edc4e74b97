//! How fast records become events and events become a report, on a synthetic recording.
//!
//! `cargo bench --bench throughput` prints records a second, best of several runs: ordering and
//! decoding alone, then the whole pipe. benches/against_perf.sh compares with perf on a real file.

use std::time::{Duration, Instant};

use lockprof::analyse::Detail;
use lockprof::kernel::Kernel;
use lockprof::model::{Filter, Query};
use lockprof::pipeline::{EventStream, Pipeline};
use lockprof::source::{At, Round, Synthetic};

/// Begins and ends of each round, on two CPUs.
const WAITS_A_ROUND: u64 = 4_000;
const ROUNDS: u64 = 125;
const RUNS: usize = 7;

/// Stacks as deep as those of real waits: 12 frames.
const DEPTH: u64 = 12;
const STACKS: u64 = 300;

fn main() {
    let mut synthetic = Synthetic::new();
    let rounds: Vec<Round> = (0..ROUNDS).map(|round| fill(&mut synthetic, round)).collect();
    let origin = synthetic.origin();
    let records = ROUNDS * WAITS_A_ROUND * 2;
    report("order + decode", records, || {
        let mut stream = EventStream::new(&origin).expect("layouts");
        let mut events = 0u64;
        let mut count = |_: &lockprof::decode::Event<'_>| events += 1;
        rounds.iter().cloned().for_each(|round| stream.push(round, &mut count));
        stream.finish(&mut count);
        assert_eq!(events, records);
    });
    report("whole pipe", records, || {
        let symbols = (Kernel::default(), String::new());
        let mut pipeline =
            Pipeline::new(origin.clone(), symbols, Detail::default(), &Filter::default())
                .expect("layouts");
        rounds.iter().cloned().for_each(|round| pipeline.push(round));
        pipeline.finish();
        let report = pipeline.report(&Query::default());
        assert_eq!(report.total.ended.count, records / 2);
    });
}

/// One pass over two rings: each is in order of time, the two are not.
fn fill(synthetic: &mut Synthetic, round: u64) -> Round {
    let start = round * WAITS_A_ROUND * 1_000;
    for cpu in 0..2u32 {
        for wait in 0..WAITS_A_ROUND / 2 {
            let number = round * WAITS_A_ROUND + wait * 2 + u64::from(cpu);
            let time = start + wait * 2_000 + u64::from(cpu) * 7 + 1;
            let at = |time| At::new(time, cpu, 100 + (number % 16) as i32);
            let stack: Vec<u64> = (0..DEPTH).map(|i| base(number % STACKS) + i * 64).collect();
            let lock = 0xffff_8880_0000_0000 + number % 500 * 128;
            synthetic.begin(at(time), lock, 4, &stack);
            synthetic.end(at(time + 900), lock, 0);
        }
    }
    synthetic.take_round()
}

fn base(stack: u64) -> u64 {
    0xffff_ffff_8100_0000 + stack * 4096
}

fn report(what: &str, records: u64, mut run: impl FnMut()) {
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    let best = (0..RUNS).map(|_| time(&mut run)).min().unwrap_or(Duration::ZERO);
    let rate = records as f64 / best.as_secs_f64() / 1e6;
    println!("{what:<18} {rate:6.1} M records/s  ({records} records, best of {RUNS} runs)");
}
