//! Compares the generated pages of the handbook with what they are generated from: commands from
//! `--help`, config keys from the schema and the shipped config, the fields of the log from their
//! schema, and the pages that findings link to. `UPDATE_DOCS=1` writes them.

use std::fmt::Write;

use crate::harness::*;

const COMMANDS: &str = "# Commands

<!-- Generated from the program by robotsd/tests/it/handbook.rs. -->

Find an option or an exit status. Each block is the output of `robotsd COMMAND --help`.

These exit statuses are common to all commands: 0 is success, 1 is a negative result, and 2 means that the command could not run.
";

const CONFIG: &str = "# Configuration

<!-- Generated from config/robotsd.toml and `robotsd config schema` by robotsd/tests/it/handbook.rs. -->

Look up a key of the config file. The file is TOML:

```sh
robotsd config check robotsd.toml   # checks a config
robotsd config show robotsd.toml    # prints it with all defaults
```

For a first config, copy `config/production.toml`. `config/robotsd.toml` has every key with its default. Paths are relative to the file that
contains them.

- **duration**: text with a unit, such as `\"400ms\"`, `\"10s\"` or `\"1h 30m\"`.
- **size**: a number of bytes, or text with a unit, such as `\"64KiB\"` or `\"1MB\"`.

A table in double brackets, such as `[[site]]`, may occur several times. For completion in editors (taplo, Even Better TOML), run
`robotsd config schema > robotsd.schema.json` and write this in the first line:

```toml
#:schema ./robotsd.schema.json
```
";

const LOG_FIELDS: &str = "# Fields of the log

<!-- Generated from robotsd/src/docs/log.schema.json by robotsd/tests/it/handbook.rs. -->

Look up a field of [the log](log.md). The file `robotsd/src/docs/log.schema.json` also has the fields of each event.

| field | type | meaning |
|---|---|---|
";

/// Address of the handbook, for pages that are not part of it.
const HANDBOOK: &str = "https://github.com/OWNER/tower-robots/blob/main/docs/src/";

/// Compares a page with its expected text. With `UPDATE_DOCS=1`, writes the page instead.
fn compare(page: &str, text: &str) {
    let path = project("docs/src/reference").join(page);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        return fs::write(path, text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let differs = found.lines().zip(text.lines()).find(|(found, want)| found != want);
    assert!(found == text, "{page}: run this test with UPDATE_DOCS=1; first difference: {differs:?}");
}

fn add_command(words: &[&str], page: &mut String) {
    let help = run(robotsd().args(words).arg("--help").env_remove("COLUMNS")).succeeded();
    let help: Vec<_> = help.lines().map(str::trim_end).collect();
    let help = help.join("\n");
    let below = help.split("Commands:\n").nth(1).map(|list| list.split("\n\n").next().unwrap());
    // The description of a command may continue on the next line, which is indented further.
    let below =
        below.into_iter().flat_map(str::lines).filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let below: Vec<_> =
        below.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect();
    assert!(!below.is_empty() || help.contains("Exit status"), "{words:?}: no exit status");
    if !words.is_empty() {
        write!(page, "\n## {}\n", words.join(" ")).unwrap();
    }
    write!(page, "\n```text\n{}\n```\n", help.trim_end()).unwrap();
    below.iter().for_each(|name| add_command(&[words, &[name]].concat(), page));
}

#[test]
fn the_commands_page_contains_the_help_of_every_command() {
    let mut page = COMMANDS.to_owned();
    add_command(&[], &mut page);
    compare("commands.md", &page);
}

#[test]
fn the_log_fields_page_contains_every_field_of_the_schema() {
    let schema: Value = serde_json::from_str(include_str!("../../src/docs/log.schema.json")).unwrap();
    let mut page = LOG_FIELDS.to_owned();
    for (name, field) in schema["properties"].as_object().unwrap() {
        let text = |key: &str| field[key].as_str().unwrap();
        writeln!(page, "| `{name}` | {} | {} |", text("type"), text("description")).unwrap();
    }
    compare("log-fields.md", &page);
}

#[derive(Default)]
struct Section {
    /// Name of the table, such as `site.robots`; empty for the keys at the top of the file.
    path: String,
    header: String,
    about: String,
    keys: Vec<ShippedKey>,
    /// The list that follows the keys in the comment, if any.
    list: String,
}

impl Section {
    fn has(&self, name: &str) -> bool {
        self.keys.iter().any(|key| key.name == name)
    }
}

struct ShippedKey {
    name: String,
    /// Default of the key; `None` if it is not set by default.
    value: Option<String>,
    about: String,
}

/// Returns the tables of the shipped config with their keys. Each key has the comment above it.
fn sections(shipped: &str) -> Vec<Section> {
    let mut sections = vec![Section::default()];
    let mut comment = Vec::new();
    for line in shipped.lines() {
        let section = sections.last_mut().unwrap();
        let is_comment = line.starts_with('#');
        let text = line.trim_start_matches('#').trim_start();
        let is_key = text.contains('=') && toml::from_str::<toml::Table>(text).is_ok();
        if text.is_empty() {
            comment.clear();
        } else if let Some(listed) = line.strip_prefix("#     ") {
            section.list.push_str(listed);
            section.list.push('\n');
        } else if text.starts_with('[') && text.ends_with(']') && !text.contains(' ') {
            let path = text.trim_matches(['[', ']']).to_owned();
            let about = std::mem::take(&mut comment).join(" ");
            sections.push(Section { path, header: text.to_owned(), about, ..Section::default() });
        } else if let Some((name, value)) = text.split_once('=').filter(|_| is_key) {
            let value = (!is_comment).then(|| value.trim().to_owned());
            let about = std::mem::take(&mut comment).join(" ");
            section.keys.push(ShippedKey { name: name.trim_end().to_owned(), value, about });
        } else {
            comment.push(text);
        }
    }
    // The introduction of the file does not belong to a table.
    sections[0].list.clear();
    sections
}

fn properties<'s>(schema: &'s Value, path: &str) -> &'s Value {
    path.split('.').filter(|name| !name.is_empty()).fold(schema, |schema, name| table(&schema["properties"][name]))
}

