//! The table of lock functions knows all the lock code that real stacks show.

use std::collections::{BTreeMap, BTreeSet};

use lockprof::decode::{Body, Callchain};
use lockprof::kernel::{Verdict, verdict};

use crate::fixtures::{KERNELS, events, names_of, symbols};

fn chain<'a>(body: &Body<'a>) -> Option<Callchain<'a>> {
    match body {
        Body::ContentionBegin(begin) => Some(begin.chain.split()),
        Body::ContentionEnd(end) => Some(end.chain.split()),
        Body::ContendedRelease(release) => Some(release.chain.split()),
        Body::SchedWaking(waking) => Some(waking.chain.split()),
        Body::SchedSwitch(switch) => Some(switch.chain.split()),
        Body::CpuSample(sample) => Some(sample.chain.split()),
        Body::Tracepoint(_, _, chain) => Some(chain.split()),
        _ => None,
    }
}

fn addresses(chain: Callchain<'_>) -> Vec<u64> {
    chain.kernel.chunks_exact(8).map(|ip| u64::from_le_bytes(ip.try_into().unwrap())).collect()
}

/// Kernel addresses of all stacks of a kernel's recordings.
fn frames_of(kernel: &str) -> BTreeSet<u64> {
    let mut frames = BTreeSet::new();
    for name in names_of(kernel) {
        events(kernel, &name, |event| {
            frames.extend(chain(&event.body).map(addresses).unwrap_or_default());
        });
    }
    frames
}

#[test]
fn every_frame_in_lock_text_has_a_row() {
    let mut unknown: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for kernel in KERNELS {
        let (symbols, _) = symbols(kernel);
        let frames = frames_of(kernel);
        let in_lock_text: Vec<u64> =
            frames.into_iter().filter(|&ip| symbols.in_lock_text(ip)).collect();
        assert!(in_lock_text.len() > 10, "{kernel}: {} frames", in_lock_text.len());
        for ip in in_lock_text {
            let function = symbols.function(ip).map(|function| symbols.name(function));
            let name = function.unwrap_or_else(|| panic!("{kernel}: {ip:#x} has no symbol"));
            if verdict(name) == Verdict::Unknown {
                unknown.entry(kernel).or_default().insert(name.to_owned());
            }
        }
    }
    assert!(unknown.is_empty(), "no row in symbols.tsv: {unknown:#?}");
}

#[test]
fn every_kernel_address_has_a_symbol() {
    for kernel in KERNELS {
        let (symbols, _) = symbols(kernel);
        let frames = frames_of(kernel);
        let without: Vec<&u64> =
            frames.iter().filter(|&&ip| symbols.function(ip).is_none()).collect();
        assert!(without.len() * 100 <= frames.len(), "{kernel}: {without:x?} of {}", frames.len());
    }
}
