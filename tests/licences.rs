//! Every crate that lockprof is built from has a licence that deny.toml allows.

#![allow(clippy::unwrap_used)]

use std::process::Command;

use serde_json::Value;

fn allowed() -> Vec<String> {
    let deny = std::fs::read_to_string("deny.toml").unwrap();
    let list = deny.split("allow = [").nth(1).and_then(|rest| rest.split(']').next()).unwrap();
    list.split(',').map(|licence| licence.trim().trim_matches('"').to_owned()).collect()
}

/// Whether an SPDX expression (`MIT OR (Apache-2.0 AND BSD-3-Clause)`; `/` is an old `OR`) can be
/// satisfied with allowed licences.
fn satisfied(expression: &str, allowed: &[String]) -> bool {
    let expression = expression.replace('/', " OR ").replace(['(', ')'], " ");
    expression.split(" OR ").any(|choice| {
        choice.split(" AND ").all(|licence| allowed.iter().any(|a| a == licence.trim()))
    })
}

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

#[test]
fn every_crate_has_an_allowed_licence() {
    let (allowed, packages) = (allowed(), packages());
    assert!(packages.len() > 20, "cargo metadata lists the dependencies");
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| !satisfied(package["license"].as_str().unwrap_or(""), &allowed))
        .map(|package| format!("{}: {}", package["name"], package["license"]))
        .collect();
    assert!(refused.is_empty(), "not in deny.toml:\n{}", refused.join("\n"));
}

#[test]
fn an_unknown_licence_is_refused() {
    let allowed = ["MIT".to_owned(), "Apache-2.0".to_owned()];
    assert!(satisfied("GPL-2.0 OR MIT", &allowed));
    assert!(satisfied("MIT/Apache-2.0", &allowed));
    assert!(!satisfied("GPL-2.0", &allowed) && !satisfied("MIT AND GPL-2.0", &allowed));
    assert!(!satisfied("", &allowed));
}