fn table(schema: &Value) -> &Value {
    if schema["items"]["properties"].is_object() { &schema["items"] } else { schema }
}

/// Describes how a value is written in the config.
fn kind(schema: &Value) -> String {
    let listed = |values: &[Value]| values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
    if let Some(words) = schema["enum"].as_array() {
        return listed(words);
    }
    if let Some(kinds) = schema["anyOf"].as_array() {
        return kinds.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match schema["type"].as_str() {
        None => "size".to_owned(),
        Some("string") if schema["examples"].is_array() => "duration".to_owned(),
        Some("string") => "text".to_owned(),
        Some("integer") => "number".to_owned(),
        Some("boolean") => "`true`, `false`".to_owned(),
        Some("array") => format!("list: {}", kind(&schema["items"])),
        Some("object") if schema["properties"].is_object() => {
            let names: Vec<_> =
                schema["properties"].as_object().unwrap().keys().map(|key| format!("`{key}`")).collect();
            format!("table: {}", names.join(", "))
        }
        Some(_) => format!("table: {}", kind(&schema["additionalProperties"])),
    }
}

/// Converts the text of a comment to Markdown. Quotes become code, and paths become links.
fn markdown(text: &str) -> String {
    let mut markdown = String::new();
    for (number, part) in text.split('`').enumerate() {
        if number % 2 == 1 {
            write!(markdown, "`{part}`").unwrap();
            continue;
        }
        for (number, part) in part.split('"').enumerate() {
            match number % 2 {
                1 => write!(markdown, "`\"{part}\"`").unwrap(),
                _ => markdown.push_str(&part.replace('*', "\\*").replace('<', "&lt;")),
            }
        }
    }
    while let Some((before, rest)) = markdown.split_once("(docs/src/") {
        let (page, after) = rest.split_once(')').unwrap();
        let name = page.rsplit('/').next().unwrap().trim_end_matches(".md").replace('-', " ");
        markdown = format!("{before}([{name}](../{page})){after}");
    }
    markdown
}

/// Splits the comment of a key into the default, if the comment contains it, and the rest.
fn default_and_rest(about: &str) -> (Option<&str>, String) {
    let Some((before, rest)) = about.split_once("Default: ") else { return (None, about.to_owned()) };
    let end = rest.find(". ").map_or(rest.len(), |end| end + 1);
    let (default, after) = rest.split_at(end);
    (Some(default.trim_end_matches('.')), format!("{before}{}", after.trim_start()).trim_end().to_owned())
}

/// Returns the row about a key in the page.
fn row(key: &ShippedKey, schema: &Value, is_required: bool) -> String {
    let (named, about) = default_and_rest(&key.about);
    let default = match (&key.value, named) {
        _ if is_required || about.contains("Required") => "required".to_owned(),
        (Some(value), _) => format!("`{value}`"),
        (None, named) => markdown(named.unwrap_or_default()),
    };
    let about = markdown(about.trim_end_matches("Required.").trim_end());
    let cells = [format!("`{}`", key.name), kind(schema), default, about].map(|cell| cell.replace('|', "\\|"));
    let cells = cells.map(|cell| if cell.is_empty() { "| ".to_owned() } else { format!("| {cell} ") });
    cells.concat() + "|\n"
}

#[test]
fn the_config_page_contains_every_key() {
    let schema = run(robotsd().args(["config", "schema"])).ends_with(0).json();
    let shipped = fs::read_to_string(project("config/robotsd.toml")).unwrap();
    let sections = sections(&shipped);
    let mut page = CONFIG.to_owned();
    for section in &sections {
        let known = properties(&schema, &section.path);
        let title = if section.path.is_empty() { "Top of the file".to_owned() } else { section.header.clone() };
        write!(page, "\n## {title}\n").unwrap();
        if !section.about.is_empty() {
            write!(page, "\n{}\n", markdown(&section.about)).unwrap();
        }
        page.push_str("\n| key | value | default | |\n|---|---|---|---|\n");
        for key in &section.keys {
            let of_key = match &known["properties"][&key.name] {
                Value::Null => &known["additionalProperties"],
                property => property,
            };
            assert!(of_key.is_object(), "[{}] has no key {}", section.path, key.name);
            let is_required = known["required"].as_array().is_some_and(|keys| keys.contains(&json!(key.name)));
            page.push_str(&row(key, of_key, is_required));
        }
        // The shipped config describes some keys only in other tables. Their rows refer to the
        // table that has the most keys in common with this one.
        for (name, of_key) in known["properties"].as_object().into_iter().flatten() {
            let path = format!("{}.{name}", section.path);
            let is_table = sections.iter().any(|other| other.path == path.trim_start_matches('.'));
            if is_table || section.has(name) {
                continue;
            }
            let in_common =
                |other: &&Section| other.keys.iter().filter(|key| known["properties"][&key.name].is_object()).count();
            let about = match of_key["description"].as_str() {
                Some(about) => about.to_owned(),
                None => {
                    let other = sections.iter().filter(|other| other.has(name)).max_by_key(in_common);
                    format!("As in {}.", other.unwrap_or_else(|| panic!("[{}]: no {name}", section.path)).header)
                }
            };
            page.push_str(&row(&ShippedKey { name: name.clone(), value: None, about }, of_key, false));
        }
        if !section.list.is_empty() {
            write!(page, "\n```text\n{}```\n", section.list).unwrap();
        }
    }
    compare("config.md", &page);
}

/// Returns the output of `robotsd check --explain`: why the finding matters, a bad example and a
/// good one.
fn explanation(code: &str) -> String {
    let text = run(robotsd().args(["check", "--explain", code])).succeeded();
    // The last paragraph, on how to turn a lint off, is left out, because it is the same for all
    // lints.
    let (text, _) = text.trim_end().rsplit_once("\n\n").unwrap();
    format!("\n### Example: `{code}`\n\n```text\n{text}\n```\n")
}

/// Findings link to pages in the documentation of the libraries. The handbook must contain these
/// pages, too.
#[test]
fn the_handbook_contains_the_pages_that_findings_link_to() {
    for (page, source) in [("lints.md", "src/docs/lints.md"), ("answers.md", "robotsd/src/docs/answers.md")] {
        let text = fs::read_to_string(project(source)).unwrap();
        let (title, rest) = text.split_once('\n').unwrap();
        let rest = rest.replace(HANDBOOK, "../");
        assert!(!rest.contains("::"), "{source}: a link to an item works in rustdoc only");
        let mut copy = format!("{title}\n\n<!-- Generated from {source} by robotsd/tests/it/handbook.rs. -->\n{rest}");
        if page == "lints.md" {
            let codes = rest.split("<a id=\"").skip(1).filter_map(|row| row.split('"').next());
            copy.push_str("\n## Examples\n");
            codes.for_each(|code| copy.push_str(&explanation(code)));
        }
        compare(page, &copy);
    }
}
