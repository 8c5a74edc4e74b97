//! Any bytes as a file, all the way: reader, replay, order, decoder, pairing, report, every format,
//! events as text, and perf's own computation. Never a panic, and the pairing's equations hold.

#![no_main]

use libfuzzer_sys::fuzz_target;
use lockprof::analyse::{Detail, Slicing};
use lockprof::kernel::Kernel;
use lockprof::model::{Filter, GroupBy, Query};
use lockprof::perf_compat::{PerfCompat, Walk};
use lockprof::pipeline::{EventStream, Pipeline};
use lockprof::render::{Csv, Folded, Json, Renderer, Script, Table};
use lockprof::source::{Replay, Round};

const KALLSYMS: &[u8] = b"ffffffff81000000 T _text\nffffffff81001000 T rwsem_down_write_slowpath\n\
    ffffffff81002000 T down_write\nffffffff81003000 T do_mprotect_pkey\nffffffff81004000 T up_write\n\
    ffffffff81005000 T rwsem_wake\nffffffff81006000 T __schedule\nffffffff81007000 T schedule\n\
    ffffffff81008000 T futex_do_wait\nffffffff81f00000 T _etext\n";

/// Questions whose answers are made in different ways.
const QUESTIONS: [GroupBy; 4] = [GroupBy::Site, GroupBy::Lock, GroupBy::Blame, GroupBy::Cgroup];

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut replay) = Replay::from_bytes(bytes.to_vec()) else { return };
    let origin = replay.take_origin();
    let kernel = Kernel::from_kallsyms(KALLSYMS);
    let detail =
        Detail { user_stacks: true, cpu_stacks: true, slicing: Some(Slicing::WHOLE), cells: 64 };
    let symbols = (Kernel::from_kallsyms(KALLSYMS), String::new());
    let Ok(mut pipeline) = Pipeline::new(origin.clone(), symbols, detail, &Filter::default())
    else {
        return;
    };
    let Ok(mut stream) = EventStream::new(&origin) else { return };
    let script = Script::new(&origin.events, &kernel);
    let mut compat = PerfCompat::new(GroupBy::Site, Walk::default());
    let mut text = Vec::new();
    let mut take = |event: &lockprof::decode::Event<'_>| {
        compat.push(event, &kernel);
        text.clear();
        script.write(event, &mut text).expect("memory takes all");
    };
    let mut round = Round::default();
    while let Ok(true) = replay.next_round(&mut round) {
        pipeline.push(round.clone());
        stream.push(std::mem::take(&mut round), &mut take);
    }
    pipeline.finish();
    stream.finish(&mut take);
    let formats: [&dyn Renderer; 4] = [&Table::default(), &Json, &Csv, &Folded::default()];
    for by in QUESTIONS {
        let report = pipeline.report(&Query { by, stacks: true, ..Query::default() });
        assert!(report.trust.counts.balance(), "{:?}", report.trust.counts);
        for format in formats {
            format.render(&report, &mut std::io::sink()).expect("a sink takes all");
        }
    }
    compat.finish().write_table(&mut std::io::sink()).expect("a sink takes all");
});
