//! Tests `robotsd lsp` as editors use it: a process with JSON-RPC messages on its pipes, and
//! Debian's Neovim.

use std::fs;
use std::io::{BufReader, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};

use lsp_server::{Message, Notification, Request, Response};
use tower_robots::check::{Lint, Options, Safety, fix};
use tower_robots::rules::RobotsTxt;

use crate::harness::*;
use crate::programs;

/// Codes of the lints about bytes, which only a file on disk can have.
const OF_BYTES: [&str; 3] = ["byte-order-mark", "utf-16", "invalid-utf-8"];

/// An editor that has started the server.
struct Editor {
    process: KillOnDrop,
    input: Option<ChildStdin>,
    output: Receiver<Message>,
    last_id: i32,
}

impl Editor {
    fn start(capabilities: &Value, options: &Value) -> Self {
        let mut editor = Self::spawn();
        let params = json!({ "processId": null, "capabilities": capabilities, "initializationOptions": options });
        let answer = editor.ask("initialize", params);
        assert_eq!(answer["serverInfo"]["name"], "robotsd", "{answer}");
        editor.tell("initialized", json!({}));
        editor
    }

    fn spawn() -> Self {
        let mut child = robotsd().arg("lsp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Ok(Some(message)) = Message::read(&mut output) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self { process: KillOnDrop(child), input, output: receiver, last_id: 0 }
    }

    fn send(&mut self, message: impl Into<Message>) {
        let input = self.input.as_mut().unwrap();
        message.into().write(input).unwrap();
        input.flush().unwrap();
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(Notification::new(method.to_owned(), params));
    }

    fn next(&self) -> Message {
        self.output.recv_timeout(PATIENCE * 5).expect("a message of the server")
    }

    #[track_caller]
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        self.send(Request::new(self.last_id.into(), method.to_owned(), params));
        loop {
            if let Message::Response(Response { id, response_result }) = self.next() {
                assert_eq!(id, self.last_id.into());
                return response_result.unwrap_or_else(|error| panic!("{method}: {error:?}"));
            }
        }
    }

    fn open(&mut self, uri: &str, text: &str) {
        let document = json!({ "uri": uri, "languageId": "plaintext", "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
    }

    fn change(&mut self, uri: &str, version: i32, change: Value) {
        let document = json!({ "uri": uri, "version": version });
        self.tell("textDocument/didChange", json!({ "textDocument": document, "contentChanges": [change] }));
    }

    /// Waits for the diagnostics of this version.
    fn diagnostics(&self, uri: &str, version: i32) -> Vec<Value> {
        loop {
            if let Message::Notification(Notification { method, params }) = self.next()
                && method == "textDocument/publishDiagnostics"
                && params["uri"] == uri
                && params["version"] == version
            {
                return params["diagnostics"].as_array().unwrap().clone();
            }
        }
    }

    fn about(&mut self, method: &str, uri: &str, line: u32, character: u32) -> Value {
        let position = json!({ "line": line, "character": character });
        self.ask(method, json!({ "textDocument": { "uri": uri }, "position": position }))
    }

    fn actions(&mut self, uri: &str) -> Vec<Value> {
        let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99_999, "character": 0 } });
        let params = json!({ "textDocument": { "uri": uri }, "range": range, "context": { "diagnostics": [] } });
        self.ask("textDocument/codeAction", params).as_array().unwrap().clone()
    }

    fn ends_with(self, code: i32) {
        let process = std::cell::RefCell::new(self.process);
        let status = wait_for("the end of the server", || process.borrow_mut().0.try_wait().unwrap());
        assert_eq!(status.code(), Some(code));
    }
}

/// Capabilities of an editor with code actions.
fn usual() -> Value {
    json!({ "textDocument": {
        "codeAction": { "codeActionLiteralSupport": { "codeActionKind": { "valueSet": ["quickfix"] } } },
        "documentSymbol": { "hierarchicalDocumentSymbolSupport": true },
        "hover": { "contentFormat": ["markdown", "plaintext"] },
    } })
}

const URI: &str = "file:///nonexistent/robots.txt";

