//! The slow, obvious matcher: the standard and the reference parser, written down once more without any of the
//! crate's shortcuts. It takes the crate's word for lines, groups and the forms of a path, and nothing else.

use tower_robots::rules::{Access, Reading, RobotsTxt, Rule};

/// The verdict of the rules about one form of a path, and the line that decided (0 for none).
pub(crate) type Answer = (Access, usize);

/// Asks a file about a path for a chain of tokens, in lower case; `star` says whether `*` may apply.
///
/// `forms` are the readings of the path: any disallow counts, the first one found is reported.
pub(crate) fn answer(file: &RobotsTxt, reading: Reading, chain: &[&str], star: bool, forms: &[&[u8]]) -> Answer {
    let Some(rules) = rules_of(file, reading, chain, star) else { return (Access::Allow, 0) };
    let answers: Vec<Answer> = forms.iter().map(|path| judge(&rules, reading, path)).collect();
    answers.iter().copied().find(|(access, _)| *access == Access::Disallow).unwrap_or(answers[0])
}

/// The rules of every group that applies, or `None` where none does.
fn rules_of<'f>(file: &'f RobotsTxt, reading: Reading, chain: &[&str], star: bool) -> Option<Vec<Rule<'f>>> {
    let limit = if reading == Reading::Reference { usize::MAX } else { 512_000 };
    let of = |wanted: &dyn Fn(&[u8]) -> bool| {
        let groups: Vec<_> = file
            .groups()
            .filter(|group| group.names().any(|name| name.range().end <= limit && wanted(name.value())))
            .collect();
        let rules = groups.iter().flat_map(|group| group.rules()).filter(|rule| rule.range().end <= limit);
        (!groups.is_empty()).then(|| rules.collect())
    };
    let named = |token: &str| of(&|value| !is_star(value) && name(value, reading).as_deref() == Some(token));
    chain.iter().find_map(|token| named(token)).or_else(|| if star { of(&is_star) } else { None })
}

fn is_blank(octet: u8) -> bool {
    octet == b' ' || (9..=13).contains(&octet)
}

fn is_star(value: &[u8]) -> bool {
    value == b"*" || (value.len() > 1 && value[0] == b'*' && is_blank(value[1]))
}

fn name(value: &[u8], reading: Reading) -> Option<String> {
    let text: String = value.iter().map(|octet| char::from(octet.to_ascii_lowercase())).collect();
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

fn judge(rules: &[Rule<'_>], reading: Reading, path: &[u8]) -> Answer {
    // The best allow and the best disallow, each the first of the longest.
    let mut best: [Option<(usize, usize)>; 2] = [None; 2];
    for rule in rules {
        let Some(priority) = priority(*rule, reading, path) else { continue };
        let best = &mut best[usize::from(rule.access() == Access::Disallow)];
        if best.is_none_or(|(longest, _)| priority > longest) {
            *best = Some((priority, rule.line()));
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

/// The priority with which a rule matches.
fn priority(rule: Rule<'_>, reading: Reading, path: &[u8]) -> Option<usize> {
    let written = rule.pattern();
    let length = |written: &[u8]| written.iter().map(|octet| if *octet < 0x80 { 1 } else { 3 }).sum();
    if matches(written, reading, path) {
        return Some(length(written));
    }
    let slash = written.iter().rposition(|octet| *octet == b'/')?;
    if rule.access() == Access::Disallow || !written[slash..].starts_with(b"/index.htm") {
        return None;
    }
    let directory = [&written[..=slash], b"$"].concat();
    matches(&directory, reading, path).then(|| length(&directory))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Piece {
    Octet(u8),
    Any,
}

/// Text behind a `*` can be met in the path or, from some literal on, in the query.
pub(crate) fn matches(written: &[u8], reading: Reading, path: &[u8]) -> bool {
    let stars = written.iter().filter(|octet| **octet == b'*').count();
    let mut differing: Vec<usize> = (1..=stars)
        .filter(|star| pieces(written, reading, Some(*star)) != pieces(written, reading, Some(star + 1)))
        .collect();
    // Not every combination is kept: those behind the second are met where it is.
    differing.truncate(2);
    std::iter::once(None).chain(differing.into_iter().map(Some)).any(|query| {
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
        covers(pieces, path)
    })
}

fn covers(pieces: Vec<Piece>, path: &[u8]) -> bool {
    // Row by row: which lengths of the path the pieces so far can cover.
    let mut covered = vec![false; path.len() + 1];
    covered[0] = true;
    for piece in pieces {
        let mut next = vec![false; path.len() + 1];
        let mut any_before = false;
        for length in 0..=path.len() {
            any_before |= covered[length];
            next[length] = match piece {
                Piece::Any => any_before,
                Piece::Octet(octet) => length > 0 && covered[length - 1] && path[length - 1] == octet,
            };
        }
        covered = next;
    }
    covered[path.len()]
}

/// The pieces of a pattern whose query begins at its first `?` or, earlier, in the run of this `*`, counted from one.
fn pieces(written: &[u8], reading: Reading, query: Option<usize>) -> Vec<Piece> {
    let (mut pieces, mut strays) = (Vec::new(), Vec::new());
    let (mut at, mut stars, mut in_query) = (0, 0, false);
    while at < written.len() {
        let hex = std::str::from_utf8(written.get(at + 1..at + 3).unwrap_or_default()).unwrap_or("x");
        let escape = written[at] == b'%' && hex.len() == 2 && hex.bytes().all(|digit| digit.is_ascii_hexdigit());
        let (text, taken) = if escape {
            let octet = u8::from_str_radix(hex, 16).unwrap();
            let plain = octet.is_ascii_alphanumeric() || b"-._~*$ \"<>^`{|}".contains(&octet);
            let plain = plain || !in_query && b"!&'()+,;=:@[]".contains(&octet);
            if plain && reading != Reading::Reference {
                (vec![octet], 3)
            } else {
                (format!("%{octet:02X}").into_bytes(), 3)
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
        pieces.extend(text.into_iter().map(Piece::Octet));
        at += taken;
    }
    // A percent sign that was no escape does not become one.
    let hex = |piece: Option<&Piece>| matches!(piece, Some(Piece::Octet(octet)) if octet.is_ascii_hexdigit());
    for stray in strays.into_iter().rev() {
        if hex(pieces.get(stray + 1)) && hex(pieces.get(stray + 2)) {
            pieces.insert(stray + 1, Piece::Octet(b'5'));
            pieces.insert(stray + 1, Piece::Octet(b'2'));
        }
    }
    pieces
}
