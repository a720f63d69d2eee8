//! The files of the workspace, read for the checks.
//!
//! Left out on purpose: build output, downloaded data and hidden folders.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The folders of crates, which are also how tables name a crate.
pub(crate) const CRATES: &[&str] = &[
    "api", "benches", "derive", "element", "examples", "graph", "runtime", "shuffle", "sort",
    "state", "xtask",
];

const SKIPPED: &[&str] = &["target", "data", "peers", "node_modules", "__pycache__"];

/// The workspace's folder: that of the run, for several clones may share one folder of builds, and with it
/// a program that another of them has built.
pub(crate) fn root() -> PathBuf {
    let built = || env!("CARGO_MANIFEST_DIR").into();
    let own = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(built));
    own.parent().unwrap_or(&own).to_path_buf()
}

/// All files below `folder` with one of `extensions`, as path and text, by path.
///
/// # Errors
///
/// A file that cannot be read, or is no UTF-8.
pub(crate) fn files(folder: &Path, extensions: &[&str]) -> Result<Vec<(PathBuf, String)>> {
    let mut paths = Vec::new();
    collect(folder, extensions, &mut paths)?;
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            Ok((path, text))
        })
        .collect()
}

/// A path as findings print it.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn collect(folder: &Path, extensions: &[&str], into: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            if !SKIPPED.contains(&&*name) {
                collect(&path, extensions, into)?;
            }
        } else if extensions.iter().any(|wanted| path.extension().is_some_and(|e| e == *wanted)) {
            into.push(path);
        }
    }
    Ok(())
}