/// Applies edits of the server to a text, as an editor does. Does not use the server's own code.
fn edited(text: &str, edits: &[Value]) -> String {
    let mut edits: Vec<_> = edits.iter().map(|edit| (offset(text, &edit["range"]["start"]), edit)).collect();
    edits.sort_by_key(|(start, _)| *start);
    let mut edited = text.to_owned();
    for (start, edit) in edits.into_iter().rev() {
        edited.replace_range(start..offset(text, &edit["range"]["end"]), edit["newText"].as_str().unwrap());
    }
    edited
}

/// Returns the byte offset of a position in UTF-16 units. The position must exist.
fn offset(text: &str, position: &Value) -> usize {
    let (line, character) = (position["line"].as_u64().unwrap(), position["character"].as_u64().unwrap());
    let (mut at, mut lines) = ((0, 0), text.char_indices().peekable());
    while let Some((offset, char)) = lines.next() {
        if at == (line, character) {
            return offset;
        }
        let is_end = char == '\n' || (char == '\r' && lines.peek().is_none_or(|(_, next)| *next != '\n'));
        at = if is_end { (at.0 + 1, 0) } else { (at.0, at.1 + char.len_utf16() as u64) };
    }
    assert_eq!(at, (line, character), "{text:?}");
    text.len()
}

/// Sorted line, severity and message of each finding.
type Found = Vec<(u64, u64, String)>;

/// Returns what `robotsd check` finds in a text. The lints about bytes are left out.
fn checked(text: &str) -> Found {
    let arguments = ["check", "--isolated", "--format", "json", "--ignore", &OF_BYTES.join(","), "-"];
    let ended = run_with(robotsd().args(arguments), text.as_bytes());
    let mut found: Found = ended
        .json_lines()
        .iter()
        // The line with the number of omitted findings has no code.
        .filter(|finding| finding["code"].is_string())
        .map(|finding| {
            let severity = ["", "error", "warning", "note"].iter().position(|word| finding["severity"] == *word);
            let message = format!("{} {}", finding["code"].as_str().unwrap(), finding["message"].as_str().unwrap());
            (finding["line"].as_u64().unwrap() - 1, severity.unwrap() as u64, message)
        })
        .collect();
    found.sort();
    found
}

fn found(diagnostics: &[Value]) -> Found {
    let text = |diagnostic: &Value, key: &str| diagnostic[key].as_str().unwrap().to_owned();
    let mut found: Found = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic["code"].is_string())
        .map(|diagnostic| {
            let message = text(diagnostic, "message");
            let message = format!("{} {}", text(diagnostic, "code"), message.split("\nhelp: ").next().unwrap());
            let line = diagnostic["range"]["start"]["line"].as_u64().unwrap();
            (line, diagnostic["severity"].as_u64().unwrap(), message)
        })
        .collect();
    found.sort();
    found
}

#[test]
fn a_diagnostic_has_a_code_a_link_a_severity_and_a_related_location() {
    let mut editor = Editor::start(&usual(), &Value::Null);
    editor.open(URI, "User-agent: *\nDisallow: /a\nDisallow: b\nDisallow: /a\n");
    let diagnostics = editor.diagnostics(URI, 1);
    let of = |code: &str| diagnostics.iter().find(|diagnostic| diagnostic["code"] == code).unwrap();
    let range = json!({ "start": { "line": 2, "character": 10 }, "end": { "line": 2, "character": 11 } });
    let error = of("path-without-slash");
    assert_eq!((&error["range"], &error["severity"], &error["source"]), (&range, &json!(1), &json!("robotsd")));
    assert_eq!(error["codeDescription"]["href"], Lint::of_code("path-without-slash").unwrap().url());
    let related = &of("duplicate-rule")["relatedInformation"][0]["location"];
    assert_eq!((&related["uri"], &related["range"]["start"]["line"]), (&json!(URI), &json!(1)));
    // A document with another name is not checked, whatever its language is.
    editor.open("file:///nonexistent/notes.txt", "Disallow: b\n");
    assert_eq!(editor.about("textDocument/hover", "file:///nonexistent/notes.txt", 0, 0), Value::Null);
    editor.tell("textDocument/didClose", json!({ "textDocument": { "uri": URI } }));
    let Message::Notification(closed) = editor.next() else { panic!("a notification") };
    assert_eq!(closed.params["diagnostics"], json!([]));
}

