//! Tests the transcripts in the README, in the handbook and in the cases of commands. Each command
//! must print the lines below it.

use crate::harness::*;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A command and the output that is shown for it. A line `…` represents any number of lines, and
/// `…` in a line any text.
struct Transcript {
    line: usize,
    command: String,
    output: Vec<String>,
}

#[test]
fn commands_print_what_the_documents_show() {
    let mut shown = 0;
    let mut documents = vec![Path::new(ROOT).join("README.md")];
    add_files(&Path::new(ROOT).join("docs/src"), "md", &mut documents);
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        for transcript in transcripts(&text) {
            shown += 1;
            let output = run(robotsd().current_dir(ROOT).args(transcript.command.split_whitespace()));
            let printed = output.said();
            let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
            let place = format!("{}:{}: $ robotsd {}", document.display(), transcript.line, transcript.command);
            assert!(matches(&transcript.output, &printed), "{place}\n{}", printed.join("\n"));
        }
    }
    assert!(shown >= 2, "the README has at least two");
}

/// Each section of these documents is a case. A block `text NAME` contains the file NAME of the
/// case. Commands in a block `console` print the lines below them, and then their exit status if it
/// is not 0. After output has changed, run the test with `UPDATE=1` in the environment to write it
/// to the documents, and read them before committing.
#[test]
fn commands_print_what_their_cases_show() {
    let mut documents = Vec::new();
    add_files(&project("robotsd/tests/cases/commands"), "md", &mut documents);
    assert!(!documents.is_empty());
    thread::scope(|scope| {
        for document in documents {
            scope.spawn(move || check_cases(&document));
        }
    });
}

fn check_cases(document: &Path) {
    let text = fs::read_to_string(document).unwrap();
    let found: String = text.split_inclusive("\n## ").map(with_output).collect();
    if std::env::var_os("UPDATE").is_some() {
        fs::write(document, &found).unwrap();
    }
    for (number, (found, shown)) in found.lines().zip(text.lines()).enumerate() {
        assert_eq!(found, shown, "{}:{}", document.display(), number + 1);
    }
    assert_eq!(found.lines().count(), text.lines().count(), "{}", document.display());
}

/// Runs the commands of a case. Returns the case, with each output that does not match replaced by
/// the actual output.
fn with_output(case: &str) -> String {
    let folder = folder(&[]);
    let mut found = String::new();
    let mut lines = case.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        found += line;
        if let Some(name) = line.strip_prefix("```text ") {
            let file: String = std::iter::from_fn(|| lines.next_if(|line| *line != "```\n")).collect();
            folder.write(name.trim_end(), &file);
            found += &file;
        } else if let Some(command) = line.strip_prefix("$ ") {
            let is_output = |line: &&str| !line.starts_with("$ ") && *line != "```\n";
            let shown: Vec<_> = std::iter::from_fn(|| lines.next_if(is_output)).map(|line| line.trim_end()).collect();
            let printed = printed_by(&folder, command.trim_end());
            let printed: Vec<_> = printed.lines().map(str::trim_end).collect();
            let output = if matches(&shown, &printed) { shown } else { printed };
            found.extend(output.iter().map(|line| format!("{line}\n")));
        }
    }
    found
}

/// Returns what a command prints. `cat` prints a file, and `< FILE` is standard input of `robotsd`.
fn printed_by(folder: &Folder, command: &str) -> String {
    if let Some(name) = command.strip_prefix("cat ") {
        return folder.read(name);
    }
    let (command, input) = match command.rsplit_once(" < ") {
        Some((command, name)) => (command, folder.read(name)),
        None => (command, String::new()),
    };
    // Text in double quotes is one word.
    let parts = command.strip_prefix("robotsd ").expect("a command of robotsd").split('"').enumerate();
    let words = parts.flat_map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().collect(),
        _ => vec![part],
    });
    let ended = run_with(folder.robotsd().args(words), input.as_bytes());
    let status = ended.code.filter(|code| *code != 0).map(|code| format!("exit status {code}\n"));
    ended.said() + &status.unwrap_or_default()
}

