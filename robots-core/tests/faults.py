#!/usr/bin/env python3
"""Plants faults in the matcher and its index, and checks that the test `small_world` finds each of them.

    robots-core/tests/faults.py [SMALL_WORLD]

All faults are built at once into a copy of the last commit, and each has a number. `small_world` runs once for each fault, and once
without a fault. SMALL_WORLD selects the part of the cases that it tests, as in the test: `7/31` by default. The list contains no faults
that change no verdict, or that only cases outside of the small world would show.
"""
import os, re, subprocess, sys, tempfile
from collections import defaultdict

# In each line: a file, the code with the replaced expression in ⟦⟧, and the faulty expression. `~`
# represents `|`.
FAULTS = """
text.rs | return ⟦left.ends_with(literal)⟧; | left.starts_with(literal)
text.rs | return ⟦left.ends_with(literal)⟧; | memmem::find(left, literal).is_some()
text.rs | left = ⟦&left[at + literal.len()..]⟧; | &left[at..]
text.rs | left = ⟦&left[at + literal.len()..]⟧; | &left[(at + literal.len() + 1).min(left.len())..]
text.rs | **place == byte && ⟦path[*at..].starts_with(literal)⟧ | true
text.rs | let byte = ⟦literal[rare]⟧; | literal[0]
text.rs | if ⟦anchored && !written.ends_with(b"*")⟧ { | anchored
text.rs | if ⟦anchored && !written.ends_with(b"*")⟧ { | false
text.rs | if ⟦number > 0 && literal.is_empty()⟧ { | false
text.rs | if ⟦reading == Reading::Legacy && !matches!(written, [] ~ [b'/' ~ b'*', ..])⟧ { | false
text.rs | if ⟦reading == Reading::Legacy && !matches!(written, [] ~ [b'/' ~ b'*', ..])⟧ { | reading == Reading::Legacy
text.rs | if ⟦reading == Reading::Reference⟧ { return write_reference | false
text.rs | [END] => ⟦Tail::End⟧, | Tail::Open
index/candidates.rs | candidate.priority), ⟦candidate.access == Access::Disallow⟧, | candidate.access == Access::Allow
index/candidates.rs | Access::Disallow, ⟦candidate.rule⟧) | u32::MAX - candidate.rule
index/candidates.rs | (⟦Reverse(candidate.priority)⟧, | Reverse(0)
index/candidates.rs | (⟦Reverse(candidate.priority)⟧, | Reverse(u32::MAX - candidate.priority)
index/candidates.rs | if ⟦candidate.priority == 0⟧ { | false
index/mod.rs | best = ⟦best.min(stop.rank)⟧; | best
index/mod.rs | list = ⟦*above⟧; | u32::MAX
index/mod.rs | self.grams.get(⟦root.grams as usize⟧) | usize::MAX
index/mod.rs | &mut tried, ⟦*prefix as usize⟧, | *prefix as usize + 1
index/trie.rs | rank: ⟦node.best.min(end.rank)⟧, | node.best
index/trie.rs | node.best = ⟦node.best.min(rank)⟧, | rank
index/trie.rs | Node { best: ⟦self.nodes[above].best⟧, | Rank::NONE
index/trie.rs | end_here.rank = ⟦end_here.rank.min(rank)⟧, | rank
index/trie.rs | let mut end_here = NodeEnd { rank: ⟦Rank::NONE⟧, | self.ends[self.nodes[above].end as usize].rank
index/trie.rs | at += ⟦usize::from(child.label_length)⟧; | 1
index/trie.rs | return ⟦differing << (8 * (INLINE - length)) == 0⟧; | true
index/trie.rs | let place = ⟦byte.wrapping_sub(node.firsts as u8)⟧; | byte.wrapping_sub(node.firsts as u8).wrapping_add(1)
index/trie.rs | (node.children + ⟦equal.trailing_zeros() / 8⟧) | 0
index/trie.rs | (⟦jump.bytes == bytes && jump.depth > 0⟧) | jump.depth > 0
index/grams.rs | ⟦self.filter[bit as usize / 64] & (1 << (bit % 64)) != 0⟧ | false
index/grams.rs | rank < best && ⟦path.holds(*byte)⟧ | false
index/grams.rs | is_none_or(~first~ ⟦first.rank >= best⟧) | first.rank < best
index/grams.rs | self.starts[at] as usize..⟦self.starts[at + 1] as usize⟧ | self.starts[at] as usize
index/patterns.rs | ⟦wildcard.rank < best⟧ | wildcard.rank > best
index/patterns.rs | !⟦path.bytes().holds(*bytes)⟧ | !path.bytes().holds(*bytes)
index/build.rs | (⟦*used != root⟧) | false
index/build.rs | KeyKind::List(⟦self.lists.len() as u32⟧) | self.lists.len() as u32 + 1
index/build.rs | .above = ⟦above⟧) | NO_LIST
rule_set.rs | if ⟦sent.access() == Access::Disallow ~~ self.section.is_none() ~~ path.is_canonical()⟧ { | true
rule_set.rs | self.disallowing(⟦path.forms().skip(1)⟧, | path.forms().skip(2)
rule_set.rs | Fallback::Star => ⟦self.star⟧, | None
rule_set.rs | let section = ⟦named.or(star)⟧; | star.or(named)
rule_set.rs | if ⟦groups.last().is_none_or(~(last, _)~ *last != group.index)⟧ { | groups.is_empty()
pattern.rs | ⟦written.iter().map(~byte~ if *byte >= 0x80 { 3 } else { 1 }).sum()⟧ | written.iter().filter(~byte~ **byte != b'*').count()
pattern.rs | ⟦written.iter().map(~byte~ if *byte >= 0x80 { 3 } else { 1 }).sum()⟧ | usize::from(!written.is_empty())
spelling.rs | if ⟦is_decoded(byte, part)⟧ { | false
spelling.rs | if ⟦is_decoded(byte, part)⟧ { | true
spelling.rs | u8::try_from(⟦digit(*high)? * 16 + digit(*low)?⟧) | digit(*low)? * 16 + digit(*high)?
spelling.rs | at += ⟦3⟧; | 2
spelling.rs | HEX[usize::from(⟦byte >> 4⟧)] | byte & 15
path.rs | with_forms(target: &'t [u8], kinds: PathForms) -> Self { if ⟦target.starts_with(b"/") && is_plain(target)⟧ { | target.starts_with(b"/")
path.rs | (⟦path_form::may_have_other_forms(&target)⟧ ~~ | false
path_form.rs | ⟦any ~ (*byte == one) & (*next == other)⟧ | any
path_form.rs | let is_base = ⟦memchr2(b'%', b';', &path).is_none() && !holds_pair(&path, *b"//")⟧; | true
path_form.rs | (⟦is_resolved ~~ base != PathForm::Standard⟧) | is_resolved
path_form.rs | let merged_first = ⟦is_merged⟧.then | false
path_form.rs | let is_new = ~form: &[u8]~ ⟦!are_equal(&path, &form[..path_of(form)])⟧; | false
path_form.rs | (⟦slashes >= 2⟧).then | slashes >= 3
"""

