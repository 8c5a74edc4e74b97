//! Any bytes as a file: the reader and the replay give records or an error, never a panic, and ask
//! for no more memory than `-malloc_limit_mb` allows.

#![no_main]

use libfuzzer_sys::fuzz_target;
use lockprof::source::{Replay, Round};

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut replay) = Replay::from_bytes(bytes.to_vec()) else { return };
    let mut round = Round::default();
    let mut read = 0;
    while let Ok(true) = replay.next_round(&mut round) {
        read += round.bytes.len() as u64;
        assert!(!round.bytes.is_empty() && read <= replay.position());
        assert!(replay.position() <= replay.len());
    }
});
