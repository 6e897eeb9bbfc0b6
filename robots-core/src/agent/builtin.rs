//! The built-in crawlers: the rows of the data file that is compiled in.
//!
//! The file is TOML, and this reads the five forms of a line it uses. A TOML crate would be a dependency of every
//! application, for one file that a test reads; files of operators are read by `robotsd`, with such a crate.
//!
//! **Compiled-in data is read on first use.** The registry's built-in form, the words that headers are read by and the
//! embedded lists of addresses are `LazyLock`s: constants that never change. There is no other static in the crate.

use super::crawler::{Crawler, Obeys};
use crate::rules::ProductToken;

/// The data file.
const FILE: &str = include_str!("crawlers.toml");

/// The value of a key.
#[derive(Debug, PartialEq, Eq)]
enum FieldValue {
    Text(String),
    List(Vec<String>),
    Flag(bool),
}

/// The fields of one `[[crawler]]`.
type Fields = Vec<(&'static str, FieldValue)>;

/// The rows of the data file, or the line that is not of a form this reads.
pub(super) fn rows() -> Result<Vec<Crawler>, String> {
    tables(FILE)?.into_iter().map(row).collect()
}

fn tables(text: &'static str) -> Result<Vec<Fields>, String> {
    let mut tables: Vec<Fields> = Vec::new();
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        let fault = || format!("line {number} is not of a form that is read here: {line}");
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line == "[[crawler]]" {
            tables.push(Vec::new());
            continue;
        }
        let (key, value) = line.split_once(" = ").ok_or_else(fault)?;
        let value = match value {
            "true" | "false" => FieldValue::Flag(value == "true"),
            // One item a line, up to the bracket.
            "[" => {
                let items: String =
                    lines.by_ref().map(|(item, _)| item.trim()).take_while(|item| *item != "]").collect();
                FieldValue::List(strings(&items).ok_or_else(fault)?)
            }
            _ => match value.strip_prefix('[').and_then(|list| list.strip_suffix(']')) {
                Some(list) => FieldValue::List(strings(list).ok_or_else(fault)?),
                None => FieldValue::Text(strings(value).and_then(|mut texts| texts.pop()).ok_or_else(fault)?),
            },
        };
        tables.last_mut().ok_or_else(fault)?.push((key, value));
    }
    Ok(tables)
}

/// Strings in double quotes, separated by commas.
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
        strings.push(string);
        text = chars.as_str().trim_start_matches([',', ' ']);
    }
    Some(strings)
}

fn row(fields: Fields) -> Result<Crawler, String> {
    use FieldValue::{Flag, List, Text};
    let text = |key: &str| {
        fields.iter().find_map(|(known, value)| match value {
            Text(text) if *known == key => Some(text.clone()),
            _ => None,
        })
    };
    let name = text("name").ok_or("a crawler has no name")?;
    let category = text("category").and_then(|word| word.parse().ok());
    let category = category.ok_or_else(|| format!("{name}: the category is missing or unknown"))?;
    let is_control = fields.contains(&("control", Flag(true)));
    let mut row = if is_control { Crawler::control_token(&name, category) } else { Crawler::new(&name, category) };
    for (key, value) in fields {
        let obeys = |word: &str| word.parse::<Obeys>().map_err(|_| format!("{name}: {key} cannot be {word}"));
        match (key, value) {
            ("name" | "category", _) | ("control", Flag(_)) => {}
            ("header", List(names)) => row.header_names = names,
            ("tokens", List(tokens)) => row.tokens = tokens.iter().map(ProductToken::new).collect(),
            ("operator", Text(operator)) => row.operator = operator,
            ("supplies", List(words)) => {
                let read = words.iter().map(|word| word.parse()).collect::<Result<_, _>>();
                row.supplies = read.map_err(|error| format!("{name}: {error}"))?;
            }
            ("robots", Text(word)) => row.obeys_robots = obeys(&word)?,
            ("star", Text(word)) => row.obeys_star = obeys(&word)?,
            ("crawl_delay", Text(word)) => row.obeys_crawl_delay = obeys(&word)?,
            ("index", Flag(is_index_engine)) => row.is_index_engine = is_index_engine,
            ("requires", List(texts)) => row.requires = texts,
            ("ranges", List(addresses)) => row.ranges = addresses,
            ("rdns", List(names)) => row.reverse_dns = names,
            ("referers", List(hosts)) => row.referers = hosts,
            ("signature", Text(address)) => row.signature = Some(address),
            ("source", Text(address)) => row.source = Some(address),
            ("checked", Text(day)) => row.checked_on = Some(day),
            ("weak", Flag(true)) => row.is_reverse_dns_weak = true,
            ("framework", Flag(true)) => row.is_framework = true,
            ("examples", List(headers)) => row.examples = headers,
            (key, value) => return Err(format!("{name}: {key} = {value:?} is no field of a crawler")),
        }
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_data_file_is_read() {
        let headings = FILE.lines().filter(|line| *line == "[[crawler]]").count();
        assert_eq!(rows().unwrap().len(), headings);
    }

    #[test]
    fn the_forms_of_a_line_are_read() {
        let text = "# a file\n\n[[crawler]]\nname = \"a \\\"b\\\\\"\nheader = [\n    \"x\",\n    \"y\",\n]\ntokens = [\"p\", \"q\"]\ncontrol = true\n";
        let [table] = &tables(text).unwrap()[..] else { panic!("one table") };
        let list = |items: [&str; 2]| FieldValue::List(items.map(str::to_owned).into());
        let want = [
            ("name", FieldValue::Text("a \"b\\".to_owned())),
            ("header", list(["x", "y"])),
            ("tokens", list(["p", "q"])),
            ("control", FieldValue::Flag(true)),
        ];
        assert_eq!(table[..], want);
    }

    #[test]
    fn other_lines_are_refused() {
        for text in
            ["name = \"a\"", "[[crawler]]\nname = 1", "[[crawler]]\nname = \"a", "[[crawler]]\njust words", "[crawler]"]
        {
            assert!(tables(text).is_err(), "{text}");
        }
        for text in ["[[crawler]]\nname = \"a\"", "[[crawler]]\nname = \"a\"\ncategory = \"seo\"\ncolour = \"red\""] {
            assert!(tables(text).unwrap().into_iter().try_for_each(|fields| row(fields).map(drop)).is_err(), "{text}");
        }
    }
}
