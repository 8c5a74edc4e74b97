//! The ground truth: waits that are known from outside of the waits, by a schedule and two clocks.

use serde_json::Value;

use super::machine::{LOCKPROF, Machine, median, say};

/// What lockprof says of the waiters, in units of what they must have waited.
struct Measured {
    /// All their waiting.
    total: f64,
    /// What they stood behind the writer that the schedule has.
    behind_writer: f64,
    /// What is charged to that thread.
    charged: f64,
}

impl Measured {
    fn run(machine: &Machine) -> Measured {
        let hammer =
            ["hammer", "schedule", "--hold", "40ms", "--every", "100ms", "--seconds", "3s"];
        let output = machine.record(["--", LOCKPROF].iter().chain(&hammer).chain(&["--json"]));
        let truth: Value = serde_json::from_slice(&output.stdout).unwrap();
        let groups = truth["groups"].as_array().unwrap();
        let waiters = groups.iter().find(|group| group["name"] == "waiters").unwrap();
        let expected = waiters["expected_wait_ns"].as_f64().unwrap();
        // Threads that start take the lock too, for write.
        let waits = ["--comm", "hammer-waiter", "--lock-type", "rwsem:R", "--caller", "mincore"];
        let report = machine.report(&[&["--by", "lock"], &waits[..]].concat());
        let row = &report["rows"][0];
        let blame = machine.report(&[&["--by", "releaser"], &waits[..]].concat());
        let rows = blame["rows"].as_array().unwrap().iter();
        let holder = rows.filter(|row| row["releaser"]["task"]["comm"] == "hammer-holder");
        let charged: f64 = holder.filter_map(|row| row["wait_ns"].as_f64()).sum();
        Measured {
            total: row["wait_ns"].as_f64().unwrap() / expected,
            behind_writer: row["readers_writers"]["readers"]["behind_writer_ns"].as_f64().unwrap()
                / expected,
            charged: charged / expected,
        }
    }

    fn each(&self) -> [f64; 3] {
        [self.total, self.behind_writer, self.charged]
    }
}

#[test]
fn waits_are_those_of_the_schedule_within_five_percent_and_behind_its_holder() {
    let Some(machine) = Machine::or_skip() else { return };
    let mut runs = vec![Measured::run(&machine)];
    let right = |run: &Measured| run.each().iter().all(|share| (share - 1.0).abs() <= 0.05);
    // On a busy machine waiters that are woken have to wait for a CPU: the median counts.
    if !right(&runs[0]) {
        runs.extend((0..4).map(|_| Measured::run(&machine)));
    }
    let of = |at: usize| median(runs.iter().map(|run| run.each()[at]).collect());
    let middle = Measured { total: of(0), behind_writer: of(1), charged: of(2) };
    let said: Vec<String> = runs.iter().map(|run| format!("{:.3?}", run.each())).collect();
    say(&format!("total, behind a writer, charged to the holder: {}", said.join(", ")));
    assert!(right(&middle), "{said:?} of what must be");
}
