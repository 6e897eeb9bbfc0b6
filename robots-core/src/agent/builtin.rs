//! The built-in crawlers: the rows of the embedded data file.
//!
//! The file is in TOML, but this module parses only the five kinds of lines that the file contains.
//! So the library needs no TOML crate. A test checks that this module can parse every line of the
//! file. `robotsd` parses registry files of its users with a TOML crate.
//!
//! **Embedded data is parsed on first use.** The built-in registry, the word lists for `User-Agent`
//! headers and the embedded address lists are `LazyLock`s that never change. These are the only
//! statics in the crate.

use super::crawler::Crawler;
use crate::rules::ProductToken;

const FILE: &str = include_str!("crawlers.toml");

const TABLE: &str = "[[crawler]]";

pub(super) fn rows() -> Result<Vec<Crawler>, String> {
    read(FILE)
}

fn read(text: &str) -> Result<Vec<Crawler>, String> {
    let mut rows: Vec<Crawler> = Vec::with_capacity(text.matches(TABLE).count());
    let mut lines = text.lines().zip(1..).filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    while let Some((line, number)) = lines.next() {
        let fault = || format!("line {number} is not a supported kind of line: {line}");
        if line == TABLE {
            rows.push(Crawler::default());
            continue;
        }
        let (key, value) = line.split_once(" = ").ok_or_else(fault)?;
        let values = match value {
            "true" | "false" => Some(vec![value.to_owned()]),
            "[" => {
                let items = lines.by_ref().map(|(item, _)| item.trim()).take_while(|item| *item != "]");
                strings(&items.collect::<String>())
            }
            _ => strings(value.strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or(value)),
        };
        rows.last_mut().zip(values).and_then(|(row, values)| set(row, key, values)).ok_or_else(fault)?;
    }
    for row in rows.iter_mut().filter(|row| row.header_names.is_empty() && !row.is_control) {
        row.header_names = vec![row.name.clone()];
    }
    Ok(rows)
}

fn strings(mut text: &str) -> Option<Vec<String>> {
    let mut strings = Vec::new();
    while !text.is_empty() {
        let mut string = String::new();
        let mut chars = text.strip_prefix('"')?.chars();
        loop {
            match chars.next()? {
                '"' => break,
                '\\' => string.push(chars.next().filter(|escaped| matches!(escaped, '"' | '\\'))?),
                other => string.push(other),
            }
        }
        // Frees the spare capacity from `String::push`, because the registry keeps the string until
        // the process ends.
        string.shrink_to_fit();
        strings.push(string);
        text = chars.as_str().trim_start_matches([',', ' ']);
    }
    strings.shrink_to_fit();
    Some(strings)
}

/// Sets a field of a row. `None` if the key is unknown or the value is invalid.
fn set(row: &mut Crawler, key: &str, mut values: Vec<String>) -> Option<()> {
    match key {
        "header" => row.header_names = values,
        "tokens" => row.tokens = values.iter().map(ProductToken::new).collect(),
        "supplies" => row.supplies = values.iter().map(|word| word.parse().ok()).collect::<Option<_>>()?,
        "requires" => row.requires = values,
        "ranges" => row.ranges = values,
        "rdns" => row.reverse_dns = values,
        "referers" => row.referers = values,
        "examples" => row.examples = values,
        _ => return set_one(row, key, values.pop()?),
    }
    Some(())
}

fn set_one(row: &mut Crawler, key: &str, value: String) -> Option<()> {
    match key {
        "name" => row.name = value,
        "operator" => row.operator = value,
        "category" => row.category = value.parse().ok()?,
        "robots" => row.obeys_robots = value.parse().ok()?,
        "star" => row.obeys_star = value.parse().ok()?,
        "crawl_delay" => row.obeys_crawl_delay = value.parse().ok()?,
        "index" => row.is_index_engine = value.parse().ok()?,
        "control" => row.is_control = value.parse().ok()?,
        "weak" => row.is_reverse_dns_weak = value.parse().ok()?,
        "framework" => row.is_framework = value.parse().ok()?,
        "signature" => row.signature = Some(value),
        "source" => row.source = Some(value),
        "checked" => row.checked_on = Some(value),
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_data_file_is_read() {
        let with = |start: &str| FILE.lines().filter(|line| line.starts_with(start)).count();
        assert_eq!([with("name = "), with("category = ")], [with("[[crawler]]"); 2]);
        assert_eq!(rows().unwrap().len(), with("[[crawler]]"));
    }

    #[test]
    fn escaped_strings_arrays_and_booleans_are_parsed() {
        let text = "# a file\n\n[[crawler]]\nname = \"a \\\"b\\\\\"\nheader = [\n    \"x\",\n    \"y\",\n]\ntokens = [\"p\", \"q\"]\nindex = true\n\
                    [[crawler]]\nname = \"c\"\n[[crawler]]\nname = \"d\"\ncontrol = true\n";
        let [row, plain, control] = &read(text).unwrap()[..] else { panic!("three rows") };
        assert_eq!((&*row.name, row.is_index_engine, row.is_control), ("a \"b\\", true, false));
        assert_eq!(row.header_names, ["x", "y"]);
        assert_eq!(row.tokens, ["p", "q"].map(ProductToken::new));
        assert_eq!((&plain.header_names[..], control.header_names.len()), (&["c".to_owned()][..], 0));
    }

    #[test]
    fn invalid_lines_keys_and_values_are_refused() {
        for text in [
            "name = \"a\"",
            "[crawler]",
            "[[crawler]]\nname = 1",
            "[[crawler]]\nname = \"a",
            "[[crawler]]\njust words",
            "[[crawler]]\nname = \"a\"\ncategory = \"seo\"\ncolour = \"red\"",
            "[[crawler]]\nname = \"a\"\ncategory = \"ceo\"",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
