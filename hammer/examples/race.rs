//! Runs one workload and prints what it cost, or JSON with `--json`.
//!
//! `cargo run --release -p lockprof-hammer --example race -- mmap-sem READERS WRITERS SECONDS HOLD`
//! `cargo run --release -p lockprof-hammer --example race -- convoy SHORT_THREADS SECONDS HOLD`
//! `... directory-rwsem THREADS SECONDS DIR`, `... pipe-mutex THREADS SECONDS`, `... fd-table THREADS SECONDS`

use std::error::Error;
use std::time::Duration;

use lockprof_hammer::{Convoy, DirectoryRwsem, FdTable, MmapSem, Outcome, PipeMutex};

fn main() -> Result<(), Box<dyn Error>> {
    let mut typed: Vec<String> = std::env::args().skip(1).collect();
    let json = typed.last().is_some_and(|last| last == "--json");
    if json {
        typed.pop();
    }
    let typed: Vec<&str> = typed.iter().map(String::as_str).collect();
    let outcome = run(&typed)?;
    if json {
        println!("{}", serde_json::to_string_pretty(&outcome)?);
    } else {
        println!("{outcome}");
    }
    Ok(())
}

fn run(typed: &[&str]) -> Result<Outcome, Box<dyn Error>> {
    let outcome = match *typed {
        ["mmap-sem", readers, writers, time, hold] => MmapSem {
            readers: readers.parse()?,
            writers: writers.parse()?,
            seconds: seconds(time)?,
            hold: hold.parse()?,
        }
        .run(),
        ["convoy", threads, time, hold] => {
            let short_threads = threads.parse()?;
            Convoy { short_threads, seconds: seconds(time)?, hold: hold.parse()? }.run()
        }
        ["directory-rwsem", threads, time, dir] => {
            let threads = threads.parse()?;
            DirectoryRwsem { threads, seconds: seconds(time)?, parent: dir.into() }.run()
        }
        ["pipe-mutex", threads, time] => {
            PipeMutex { threads: threads.parse()?, seconds: seconds(time)? }.run()
        }
        ["fd-table", threads, time] => {
            FdTable { threads: threads.parse()?, seconds: seconds(time)? }.run()
        }
        _ => return Err("see the first lines of this example for what to type".into()),
    };
    Ok(outcome?)
}

fn seconds(typed: &str) -> Result<Duration, Box<dyn Error>> {
    Ok(Duration::try_from_secs_f64(typed.parse()?)?)
}
