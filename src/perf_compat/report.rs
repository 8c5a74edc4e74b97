//! perf's rows, for a terminal and as a struct for JSON.
//!
//! ```text
//!  contended   total wait     max wait     avg wait         type   caller
//!
//!        227      2.06 s      55.22 ms      9.09 ms      rwsem:R   __do_sys_mincore+0x178
//! ```

use std::io;

use serde::Serialize;

use super::differences::Differences;
use crate::kernel::Kernel;
use crate::model::{LockAddr, Nanos};
use crate::render::escape::visible;

/// What a row stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum CompatKey {
    /// By caller.
    Caller {
        /// `symbol+0xoffset`, or `Unknown`. Several rows may have the same.
        caller: String,
    },
    /// By lock.
    Lock {
        /// `0xffff...`.
        lock_addr: String,
        /// The symbol that it lies in; empty for locks in allocated memory.
        symbol: String,
    },
    /// By thread.
    Task {
        /// In the recorder's pid namespace.
        tid: i32,
        /// The last name it had; `:tid` when the recording does not name it.
        comm: String,
    },
}

impl CompatKey {
    pub(super) fn caller(caller: String) -> CompatKey {
        CompatKey::Caller { caller }
    }

    pub(super) fn lock(lock: LockAddr, kernel: &Kernel) -> CompatKey {
        let symbol = kernel.symbol(lock.0).map_or(String::new(), |(symbol, _)| symbol.into());
        CompatKey::Lock { lock_addr: lock.to_string(), symbol }
    }

    pub(super) fn task(tid: i32) -> CompatKey {
        let comm = if tid == 0 { "swapper".into() } else { format!(":{tid}") };
        CompatKey::Task { tid, comm }
    }
}

/// A row: perf's columns in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct CompatRow {
    /// What it stands for.
    #[serde(flatten)]
    pub key: CompatKey,
    /// Of the begin that made the row; later ones may be of another type.
    pub lock_type: String,
    /// Waits begun.
    pub contended: u64,
    /// Sum of the waits that ended under this key, wherever they began.
    #[serde(rename = "wait_total_ns")]
    pub total_ns: u64,
    /// The longest of them.
    #[serde(rename = "wait_max_ns")]
    pub max_ns: u64,
    /// The shortest of them; 0 when none ended.
    #[serde(rename = "wait_min_ns")]
    pub min_ns: u64,
    /// Their average; 0 when none ended.
    #[serde(rename = "avg_wait_ns")]
    pub avg_ns: u64,
}

/// What `perf lock contention` prints, and how our own numbers differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CompatReport {
    /// Longest total first. Rows without time are there too: perf 6.1 prints them, later ones do
    /// not.
    pub rows: Vec<CompatRow>,
    /// Keys with an end that fitted no wait: perf's `bad`.
    pub bad: u64,
    /// Keys: perf's `total`.
    pub total: u64,
    /// Why our own numbers are not these.
    pub differences: Differences,
}

impl CompatReport {
    /// Writes the table in perf's layout, and the differences that applied below it.
    ///
    /// # Errors
    /// Only those of `out`.
    pub fn write_table(&self, out: &mut dyn io::Write) -> io::Result<()> {
        self.write_titles(out)?;
        for row in &self.rows {
            row.write(out)?;
        }
        if self.bad > 0 {
            writeln!(out, "\nbad: {}, total: {}", self.bad, self.total)?;
        }
        self.write_differences(out)
    }

    fn write_titles(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let (last, name) = match self.rows.first().map(|row| &row.key) {
            Some(CompatKey::Task { .. }) => ("pid", "comm"),
            Some(CompatKey::Lock { .. }) => ("type", "address              symbol"),
            Some(CompatKey::Caller { .. }) | None => ("type", "caller"),
        };
        let [count, total, max, avg] = ["contended", "total wait", "max wait", "avg wait"];
        writeln!(out, "{count:>10} {total:>12} {max:>12} {avg:>12} {last:>12}   {name}\n")
    }