#[test]
fn columns_are_in_the_unit_that_the_editor_supports() {
    for (encodings, unit, end) in
        [(json!(["utf-16"]), "utf-16", 16), (json!(null), "utf-16", 16), (json!(["utf-16", "utf-8"]), "utf-8", 18)]
    {
        let mut editor = Editor::spawn();
        let capabilities = json!({ "general": { "positionEncodings": encodings } });
        let answer = editor.ask("initialize", json!({ "capabilities": capabilities }));
        assert_eq!(answer["capabilities"]["positionEncoding"], unit);
        editor.open(URI, "User-agent: *\nDisallow: /😀/x y\n");
        let diagnostics = editor.diagnostics(URI, 1);
        let want = json!({ "line": 1, "character": end });
        assert!(diagnostics.iter().any(|diagnostic| diagnostic["range"]["end"] == want), "{unit}: {diagnostics:?}");
    }
}

/// A generator of reproducible random numbers, so that a failure can be repeated.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

#[test]
fn diagnostics_equal_the_findings_of_check_after_a_thousand_random_edits() {
    const PARTS: [&str; 14] = [
        "User-agent: GPTBot\n",
        "User-agent: *\r\n",
        "Disallow: /a\n",
        "Disallow: b\r",
        "Allow: /a*\n",
        "\r",
        "\n",
        "😀",
        "é",
        "Sitemap: /x\n",
        "# c",
        "Crawl-delay: 1\n",
        "Disalow: /a b\n",
        "",
    ];
    let mut numbers = Numbers(7);
    let mut editor = Editor::start(&usual(), &Value::Null);
    let mut text = String::new();
    editor.open(URI, &text);
    for edit in 2..=1_001 {
        // Positions in UTF-16 units. Some of them are between the two units of a character, or
        // between CR and LF.
        let units: Vec<(u64, u64)> = places(&text);
        let (mut from, mut to) = (numbers.below(units.len()), numbers.below(units.len()));
        if from > to {
            (from, to) = (to, from);
        }
        to = to.min(from + 12);
        let part = PARTS[numbers.below(PARTS.len())];
        let position = |(line, character): (u64, u64)| json!({ "line": line, "character": character });
        let range = json!({ "start": position(units[from]), "end": position(units[to]) });
        editor.change(URI, edit, json!({ "range": range, "text": part }));
        text.replace_range(clamped(&text, units[from])..clamped(&text, units[to]), part);
        if edit % 50 == 1 {
            assert_eq!(found(&editor.diagnostics(URI, edit)), checked(&text), "{edit}: {text:?}");
        }
    }
    let edit = 1_002;
    editor.change(URI, edit, json!({ "text": text }));
    assert_eq!(found(&editor.diagnostics(URI, edit)), checked(&text));
}

/// Returns every position in a text, in UTF-16 units, including positions within characters.
fn places(text: &str) -> Vec<(u64, u64)> {
    let (mut places, mut at) = (vec![(0, 0)], (0, 0));
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let is_end = char == '\n' || (char == '\r' && chars.peek() != Some(&'\n'));
        if is_end {
            at = (at.0 + 1, 0);
            places.push(at);
        } else {
            for _ in 0..char.len_utf16() {
                at.1 += 1;
                places.push(at);
            }
        }
    }
    places
}

/// Returns the byte offset of a position. A position within a character becomes its start. A
/// position after the end of a line becomes that end.
fn clamped(text: &str, place: (u64, u64)) -> usize {
    let (mut at, mut chars) = ((0, 0), text.char_indices().peekable());
    while let Some((offset, char)) = chars.next() {
        let is_end = char == '\n' || char == '\r';
        let next = at.1 + char.len_utf16() as u64;
        if at.0 == place.0 && (is_end || place.1 < next) {
            return offset;
        }
        let is_crlf = char == '\r' && chars.peek().is_some_and(|(_, next)| *next == '\n');
        at = match is_end {
            true if !is_crlf => (at.0 + 1, 0),
            _ => (at.0, next),
        };
    }
    text.len()
}

