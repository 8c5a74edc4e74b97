//! The formats that programs read: JSON against its schema, CSV, folded stacks.

mod reports;

use lockprof::model::Nanos;
use lockprof::render::escape::acts;
use lockprof::render::{Csv, Folded, Json, Renderer, SCHEMA, Weight};
use lockprof::report::Report;
use reports::{assert_golden, text};
use serde_json::Value;

fn every_report() -> [(&'static str, Report); 14] {
    [
        ("sites", reports::sites()),
        ("stacks", reports::stacks()),
        ("locks", reports::locks()),
        ("tasks", reports::tasks()),
        ("empty", reports::empty()),
        ("doubtful", reports::doubtful()),
        ("hostile", reports::hostile()),
        ("hostile tasks", reports::hostile_tasks()),
        ("hostile cgroups", reports::hostile_cgroups()),
        ("hostile locks", reports::hostile_locks()),
        ("blame", reports::blame()),
        ("hostile blame", reports::hostile_blame()),
        ("threads", reports::threads()),
        ("hostile threads", reports::hostile_threads()),
    ]
}

fn json(report: &Report) -> Value {
    serde_json::from_str(&text(&Json, report)).expect("the output is JSON")
}

#[test]
fn json_keeps_the_promise_of_its_schema() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is a schema");
    for (name, report) in every_report() {
        let errors: Vec<String> = validator
            .iter_errors(&json(&report))
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    }
}

#[test]
fn the_schema_refuses_what_was_not_promised() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let good = json(&reports::stacks());
    let spoil = |pointer: &str, name: &str, value: Option<Value>| {
        let mut bad = good.clone();
        let object = bad.pointer_mut(pointer).and_then(Value::as_object_mut).unwrap();
        match value {
            Some(value) => object.insert(name.into(), value),
            None => object.remove(name),
        };
        bad
    };
    assert!(validator.is_valid(&good));
    for place in ["", "/header", "/total", "/rows/0", "/rows/0/by_type/0", "/rows/0/stacks/0"] {
        assert!(!validator.is_valid(&spoil(place, "surprise", Some(1.into()))), "{place}");
    }
    for (place, name) in [("/rows/0", "wait_ns"), ("/trust", "lost"), ("/rows/0", "p50_ns")] {
        assert!(!validator.is_valid(&spoil(place, name, None)), "{place}/{name}");
    }
    assert!(!validator.is_valid(&spoil("", "schema_version", Some(2.into()))));
    assert!(!validator.is_valid(&spoil("/rows/0", "lock_type", Some("rwsem:X".into()))));
}

#[test]
fn json_carries_every_number_in_full() {
    let report = reports::sites();
    let row = &json(&report)["rows"][0];
    let stat = &report.rows[0].stat;
    assert_eq!(row["lock_type"], "rwsem:W");
    assert_eq!(row["lock"]["evidence"], "path");
    assert_eq!(row["wait_ns"], stat.wait().0);
    assert_eq!(row["traced_ns"], 1_900_000_000u64);
    assert_eq!(row["spun_ns"], 240_000_000);
    assert_eq!(row["spun_interval_ns"], stat.spun.interval().0);
    assert_eq!(row["contended"], 810);
    assert_eq!(row["p50_ns"], stat.ended.quantile(0.5).unwrap().0);
    assert_eq!(row["wait_max_ns"], 21_000_000);
    let buckets = row["histogram"].as_array().unwrap();
    let count: u64 = buckets.iter().map(|pair| pair[1].as_u64().unwrap()).sum();
    assert_eq!((buckets.len(), count), (3, 810));
    assert!(buckets[0][0].as_u64().unwrap() <= 800_000);
}

#[test]
fn json_has_all_rows_whatever_top_says() {
    let mut report = reports::sites();
    report.top = 1;
    assert_eq!(json(&report)["rows"].as_array().unwrap().len(), 5);
}

#[test]
fn json_has_a_row_on_each_line() {
    let page = text(&Json, &reports::sites());
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("    {")).collect();
    assert_eq!(rows.len(), 5);
    for row in rows {
        let row: Value = serde_json::from_str(row.trim().trim_end_matches(',')).unwrap();
        assert!(row["wait_ns"].is_u64());
    }
}

#[test]
fn json_gives_hostile_names_back_unchanged_without_acting_bytes() {
    let page = text(&Json, &reports::hostile());
    assert_eq!(page.chars().find(|&c| c != '\n' && acts(c)), None, "{page}");
    let back: Value = serde_json::from_str(&page).unwrap();
    for (row, name) in back["rows"].as_array().unwrap().iter().zip(reports::HOSTILE) {
        assert_eq!(row["caller"], name);
    }
}

/// Records of a CSV file after RFC 4180.
fn records(csv: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field, mut quoted) = (vec![], vec![], String::new(), false);
    let mut chars = csv.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, quoted) {
            ('"', true) if chars.peek() == Some(&'"') => field.extend(chars.next()),
            ('"', _) => quoted = !quoted,
            (',', false) => record.push(std::mem::take(&mut field)),
            ('\r', false) => {
                assert_eq!(chars.next(), Some('\n'), "records end with CRLF");
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            (c, _) => field.push(c),
        }
    }
    assert!(record.is_empty() && field.is_empty() && !quoted, "the file is whole");
    records
}

