#!/usr/bin/env python3
"""Selects the published cases from ../shared/cases, and adds those of written.json: tests/conformance/make.py [--check]

The selection depends only on these files and on selection.json. With `--check`, compares the result with cases.json instead of
writing it.
"""
import base64
import gzip
import hashlib
import json
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

# Python must not write __pycache__ into the source folder.
sys.dont_write_bytecode = True
import rfc9309

HERE = Path(__file__).resolve().parent
SHARED = HERE.parent.parent.parent / "shared" / "cases"
ORIGIN = "https://example.com"
# Maximum sizes of the published cases, and of a file that is selected by a feature, in bytes.
MAX_BYTES, MAX_FILE = 300_000, 260
# A character that occurs at least this often in a row is written once, with its count.
MIN_RUN = 100


def lines(name):
    read = gzip.open if name.endswith(".gz") else open
    with read(SHARED / name, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def local(name):
    return json.loads((HERE / name).read_text(encoding="utf-8"))


def expand(text):
    """Returns the string that a list of parts describes. A part is a string, or a string with the number of its repetitions."""
    parts = [text] if isinstance(text, str) else text
    return "".join(part if isinstance(part, str) else part[0] * part[1] for part in parts)


def shorten(text):
    """Returns a string as parts, if it contains long runs of one character. Otherwise returns it unchanged."""
    parts, end = [], 0
    for run in re.finditer(r"(.)\1{%d,}" % (MIN_RUN - 1), text, re.DOTALL):
        parts += [text[end : run.start()], [run[1], len(run[0])]]
        end = run.end()
    return [part for part in [*parts, text[end:]] if part] if parts else text


class Selection:
    def __init__(self):
        self.cases, self.numbers, self.seen = [], Counter(), set()

    def add(self, source, kind, section, robots, agent, url, reference, rfc="unknown", parts=None):
        """Adds a case, unless it has been added before. `parts` are robots.txt, agent and path as lists of parts, if they are known."""
        path = re.sub(r"^https?://[^/]*", "", url)
        key = (robots, agent, path)
        if not re.fullmatch(r"[A-Za-z_-]+", agent) or not path.startswith("/") or key in self.seen:
            return False
        self.seen.add(key)
        found = rfc9309.verdict(robots, agent, path.encode(), reference)
        assert found in (None, rfc) or rfc == "unknown", f"{source} {path}: rfc9309.py returns {found}"
        try:
            text = {"robots": shorten(robots.decode()) if parts is None else parts[0]}
        except UnicodeDecodeError:
            text = {"robots_base64": base64.b64encode(robots).decode()}
        agent, path = (agent, shorten(path)) if parts is None else parts[1:]
        self.numbers[source] += 1
        self.cases.append({"id": f"{source}#{self.numbers[source]}", "kind": kind, "section": section, **text, "agent": agent,
                           "url": ORIGIN + path if isinstance(path, str) else [ORIGIN, *path],
                           "rfc9309": found if rfc == "unknown" else rfc, "reference": reference})
        return True


def access(case):
    return "allow" if case["allowed"] else "disallow"


def add_written(selection):
    for written in local("written.json"):
        robots, about = expand(written["robots"]).encode(), (written["kind"], written["section"])
        for agent, path, rfc, *reference in written["cases"]:
            selection.add(f"written/{written['name']}", *about, robots, expand(agent), expand(path), *(reference or [rfc]), rfc,
                          (written["robots"], agent, path))


def add_suite(selection, groups):
    for case in lines("reference_suite.jsonl"):
        group = next((group for pattern, *group in groups if re.match(pattern, case["id"])), None)
        if group:
            source = "suite/" + case["id"].partition("#")[0]
            selection.add(source, *group, case["robots"].encode(), case["agent"], case["url"], access(case))


def add_specification(selection):
    """Adds the cases of the specification pages. All parsers, including the reference parser, agree about them."""
    spec = json.loads((SHARED / "spec.json").read_text(encoding="utf-8"))
    for case in spec["path_match"]:
        robots = f"user-agent: *\ndisallow: {case['pattern']}\n".encode()
        for name, reference in (("matches", "disallow"), ("not_matches", "allow")):
            # The tests of the reference parser also contain the other patterns.
            is_new = case["dialect"] == "standard" and not case["pattern"].startswith(("/fish", "/*.php"))
            for path in case[name] if is_new else ():
                selection.add("spec/path_match", "wildcards", "2.2.3", robots, "foobot", path, reference)
    for case in spec["precedence"]:
        robots = "\n".join(["user-agent: *", *case["rules"], ""]).encode()
        selection.add("spec/precedence", "precedence", "2.2.2", robots, "foobot", case["url"], case["verdict"])
    for case in spec["groups"]:
        for name, reference in (("disallowed", "disallow"), ("allowed", "allow")):
            for path in case[name] if len(case["tokens"]) == 1 else ():
                selection.add("spec/groups", "groups", "2.2.1", case["robots"].encode(), case["tokens"][0], path, reference)


def add_generated(selection, groups, files, cases):
    kinds = {f"syn:{name}": group for names, *group in groups for name in names.split()}
    agents = defaultdict(set)
    for case in cases:
        name, group = case["robots"], kinds.get(case["kind"])
        if group and "url" in case:
            # One agent is enough, unless the case is about names.
            agents[name].add(case["agent"])
            if len(agents[name]) <= (2 if group[0] == "groups" else 1):
                selection.add(name, *group, files[name], case["agent"], case["url"], access(case))


def add_features(selection, groups, files, cases):
    """Adds cases of short random and real files that have a feature, in the order of a hash."""
    left = {feature: count for feature, count, *group in groups}
    kinds = {feature: group for feature, count, *group in groups}
    # The other short files are the generated ones.
    cases = [case for case in cases if "url" in case and not case["robots"].startswith("syn/hand")]
    for case in sorted(cases, key=lambda case: hashlib.sha256(f"{case['robots']} {case['agent']} {case['url']}".encode()).digest()):
        name, robots, quirks = case["robots"], files[case["robots"]], case.get("quirks", [])
        feature = quirks[0] if quirks else case["kind"]
        if len(robots) > MAX_FILE or case["line"] == 0 or len(quirks) > 1 or left.get(feature, 0) == 0:
            continue
        deciding = re.split(rb"\r\n|\r|\n", robots)[case["line"] - 1]
        has_no_star = kinds[feature][0] == "wildcards" and b"*" not in deciding.partition(b":")[2]
        has_no_allow = kinds[feature][0] == "precedence" and b"allow" not in robots.lower().replace(b"disallow", b"")
        if not (has_no_star or has_no_allow):
            source = name if name.startswith("syn/") else "real/" + name.partition("/")[2]
            left[feature] -= selection.add(source, *kinds[feature], robots, case["agent"], case["url"], access(case))


def main():
    selection, groups = Selection(), local("selection.json")
    files = {file["robots"]: base64.b64decode(file["body_base64"]) for file in lines("robots_files.jsonl.gz")}
    cases = lines("verdicts.jsonl.gz")
    add_written(selection)
    add_suite(selection, groups["suite"])
    add_specification(selection)
    add_generated(selection, groups["generated"], files, cases)
    add_features(selection, groups["features"], files, cases)
    rows = [json.dumps(case, ensure_ascii=False) for case in selection.cases]
    text = '{"$schema": "schema.json", "cases": [\n' + ",\n".join(rows) + "\n]}\n"
    assert len(text.encode()) <= MAX_BYTES, f"{len(text.encode())} bytes"
    target = HERE / "cases.json"
    if "--check" not in sys.argv[1:]:
        target.write_text(text, encoding="utf-8")
        print(len(rows), "cases,", len(text.encode()), "bytes")
    elif target.read_text(encoding="utf-8") != text:
        sys.exit("cases.json differs: run tests/conformance/make.py")


if __name__ == "__main__":
    main()