#[test]
fn every_quick_fix_makes_the_same_edit_as_the_fix_of_check() {
    let mut editor = Editor::start(&usual(), &Value::Null);
    let mut fixed = 0;
    for (number, lint) in Lint::all().iter().enumerate().filter(|(_, lint)| !OF_BYTES.contains(&lint.code)) {
        let bytes = lint.bad.bytes();
        let Ok(text) = std::str::from_utf8(&bytes) else { continue };
        if text.len() > 100_000 || text.starts_with('\u{feff}') || lint.example_options() != Options::new() {
            continue;
        }
        let uri = format!("file:///nonexistent/{number}/robots.txt");
        editor.open(&uri, text);
        let actions = editor.actions(&uri);
        let mut edits: Vec<Value> = Vec::new();
        for action in actions.iter().filter(|action| action["diagnostics"][0]["code"] == lint.code) {
            for edit in action["edit"]["changes"][&uri].as_array().unwrap() {
                if !edits.contains(edit) {
                    edits.push(edit.clone());
                }
            }
        }
        let robots = RobotsTxt::parse(text);
        let others = Lint::all().iter().filter(|other| other.code != lint.code);
        let only = others.fold(Options::new(), |options, other| options.allow(other));
        let want = fix(&robots, &only, Safety::Unsafe);
        assert_eq!(edited(text, &edits).as_bytes(), &**want.robots.bytes(), "{}: {actions:?}", lint.code);
        fixed += usize::from(!edits.is_empty());
        // The action `source.fixAll` applies the safe fixes.
        let all = actions.iter().find(|action| action["kind"] == "source.fixAll");
        let all = all.map_or(text.to_owned(), |all| edited(text, all["edit"]["changes"][&uri].as_array().unwrap()));
        let of_bytes = Lint::all().iter().filter(|lint| OF_BYTES.contains(&lint.code));
        let safe = of_bytes.fold(Options::new(), |options, lint| options.allow(lint));
        let safe = fix(&robots, &safe, Safety::Safe);
        assert_eq!(all.as_bytes(), &**safe.robots.bytes(), "{}", lint.code);
        let formatted = editor.ask("textDocument/formatting", json!({ "textDocument": { "uri": uri }, "options": {} }));
        assert_eq!(edited(text, formatted.as_array().unwrap()), all, "{}", lint.code);
    }
    assert!(fixed > 25, "{fixed}");
}

#[test]
fn an_unsafe_fix_shows_its_effect_and_is_not_part_of_fix_all() {
    let mut editor = Editor::start(&usual(), &Value::Null);
    editor.open(URI, "User-agent: GPTBot\nDisallow: b\nDissallow: /c\n");
    let actions = editor.actions(URI);
    let titles: Vec<_> = actions.iter().map(|action| action["title"].as_str().unwrap()).collect();
    let effect = "(effect: \"/b\" is disallowed for \"GPTBot\"";
    assert!(titles.iter().any(|title| title.contains("path-without-slash") && title.contains(effect)), "{titles:?}");
    let all = actions.iter().find(|action| action["kind"] == "source.fixAll").unwrap();
    let edits = all["edit"]["changes"][URI].as_array().unwrap();
    assert_eq!(
        edited("User-agent: GPTBot\nDisallow: b\nDissallow: /c\n", edits),
        "User-agent: GPTBot\nDisallow: b\nDisallow: /c\n"
    );
}