SWITCH = """
pub(crate) fn fault(number: usize) -> bool {
    static PLANTED: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *PLANTED.get_or_init(|| std::env::var("FAULT").map_or(0, |number| number.parse().expect("a number"))) == number
}
"""


def plant(rules, rows):
    spans = defaultdict(list)
    for number, (name, place, fault) in enumerate(rows, 1):
        # Spaces match any white space, because long lines are wrapped.
        parts = [r"\s*".join(map(re.escape, part.split())) for part in re.split("[⟦⟧]", place)]
        found = list(re.finditer(r"%s\s*(%s)\s*%s" % tuple(parts), open(f"{rules}/{name}").read()))
        assert len(found) == 1, f"{len(found)} places for {name}: {place}"
        spans[name, found[0].span(1)].append((number, fault))
    for (name, (start, end)), faults in sorted(spans.items(), key=lambda item: item[0], reverse=True):
        text = open(f"{rules}/{name}").read()
        planted = "".join(f"if crate::fault({number}) {{ {fault} }} else " for number, fault in faults)
        open(f"{rules}/{name}", "w").write(f"{text[:start]}({planted}{{ {text[start:end]} }}){text[end:]}")


root = subprocess.check_output(["git", "rev-parse", "--show-toplevel"], text=True).strip()
rows = [[cell.strip().replace("~", "|") for cell in row.split(" | ")] for row in FAULTS.strip().splitlines()]
with tempfile.TemporaryDirectory() as copy:
    subprocess.run(f"git -C '{root}' archive HEAD | tar -x -C '{copy}'", shell=True, check=True)
    plant(f"{copy}/robots-core/src/rules", rows)
    open(f"{copy}/robots-core/src/lib.rs", "a").write(SWITCH)
    os.environ.setdefault("CARGO_TARGET_DIR", f"{root}/target")
    command = ["cargo", "test", "--release", "--locked", "-p", "robots-core", "--test", "small_world"]
    env = dict(os.environ, SMALL_WORLD=sys.argv[1] if len(sys.argv) > 1 else "7/31", RUST_BACKTRACE="0", RUSTFLAGS="-Awarnings")
    subprocess.run([*command, "--no-run"], cwd=copy, env=env, check=True)
    missed = []
    for number, row in enumerate([None, *rows]):
        try:
            found = subprocess.run(command, cwd=copy, env=dict(env, FAULT=str(number)), capture_output=True, timeout=300).returncode != 0
        except subprocess.TimeoutExpired:
            found = True
        if number and not found or not number and found:
            missed.append(row)
        print(number, "found" if found else "not found", " | ".join(row) if row else "no fault", flush=True)
sys.exit(f"not as expected: {missed}" if missed else None)