    fn write_differences(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let entries = self.differences.entries();
        let mut applied = entries.iter().filter(|entry| entry.count > 0).peekable();
        if applied.peek().is_none() {
            return writeln!(out, "\nno rule of lockprof's pairs or sums these waits differently");
        }
        writeln!(out, "\nwhere lockprof's own rules differ from perf's")?;
        for entry in applied {
            let time = entry.time.map_or(String::new(), perf_time);
            let (count, name, sentence) = (entry.count, entry.name, entry.sentence);
            writeln!(out, "{count:>10} {time:>12}  {sentence} [{name}]")?;
        }
        Ok(())
    }
}

impl CompatRow {
    fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let [total, max, avg] =
            [self.total_ns, self.max_ns, self.avg_ns].map(|ns| perf_time(Nanos(ns)));
        write!(out, "{:>10} {total:>12} {max:>12} {avg:>12} ", self.contended)?;
        match &self.key {
            CompatKey::Caller { caller } => {
                writeln!(out, "{:>12}   {}", self.lock_type, visible(caller))
            }
            CompatKey::Lock { lock_addr, symbol } => {
                let line =
                    format!("{:>12}   {lock_addr:<18}   {}", self.lock_type, visible(symbol));
                writeln!(out, "{}", line.trim_end())
            }
            CompatKey::Task { tid, comm } => writeln!(out, "{tid:>12}   {}", visible(comm)),
        }
    }
}

/// A time as perf prints it: two digits after the point in the largest unit that is not above it.
///
/// Its last digit is that of a single precision number: 19,145 ns are `19.15 us`, 879,995 ns are
/// `879.99 us`.
pub fn perf_time(time: Nanos) -> String {
    const UNITS: [(u64, &str); 5] = [
        (3_600_000_000_000, "h "),
        (60_000_000_000, "m "),
        (1_000_000_000, "s "),
        (1_000_000, "ms"),
        (1_000, "us"),
    ];
    match UNITS.iter().find(|(scale, _)| time.0 >= *scale) {
        Some((scale, unit)) => format!("{:.2} {unit}", (time.0 as f64 / *scale as f64) as f32),
        None => format!("{} ns", time.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_laid_out_as_perfs_and_tells_the_differences_that_applied() {
        let key = CompatKey::caller("do_mprotect_pkey+0xff".into());
        let lock_type = "rwsem:W".into();
        let (total_ns, max_ns, min_ns, avg_ns) = (1_170_000_000, 154_180_000, 56_890, 9_460_000);
        let row = CompatRow { key, lock_type, contended: 124, total_ns, max_ns, min_ns, avg_ns };
        let differences = Differences { bad_ends: 7, ..Differences::default() };
        let report = CompatReport { rows: vec![row], bad: 1, total: 1, differences };
        let mut out = Vec::new();
        report.write_table(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[..5],
            [
                " contended   total wait     max wait     avg wait         type   caller",
                "",
                "       124      1.17 s     154.18 ms      9.46 ms      rwsem:W   do_mprotect_pkey+0xff",
                "",
                "bad: 1, total: 1",
            ]
        );
        assert!(lines[7].trim_start().starts_with("7 ") && lines[7].ends_with("[bad_ends]"));
        assert_eq!(lines.len(), 8);
    }

    #[test]
    fn json_has_a_key_of_its_kind_and_units_in_its_names() {
        let key = CompatKey::Task { tid: 3, comm: "fio".into() };
        let lock_type = "mutex".into();
        let row = CompatRow {
            key,
            lock_type,
            contended: 1,
            total_ns: 2,
            max_ns: 2,
            min_ns: 2,
            avg_ns: 2,
        };
        let json = serde_json::to_string(&row).unwrap();
        assert_eq!(
            json,
            r#"{"tid":3,"comm":"fio","lock_type":"mutex","contended":1,"wait_total_ns":2,"wait_max_ns":2,"wait_min_ns":2,"avg_wait_ns":2}"#
        );
    }

    #[test]
    fn times_have_perfs_last_digit() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (2_795, "2.80 us"),
            (19_145, "19.15 us"),
            (24_355, "24.35 us"),
            (879_995, "879.99 us"),
            (999_999, "1000.00 us"),
            (2_060_000_000, "2.06 s "),
            (90_000_000_000, "1.50 m "),
            (7_200_000_000_000, "2.00 h "),
        ];
        for (ns, text) in cases {
            assert_eq!(perf_time(Nanos(ns)), text, "{ns}");
        }
    }
}