#[test]
fn findings_about_bytes_come_from_the_file_on_disk() {
    let folder = folder(&[]);
    let text = "User-agent: *\nDisallow: /b\n";
    let file = folder.at("robots.txt");
    fs::write(&file, format!("\u{feff}{text}")).unwrap();
    let uri = format!("file://{}", file.display());
    let mut editor = Editor::start(&usual(), &Value::Null);
    editor.open(&uri, text);
    let diagnostics = editor.diagnostics(&uri, 1);
    assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
    assert_eq!(diagnostics[0]["code"], "byte-order-mark");
    assert_eq!(
        diagnostics[0]["range"],
        json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 0 } })
    );
    assert_eq!(editor.actions(&uri), Vec::<Value>::new());
    // If the file is saved without the byte order mark, the finding must disappear.
    fs::write(&file, text).unwrap();
    editor.tell("textDocument/didSave", json!({ "textDocument": { "uri": uri } }));
    assert_eq!(editor.diagnostics(&uri, 1), Vec::<Value>::new());
    // An unsaved document has no file, so it has no findings about bytes.
    editor.open("untitled:robots.txt", &format!("\u{feff}{text}"));
    assert_eq!(editor.diagnostics("untitled:robots.txt", 1), Vec::<Value>::new());
}

#[test]
fn the_settings_file_of_the_folder_applies_to_diagnostics() {
    let folder = folder(&[("robots-check.toml", "ignore = [\"path-without-slash\"]\n"), ("robots.txt", "")]);
    fs::create_dir(folder.at(".git")).unwrap();
    let uri = format!("file://{}", folder.at("robots.txt").display());
    let mut editor = Editor::start(&usual(), &Value::Null);
    editor.open(&uri, "User-agent: *\nDisallow: b\n");
    assert_eq!(editor.diagnostics(&uri, 1), Vec::<Value>::new());
}

#[test]
fn only_the_first_500_kib_of_a_document_are_checked() {
    let line = "Disallow: /directory/page\n";
    let text = ["User-agent: *\nDissallow: /x\n", &line.repeat(512_000 / line.len()), "Dissallow: /y\n"].concat();
    let mut editor = Editor::start(&usual(), &Value::Null);
    editor.open(URI, &text);
    let found = |diagnostics: Vec<Value>, code: &str| -> Vec<u64> {
        let is_of = |diagnostic: &&Value| diagnostic["code"] == code;
        diagnostics.iter().filter(is_of).map(|one| one["range"]["start"]["line"].as_u64().unwrap()).collect()
    };
    let diagnostics = editor.diagnostics(URI, 1);
    assert_eq!(found(diagnostics.clone(), "misspelled-directive"), [1]);
    let unread = text[..512_000].matches('\n').count() as u64;
    assert_eq!(found(diagnostics, "over-500-kib"), [unread]);
    assert_eq!(editor.actions(URI), Vec::<Value>::new());
    // Once the repeated lines are removed, crawlers read the last line.
    let removed = json!({ "start": { "line": 2, "character": 0 }, "end": { "line": unread, "character": 0 } });
    editor.change(URI, 2, json!({ "range": removed, "text": "" }));
    let diagnostics = editor.diagnostics(URI, 2);
    assert_eq!(found(diagnostics.clone(), "over-500-kib"), Vec::<u64>::new());
    assert_eq!(found(diagnostics, "misspelled-directive").len(), 2);
    assert!(!editor.actions(URI).is_empty());
}

#[test]
fn hover_uses_the_content_format_that_the_editor_prefers() {
    for (formats, kind, name, star) in [
        (json!(["markdown", "plaintext"]), "markdown", "**GPTBot** (OpenAI)", "Obeys `*`: yes"),
        (json!(["plaintext", "markdown"]), "plaintext", "GPTBot (OpenAI)", "Obeys *: yes"),
        (json!(["plaintext"]), "plaintext", "GPTBot (OpenAI)", "Documentation of the operator: https://"),
        (json!(null), "plaintext", "GPTBot (OpenAI)", "Obeys *: yes"),
    ] {
        let capabilities = json!({ "textDocument": { "hover": { "contentFormat": formats } } });
        let mut editor = Editor::start(&capabilities, &Value::Null);
        editor.open(URI, "User-agent: GPTBot\nDisallow: /a|b\n");
        let hover = editor.about("textDocument/hover", URI, 0, 13);
        let text = hover["contents"]["value"].as_str().unwrap();
        assert_eq!(hover["contents"]["kind"], kind, "{formats}");
        assert!(text.starts_with(name) && text.contains(star), "{formats}: {text}");
        let pattern = editor.about("textDocument/hover", URI, 1, 13)["contents"]["value"].clone();
        assert_has(pattern.as_str().unwrap(), &["/a|b"]);
    }
}

