//! The table on a terminal: reading order, alignment at any width, doubts, hostile names.

mod reports;

use lockprof::model::{Nanos, SortKey};
use lockprof::render::Table;
use lockprof::report::Report;
use reports::{assert_golden, text};
use unicode_width::UnicodeWidthStr;

fn table(width: usize) -> Table {
    let next = ["lockprof report --by lock", "lockprof flamegraph -o lockprof.svg"];
    Table { width, next: next.map(String::from).into(), ..Table::default() }
}

/// The same with readers and writers told apart.
fn with_sides(width: usize) -> Table {
    Table { readers_writers: true, ..table(width) }
}

/// Lines from the titles of the columns to the end of the table.
fn body(page: &str) -> Vec<&str> {
    let from_titles = page.lines().skip_while(|line| !line.trim_start().starts_with("wait "));
    let legend = |line: &str| ["...", "~", "traced", "no room"].iter().any(|l| line.starts_with(l));
    from_titles.take_while(|line| !line.is_empty() && !legend(line)).collect()
}

#[test]
fn every_kind_of_report_has_its_page() {
    assert_golden("sites-100.txt", &text(&table(100), &reports::sites()));
    assert_golden("sites-80.txt", &text(&table(80), &reports::sites()));
    assert_golden("sites-140.txt", &text(&table(140), &reports::sites()));
    assert_golden("stacks-100.txt", &text(&table(100), &reports::stacks()));
    assert_golden("locks-100.txt", &text(&table(100), &reports::locks()));
    assert_golden("readers-writers-100.txt", &text(&with_sides(100), &reports::readers_writers()));
    assert_golden("tasks-100.txt", &text(&table(100), &reports::tasks()));
    assert_golden("blame-100.txt", &text(&table(100), &reports::blame()));
    assert_golden("threads-100.txt", &text(&table(100), &reports::threads()));
    assert_golden("empty-100.txt", &text(&table(100), &reports::empty()));
    assert_golden("doubtful-100.txt", &text(&table(100), &reports::doubtful()));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let all = [
        reports::sites(),
        reports::stacks(),
        reports::locks(),
        reports::tasks(),
        reports::empty(),
        reports::doubtful(),
        reports::hostile_tasks(),
        reports::blame(),
        reports::hostile_blame(),
        reports::threads(),
        reports::hostile_threads(),
    ];
    for (report, width) in all.iter().flat_map(|r| [80, 100, 140].map(|w| (r, w))) {
        for line in text(&table(width), report).lines() {
            assert!(line.width() <= width, "{} of {width}: {line}", line.width());
            assert_eq!(line, line.trim_end(), "spaces at the end");
        }
    }
}

#[test]
fn readers_and_writers_fit_the_terminal_too_and_say_so_where_there_are_none() {
    let all = [reports::sites(), reports::readers_writers(), reports::hostile_tasks()];
    for (report, width) in all.iter().flat_map(|r| [80, 100, 140].map(|w| (r, w))) {
        for line in text(&with_sides(width), report).lines() {
            assert!(line.width() <= width, "{} of {width}: {line}", line.width());
        }
    }
    let none = text(&with_sides(100), &reports::blame());
    assert!(none.contains("no row has a lock that knows them"), "{none}");
}

#[test]
fn times_line_up_on_their_unit() {
    for width in [80, 100, 140] {
        let page = text(&table(width), &reports::sites());
        let lines = body(&page);
        let end_of_title = |title: &str| lines[0].find(title).unwrap() + title.len();
        for title in ["wait", "max"] {
            let end = end_of_title(title);
            for row in &lines[1..] {
                // "2.1 s ", " 44 ms": the space before the unit is always three from the end.
                assert_eq!(&row[end - 3..end - 2], " ", "{title} at {width}:\n{page}");
                assert!(row[..end - 3].ends_with(|c: char| c.is_ascii_digit()), "{row}");
            }
        }
    }
}

#[test]
fn a_wider_terminal_gives_wider_names() {
    let narrow = text(&table(100), &reports::sites());
    let wide = text(&table(140), &reports::sites());
    assert!(!narrow.contains("xfs_buf_lock < xfs_read_agi"), "{narrow}");
    assert!(narrow.contains(" xfs_read_agi "), "the caller outlives its wrappers: {narrow}");
    assert!(wide.contains("xfs_buf_lock < xfs_read_agi"), "{wide}");
}

#[test]
fn what_a_narrow_terminal_does_not_show_is_said() {
    let narrow = text(&table(80), &reports::sites());
    assert!(narrow.contains("no room for "), "{narrow}");
    assert!(!text(&table(140), &reports::sites()).contains("no room for "));
}

