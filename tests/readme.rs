//! README.md holds what it says: its commands parse, its files exist, no subcommand is missing.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use clap::{CommandFactory, Parser};
use lockprof::cli::args::Arguments;

fn readme() -> String {
    fs::read_to_string("README.md").unwrap()
}

/// Every `code` between single backticks outside code blocks, and every line of the blocks (indented
/// by four). Code that is broken over two lines is one.
fn quoted(text: &str) -> Vec<String> {
    let (blocks, prose): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("    "));
    let prose = prose.join("\n");
    let inline = prose.split('`').skip(1).step_by(2);
    let in_one_line = |code: &str| code.split_whitespace().collect::<Vec<_>>().join(" ");
    inline.map(in_one_line).chain(blocks.into_iter().map(|line| line.trim().to_owned())).collect()
}

/// The words behind `lockprof` of a quoted command: without `sudo` or a path before it, and without
/// the comment, the pipe or the second column behind it.
fn command(code: &str) -> Option<Vec<&str>> {
    let code = code.strip_prefix("$ ").unwrap_or(code);
    let code = code.strip_prefix("sudo ").unwrap_or(code);
    let code = code.strip_prefix("target/release/").unwrap_or(code);
    let words = code.strip_prefix("lockprof ").or(code.strip_prefix("cargo run --release -- "))?;
    let end = ["  ", " | ", " # ", " > "].iter().filter_map(|mark| words.find(mark)).min();
    let words = &words[..end.unwrap_or(words.len())];
    // The first line of a report is the recorded command, cut short.
    (!words.ends_with("..")).then(|| words.split_whitespace().collect())
}

#[test]
fn every_command_line_in_the_readme_parses() {
    let text = readme();
    let quoted = quoted(&text);
    let commands: Vec<Vec<&str>> = quoted.iter().filter_map(|code| command(code)).collect();
    assert!(commands.len() > 20, "{commands:?}");
    let refused = |words: &Vec<&str>| {
        let words = std::iter::once("lockprof").chain(words.iter().copied());
        Arguments::try_parse_from(words).err().map(|error| error.to_string())
    };
    let refused: Vec<String> = commands.iter().filter_map(refused).collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn every_subcommand_is_in_the_readme() {
    let text = readme();
    let quoted = quoted(&text);
    let named: BTreeSet<&str> =
        quoted.iter().filter_map(|code| command(code)?.first().copied()).collect();
    for command in Arguments::command().get_subcommands().filter(|command| !command.is_hide_set()) {
        assert!(named.contains(command.get_name()), "README.md lacks lockprof {command}");
    }
}

/// Targets of links, and code that begins with a directory of the project.
fn files(text: &str) -> BTreeSet<String> {
    let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let links = links.filter(|target| !target.contains("://") && !target.starts_with('#'));
    let directories = ["benches/", "docs/", "examples/", "schema/", "src/", "tests/", ".ci/"];
    let is_ours = |code: &String| directories.iter().any(|directory| code.starts_with(directory));
    let code = quoted(text).into_iter().filter(is_ours);
    let words = code.filter_map(|code| code.split_whitespace().next().map(str::to_owned));
    links.map(str::to_owned).chain(words).collect()
}

#[test]
fn every_file_that_the_documents_name_exists() {
    for document in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        let files = files(&fs::read_to_string(document).unwrap());
        let plain = files.iter().filter(|file| !file.contains('*'));
        let missing: Vec<&String> = plain.filter(|file| !Path::new(file).exists()).collect();
        assert!(missing.is_empty(), "{document} names {missing:?}");
    }
    assert!(files(&readme()).len() > 8, "{:?}", files(&readme()));
}

#[test]
fn ci_runs_the_test_command_of_the_readme() {
    const TESTS: &str = "cargo test --workspace";
    assert!(quoted(&readme()).iter().any(|code| code.starts_with(TESTS)));
    assert!(fs::read_to_string(".ci/run").unwrap().lines().any(|line| line.starts_with(TESTS)));
}
