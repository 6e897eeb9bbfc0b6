//! How `Reading::Standard` and `Reading::Legacy` differ from `Reading::Reference`: one test per row
//! of the table of `Reading`.

use tower_robots::rules::{Access, Fallback, NoteKind, ProductToken, Reading, RequestPath, RobotsTxt};

const READINGS: [Reading; 3] = [Reading::Reference, Reading::Standard, Reading::Legacy];

/// Returns whether each of the three readings allows a path for a token. `Reference` is first.
fn allowed(file: impl AsRef<[u8]>, token: &str, path: &str) -> [bool; 3] {
    READINGS.map(|reading| {
        let rules = RobotsTxt::parse(file.as_ref()).compile(reading);
        let path = match reading {
            Reading::Reference => RequestPath::verbatim(path.as_bytes()),
            _ => RequestPath::new(path.as_bytes()),
        };
        let verdict = rules.select(&[ProductToken::new(token)], Fallback::Nothing).verdict(&path);
        verdict.access() == Access::Allow
    })
}

#[test]
fn ours_a_user_agent_name_is_compared_in_full() {
    let file = "user-agent: MJ12bot\nuser-agent: 008\ndisallow: /";
    assert_eq!(allowed(file, "mj12bot", "/"), [true, false, false]);
    assert_eq!(allowed(file, "mj", "/"), [false, true, true]);
    assert_eq!(allowed(file, "008", "/"), [true, false, false]);
    assert_eq!(allowed(file, "", "/"), [false, true, true]);
}

#[test]
fn ours_escapes_in_patterns_are_normalised() {
    let file = |pattern: &str| format!("user-agent: a\ndisallow: {pattern}");
    assert_eq!(allowed(file("/%61"), "a", "/a"), [true, false, false]);
    assert_eq!(allowed(file("/a"), "a", "/%61"), [true, false, false]);
    assert_eq!(allowed(file("/a%2fb"), "a", "/a%2fb"), [true, false, false]);
    assert_eq!(allowed(file("/\u{e9}"), "a", "/\u{e9}"), [true, false, false]);
    assert_eq!(allowed(file("/\u{e9}"), "a", "/%C3%A9"), [false, false, false]);
}

#[test]
fn ours_the_priority_of_a_rule_is_the_length_of_the_pattern_as_written() {
    // The priority counts the bytes as written. `/%61` has four bytes like `/abc`, so the allow
    // rule wins the tie. `/%61%62` has seven bytes and wins, although it is compared as `/ab`.
    let file = "user-agent: a\ndisallow: /%61\nallow: /abc\nallow: /a";
    assert_eq!(allowed(file, "a", "/abc"), [true, true, true]);
    assert_eq!(allowed("user-agent: a\ndisallow: /%61%62\nallow: /abc", "a", "/abc"), [true, false, false]);
}

#[test]
fn ours_an_escaped_star_or_dollar_matches_the_literal_character() {
    let file = "user-agent: a\ndisallow: /a%2Ab\ndisallow: /c%24";
    assert_eq!(allowed(file, "a", "/a*b"), [true, false, false]);
    assert_eq!(allowed(file, "a", "/axb"), [true, true, true]);
    assert_eq!(allowed(file, "a", "/c$d"), [true, false, false]);
}

#[test]
fn ours_bytes_beyond_the_size_limit_are_ignored() {
    let head = "user-agent: a\ndisallow: /a\n";
    let file = |tail: &str| {
        let filler = Reading::STANDARD_LIMIT - head.len() - tail.len();
        [head, "#", &"x".repeat(filler), "\n", tail].concat()
    };
    // The last rule ends two bytes beyond the limit.
    let cut = file("disallow: /b");
    assert_eq!(cut.len(), Reading::STANDARD_LIMIT + 2);
    assert_eq!(allowed(&cut, "a", "/a"), [false, false, false]);
    assert_eq!(allowed(&cut, "a", "/b"), [false, true, true]);
    assert_eq!(allowed(&cut[..cut.len() - 2], "a", "/"), [true, true, true]);
    let notes = |reading| {
        let rules = RobotsTxt::parse(cut.as_bytes()).compile(reading);
        rules.notes().iter().map(|note| (note.line, note.kind)).collect::<Vec<_>>()
    };
    assert_eq!(notes(Reading::Standard), [(4, NoteKind::CutLine)]);
    assert_eq!(notes(Reading::Reference), []);
    // A name that is cut off is ignored, and not read as a shorter name.
    let cut = file("user-agent: b") + "\ndisallow: /";
    assert_eq!(allowed(&cut, "b", "/"), [false, true, true]);
}

#[test]
fn ours_legacy_assumes_a_leading_slash() {
    assert_eq!(allowed("user-agent: a\ndisallow: fish/", "a", "/fish/x"), [true, true, false]);
}
