//! The slow, obvious matcher: the standard and the reference parser, written again without the
//! crate's optimisations, to be compared with RFC 9309. It uses the crate only to split a file into
//! lines and groups, if it gets a parsed file ([`of_parsed`]). The caller passes the forms of a
//! path.

use crate::rules::{Access, Reading, RobotsTxt};

/// The verdict of the rules about one form of a path, and the deciding line (0 for none).
pub(crate) type Answer = (Access, usize);

/// A group: the values of its `User-agent` lines and its rules, in file order.
#[derive(Default)]
pub(crate) struct SlowGroup {
    names: Vec<Vec<u8>>,
    pub(crate) rules: Vec<SlowRule>,
}

pub(crate) struct SlowRule {
    pub(crate) access: Access,
    pub(crate) pattern: Vec<u8>,
    line: usize,
}

/// Returns the groups of a file that the crate parsed, up to the size limit of the reading.
pub(crate) fn of_parsed(file: &RobotsTxt, reading: Reading) -> Vec<SlowGroup> {
    let limit = if reading == Reading::Reference { usize::MAX } else { 512_000 };
    let groups = file.groups().map(|group| {
        let names = group.names().filter(|name| name.range().end <= limit).map(|name| name.value().to_vec());
        let rules = group.rules().filter(|rule| rule.range().end <= limit);
        let rules =
            rules.map(|rule| SlowRule { access: rule.access(), pattern: rule.pattern().to_vec(), line: rule.line() });
        SlowGroup { names: names.collect(), rules: rules.collect() }
    });
    groups.collect()
}

/// Returns the groups of a file that contains only lines as in section 2.2: consecutive user-agent
/// lines begin a group, and rules belong to the group above them.
pub(crate) fn read(file: &str) -> Vec<SlowGroup> {
    let (mut groups, mut in_names) = (Vec::new(), false);
    for (number, line) in file.lines().enumerate() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim().as_bytes().to_vec());
        if key == "user-agent" {
            if !in_names {
                groups.push(SlowGroup::default());
            }
            groups.last_mut().unwrap().names.push(value);
        } else if let Some(group) = groups.last_mut() {
            let access = if key == "allow" { Access::Allow } else { Access::Disallow };
            group.rules.push(SlowRule { access, pattern: value, line: number + 1 });
        }
        in_names = key == "user-agent";
    }
    groups
}

/// Returns the answer of a file for a path and a chain of lower-case tokens; `star` is whether `*`
/// may apply.
///
/// `forms` are the forms of the path. If any is disallowed, the path is disallowed; the first one
/// found is reported.
pub(crate) fn answer(file: &[SlowGroup], reading: Reading, chain: &[&str], star: bool, forms: &[&[u8]]) -> Answer {
    let Some(rules) = rules_of(file, reading, chain, star) else { return (Access::Allow, 0) };
    let judged = |path: &&[u8]| judge(rules.iter().filter_map(|rule| Some((*rule, priority(rule, reading, path)?))));
    let answers: Vec<Answer> = forms.iter().map(judged).collect();
    answers.iter().copied().find(|(access, _)| *access == Access::Disallow).unwrap_or(answers[0])
}

/// Returns the rules of every group that applies (section 2.2.1); `None` if no group applies.
pub(crate) fn rules_of<'f>(
    file: &'f [SlowGroup],
    reading: Reading,
    chain: &[&str],
    star: bool,
) -> Option<Vec<&'f SlowRule>> {
    let of = |wanted: &dyn Fn(&[u8]) -> bool| {
        let groups: Vec<_> = file.iter().filter(|group| group.names.iter().any(|name| wanted(name))).collect();
        (!groups.is_empty()).then(|| groups.iter().flat_map(|group| &group.rules).collect())
    };
    let named = |token: &str| of(&|value| !is_star(value) && name(value, reading).as_deref() == Some(token));
    chain.iter().find_map(|token| named(token)).or_else(|| if star { of(&is_star) } else { None })
}
fn is_blank(byte: u8) -> bool {
    byte == b' ' || (9..=13).contains(&byte)
}

fn is_star(value: &[u8]) -> bool {
    value == b"*" || (value.len() > 1 && value[0] == b'*' && is_blank(value[1]))
}

fn name(value: &[u8], reading: Reading) -> Option<String> {
    let text: String = value.iter().map(|byte| char::from(byte.to_ascii_lowercase())).collect();
    if reading == Reading::Reference {
        return Some(text.chars().take_while(|char| char.is_ascii_lowercase() || "-_".contains(*char)).collect());
    }
    let decoration = |char: char| u8::try_from(char).is_ok_and(is_blank) || "\"'*+".contains(char);
    let text = text.trim_matches(decoration);
    let text = text.split(['/', '(', ';', ',']).next().unwrap_or_default().trim_matches(decoration);
    let words: Vec<&str> =
        text.split(|char| u8::try_from(char).is_ok_and(is_blank)).filter(|word| !word.is_empty()).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Returns the verdict of the matching rules, each with its priority (section 2.2.2): the longest
/// wins, then an allow rule, then the first line.
pub(crate) fn judge<'f>(matching: impl Iterator<Item = (&'f SlowRule, usize)>) -> Answer {
    // The best allow rule and the best disallow rule: the longest rule, or the first one if several
    // have this length.
    let mut best: [Option<(usize, usize)>; 2] = [None; 2];
    for (rule, priority) in matching {
        let best = &mut best[usize::from(rule.access == Access::Disallow)];
        if best.is_none_or(|(longest, _)| priority > longest) {
            *best = Some((priority, rule.line));
        }
    }
    match best {
        [None, None] => (Access::Allow, 0),
        [Some((_, line)), None] => (Access::Allow, line),
        [Some((allow, _)), Some((disallow, line))] if disallow > allow => (Access::Disallow, line),
        [Some((_, line)), Some(_)] => (Access::Allow, line),
        [None, Some((0, line))] => (Access::Allow, line),
        [None, Some((_, line))] => (Access::Disallow, line),
    }
}

