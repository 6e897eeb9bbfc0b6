#!/usr/bin/env python3
"""Draws the case sets in tests/cases/, which every clone has, from the complete case sets in ../shared/cases.

    python3 tests/draw_cases.py

The draw depends only on the complete sets. It takes files of at most 64 KiB, in the order of the SHA-256 of their names:
first files for each kind of case and each leniency of the reference parser that has too few cases, then others up to the
budget. It includes every case about a drawn file. tests/cases/drawn.json contains the numbers of drawn and of all cases.
"""
import base64
import gzip
import hashlib
import json
from collections import Counter, defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent / "cases"
WHOLE = Path(__file__).resolve().parent.parent / ".." / "shared" / "cases"
MOST_OCTETS = 64 << 10
# Minimum number of drawn cases of each kind and with each leniency, if the complete sets have as
# many.
ENOUGH = 25
# Maximum total size of the drawn files, in bytes.
BUDGET = 1_900_000


def lines(name):
    path = WHOLE / name
    text = gzip.open(path, "rt").read() if name.endswith(".gz") else path.read_text()
    return [json.loads(line) for line in text.splitlines()]


def write(name, cases):
    text = "".join(json.dumps(case, sort_keys=True, separators=(",", ":")) + "\n" for case in cases)
    # The compressed file contains no time and no file name, so that the same cases result in the
    # same bytes.
    (HERE / name).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def features(case):
    return [case["kind"], *case.get("quirks", [])]


suite = lines("reference_suite.jsonl")
files = {file["robots"]: file for file in lines("robots_files.jsonl.gz")}
verdicts = lines("verdicts.jsonl.gz")
cases_of = defaultdict(list)
for case in verdicts:
    cases_of[case["robots"]].append(case)

order = sorted(files, key=lambda name: hashlib.sha256(name.encode()).digest())
size = {name: len(base64.b64decode(files[name]["body_base64"])) for name in order}
order = [name for name in order if size[name] <= MOST_OCTETS and cases_of[name]]
drawn, total, held = set(), 0, Counter()
for needed in (True, False):
    for name in order:
        found = [feature for case in cases_of[name] for feature in features(case)]
        wanted = any(held[feature] < ENOUGH for feature in found) if needed else total + size[name] <= BUDGET
        if name not in drawn and wanted:
            drawn.add(name)
            total += size[name]
            held.update(found)

some = [case for case in verdicts if case["robots"] in drawn]
write("reference_suite.jsonl.gz", suite)
write("robots_files.jsonl.gz", [file for name, file in files.items() if name in drawn])
write("verdicts.jsonl.gz", some)
counts = {
    "reference_suite.jsonl": {"drawn": len(suite), "whole": len(suite)},
    "robots_files.jsonl.gz": {"drawn": len(drawn), "whole": len(files)},
    "verdicts.jsonl.gz": {"drawn": len(some), "whole": len(verdicts)},
}
(HERE / "drawn.json").write_text(json.dumps(counts, indent=2) + "\n")
print(json.dumps(counts), total, "bytes of files")
