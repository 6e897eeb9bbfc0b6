//! The transcripts in README and chapters: each command prints what stands below it.

use std::path::Path;

use super::process::{robotsd, run};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const DOCUMENTS: [&str; 5] = [
    "README.md",
    "src/docs/lints.md",
    "robotsd/src/docs/operating.md",
    "robotsd/src/docs/deployment.md",
    "robotsd/src/docs/beside.md",
];

/// A command and what it prints. A line `…` stands for any number of lines.
struct Transcript {
    line: usize,
    command: String,
    output: Vec<String>,
}

#[test]
fn commands_print_what_the_documents_show() {
    let mut shown = 0;
    for document in DOCUMENTS {
        let text = std::fs::read_to_string(Path::new(ROOT).join(document)).unwrap();
        for transcript in transcripts(&text) {
            shown += 1;
            let output = run(robotsd().current_dir(ROOT).args(transcript.command.split_whitespace()));
            let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
            let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
            let place = format!("{document}:{}: $ robotsd {}", transcript.line, transcript.command);
            assert!(matches(&transcript.output, &printed), "{place}\n{}", printed.join("\n"));
        }
    }
    assert!(shown >= 2, "the README has at least two");
}

/// The transcripts of `robotsd` in the blocks marked `console`.
fn transcripts(text: &str) -> Vec<Transcript> {
    let mut found: Vec<Transcript> = Vec::new();
    let mut inside = false;
    let mut open = false;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            inside = line == "```console";
            open = false;
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            open = command.starts_with("robotsd ");
            if let Some(command) = command.strip_prefix("robotsd ") {
                found.push(Transcript { line: index + 1, command: command.to_owned(), output: Vec::new() });
            }
        } else if let Some(transcript) = found.last_mut().filter(|_| open) {
            transcript.output.push(line.trim_end().to_owned());
        }
    }
    found
}

/// Whether the lines are those that are shown.
fn matches(shown: &[String], printed: &[&str]) -> bool {
    match shown {
        [] => printed.is_empty(),
        [elided, rest @ ..] if elided == "…" => (0..=printed.len()).any(|from| matches(rest, &printed[from..])),
        [first, rest @ ..] => printed.first().is_some_and(|line| line == first) && matches(rest, &printed[1..]),
    }
}
