//! A room may import only rooms listed above it in `src/lib.rs`.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

fn rooms() -> Vec<String> {
    let lib = fs::read_to_string("src/lib.rs").unwrap();
    let names = lib.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    names.map(str::to_owned).collect()
}

fn sources(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            sources(&entry.unwrap().path(), found);
        }
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        found.push(path.to_owned());
    }
}

/// The text without its unit tests, which may use any room.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or(text)
}

/// Rooms named as `crate::ROOM` in `text`, comments left out.
fn imports<'a>(text: &'a str, rooms: &'a [String]) -> Vec<&'a String> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: String = code.collect::<Vec<_>>().join("\n");
    let named = |room: &&String| {
        code.match_indices(&format!("crate::{room}")).any(|(at, found)| {
            !code[at + found.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
        })
    };
    rooms.iter().filter(named).collect()
}

fn wrong_arrows(room: &str, text: &str, rooms: &[String]) -> Vec<String> {
    let place = |name: &str| rooms.iter().position(|r| r == name);
    let own = place(room).unwrap();
    let too_low = |other: &&&String| place(other).is_some_and(|at| at > own);
    let arrows = imports(without_tests(text), rooms);
    arrows.iter().filter(too_low).map(|other| format!("{room} imports {other}")).collect()
}

#[test]
fn every_room_imports_only_rooms_above_it() {
    let rooms = rooms();
    assert!(rooms.len() > 10, "src/lib.rs lists its rooms as `pub mod NAME;`");
    let mut wrong = Vec::new();
    for room in &rooms {
        let mut files = Vec::new();
        sources(&PathBuf::from(format!("src/{room}")), &mut files);
        files.extend(Some(PathBuf::from(format!("src/{room}.rs"))).filter(|file| file.exists()));
        assert!(!files.is_empty(), "room {room} has no files");
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            for arrow in wrong_arrows(room, &text, &rooms) {
                wrong.push(format!("{}: {arrow}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "wrong arrows:\n{}", wrong.join("\n"));
}

#[test]
fn nobody_imports_the_machine_that_computes_as_perf_does() {
    let rooms = rooms();
    for room in
        rooms.iter().filter(|room| !["perf_compat", "commands", "render"].contains(&room.as_str()))
    {
        let mut files = Vec::new();
        sources(&PathBuf::from(format!("src/{room}")), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let found = imports(without_tests(&text), &rooms);
            assert!(!found.iter().any(|r| *r == "perf_compat"), "{}", file.display());
        }
    }
}

#[test]
fn a_wrong_arrow_is_found() {
    let rooms = ["model", "decode", "report"].map(str::to_owned);
    let wrong = |text| wrong_arrows("decode", text, &rooms);
    assert_eq!(wrong("use crate::report::Report;"), ["decode imports report"]);
    assert!(wrong("use crate::model::Nanos; // crate::reporting").is_empty());
    assert!(wrong("//! see crate::report\n#[cfg(test)] use crate::report::Report;").is_empty());
}