#[test]
fn hover_shows_which_crawlers_obey_a_line_and_how_many_urls_match() {
    let folder = folder(&[("urls.txt", "/\n/private/a\n/private/b\n/public\n")]);
    let mut editor = Editor::start(&usual(), &json!({ "urls": folder.at("urls.txt") }));
    editor.open(URI, "User-agent: GPTBot\nUser-agent: Googelbot\nDisallow: /private/\nAllow: /private/b\n\nUser-agent: *\nDisallow: /x\n");
    let mut text = |line: u32| {
        let hover = editor.about("textDocument/hover", URI, line, 13);
        hover["contents"]["value"].as_str().unwrap().to_owned()
    };
    assert_has(text(0), &["**GPTBot** (OpenAI): ai-training", "Obeys robots.txt: yes."]);
    assert_has(text(1), &["`Googelbot` is not in the registry: did you mean \"Googlebot\"?"]);
    assert_has(
        text(2),
        &[
            "Disallows `/private/` for 1 crawler of the registry (GPTBot), and `Googelbot`.",
            "Matches 2 of 4 URLs",
            "is the deciding rule for 1 of them.",
        ],
    );
    assert_has(text(5), &["Every crawler that is not named in any group."]);
    assert_has(text(6), &["Disallows `/x` for every crawler that is not named in any group"]);
    assert_eq!(editor.about("textDocument/hover", URI, 4, 0), Value::Null);
}

#[test]
fn the_definition_of_a_user_agent_is_every_group_that_names_it() {
    let mut editor = Editor::start(&usual(), &Value::Null);
    editor.open(URI, "User-agent: GPTBot\nDisallow: /a\nUser-agent: *\nDisallow: /\nUser-agent: gptbot\nUser-agent: ExampleBot\nDisallow: /b\n");
    let mut lines = |line: u32| -> Vec<u64> {
        let places = editor.about("textDocument/definition", URI, line, 14);
        places.as_array().unwrap().iter().map(|place| place["range"]["start"]["line"].as_u64().unwrap()).collect()
    };
    assert_eq!(lines(0), [0, 4]);
    assert_eq!(lines(4), [0, 4]);
    assert_eq!(lines(2), [2]);
    assert_eq!(lines(5), [5]);
    assert_eq!(lines(1), Vec::<u64>::new());
}

#[test]
fn directives_and_names_are_completed() {
    let mut editor = Editor::start(&usual(), &Value::Null);
    editor.open(URI, "User-agent: Applebot-E\nDis\nDisallow: /\n# Us\n");
    let mut items = |line: u32, character: u32| editor.about("textDocument/completion", URI, line, character);
    let labelled = |items: &Value, label: &str| {
        items.as_array().unwrap().iter().find(|item| item["label"] == label).cloned().unwrap_or_default()
    };
    let name = labelled(&items(0, 22), "Applebot-Extended");
    assert_eq!(name["textEdit"]["range"]["start"]["character"], 12, "{name}");
    assert_has(name["detail"].as_str().unwrap(), &["ai-training (Apple)"]);
    let directive = labelled(&items(1, 3), "Disallow");
    assert_eq!(
        (&directive["textEdit"]["newText"], &directive["textEdit"]["range"]["start"]["character"]),
        (&json!("Disallow: "), &json!(0))
    );
    assert_eq!((items(2, 11), items(3, 4)), (json!([]), json!([])));
}

#[test]
fn a_completion_replaces_the_whole_word() {
    let mut editor = Editor::start(&usual(), &Value::Null);
    for (before, after, label, want) in [
        ("User-agent: Apple", "bot-Ext # why", "Applebot-Extended", "User-agent: Applebot-Extended # why"),
        ("User-agent: ", "GPTBot", "GPTBot", "User-agent: GPTBot"),
        ("Dis", "allow: /a", "Disallow", "Disallow: /a"),
        (" Dis", "allow:/a", "Disallow", " Disallow: /a"),
        ("Dis", " /a", "Disallow", "Disallow:  /a"),
        ("", "Allow", "Disallow", "Disallow: "),
    ] {
        editor.open(URI, &format!("{before}{after}\n"));
        let character = u32::try_from(before.len()).unwrap();
        let items = editor.about("textDocument/completion", URI, 0, character);
        let item = items.as_array().unwrap().iter().find(|item| item["label"] == label).unwrap();
        let text = edited(&format!("{before}{after}\n"), std::slice::from_ref(&item["textEdit"]));
        assert_eq!(text, format!("{want}\n"));
    }
}

