//! Tests targets that must be forwarded: targets of real sites that no server could take for a
//! private page, and every canonical target that RFC 9309 allows.

use std::fmt::Write;

use super::CRAWLER;
use super::client::{Client, Greeting, refusal};
use super::target::Numbers;
use crate::harness::*;

/// Returns the target that the origin has received. The origin's response contains its request.
fn forwarded(answer: &Answer) -> Option<&str> {
    answer.body.lines().next()?.strip_prefix("GET ")?.strip_suffix(" HTTP/1.1")
}

#[test]
fn harmless_targets_are_never_refused_and_are_forwarded_unchanged() {
    let origin = Origin::start();
    let cases = super::lines("harmless.jsonl");
    // One of the cases blocks all crawlers. The gate would hold this case, so the gate is off.
    let mut config = Config::refusing().tables("[gate]\nenabled = false");
    for (number, case) in cases.iter().enumerate() {
        let rules: Vec<_> = case["rules"].as_array().unwrap().iter().map(|rule| rule.as_str().unwrap()).collect();
        let robots = format!("User-agent: GPTBot\nUser-agent: *\n{}\n", rules.join("\n"));
        let keys = format!(
            "hosts = [\"s{number}.test\"]\nupstreams = [\"http://{origin}\"]\n[site.robots]\nsource = \"inline\"\n\
             text = '''\n{robots}'''"
        );
        config = config.site(&format!("s{number}"), keys);
    }
    let (_folder, running) = config.start();
    let mut wrong = String::new();
    for (number, case) in cases.iter().enumerate() {
        let host = format!("s{number}.test");
        let targets = |name: &str| -> Vec<String> {
            let targets = case[name].as_array().into_iter().flatten();
            targets.map(|target| target.as_str().unwrap().to_owned()).collect()
        };
        for greeting in [Greeting::None, Greeting::Options] {
            let mut client = Client::new(running.address, &host, greeting);
            for agent in [GPTBOT, CRAWLER] {
                for target in targets("allowed") {
                    let reply = client.get(target.as_bytes(), agent);
                    let seen = forwarded(&reply);
                    let is_robots_txt = target.split('?').next() == Some("/robots.txt");
                    // robotsd may escape bytes of UTF-8 when it forwards a target.
                    let is_whole = seen == Some(&*target) || !target.is_ascii() || is_robots_txt;
                    if reply.status != 200 || !is_whole {
                        wrong += &format!("{target} beside {}: {reply:?}\n", case["rules"]);
                    }
                }
                for target in targets("disallowed") {
                    let reply = client.get(target.as_bytes(), agent);
                    if refusal(&reply).is_none() {
                        wrong += &format!("{target} beside {}: {reply:?}, and it is disallowed\n", case["rules"]);
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn methods_other_than_get_and_head_pass_unless_a_group_names_the_crawler() {
    let origin = Origin::start();
    let (_folder, running) = super::proxy(&[("echo".to_owned(), origin.address.to_string())]);
    let path = b"/private/x";
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND"] {
        let mut client = Client::new(running.address, "s0.test", Greeting::None);
        assert_eq!(client.ask(method, path, CRAWLER).status, 200, "{method}");
        assert_eq!(client.ask(method, path, GPTBOT).status, 403, "{method}");
    }
}

#[test]
fn a_canonical_target_is_allowed_or_refused_as_rfc_9309_requires() {
    let origin = Origin::start();
    let (_folder, running) = super::proxy(&[("echo".to_owned(), origin.address.to_string())]);
    let robots = fs::read_to_string(super::case("robots.txt")).unwrap();
    let rules: Vec<_> = robots
        .lines()
        .filter_map(|line| {
            let (name, pattern) = line.split_once(": ")?;
            matches!(name, "Allow" | "Disallow").then(|| (name == "Allow", pattern.to_owned()))
        })
        .collect();
    let mut numbers = Numbers(3);
    let mut client = Client::new(running.address, "s0.test", Greeting::None);
    let (mut wrong, mut refused) = (String::new(), 0);
    let turns = if is_long() { 2000 } else { 800 };
    for turn in 0..turns {
        let target = canonical_target(&mut numbers, &rules);
        let expected = is_allowed(&rules, &target);
        let reply = client.get(target.as_bytes(), [GPTBOT, CRAWLER][turn % 2]);
        let refusal = refusal(&reply);
        refused += usize::from(refusal.is_some());
        if refusal.is_none() != expected || (expected && reply.status != 200) {
            writeln!(wrong, "{target}: allowed: {expected}, but {} {refusal:?}", reply.status).unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    // Both outcomes must have occurred.
    assert!((turns / 5..turns * 4 / 5).contains(&refused), "{refused} refused");
}

/// Returns a target that all servers read in the same way. Its segments are similar to those of the
/// rules, with and without escapes. It may have any query.
fn canonical_target(numbers: &mut Numbers, rules: &[(bool, String)]) -> String {
    let mut target = String::new();
    let pattern = &rules[numbers.below(rules.len())].1;
    let names: Vec<&str> = pattern.trim_end_matches('$').split('/').filter(|name| !name.is_empty()).collect();
    for number in 0..=numbers.below(4) {
        target.push('/');
        let name = match names.get(number) {
            Some(name) if numbers.below(5) > 0 => *name,
            _ => ["x", "private", "pub", "Special:", "a@b", "a=b", "p(1)", "c++", "%C3%A9", "50%25"][numbers.below(10)],
        };
        let all = numbers.below(3);
        for byte in name.replace('*', "any").replace("%3A", ":").replace("%40", "@").replace("%2A", "*").bytes() {
            // A raw `;` separates path parameters, which another test covers, so it is always
            // escaped here. Bytes that are not ASCII are also escaped.
            let escape = byte >= 0x80 || byte == b';' || (byte != b'%' && (all == 0 || numbers.below(8) == 0));
            if escape { write!(target, "%{byte:02X}").unwrap() } else { target.push(char::from(byte)) }
        }
    }
    // In the pattern, `%` begins an escape. The digits of that escape must not be escaped.
    let target = mend(&target);
    // Half of the targets have no query.
    const ENDS: &str = "     ? ?u=https%3A%2F%2Fx%2Fprivate%2F ?a[]=1&b%5B%5D=2 ?x=//private/x ?/../private/ ?a;b ?e=a@b&f=a%40b ?a.pdf / /x";
    let ends: Vec<_> = ENDS.split(' ').skip(1).collect();
    target + ends[numbers.below(ends.len())]
}

/// Changes `%%35%30`, which was made from `%50`, back to `%50`.
fn mend(target: &str) -> String {
    let mut out = String::new();
    let mut rest = target;
    while let Some(at) = rest.find('%') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        // Two bytes follow. Each of them may be escaped.
        let mut taken = 1;
        let mut digits = String::new();
        while digits.len() < 2 {
            let next = &from[taken..];
            if let Some(escape) = next.strip_prefix('%') {
                digits.push(char::from(u8::from_str_radix(&escape[..2], 16).unwrap()));
                taken += 3;
            } else {
                digits.push_str(&next[..1]);
                taken += 1;
            }
        }
        out.push('%');
        out.push_str(&digits);
        rest = &from[taken..];
    }
    out + rest
}

#[derive(Clone, Copy, PartialEq)]
enum Piece {
    Byte(u8),
    Escape(u8),
    Any,
    End,
}

/// According to RFC 9309, section 2.2.2, an escaped byte in a path means the byte itself, unless
/// that would change the structure of the path.
fn is_allowed(rules: &[(bool, String)], target: &str) -> bool {
    let (path, query) = target.split_at(target.find('?').unwrap_or(target.len()));
    let mut bytes = pieces(path, true, false);
    bytes.extend(pieces(query, false, false));
    let mut best: Option<(usize, bool)> = None;
    for (allow, pattern) in rules {
        let matched = readings(pattern).iter().any(|pattern| matches(pattern, &bytes));
        let length = pattern.bytes().map(|byte| if byte < 0x80 { 1 } else { 3 }).sum();
        // The longest rule decides. If two rules are equally long, the rule that allows decides.
        if matched && best.is_none_or(|best| best < (length, *allow)) {
            best = Some((length, *allow));
        }
    }
    best.is_none_or(|(_, allow)| allow)
}

/// Returns two readings of a pattern: the part after the first wildcard is in the path, or in the
/// query. Escapes have other meanings in a query.
fn readings(pattern: &str) -> Vec<Vec<Piece>> {
    let (path, query) = pattern.split_at(pattern.find('?').unwrap_or(pattern.len()));
    let (before, behind) = path.split_at(path.find('*').unwrap_or(path.len()));
    [true, false]
        .map(|is_path| {
            let mut pieces = pieces(before, true, true);
            pieces.extend(self::pieces(behind, is_path, true));
            pieces.extend(self::pieces(query, false, true));
            pieces
        })
        .to_vec()
}

fn pieces(text: &str, is_path: bool, is_pattern: bool) -> Vec<Piece> {
    let bytes = text.as_bytes();
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let digits = text.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (bytes[at], digits) {
            (b'%', Some(byte)) => {
                let unreserved = byte.is_ascii_alphanumeric() || b"-._~*$".contains(&byte);
                let is_same = unreserved || (is_path && b"!&'()+,;=:@[]".contains(&byte));
                pieces.push(if is_same { Piece::Byte(byte) } else { Piece::Escape(byte) });
                at += 2;
            }
            (b'*', _) if is_pattern => pieces.push(Piece::Any),
            (b'$', _) if is_pattern && at + 1 == bytes.len() => pieces.push(Piece::End),
            (byte @ 0x80.., _) => pieces.push(Piece::Escape(byte)),
            (byte, _) => pieces.push(Piece::Byte(byte)),
        }
        at += 1;
    }
    pieces
}

fn matches(pattern: &[Piece], path: &[Piece]) -> bool {
    match pattern {
        [] => true,
        [Piece::End] => path.is_empty(),
        [Piece::Any, rest @ ..] => (0..=path.len()).any(|from| matches(rest, &path[from..])),
        [piece, rest @ ..] => path.first() == Some(piece) && matches(rest, &path[1..]),
    }
}