/// A promise names tests as `path::name`. There must be a test with this name, in a file whose path
/// contains `path`.
#[test]
fn every_row_of_the_failures_page_names_existing_tests() {
    let page = include_str!("../../../docs/src/explanation/failures.md");
    let is_promise = |row: &&str| row.starts_with("| ") && !row.starts_with("| |") && !row.contains("| tested by |");
    let rows: Vec<_> = page.lines().filter(is_promise).collect();
    assert!(rows.len() > 20, "{rows:?}");
    let mut files = Vec::new();
    for folder in ["src", "tests/it", "robotsd/src", "robotsd/tests/it"] {
        add_files(&Path::new(ROOT).join(folder), "rs", &mut files);
    }
    let sources: Vec<_> =
        files.iter().map(|path| (path.display().to_string(), fs::read_to_string(path).unwrap())).collect();
    for row in rows {
        let tests: Vec<_> = row.split('`').skip(1).step_by(2).filter_map(|code| code.split_once("::")).collect();
        assert!(!tests.is_empty(), "no test holds {row}");
        for (place, name) in tests {
            let is_there = |(path, text): &(String, String)| {
                let before = text.split_once(&format!("fn {name}(")).map(|(before, _)| before);
                path.contains(place)
                    && before.is_some_and(|before| {
                        before.lines().rev().take(3).any(|line| line.trim_end().ends_with("test]"))
                    })
            };
            assert!(sources.iter().any(is_there), "no test is {place}::{name}");
        }
    }
}

/// Adds all files with this extension in a folder and its subfolders.
fn add_files(folder: &Path, extension: &str, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            add_files(&path, extension, files);
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
}

/// Only `repository` in the manifest determines where the project is hosted.
#[test]
fn every_repository_address_in_the_project_matches_the_manifest() {
    let manifest = fs::read_to_string(Path::new(ROOT).join("Cargo.toml")).unwrap();
    let named = |line: &'static str| manifest.lines().find_map(|found| found.strip_prefix(line)?.strip_suffix('"'));
    let repository = named("repository = \"").unwrap();
    let (account, name) = repository.rsplit_once('/').unwrap();
    assert_eq!(name, "tower-robots");
    let account = account.rsplit('/').next().unwrap();
    let mut waiting = ["config", "examples", "src", "robotsd/src", "robotsd/packaging"]
        .map(|name| Path::new(ROOT).join(name))
        .to_vec();
    let mut texts: Vec<_> =
        fs::read_dir(ROOT).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    texts.push(Path::new(ROOT).join("robotsd/README.md"));
    while let Some(folder) = waiting.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() { &mut waiting } else { &mut texts }.push(path);
        }
    }
    let mut mentions = 0;
    for path in texts {
        // A file that is not text contains no address.
        let text = fs::read_to_string(&path).unwrap_or_default();
        for (at, _) in text.match_indices("/tower-robots") {
            let before = &text[..at];
            let word =
                before.rsplit(|char: char| !char.is_ascii_alphanumeric() && !"_.-".contains(char)).next().unwrap();
            let is_of_host = before[..at - word.len()].ends_with("github.com/");
            let is_action = text[at..].starts_with("/tower-robots@") && !matches!(word, "" | "." | ".." | "docs.rs");
            if is_of_host || is_action {
                mentions += 1;
                assert_eq!(word, account, "{}: repository in Cargo.toml is {repository}", path.display());
            }
        }
    }
    assert!(mentions > 8, "{mentions}");
}

/// Returns the transcripts of `robotsd` commands in blocks that are marked `console`.
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

/// Reports whether the printed lines match the shown lines.
fn matches(shown: &[impl AsRef<str>], printed: &[&str]) -> bool {
    match shown {
        [] => printed.is_empty(),
        [elided, rest @ ..] if elided.as_ref() == "…" => {
            (0..=printed.len()).any(|from| matches(rest, &printed[from..]))
        }
        [first, rest @ ..] => {
            printed.first().is_some_and(|line| is_line(line, first.as_ref())) && matches(rest, &printed[1..])
        }
    }
}

/// Reports whether a line matches a shown line.
fn is_line(line: &str, shown: &str) -> bool {
    let Some((before, after)) = shown.split_once('…') else { return line == shown };
    let Some(rest) = line.strip_prefix(before) else { return false };
    rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| is_line(&rest[at..], after))
}
