//! Generates the table of the page `answers` from the checks of the cases.

use super::Checked;
use crate::harness::*;

const HEAD: &str = "| the server answers | crawlers | found | exit |\n|---|---|---|---|\n";

/// The text that follows the table and its notes on the page.
const NEXT: &str = "\n## Every finding";

pub(super) struct Table {
    path: PathBuf,
    page: String,
}

/// The report of a check of one server.
pub(super) struct Row {
    says: String,
    crawlers: String,
    /// Differences between crawlers. They become a note below the table, because many rows share
    /// them.
    others: String,
    found: String,
    exit: i32,
}

impl Row {
    pub(super) fn of(says: &str, checked: &Checked) -> Self {
        let answer = checked.answer();
        let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        let crawlers = match text("crawlers").as_str() {
            "rules" => "obey the rules",
            "allow-all" => "treat everything as allowed",
            _ => "treat the whole site as disallowed",
        };
        let finding = |finding: &Value| {
            let [code, severity, message] = ["code", "severity", "message"].map(|name| finding[name].as_str().unwrap());
            // The rest of the message is in the next column.
            let message = message.split(": crawlers ").next().unwrap_or(message);
            format!("{severity} `{code}`: {}", plain(message))
        };
        let mut found: Vec<String> = checked.findings.iter().map(finding).collect();
        found.dedup_by_key(|text| text.split('`').nth(1).unwrap_or_default().to_owned());
        if checked.exit() == 2 {
            found.push(plain(
                checked.stderr().split("; crawlers ").next().unwrap_or_default().trim_start_matches("robotsd: "),
            ));
        }
        let found = if found.is_empty() { "nothing".to_owned() } else { found.join("<br>") };
        let crawlers = format!("{crawlers} ({})", text("section"));
        let (others, exit) = (plain(&text("other_readings")), checked.exit());
        Self { says: says.to_owned(), crawlers, others, found, exit }
    }
}

/// Returns the rows, and the notes below them.
fn written(rows: impl IntoIterator<Item = Row>) -> String {
    let (mut text, mut notes) = (String::new(), Vec::new());
    for Row { says, crawlers, others, found, exit } in rows {
        if !others.is_empty() && !notes.contains(&others) {
            notes.push(others.clone());
        }
        let note =
            notes.iter().position(|note| *note == others).map_or_else(String::new, |at| format!(", note {}", at + 1));
        text += &format!("| {says} | {crawlers}{note} | {found} | {exit} |\n");
    }
    text.push('\n');
    for (at, note) in notes.iter().enumerate() {
        text += &format!("{}. {note}\n", at + 1);
    }
    text
}

/// Removes the port numbers of this run, and Markdown's special characters.
fn plain(message: &str) -> String {
    let mut text = String::new();
    // Resolvers describe this error in different words.
    let message = message.split(": failed to lookup").next().unwrap_or(message);
    let mut rest = message.replace(":8080", "").replace('|', "\\|").replace('<', "&lt;").replace("\\u", "\\\\u");
    while let Some(at) = rest.find("127.0.0.1:") {
        text.push_str(&rest[..at]);
        text.push_str("192.0.2.7:80");
        rest = rest[at + "127.0.0.1:".len()..].trim_start_matches(|char: char| char.is_ascii_digit()).to_owned();
    }
    text + &rest
}

impl Table {
    pub(super) fn of_the_page() -> Self {
        let path = project("robotsd/src/docs/answers.md");
        let page = fs::read_to_string(&path).expect("the page exists");
        Self { path, page }
    }

    /// Compares the rows with the table. With `UPDATE_DOCS=1`, writes the table instead.
    pub(super) fn check(&self, rows: impl IntoIterator<Item = Row>) {
        let Self { path, page } = self;
        let start = page.find(HEAD).expect("the page contains the table") + HEAD.len();
        let end = start + page[start..].find(NEXT).expect("a section on findings follows");
        let rows = written(rows);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(path, format!("{}{rows}{}", &page[..start], &page[end..])).unwrap();
            return;
        }
        assert_eq!(&page[start..end], rows, "run this test with UPDATE_DOCS=1");
    }
}
