//! The flame graph: well-formed whatever the names, the same bytes every time, human units.

mod reports;

use lockprof::render::escape::acts;
use lockprof::render::{FlameGraph, Weight};
use lockprof::report::Report;
use reports::{assert_golden, bytes, text};

const WEIGHTS: [Weight; 4] = [Weight::Wait, Weight::Cpu, Weight::Count, Weight::Blame];

/// Titles of all frames, entities resolved. Panics where tags do not match.
fn titles(svg: &str) -> Vec<String> {
    let (mut open, mut titles, mut rest) = (Vec::new(), Vec::new(), svg);
    while let Some(start) = rest.find('<') {
        let text = &rest[..start];
        if open.last() == Some(&"title") {
            titles.push(resolve(text));
        }
        rest = &rest[start..];
        if let Some(end) = rest.strip_prefix("<![CDATA[").and_then(|r| r.find("]]>")) {
            rest = &rest[end + "<![CDATA[".len() + 3..];
            continue;
        }
        let end = rest.find('>').expect("every tag is closed");
        let tag = &rest[1..end];
        rest = &rest[end + 1..];
        match tag.as_bytes().first() {
            Some(b'?' | b'!') => {}
            Some(b'/') => assert_eq!(open.pop(), Some(&tag[1..]), "tags match"),
            _ if tag.ends_with('/') => {}
            _ => open.push(tag.split_whitespace().next().unwrap_or("")),
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    titles
}

fn resolve(text: &str) -> String {
    let quotes = text.replace("&quot;", "\"").replace("&apos;", "'");
    quotes.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

fn svg(weight: Weight, report: &Report) -> String {
    text(&FlameGraph { weight }, report)
}

#[test]
fn readers_and_writers_of_a_lock_stand_side_by_side_with_human_units() {
    let titles = titles(&svg(Weight::Wait, &reports::stacks()));
    for expected in [
        "all (3 s, 100%)",
        "rwsem:R (864 ms, 28.39%)",
        "rwsem:W (2.1 s, 70.32%)",
        "mprotect (1.9 s, 60.79%)",
        "down_write_killable (1.9 s, 60.79%)",
        "xfs_buf_lock (24 ms, 0.79%)",
    ] {
        assert!(titles.iter().any(|title| title == expected), "{expected} in {titles:#?}");
    }
    assert!(titles.iter().all(|title| !title.contains(" ns, ")), "{titles:#?}");
}

#[test]
fn readers_writers_and_user_code_have_hues_of_their_own() {
    let svg = svg(Weight::Wait, &reports::stacks());
    let fill = |name: &str| -> Vec<u8> {
        let frame = &svg[svg.find(&format!("<title>{name} (")).expect(name)..];
        let rgb = frame.split_once("rgb(").unwrap().1.split_once(')').unwrap().0;
        rgb.split(',').map(|channel| channel.parse().unwrap()).collect()
    };
    let (read, write, user) = (fill("rwsem:R"), fill("rwsem:W"), fill("malloc"));
    assert!(read[2] > read[0] && write[0] > write[2], "{read:?} {write:?}");
    assert!(user[0] == user[1] && user[1] == user[2], "{user:?}");
}

#[test]
fn counts_and_cpu_time_have_their_own_words() {
    let counts = titles(&svg(Weight::Count, &reports::stacks()));
    for expected in ["all (2,926 waits, 100%)", "rwsem:R (344 waits, 11.76%)"] {
        assert!(counts.contains(&expected.to_string()), "{expected} in {counts:#?}");
    }
    let cpu = titles(&svg(Weight::Cpu, &reports::stacks()));
    assert!(cpu.contains(&"not in lock code (3.2 s, 92.94%)".to_string()), "{cpu:#?}");
}

#[test]
fn the_same_report_gives_the_same_picture() {
    for weight in WEIGHTS {
        for report in [reports::stacks(), reports::blame()] {
            let draw = || bytes(&FlameGraph { weight }, &report);
            assert!(draw() == draw());
        }
    }
}

/// Title and top of each frame: frames higher up the picture have the smaller number.
fn tops(svg: &str) -> Vec<(String, f64)> {
    let frames = svg.split("<title>").skip(1).filter_map(|frame| {
        let (title, rest) = frame.split_once("</title>")?;
        let top = rest.split_once(" y=\"")?.1.split_once('"')?.0;
        Some((resolve(title), top.parse().ok()?))
    });
    frames.collect()
}

#[test]
fn who_let_them_wait_stands_upside_down_on_who_waited() {
    let tops = tops(&svg(Weight::Blame, &reports::blame()));
    let top = |name: &str| -> f64 {
        let found = tops.iter().find(|(title, _)| title.starts_with(&format!("{name} (")));
        found.unwrap_or_else(|| panic!("{name} in {tops:#?}")).1
    };
    // From the bottom up.
    let order = ["rwsem:W", "mmap_lock", "grow_heap", "-- released by --", "up_write"];
    assert!(order.windows(2).all(|pair| top(pair[0]) > top(pair[1])), "{tops:#?}");
    let of_name = |name: &str| -> Vec<f64> {
        tops.iter().filter(|(title, _)| title.starts_with(name)).map(|(_, top)| *top).collect()
    };
    let release = top("up_write");
    let (waiters, releasers): (Vec<f64>, Vec<f64>) =
        of_name("do_syscall_64 (").into_iter().partition(|top| *top > release);
    assert!(!waiters.is_empty() && !releasers.is_empty(), "roots at both ends: {tops:#?}");
    for unattributed in ["(woken, not running yet) (21 ms", "(no waking seen) (90 ms"] {
        assert_eq!(of_name(unattributed).len(), 1, "{unattributed} in {tops:#?}");
    }
}

#[test]
fn hostile_names_of_releasers_stay_text() {
    let svg = svg(Weight::Blame, &reports::hostile_blame());
    titles(&svg);
    assert_eq!(svg.chars().find(|&c| !matches!(c, '\n' | '\t') && acts(c)), None);
    assert_eq!(svg.matches("<script").count(), 1, "only inferno's own script");
}

#[test]
fn hostile_names_stay_text() {
    let svg = svg(Weight::Wait, &reports::hostile());
    let titles = titles(&svg);
    assert_eq!(svg.chars().find(|&c| !matches!(c, '\n' | '\t') && acts(c)), None);
    assert_eq!(svg.matches("<script").count(), 1, "only inferno's own script");
    assert!(titles.iter().any(|t| t.starts_with("</title><script>alert(1)</script> (")));
    assert!(titles.iter().any(|t| t.starts_with("(5 ns, 1%) ]]>--><!-- &amp: 7 8 (")));
}

#[test]
fn an_empty_report_is_a_picture_that_says_so() {
    let empty = svg(Weight::Wait, &reports::empty());
    assert!(empty.contains(">no lock waits recorded</text>"));
    assert_golden("empty.svg", &empty);
    assert!(svg(Weight::Cpu, &reports::sites()).contains(">no CPU samples recorded</text>"));
    let mut hostile = reports::hostile();
    hostile.rows.clear();
    titles(&svg(Weight::Wait, &hostile));
}

#[test]
fn a_report_without_stacks_shows_its_callers() {
    let titles = titles(&svg(Weight::Wait, &reports::locks()));
    assert!(titles.iter().any(|title| title.starts_with("mmap_lock (")), "{titles:?}");
}