#[test]
fn the_outline_has_groups_rules_and_sitemaps() {
    let text = "# one\n# two\nUser-agent: a\nUser-agent: b\nDisallow: /x\n\nSitemap: https://a.test/s\n";
    let mut editor = Editor::start(&usual(), &Value::Null);
    editor.open(URI, text);
    let document = json!({ "textDocument": { "uri": URI } });
    let symbols = editor.ask("textDocument/documentSymbol", document.clone());
    assert_eq!(
        (&symbols[0]["name"], &symbols[1]["name"]),
        (&json!("User-agent: a, b"), &json!("Sitemap: https://a.test/s"))
    );
    assert_eq!(symbols[0]["children"][0]["name"], "Disallow: /x");
    let folding = editor.ask("textDocument/foldingRange", document.clone());
    let want = [
        json!({ "startLine": 2, "endLine": 4, "kind": "region" }),
        json!({ "startLine": 0, "endLine": 1, "kind": "comment" }),
    ];
    assert_eq!(folding.as_array().unwrap(), &want);
    let mut plain = Editor::start(&json!({}), &Value::Null);
    plain.open(URI, text);
    let names: Vec<_> = plain
        .ask("textDocument/documentSymbol", document)
        .as_array()
        .unwrap()
        .iter()
        .map(|symbol| symbol["name"].clone())
        .collect();
    assert_eq!(names, ["User-agent: a, b", "Disallow: /x", "Sitemap: https://a.test/s"]);
}

#[test]
fn the_outline_of_a_long_file_has_every_group() {
    let mut editor = Editor::start(&usual(), &Value::Null);
    editor.open(URI, &["User-agent: a\n", &"Disallow: /x\n".repeat(5_000), "User-agent: b\nDisallow: /\n"].concat());
    let symbols = editor.ask("textDocument/documentSymbol", json!({ "textDocument": { "uri": URI } }));
    let rules = |group: usize| symbols[group]["children"].as_array().unwrap().len();
    assert_eq!((rules(0), rules(1)), (2_000, 0));
}

#[test]
fn diagnostics_are_published_and_can_also_be_requested_by_the_editor() {
    let mut editor = Editor::start(&json!({ "textDocument": { "diagnostic": {} } }), &Value::Null);
    editor.open(URI, "User-agent: *\nDisallow: b\n");
    assert_eq!(editor.diagnostics(URI, 1).len(), 1);
    let pull = json!({ "textDocument": { "uri": URI } });
    let answer = editor.ask("textDocument/diagnostic", pull.clone());
    assert_eq!((&answer["kind"], &answer["items"][0]["code"]), (&json!("full"), &json!("path-without-slash")));
    editor.change(URI, 2, json!({ "text": "User-agent: *\nDisallow: /b\n" }));
    assert_eq!(editor.ask("textDocument/diagnostic", pull)["items"], json!([]));
}

#[test]
fn the_language_server_exits_when_its_editor_exits() {
    let mut editor = Editor::start(&usual(), &Value::Null);
    assert_eq!(editor.ask("shutdown", Value::Null), Value::Null);
    editor.tell("exit", Value::Null);
    editor.ends_with(0);

    let mut editor = Editor::start(&usual(), &Value::Null);
    editor.open(URI, "User-agent: *\nDisallow: b\n");
    // The editor dies: its end of the pipe is closed.
    editor.input = None;
    editor.ends_with(1);

    let mut process = Command::new("sleep").arg("3600").spawn().unwrap();
    let initialize = json!({ "processId": process.id(), "capabilities": {} });
    let mut editor = Editor::spawn();
    editor.ask("initialize", initialize.clone());
    process.kill().unwrap();
    process.wait().unwrap();
    editor.ends_with(1);

    // The server must continue if the editor's process is not visible, as in another namespace.
    let mut editor = Editor::spawn();
    editor.ask("initialize", initialize);
    editor.open(URI, "User-agent: *\nDisallow: b\n");
    assert_eq!(editor.diagnostics(URI, 1).len(), 1);
    editor.input = None;
    editor.ends_with(1);
}

