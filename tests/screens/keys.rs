//! What keys do, each test a sentence.

use lockprof::model::{Nanos, When};
use lockprof::report::Row;
use lockprof::tui::{BINDINGS, Effect, Format, Input, Key, Screen as Place};

use crate::shown::Screen;

fn screen() -> Screen {
    Screen::new(100, 30)
}

fn waits(screen: &Screen) -> Vec<u64> {
    screen.state.rows().map(|row| row.stat.wait().0).collect()
}

#[test]
fn enter_opens_the_selected_row_and_escape_goes_back() {
    let mut screen = Screen::new(100, 60);
    screen.press(&[Key::Down, Key::Enter]);
    let text = screen.text();
    assert!(text.contains("how long single waits took"), "{text}");
    assert!(text.contains("where waiters came from"), "{text}");
    screen.press(&[Key::Esc]);
    assert!(screen.text().contains("> "), "{}", screen.text());
}

#[test]
fn the_column_to_the_right_is_sorted_by_and_i_turns_the_order_round() {
    let mut screen = screen();
    screen.type_in(">>");
    let counts: Vec<u64> = screen.state.rows().map(|row| row.stat.contended()).collect();
    assert!(counts.len() > 3 && counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
    screen.type_in("i");
    let counts: Vec<u64> = screen.state.rows().map(|row| row.stat.contended()).collect();
    assert!(counts.is_sorted(), "{counts:?}");
    screen.type_in("i<<");
    assert!(waits(&screen).is_sorted_by(|a, b| a >= b));
}

#[test]
fn a_filter_leaves_the_rows_with_its_text_until_escape() {
    let mut screen = screen();
    let all = screen.state.rows().count();
    screen.type_in("/MMAP");
    screen.press(&[Key::Enter]);
    let left = screen.state.rows().count();
    assert!(0 < left && left < all, "{left} of {all}");
    assert!(screen.text().contains("filter: MMAP"));
    screen.press(&[Key::Esc]);
    assert_eq!(screen.state.rows().count(), all);
}

#[test]
fn letters_typed_into_the_filter_are_no_commands() {
    let mut screen = screen();
    screen.type_in("/q?w");
    assert_eq!(screen.state.filter(), "q?w");
    assert!(screen.wanted.is_empty());
    screen.press(&[Key::Backspace, Key::Ctrl('u')]);
    assert_eq!(screen.state.filter(), "");
}

#[test]
fn the_cursor_stays_on_its_row_when_the_order_changes() {
    let mut screen = screen();
    screen.press(&[Key::Down, Key::Down]);
    let key = |row: Option<&Row>| row.unwrap().key.clone();
    let before = key(screen.state.selected_row());
    screen.type_in(">>>");
    assert_eq!(key(screen.state.selected_row()), before);
}

#[test]
fn the_cursor_stops_at_the_ends() {
    let mut screen = screen();
    screen.press(&[Key::Up, Key::PageUp]);
    assert_eq!(waits(&screen)[0], screen.state.selected_row().unwrap().stat.wait().0);
    screen.press(&[Key::End, Key::Down, Key::PageDown]);
    let last = screen.state.rows().last().unwrap().key.clone();
    assert_eq!(screen.state.selected_row().unwrap().key, last);
}

#[test]
fn numbers_and_clicks_on_tabs_change_the_screen() {
    let mut screen = screen();
    screen.type_in("2");
    assert_eq!(screen.state.screen(), Place::Paths);
    let tabs = screen.text().lines().nth(2).unwrap().to_owned();
    let timeline = u16::try_from(tabs.find("Timeline").unwrap()).unwrap();
    screen.input(Input::Click(timeline, 2));
    assert_eq!(screen.state.screen(), Place::Timeline);
    screen.press(&[Key::Tab]);
    assert_eq!(screen.state.screen(), Place::Hotspots);
}

#[test]
fn a_click_selects_a_row_and_a_second_one_opens_it() {
    let mut screen = screen();
    screen.input(Input::Click(40, 6));
    let second = screen.state.rows().nth(2).unwrap().key.clone();
    assert_eq!(screen.state.selected_row().unwrap().key, second);
    screen.input(Input::Click(40, 6));
    assert!(screen.text().contains("who waited"));
}

#[test]
fn a_marked_range_of_time_narrows_all_screens_until_escape() {
    let mut screen = screen();
    let all: u64 = waits(&screen).iter().sum();
    screen.type_in("3m");
    (0..40).for_each(|_| screen.press(&[Key::Right]));
    screen.type_in("m");
    assert!(screen.state.time().is_some());
    screen.type_in("1");
    let part: u64 = waits(&screen).iter().sum();
    assert!(0 < part && part < all, "{part} of {all}");
    assert!(screen.text().contains("time: .."), "{}", screen.text());
    screen.press(&[Key::Esc]);
    assert_eq!(waits(&screen).iter().sum::<u64>(), all);
}

#[test]
fn a_range_marked_while_it_runs_narrows_all_screens_until_a_window_is_chosen() {
    let mut screen = Screen::live(100, 30);
    let all: u64 = waits(&screen).iter().sum();
    screen.type_in("3");
    // The cursor stands at the end.
    (0..60).for_each(|_| screen.press(&[Key::Left]));
    screen.type_in("m");
    (0..30).for_each(|_| screen.press(&[Key::Right]));
    assert!(screen.text().contains("-^"), "{}", screen.text());
    screen.type_in("m");
    let (from, to) = screen.state.time().unwrap();
    assert_eq!(screen.state.when(), When::Between(from, to));
    let part: u64 = waits(&screen).iter().sum();
    assert!(0 < part && part < all, "{part} of {all}");
    assert!(screen.text().contains("==="), "{}", screen.text());
    screen.type_in("r");
    let charged: u64 = waits(&screen).iter().sum();
    assert!(charged.abs_diff(part) <= part / 1000, "{charged} of {part}");
    screen.type_in("-");
    assert_eq!(screen.state.when(), When::Last(Nanos(60_000_000_000)));
    screen.type_in("+l");
    assert_eq!(waits(&screen).iter().sum::<u64>(), all);
}

#[test]
fn a_range_inside_a_range_is_of_the_same_time() {
    let mut screen = screen();
    screen.type_in("3");
    (0..20).for_each(|_| screen.press(&[Key::Right]));
    screen.type_in("m");
    (0..80).for_each(|_| screen.press(&[Key::Right]));
    screen.type_in("m");
    let (from, to) = screen.state.time().unwrap();
    (0..10).for_each(|_| screen.press(&[Key::Right]));
    screen.type_in("m");
    screen.press(&[Key::Right]);
    screen.type_in("m");
    let inner = screen.state.time().unwrap();
    assert!(from < inner.0 && inner.0 < inner.1 && inner.1 < to, "{inner:?} in {from:?} .. {to:?}");
}

#[test]
fn w_and_e_write_what_is_shown() {
    let mut screen = screen();
    screen.type_in("swe");
    let formats: Vec<Format> = screen
        .wanted
        .iter()
        .map(|effect| match effect {
            Effect::Write(format, question) => {
                assert_eq!(question.query.by, lockprof::model::GroupBy::Site);
                *format
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(formats, [Format::FlameGraph, Format::Json]);
}

#[test]
fn q_and_control_c_quit_and_control_z_suspends() {
    let mut screen = screen();
    screen.press(&[Key::Ctrl('z'), Key::Char('q'), Key::Ctrl('c')]);
    assert_eq!(screen.wanted, [Effect::Suspend, Effect::Quit, Effect::Quit]);
}

#[test]
fn help_names_every_key_of_the_table() {
    let mut screen = Screen::new(100, 60);
    screen.type_in("?");
    let text = screen.text();
    for binding in BINDINGS {
        assert!(text.contains(binding.named), "{}", binding.named);
    }
    screen.press(&[Key::Esc]);
    assert!(!screen.text().contains("this help"));
}

#[test]
fn rows_by_time_add_up_to_their_waiting() {
    let screen = screen();
    for row in screen.state.rows() {
        let history: u64 = row.history.iter().map(|wait| wait.0).sum();
        assert_eq!(history, row.stat.wait().0, "{:?}", row.key);
    }
}

#[test]
fn q_asks_while_a_command_runs() {
    let mut screen = Screen::live(100, 30);
    screen.type_in("q");
    assert!(screen.text().contains("e ends the recording, s stops the command, Esc stays"));
    screen.press(&[Key::Esc]);
    assert!(screen.wanted.is_empty() && !screen.text().contains("Esc stays"));
    screen.type_in("qsqe");
    screen.press(&[Key::Ctrl('c')]);
    assert_eq!(screen.wanted, [Effect::StopCommand, Effect::Quit, Effect::Interrupt]);
}

#[test]
fn the_keyboard_can_be_the_commands_until_control_bracket() {
    let mut screen = Screen::live(100, 30);
    screen.type_in("f");
    assert!(screen.wanted.is_empty(), "only where its output is seen");
    screen.type_in("4fq");
    screen.press(&[Key::Enter, Key::Up, Key::Ctrl('c')]);
    let typed: Vec<&[u8]> = screen
        .wanted
        .iter()
        .map(|effect| match effect {
            Effect::Type(bytes) => bytes.as_slice(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(typed, [&b"q"[..], b"\r", b"\x1b[A", b"\x03"]);
    screen.press(&[Key::Ctrl(']'), Key::Char('1')]);
    assert_eq!(screen.state.screen(), Place::Hotspots);
}

#[test]
fn plus_and_minus_choose_the_window_and_only_while_it_runs() {
    let mut screen = Screen::live(100, 30);
    let window = |screen: &Screen| screen.state.window().map(|window| window.0 / 1_000_000_000);
    assert_eq!(window(&screen), None);
    screen.type_in("---");
    assert_eq!(window(&screen), Some(5));
    screen.type_in("-+");
    assert_eq!(window(&screen), Some(10));
    assert!(screen.text().contains("last 10 s"));
    screen.type_in("++++");
    assert_eq!(window(&screen), None);
    let mut finished = self::screen();
    finished.type_in("-");
    assert_eq!(window(&finished), None);
}

#[test]
fn space_holds_the_picture_still_and_zero_counts_anew() {
    let mut screen = Screen::live(100, 30);
    screen.type_in(" 0");
    assert!(screen.state.is_frozen() && screen.text().contains("FROZEN"));
    assert_eq!(screen.wanted, [Effect::Restart]);
    screen.type_in(" ");
    assert!(!screen.state.is_frozen());
    let mut finished = self::screen();
    finished.type_in(" 0");
    assert!(!finished.state.is_frozen() && finished.wanted.is_empty());
}
