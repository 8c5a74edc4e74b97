//! Every screen at both sizes.

use lockprof::model::Nanos;
use lockprof::tui::Key;

use crate::golden::assert_golden;
use crate::shown::{Recording, Screen};

fn pictures_of(name: &str, keys: &[Key]) {
    pictures(("6.18", "convoy"), name, keys);
}

fn pictures(recording: Recording, name: &str, keys: &[Key]) {
    for (columns, lines) in [(80, 24), (120, 40)] {
        let mut screen = Screen::of(recording, columns, lines);
        screen.press(keys);
        let text = screen.text();
        assert!(text.lines().count() == usize::from(lines));
        assert_golden(&format!("screens/{name}-{columns}x{lines}.txt"), &text);
    }
}

#[test]
fn hotspots_by_lock() {
    pictures_of("locks", &[]);
}

#[test]
fn hotspots_by_site() {
    pictures_of("sites", &[Key::Char('s')]);
}

#[test]
fn hotspots_by_task() {
    pictures_of("tasks", &[Key::Char('t')]);
}

#[test]
fn hotspots_by_releaser() {
    pictures_of("releasers", &[Key::Char('r')]);
}

#[test]
fn the_detail_of_a_lock() {
    pictures_of("lock", &[Key::Enter]);
}

#[test]
fn the_detail_of_a_site() {
    pictures_of("site", &[Key::Char('s'), Key::Enter]);
}

#[test]
fn the_detail_of_a_releaser() {
    pictures_of("releaser", &[Key::Char('r'), Key::Enter]);
}

#[test]
fn paths() {
    pictures(("6.12", "cpu-mmap"), "paths", &[Key::Char('2')]);
    pictures_of("no-paths", &[Key::Char('2')]);
}

#[test]
fn the_timeline() {
    pictures_of("timeline", &[Key::Char('3'), Key::Right, Key::Right]);
}

#[test]
fn help() {
    pictures_of("help", &[Key::Char('?')]);
}

#[test]
fn a_terminal_that_is_too_small_says_so() {
    assert!(Screen::new(79, 24).text().starts_with("79x24: too small,\n80x24 is needed\n"));
    assert!(Screen::new(80, 23).text().starts_with("80x23: too small"));
}

#[test]
fn the_first_line_says_how_the_command_ended() {
    let mut screen = Screen::new(100, 30);
    for (status, words) in [(0, "exited 0"), (3, "exited 3"), (143, "exited 143 (SIGTERM)")] {
        screen.show(|snapshot| snapshot.report.header.exit_status = Some(status));
        assert!(screen.text().lines().next().unwrap().contains(words), "{}", screen.text());
    }
}

#[test]
fn where_there_is_no_room_what_matters_stays() {
    let mut screen = Screen::live(80, 24);
    screen.show(|snapshot| {
        let total = &mut snapshot.report.total;
        (total.waiting, total.oldest) = (120, Nanos(2_300_000_000));
        snapshot.span.to.0 += 500_000_000;
        snapshot.report.trust.records += 617_000;
        snapshot.report.trust.lost = vec![(None, 12_345)];
    });
    let second = screen.text().lines().nth(1).unwrap().to_owned();
    let wanted = " waited 743 ms  now 120 waiting  1,234,000 events/s  lost 12,345  cost 2 %";
    assert_eq!(second, wanted);
}

#[test]
fn while_it_runs() {
    for (columns, lines) in [(80, 24), (120, 40)] {
        let mut screen = Screen::live(columns, lines);
        for (key, by) in [('l', ""), ('s', "-sites"), ('t', "-tasks"), ('r', "-releasers")] {
            screen.press(&[Key::Char(key)]);
            assert_golden(&format!("screens/live{by}-{columns}x{lines}.txt"), &screen.text());
        }
        screen.press(&[Key::Char('4')]);
        assert_golden(&format!("screens/output-{columns}x{lines}.txt"), &screen.text());
        screen.press(&[Key::Char('q')]);
        assert!(screen.text().lines().last().unwrap().contains("the command runs"));
    }
}