#[test]
fn responses_match_the_capabilities_of_real_editors() {
    let Some(mut python) = programs::python_with("pytest_lsp", "pytest-lsp") else { return };
    python.current_dir(project("robotsd/tests")).env("ROBOTSD", env!("CARGO_BIN_EXE_robotsd"));
    python.env("PYTHONDONTWRITEBYTECODE", "1");
    // Other packages in the same folder have plugins that need packages that are not installed.
    python.env("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1");
    let arguments = ["-m", "pytest", "-q", "-p", "pytest_asyncio.plugin", "-p", "pytest_lsp", "-p", "no:cacheprovider"];
    run(python.args(arguments).arg("lsp_editors.py")).succeeded();
}

/// Script that runs in Neovim after the configuration of the handbook. It edits and fixes the open
/// file, and writes the responses of the server to a file.
const NEOVIM: &str = r#"
local function wait(what, holds) assert(vim.wait(150000, holds), what) end
local function codes()
  local found = vim.tbl_map(function(one) return one.code or one.user_data.lsp.code end, vim.diagnostic.get(0))
  table.sort(found)
  return table.concat(found, " ")
end
local result = {}
wait("diagnostics", function() return codes() ~= "" end)
result.opened = codes()
local hover = vim.lsp.buf_request_sync(0, "textDocument/hover", {
  textDocument = vim.lsp.util.make_text_document_params(), position = { line = 0, character = 14 } }, 150000)
for _, answer in pairs(hover) do result.hover = answer.result.contents.value end
vim.api.nvim_buf_set_text(0, 2, 10, 2, 11, { "/😀 b" })
wait("changed diagnostics", function() return codes() ~= result.opened and not codes():find("without") end)
result.changed = codes()
vim.lsp.buf.formatting_sync(nil, 150000)
result.text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
local file = io.open("result.json", "w")
file:write(vim.json.encode(result))
file:close()
vim.cmd("qa!")
"#;

#[test]
fn neovim_shows_and_fixes_findings() {
    if Command::new("nvim").arg("--version").output().is_err() {
        return programs::skip("nvim, of Debian's package neovim");
    }
    let page = fs::read_to_string(project("docs/src/howto/editors.md")).unwrap();
    let config = page.split("For Neovim before 0.11").nth(1).and_then(|rest| rest.split("```lua\n").nth(1)).unwrap();
    let config = config.split("```").next().unwrap();
    let folder = folder(&[("init.lua", config), ("test.lua", NEOVIM)]);
    fs::write(folder.at("robots.txt"), "User-agent: GPTBot\nDissallow: /a\nDisallow: b\n").unwrap();
    let mut neovim = Command::new("nvim");
    let path = Path::new(env!("CARGO_BIN_EXE_robotsd")).parent().unwrap();
    let path = format!("{}:{}", path.display(), std::env::var("PATH").unwrap());
    neovim.current_dir(folder.path()).env("PATH", path).env("XDG_STATE_HOME", folder.path());
    neovim.args(["--headless", "-i", "NONE", "-n", "-u", "init.lua", "robots.txt", "-c", "luafile test.lua"]);
    let ended = run(&mut neovim);
    let result: Value = serde_json::from_str(
        &fs::read_to_string(folder.at("result.json")).unwrap_or_else(|_| panic!("{}", ended.said())),
    )
    .unwrap();
    assert_eq!(result["opened"], "misspelled-directive path-without-slash", "{result}");
    assert_has(result["hover"].as_str().unwrap(), &["**GPTBot** (OpenAI)"]);
    assert_has(result["changed"].as_str().unwrap(), &["misspelled-directive"]);
    assert_has(result["text"].as_str().unwrap(), &["User-agent: GPTBot\nDisallow: /a\n"]);
}
