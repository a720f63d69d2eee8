//! Paths with wildcards: `*`, `?`, `[a-z]`, `[!a-z]` within a name, `**` for any depth of folders.
//!
//! A wildcard does not match the dot of a hidden name.

use std::io;
use std::path::{Path, PathBuf};

/// Whether a path has wildcards.
pub(super) fn has_wildcards(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// All paths that match, in no order.
pub(super) fn expand(pattern: &str) -> io::Result<Vec<PathBuf>> {
    let absolute = pattern.starts_with('/');
    let segments: Vec<&str> = pattern.split('/').filter(|segment| !segment.is_empty()).collect();
    let mut found = Vec::new();
    descend(PathBuf::from(if absolute { "/" } else { "" }), &segments, &mut found)?;
    Ok(found)
}

fn descend(base: PathBuf, segments: &[&str], found: &mut Vec<PathBuf>) -> io::Result<()> {
    let Some((segment, rest)) = segments.split_first() else {
        found.push(base);
        return Ok(());
    };
    if *segment == "**" {
        descend(base.clone(), rest, found)?;
        for (name, path) in entries(&base)? {
            if !name.starts_with('.') && path.is_dir() {
                descend(path, segments, found)?;
            }
        }
        return Ok(());
    }
    if !has_wildcards(segment) {
        let path = base.join(segment);
        return if path.exists() { descend(path, rest, found) } else { Ok(()) };
    }
    let pattern: Vec<char> = segment.chars().collect();
    for (name, path) in entries(&base)? {
        let hidden = name.starts_with('.') && !segment.starts_with('.');
        let name: Vec<char> = name.chars().collect();
        if !hidden && matches(&pattern, &name) && (rest.is_empty() || path.is_dir()) {
            descend(path, rest, found)?;
        }
    }
    Ok(())
}

/// Names and paths in a folder; names that are no UTF-8 match nothing.
fn entries(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let read = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    if !read.is_dir() {
        return Ok(Vec::new());
    }
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(read)? {
        if let Ok(name) = entry?.file_name().into_string() {
            let path = folder.join(&name);
            entries.push((name, path));
        }
    }
    Ok(entries)
}

fn matches(pattern: &[char], name: &[char]) -> bool {
    let Some((first, rest)) = pattern.split_first() else { return name.is_empty() };
    if *first == '*' {
        return (0..=name.len()).any(|taken| matches(rest, name.get(taken..).unwrap_or_default()));
    }
    let Some((character, name)) = name.split_first() else { return false };
    if *first == '['
        && let Some((holds, rest)) = class(rest, *character)
    {
        return holds && matches(rest, name);
    }
    (*first == '?' || first == character) && matches(rest, name)
}

/// Whether a character is in the class that begins here, and what follows it; nothing if it has no end.
fn class(pattern: &[char], character: char) -> Option<(bool, &[char])> {
    let negated = matches!(pattern.first(), Some('!' | '^'));
    let members = pattern.get(usize::from(negated)..)?;
    // A bracket that comes first is a member.
    let end = 1 + members.get(1..)?.iter().position(|c| *c == ']')?;
    let (members, rest) = members.split_at_checked(end)?;
    let mut holds = false;
    let mut left = members;
    while let Some((from, tail)) = left.split_first() {
        if let Some(('-', [to, tail @ ..])) = tail.split_first().map(|(c, tail)| (*c, tail)) {
            holds |= (*from..=*to).contains(&character);
            left = tail;
        } else {
            holds |= *from == character;
            left = tail;
        }
    }
    Some((holds != negated, rest.get(1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, name: &str, expected: bool) {
        let chars = |text: &str| text.chars().collect::<Vec<char>>();
        assert_eq!(matches(&chars(pattern), &chars(name)), expected, "{pattern} on {name}");
    }

    #[test]
    fn a_pattern_matches_whole_names() {
        check("*.csv", "a.csv", true);
        check("*.csv", "a.csv.gz", false);
        check("part-?", "part-1", true);
        check("part-?", "part-12", false);
        check("a*b*c", "a-bb-c", true);
        check("a*b*c", "acb", false);
        check("[a-c]x", "bx", true);
        check("[!a-c]x", "bx", false);
        check("[]x]", "]", true);
        check("[", "[", true);
    }
}
