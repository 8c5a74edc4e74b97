//! The table of `perf lock contention`, read from text.

/// The number of waits, and times as printed; then the words: (type, caller), (pid, comm) ...
pub(crate) type Columns = Vec<String>;

/// Rows of a table with `times` columns of time. Other lines are passed over.
pub(crate) fn rows(table: &str, times: usize) -> Vec<Columns> {
    table.lines().filter_map(|line| columns(line, times)).collect()
}

/// `  227      2.06 s      55.22 ms    567.43 us      9.09 ms      rwsem:R   caller`
fn columns(line: &str, times: usize) -> Option<Columns> {
    let mut words = line.split_whitespace();
    let contended: u64 = words.next()?.parse().ok()?;
    let mut time = || {
        let (value, unit) = (words.next()?, words.next()?);
        value.parse::<f64>().ok()?;
        ["ns", "us", "ms", "s", "m", "h"].contains(&unit).then(|| format!("{value} {unit}"))
    };
    let mut columns = vec![contended.to_string()];
    for _ in 0..times {
        columns.push(time()?);
    }
    // perf 6.1 has another word for it.
    let rest: Vec<_> =
        words.map(|word| if word == "rtmutex" { "rt-mutex" } else { word }).collect();
    columns.push(rest.join(" "));
    Some(columns)
}

/// No wait of this row ended.
pub(crate) fn is_without_time(row: &Columns) -> bool {
    row[1] == "0 ns"
}