#[test]
fn csv_has_the_same_columns_for_every_report() {
    let titles = records(&text(&Csv, &reports::empty())).remove(0);
    assert!(titles.contains(&"wait_ns".into()) && titles.contains(&"p99_ns".into()));
    for (name, report) in every_report() {
        let records = records(&text(&Csv, &report));
        assert_eq!(records[0], titles, "{name}");
        assert_eq!(records.len(), report.rows.len() + 1, "{name}");
        assert!(records.iter().all(|record| record.len() == titles.len()), "{name}");
    }
}

#[test]
fn csv_numbers_stand_under_their_titles() {
    let report = reports::locks();
    let records = records(&text(&Csv, &report));
    let field = |row: usize, title: &str| {
        let at = records[0].iter().position(|t| t == title).unwrap();
        records[row][at].clone()
    };
    let stat = &report.rows[0].stat;
    assert_eq!(field(1, "lock_kind"), "rwsem");
    assert_eq!(field(1, "lock_addr"), "0xffff888103f4a1c8");
    assert_eq!(field(1, "wait_ns"), stat.wait().0.to_string());
    assert_eq!(field(1, "spun_samples"), "90");
    assert_eq!(field(1, "wait_max_ns"), "2300000");
    assert_eq!(field(1, "read_wait_ns"), "791200000");
    assert_eq!(field(1, "write_wait_ns"), "983200000");
    assert_eq!(field(1, "caller"), "");
    assert_eq!(field(2, "write_wait_ns"), "0");
}

#[test]
fn csv_runs_no_formula_and_hides_no_control_character() {
    for report in [reports::hostile(), reports::hostile_tasks()] {
        let page = text(&Csv, &report);
        assert_eq!(page.chars().find(|&c| c != '\n' && c != '\r' && acts(c)), None, "{page}");
        for field in records(&page).iter().flatten() {
            assert!(!field.starts_with(['=', '+', '-', '@']), "{field}");
        }
    }
}

#[test]
fn csv_folded_and_json_look_like_this() {
    assert_golden("sites.csv", &text(&Csv, &reports::sites()));
    assert_golden("hostile.csv", &text(&Csv, &reports::hostile()));
    assert_golden("stacks.folded", &text(&Folded::default(), &reports::stacks()));
    assert_golden("stacks-cpu.folded", &text(&Folded { weight: Weight::Cpu }, &reports::stacks()));
    assert_golden("blame.folded", &text(&Folded { weight: Weight::Blame }, &reports::blame()));
    assert_golden("hostile.folded", &text(&Folded::default(), &reports::hostile()));
    let version = format!("\"lockprof_version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    let json = text(&Json, &reports::sites());
    assert!(json.contains(&version), "{json}");
    assert_golden("sites.json", &json.replace(&version, "\"lockprof_version\":\"0.0.0\""));
}

fn weights(weight: Weight, report: &Report) -> u64 {
    let page = text(&Folded { weight }, report);
    let weights = page.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
    assert_eq!(weights.clone().count(), page.lines().count(), "every line ends in its weight");
    weights.sum()
}

#[test]
fn folded_weights_add_up_to_the_report() {
    for (name, report) in every_report() {
        let wait: Nanos = report.rows.iter().map(|row| row.stat.wait()).sum();
        assert_eq!(weights(Weight::Wait, &report), wait.0, "{name}");
        let contended: u64 = report.rows.iter().map(|row| row.stat.contended()).sum();
        assert_eq!(weights(Weight::Count, &report), contended, "{name}");
    }
    assert_eq!(weights(Weight::Cpu, &reports::stacks()), 3_400_000_000);
    assert_eq!(weights(Weight::Cpu, &reports::sites()), 0);
    assert_eq!(weights(Weight::Blame, &reports::blame()), reports::blame().total.wait().0);
}

#[test]
fn folded_stacks_begin_with_type_and_lock_and_split_only_between_frames() {
    let page = text(&Folded::default(), &reports::hostile());
    assert_eq!(page.chars().find(|&c| c != '\n' && acts(c)), None, "{page}");
    for line in page.lines() {
        let frames: Vec<&str> = line.split(';').collect();
        // Type, lock, one user frame, two kernel frames.
        assert_eq!((frames[0], frames.len()), ("mutex", 5), "{line}");
    }
    let stacks = text(&Folded::default(), &reports::stacks());
    assert!(stacks.lines().any(|line| line.starts_with(
        "rwsem:W;mmap_lock;malloc;_int_malloc;grow_heap;mprotect;entry_SYSCALL_64_after_hwframe;"
    )));
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    let folded = Folded::default();
    let formats: [&dyn Renderer; 3] = [&Json, &Csv, &folded];
    for (name, report) in every_report() {
        for format in formats {
            assert_eq!(text(format, &report), text(format, &report), "{name}");
        }
    }
}