fn priority(rule: &SlowRule, reading: Reading, path: &[u8]) -> Option<usize> {
    let written = &*rule.pattern;
    if matches(written, reading, path) {
        return Some(length(written));
    }
    let slash = written.iter().rposition(|byte| *byte == b'/')?;
    if rule.access == Access::Disallow || !written[slash..].starts_with(b"/index.htm") {
        return None;
    }
    let directory = [&written[..=slash], b"$"].concat();
    matches(&directory, reading, path).then(|| length(&directory))
}

/// Returns the length of a pattern for its priority. A byte ≥ 0x80 counts as three, like its
/// escape.
pub(crate) fn length(written: &[u8]) -> usize {
    written.iter().map(|byte| if *byte < 0x80 { 1 } else { 3 }).sum()
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    Byte(u8),
    Any,
}

/// Reports whether a pattern as written matches a path in the form that the reading compares.
pub(crate) fn matches(written: &[u8], reading: Reading, path: &[u8]) -> bool {
    texts(written, reading).iter().any(|pieces| covers(pieces, path))
}

/// Returns the pieces of a pattern (section 2.2.3). The text after a `*` may match in the path or
/// in the query. If the pieces differ between the two cases, returns a version for each case.
pub(crate) fn texts(written: &[u8], reading: Reading) -> Vec<Vec<Piece>> {
    let stars = written.iter().filter(|byte| **byte == b'*').count();
    let mut differing: Vec<usize> = (1..=stars)
        .filter(|star| pieces(written, reading, Some(*star)) != pieces(written, reading, Some(star + 1)))
        .collect();
    // Not every version is kept, because the second covers the later ones.
    differing.truncate(2);
    let text = |query| {
        let mut written = written.to_vec();
        if reading == Reading::Legacy && !written.is_empty() && written[0] != b'/' && written[0] != b'*' {
            written.insert(0, b'/');
        }
        let anchored = written.last() == Some(&b'$');
        if anchored {
            written.pop();
        }
        let mut pieces = pieces(&written, reading, query);
        if !anchored {
            pieces.push(Piece::Any);
        }
        pieces
    };
    std::iter::once(None).chain(differing.into_iter().map(Some)).map(text).collect()
}

pub(crate) fn covers(pieces: &[Piece], path: &[u8]) -> bool {
    // Whether the pieces so far can match the first `length` bytes of the path, for each length.
    let mut covered = vec![false; path.len() + 1];
    covered[0] = true;
    for piece in pieces {
        let mut next = vec![false; path.len() + 1];
        let mut any_before = false;
        for length in 0..=path.len() {
            any_before |= covered[length];
            next[length] = match piece {
                Piece::Any => any_before,
                Piece::Byte(byte) => length > 0 && covered[length - 1] && path[length - 1] == *byte,
            };
        }
        covered = next;
    }
    covered[path.len()]
}

/// Returns a path in the form that patterns are compared with (section 2.2.2).
pub(crate) fn standard(path: &[u8]) -> Vec<u8> {
    let byte = |piece| if let Piece::Byte(byte) = piece { byte } else { b'*' };
    pieces(path, Reading::Standard, None).into_iter().map(byte).collect()
}

/// Returns the pieces of a pattern. Its query begins at its first `?`, or in the `*` with the
/// number `query`, counted from 1.
fn pieces(written: &[u8], reading: Reading, query: Option<usize>) -> Vec<Piece> {
    let (mut pieces, mut strays) = (Vec::new(), Vec::new());
    let (mut at, mut stars, mut in_query) = (0, 0, false);
    while at < written.len() {
        let hex = std::str::from_utf8(written.get(at + 1..at + 3).unwrap_or_default()).unwrap_or("x");
        let escape = written[at] == b'%' && hex.len() == 2 && hex.bytes().all(|digit| digit.is_ascii_hexdigit());
        let (text, taken) = if escape {
            let byte = u8::from_str_radix(hex, 16).unwrap();
            let plain = byte.is_ascii_alphanumeric() || b"-._~*$ \"<>^`{|}".contains(&byte);
            let plain = plain || !in_query && b"!&'()+,;=:@[]".contains(&byte);
            if plain && reading != Reading::Reference {
                (vec![byte], 3)
            } else {
                (format!("%{byte:02X}").into_bytes(), 3)
            }
        } else if written[at] >= 0x80 || written[at] == b'\\' && reading != Reading::Reference {
            (format!("%{:02X}", written[at]).into_bytes(), 1)
        } else if written[at] == b'*' {
            stars += 1;
            in_query |= query == Some(stars);
            pieces.push(Piece::Any);
            (Vec::new(), 1)
        } else if written[at] == b'%' && reading != Reading::Reference {
            strays.push(pieces.len());
            (vec![b'%'], 1)
        } else {
            in_query |= written[at] == b'?';
            (vec![written[at]], 1)
        };
        pieces.extend(text.into_iter().map(Piece::Byte));
        at += taken;
    }
    // A percent sign that was not an escape does not become one.
    let hex = |piece: Option<&Piece>| matches!(piece, Some(Piece::Byte(byte)) if byte.is_ascii_hexdigit());
    for stray in strays.into_iter().rev() {
        if hex(pieces.get(stray + 1)) && hex(pieces.get(stray + 2)) {
            pieces.insert(stray + 1, Piece::Byte(b'5'));
            pieces.insert(stray + 1, Piece::Byte(b'2'));
        }
    }
    pieces
}