#[test]
fn all_percentiles_are_there_at_100_columns() {
    let page = text(&table(100), &reports::sites());
    let titles: Vec<&str> = body(&page)[0].split_whitespace().collect();
    assert!(titles.windows(4).any(|t| t == ["p50", "p95", "p99", "max"]), "{titles:?}");
}

#[test]
fn waits_as_short_as_measuring_are_marked() {
    let mut report = reports::sites();
    let marked = |report: &Report| {
        let page = text(&table(140), report);
        body(&page).iter().filter(|line| line.contains('~')).count()
    };
    assert_eq!(marked(&report), 1, "p50 of 6.5 us, floor of 3.4 us");
    report.trust.floor = Some(Nanos(3_000));
    assert_eq!(marked(&report), 0);
    report.trust.floor = None;
    assert_eq!(marked(&report), 0);
}

#[test]
fn rows_beyond_the_top_are_summed_up() {
    let mut report = reports::sites();
    report.top = 2;
    let page = text(&table(100), &report);
    assert!(page.contains("... 3 more rows, 39.4 ms (1 %): --top 0"), "{page}");
    assert!(!page.contains("try_to_wake_up"));
    report.top = 0;
    assert!(text(&table(100), &report).contains("try_to_wake_up"));
}

#[test]
fn the_column_that_rows_are_sorted_by_is_shown() {
    let mut report = reports::sites();
    let titles = |report: &Report| -> String { body(&text(&table(140), report))[0].into() };
    let has = |titles: &str, title: &str| titles.split_whitespace().any(|t| t == title);
    for (sort, title) in
        [(SortKey::AvgWait, "avg"), (SortKey::WaitMin, "min"), (SortKey::WaitTotal, "total")]
    {
        report.sort = SortKey::Wait;
        assert!(!has(&titles(&report), title), "{title}");
        report.sort = sort;
        assert!(has(&titles(&report), title), "{title}");
    }
    report.sort = SortKey::AvgWait;
    let page = text(&table(140), &report);
    // 1.9 s in 810 waits.
    assert!(body(&page)[1].contains("2.3 ms"), "{page}");
}

#[test]
fn an_empty_report_says_why() {
    let mut report = reports::empty();
    let page = text(&table(100), &report);
    assert!(page.contains("no lock waits recorded\n  No task had to wait"), "{page}");
    report.trust.counts.begins = 1_234;
    report.trust.counts.ends = 1_234;
    assert!(text(&table(100), &report).contains("1,234 contention_begin events were read, but"));
    report.trust.counts.begins = 0;
    report.trust.counts.outside = 88;
    assert!(text(&table(100), &report).contains("88 events of other tasks were left out."));
    report.trust.counts.outside = 0;
    report.trust.records = 0;
    assert!(text(&table(100), &report).contains("The recording has no records"));
}

#[test]
fn a_recording_without_ends_says_that_it_has_no_times() {
    let mut report = reports::sites();
    report.trust.counts.ends = 0;
    assert!(text(&table(100), &report).contains("warning: the recording has no contention_end"));
}

#[test]
fn loss_is_hinted_at_above_one_percent_only() {
    let mut report = reports::sites();
    report.trust.lost = vec![(None, 300)];
    let few = text(&table(200), &report);
    assert!(few.contains("300 records lost (<1 %: 300 on unknown CPUs)"), "{few}");
    assert!(!few.contains("warning"), "{few}");
    report.trust.lost = vec![(None, 3_000)];
    assert!(text(&table(200), &report).contains("warning: 9 % of all records were lost"));
}

#[test]
fn hostile_names_do_not_reach_the_terminal() {
    let all = [
        reports::hostile(),
        reports::hostile_tasks(),
        reports::hostile_cgroups(),
        reports::hostile_locks(),
        reports::hostile_blame(),
        reports::hostile_threads(),
    ];
    for report in all {
        for width in [20, 80, 100, 400] {
            let page = text(&Table { phases: true, ..with_sides(width) }, &report);
            let acting = page.chars().find(|&c| c != '\n' && lockprof::render::escape::acts(c));
            assert_eq!(acting, None, "{page}");
        }
    }
}

#[test]
fn colour_adds_sequences_and_nothing_else() {
    let plain = text(&table(100), &reports::doubtful());
    let coloured = text(&Table { color: true, ..table(100) }, &reports::doubtful());
    let mut stripped = String::new();
    for (at, part) in coloured.split('\x1b').enumerate() {
        let shown = if at == 0 { part } else { part.split_once('m').unwrap().1 };
        stripped.push_str(shown);
    }
    assert_ne!(plain, coloured);
    assert_eq!(stripped, plain);
}
