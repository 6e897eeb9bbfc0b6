"""Computes the verdict for a case strictly by RFC 9309, for make.py. Simple code is more important here than speed.

The RFC leaves some questions open. So a case is read in several ways, and `verdict` answers only if all of them agree.
"""
import functools
import itertools
import re

NAME_LINE = re.compile(rb"(?i)[ \t]*user-agent[ \t]*:[ \t]*(\*|[a-z_-]+)[ \t]*(?:#.*)?", re.DOTALL)
RULE_LINE = re.compile(rb"(?i)[ \t]*(allow|disallow)[ \t]*:[ \t]*([/*][^\x00-\x20#\x7f]*|)[ \t]*(?:#.*)?", re.DOTALL)
# A line that begins like a name or a rule, or with a byte order mark. If it does not match the
# grammar, parsers read it differently.
SIMILAR_LINE = re.compile(rb"(?i)[^\w#]*(?:user|agent|allow|disa|diss|dial|dias)|\xef|.*\x00", re.DOTALL)
# How lenient parsers read such a line.
LENIENT_LINE = re.compile(rb"(?i)[^\w#]*(?:(user)[ -]?agent|(allow)|di[as]\w*)[\w-]*(?:[ \t]*:|[ \t])[ \t]*([^#\x00]*)", re.DOTALL)
LENIENT_NAME = re.compile(rb"(\*(?!\S)|[a-z_-]*)")
ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}|[^%]|%", re.DOTALL)
# The parsing limit of a crawler must be at least this many bytes.
MIN_LIMIT = 500 * 1024
UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
# A target as a client sends it: without a fragment and dot segments (RFC 3986), with valid escapes.
PLAIN_TARGET = re.compile(rb"/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|[\x80-\xff]|%[0-9A-Fa-f]{2})*")
DOT_SEGMENT = re.compile(rb"/(?:\.|%2[Ee]){1,2}(?:[/?]|$)")


def characters(text, decodes_reserved):
    """Splits a path into characters that can be compared. Escapes of reserved characters are only decoded with `decodes_reserved`."""
    found = []
    for written in ESCAPE.findall(text):
        value = int(written[1:], 16) if len(written) == 3 else written[0]
        is_equal_when_escaped = value in UNRESERVED or value >= 0x80 or value in b"*$"
        is_kept = len(written) == 3 and not (is_equal_when_escaped or decodes_reserved)
        found.append(b"%%%02X" % value if is_kept else bytes([value]))
    return found


def matched(pattern, target, decodes_reserved):
    """Returns the minimum number of characters that the pattern matches in the target; `None` if it does not match."""
    pieces = [characters(piece, decodes_reserved) for piece in pattern.removesuffix(b"$").split(b"*")]
    ends = {0}
    for number, piece in enumerate(pieces):
        if number > 0 and ends:
            ends = set(range(min(ends), len(target) + 1))
        ends = {end + len(piece) for end in ends if target[end : end + len(piece)] == piece}
    if pattern.endswith(b"$"):
        ends &= {len(target)}
    return min(ends, default=None)


@functools.cache
def groups(robots, similar_names, reads_similar_rules):
    """Returns the groups as names and rules, and whether the grammar of the RFC covers every line that matters.

    A line that is only similar to a name is ignored (`"ignore"`), read as lenient parsers do (`"read"`), or names another crawler
    (`"other"`; with `"star"` only if it is not `*`). A line that is only similar to a rule is read or ignored.
    """
    found, is_open, is_clear = [], False, True
    for line in re.split(rb"\r\n|\r|\n", robots):
        name, rule = NAME_LINE.fullmatch(line), RULE_LINE.fullmatch(line)
        token, access, pattern = name and name[1].lower(), rule and rule[1].lower(), rule and rule[2]
        lenient = LENIENT_LINE.match(line)
        if not (name or rule) and SIMILAR_LINE.match(line):
            is_clear = False
            if lenient and lenient[1] and similar_names != "ignore":
                token = LENIENT_NAME.match(lenient[3].lower())[1]
                is_read = similar_names == "read" or (similar_names == "star" and token == b"*")
                token = token if is_read else b""
            elif lenient and not lenient[1] and reads_similar_rules:
                access, pattern = lenient[2] and b"allow", lenient[3].strip()
                rule = lenient
        if token is not None:
            if not is_open:
                found.append(([], []))
            is_open = True
            found[-1][0].append(token)
        elif rule:
            is_open = False
            is_clear &= b"$" not in pattern[:-1] and not re.search(rb"%(?![0-9A-Fa-f]{2})", pattern)
            if found:
                found[-1][1].append((access == b"allow", pattern))
    return found, is_clear


def one_verdict(rules, target, decodes_reserved, is_written_length):
    """Returns "allow" or "disallow" for one way to compare paths, and one way to measure how specific a rule is."""
    target = characters(target, decodes_reserved)
    best = (-1, True)
    for is_allow, pattern in rules:
        length = matched(pattern, target, decodes_reserved) if pattern else None
        if length is not None:
            best = max(best, (len(pattern) if is_written_length else length, is_allow))
    return "allow" if best[1] else "disallow"


def verdict(robots, agent, target, reference):
    """Returns "allow", "disallow", or `None` if the RFC leaves the case open.

    If the grammar does not cover a line or the target, the reference parser must give this answer, too.
    """
    try:
        robots.decode()
    except UnicodeDecodeError:
        return None
    if re.fullmatch(rb"/robots\.txt(?:\?.*)?", target):
        return "allow"
    verdicts, is_clear = set(), True
    # A crawler may stop reading after 500 KiB.
    for read, *lenience in itertools.product({robots, robots[:MIN_LIMIT]}, ("ignore", "read", "other", "star"), (False, True)):
        found, is_clear = groups(read, *lenience)
        own = [rules for names, rules in found if agent.lower().encode() in names]
        rules = sum(own or [rules for names, rules in found if b"*" in names], [])
        ways = itertools.product((False, True), (False, True))
        verdicts |= {one_verdict(rules, target, *way) for way in ways}
    if not (is_clear and PLAIN_TARGET.fullmatch(target)) or DOT_SEGMENT.search(target):
        verdicts.add(reference)
    return verdicts.pop() if len(verdicts) == 1 else None
