//! Which crate may import which: the table is the law, `cargo metadata` is held against it.
//!
//! Only what a library needs to run counts: tests and benches may look anywhere below them.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::tree;

/// Package, and the packages of ours that it may import. The four peers import the floor alone.
const ALLOWED: &[(&str, &[&str])] = &[
    ("slackwater-element", &[]),
    ("slackwater-derive", &[]),
    ("slackwater-sort", &["slackwater-element"]),
    ("slackwater-state", &["slackwater-element"]),
    ("slackwater-shuffle", &["slackwater-element"]),
    ("slackwater-graph", &["slackwater-element"]),
    (
        "slackwater-runtime",
        &[
            "slackwater-element",
            "slackwater-graph",
            "slackwater-shuffle",
            "slackwater-sort",
            "slackwater-state",
        ],
    ),
    (
        // The seams of shuffle and state are shown to users; derive comes with the traits.
        "slackwater",
        &[
            "slackwater-derive",
            "slackwater-element",
            "slackwater-graph",
            "slackwater-runtime",
            "slackwater-shuffle",
            "slackwater-state",
        ],
    ),
    ("slackwater-examples", &["slackwater"]),
    (
        "slackwater-benches",
        &[
            "slackwater",
            "slackwater-element",
            "slackwater-graph",
            "slackwater-runtime",
            "slackwater-shuffle",
            "slackwater-sort",
            "slackwater-state",
        ],
    ),
    ("xtask", &[]),
];

/// One finding for each arrow that the table does not have, and each package it does not know.
///
/// # Errors
///
/// If `cargo metadata` cannot be run or read.
pub(crate) fn check() -> Result<Vec<String>> {
    Ok(findings(&arrows()?))
}

/// Every package of the workspace with what it imports of the workspace.
fn arrows() -> Result<Vec<(String, Vec<String>)>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(tree::root())
        .output()
        .context("running cargo metadata")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let name = |package: &Value| package["name"].as_str().unwrap_or_default().to_owned();
    let names: Vec<String> = packages.iter().map(name).collect();
    let imports = |package: &Value| -> Vec<String> {
        let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
        let of_ours = dependencies.iter().filter(|d| d["kind"].is_null()).map(name);
        of_ours.filter(|dependency| names.contains(dependency)).collect()
    };
    Ok(packages.iter().map(|package| (name(package), imports(package))).collect())
}

fn findings(arrows: &[(String, Vec<String>)]) -> Vec<String> {
    let mut findings = Vec::new();
    for (package, imports) in arrows {
        match ALLOWED.iter().find(|(name, _)| name == package) {
            None => findings.push(format!("package `{package}` has no row in xtask/src/layers.rs")),
            Some((_, allowed)) => findings.extend(
                imports
                    .iter()
                    .filter(|import| !allowed.contains(&import.as_str()))
                    .map(|import| format!("`{package}` must not import `{import}`")),
            ),
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_arrow_between_crates_points_down() {
        assert_eq!(check().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn an_arrow_between_peers_is_found() {
        let arrows = [
            ("slackwater-sort".to_owned(), vec!["slackwater-state".to_owned()]),
            ("slackwater-new".to_owned(), vec![]),
        ];
        assert_eq!(
            findings(&arrows),
            [
                "`slackwater-sort` must not import `slackwater-state`",
                "package `slackwater-new` has no row in xtask/src/layers.rs",
            ]
        );
    }
}
