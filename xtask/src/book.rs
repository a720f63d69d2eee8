//! The guide: every chapter is in its summary and among the doctests, and every relative link leads
//! somewhere.
//!
//! Left out on purpose: whether examples hold (the doctests say that), and links to the web.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::tree;

/// The guide's table of contents, which mdBook reads.
const SUMMARY: &str = "SUMMARY.md";

/// One finding a breach.
///
/// # Errors
///
/// If a file cannot be read.
pub(crate) fn check() -> Result<Vec<String>> {
    let root = tree::root();
    let folder = root.join("docs/book/src");
    let doctests = root.join("api/src/book.rs");
    let doctests = std::fs::read_to_string(&doctests).context("api/src/book.rs")?;
    let pages = tree::files(&folder, &["md"])?;
    let pages = pages.into_iter().map(|(path, text)| (name_of(&path, &folder), text)).collect();
    Ok(findings(&pages, &doctests, &|path| folder.join(path).exists()))
}

fn name_of(path: &Path, folder: &Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).display().to_string()
}

/// Pages by name; `exists` is asked for paths that are no page, from the guide's folder on.
fn findings(
    pages: &BTreeMap<String, String>,
    doctests: &str,
    exists: &dyn Fn(&Path) -> bool,
) -> Vec<String> {
    let mut findings = Vec::new();
    let summary: Vec<&str> = pages.get(SUMMARY).map(|text| links(text)).unwrap_or_default();
    for (page, text) in pages {
        if page != SUMMARY && !summary.contains(&page.as_str()) {
            findings.push(format!("docs/book: `{page}` is not in {SUMMARY}"));
        }
        if page != SUMMARY && !doctests.contains(&format!("\"{page}\"")) {
            findings.push(format!("docs/book: `{page}` is not in api/src/book.rs"));
        }
        let dead =
            links(text).into_iter().filter(|link| !leads_somewhere(link, page, pages, exists));
        findings.extend(
            dead.map(|link| format!("docs/book: `{page}` links to `{link}`, which is not there")),
        );
        for (number, _) in plain_fences(text) {
            findings
                .push(format!("docs/book: `{page}`, line {number}: a block without a language"));
        }
    }
    findings
}

fn leads_somewhere(
    link: &str,
    page: &str,
    pages: &BTreeMap<String, String>,
    exists: &dyn Fn(&Path) -> bool,
) -> bool {
    if link.contains("://") {
        return true;
    }
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, at)| (file, Some(at)));
    let file = if file.is_empty() { page } else { file };
    match (pages.get(file), anchor) {
        (Some(text), Some(anchor)) => headings(text).any(|heading| slug(heading) == anchor),
        (Some(_), None) => true,
        (None, _) => exists(&PathBuf::from(file)),
    }
}

/// Lines outside of fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let is_fence = line.starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    })
}

/// Targets of `[text](target)`, outside of fenced blocks.
fn links(text: &str) -> Vec<&str> {
    prose(text)
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
        .collect()
}

fn headings(text: &str) -> impl Iterator<Item = &str> {
    prose(text).filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim())
}

/// A heading's anchor, as mdBook makes it.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Opening fences that name no language: rustdoc would take the block for Rust.
fn plain_fences(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let fences = (1..).zip(text.lines()).filter(|(_, line)| line.starts_with("```"));
    fences.step_by(2).filter(|(_, line)| *line == "```")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_page(text: &str, expected: &[&str]) {
        let pages = BTreeMap::from([
            (SUMMARY.to_owned(), "- [One](one.md)\n- [Two](two.md)\n".to_owned()),
            ("one.md".to_owned(), text.to_owned()),
            ("two.md".to_owned(), "# Two\n\n## A part, with a name\n".to_owned()),
        ]);
        let doctests = "One: \"one.md\"; Two: \"two.md\";";
        assert_eq!(findings(&pages, doctests, &|path| path == Path::new("../there.md")), expected);
    }

    #[test]
    fn the_guide_is_whole() {
        assert_eq!(super::check().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn links_to_pages_headings_files_and_the_web_are_fine() {
        check_page("# One\n[a](two.md) [b](two.md#a-part-with-a-name) [c](#one)\n", &[]);
        check_page("[a](../there.md) [b](https://example.org/no.md)\n", &[]);
        check_page("```text\n[a](nowhere.md)\n```\n", &[]);
    }

    #[test]
    fn a_dead_link_is_found() {
        for link in ["three.md", "two.md#a-part", "#two", "../not-there.md"] {
            let expected = format!("docs/book: `one.md` links to `{link}`, which is not there");
            check_page(&format!("# One\n[a]({link})\n"), &[expected.as_str()]);
        }
    }

    #[test]
    fn a_block_without_a_language_is_found() {
        check_page(
            "```text\n```\n\n```\n```\n",
            &["docs/book: `one.md`, line 4: a block without a language"],
        );
    }

    #[test]
    fn a_chapter_that_nobody_names_is_found() {
        let pages = BTreeMap::from([
            (SUMMARY.to_owned(), "- [One](one.md)\n".to_owned()),
            ("two.md".to_owned(), String::new()),
        ]);
        assert_eq!(
            findings(&pages, "", &|_| false),
            [
                "docs/book: `SUMMARY.md` links to `one.md`, which is not there",
                "docs/book: `two.md` is not in SUMMARY.md",
                "docs/book: `two.md` is not in api/src/book.rs",
            ]
        );
    }
}
