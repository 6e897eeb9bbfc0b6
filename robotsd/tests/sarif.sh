#!/usr/bin/env bash
# Validates the output of `robotsd check --format sarif` for real files: no error and no warning, by the rules of the format and of
# GitHub's code scanning.
# Usage: robotsd/tests/sarif.sh ROBOTSD MULTITOOL CASES       CASES: robots_files.jsonl.gz
set -euo pipefail
robotsd=$(realpath "$1") multitool=$(realpath "$2") cases=$(realpath "$3")

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# Checks every eighth file, under names that need escaping in a URI.
python3 - "$cases" <<'PY'
import base64, gzip, json, pathlib, sys

for number, line in enumerate(gzip.open(sys.argv[1])):
    if number % 8:
        continue
    case = json.loads(line)
    path = pathlib.Path("sites", f"{number} ü%23", "robots.txt")
    path.parent.mkdir(parents=True)
    path.write_bytes(base64.b64decode(case["body_base64"]))
PY
files=$(find sites -name robots.txt | wc -l)
[ "$files" -gt 50 ] || { echo "$cases holds $files files to check, too few" >&2; exit 1; }
"$robotsd" check --format sarif sites > real.sarif

# Validates a document with an error, to make sure that the validator finds errors.
python3 - <<'PY'
import json

document = json.load(open("real.sarif"))
run = document["runs"][0]
region = run["results"][0]["locations"][0]["physicalLocation"]["region"]
region["startLine"] = -1
run["results"] = run["results"][:1]
json.dump(document, open("faulty.sarif", "w"))
PY

for name in real faulty; do
    "$multitool" validate "$name.sarif" --rule-kind 'Sarif;Ghas' --level 'Error;Warning' \
        --output "$name.found.sarif" --log ForceOverwrite > "$name.log" || { cat "$name.log"; exit 1; }
done

python3 - "$files" <<'PY'
import json, sys

def found(name):
    run = json.load(open(f"{name}.found.sarif"))["runs"][0]
    assert all(invocation["executionSuccessful"] for invocation in run["invocations"]), run["invocations"]
    return run.get("results", [])

assert found("faulty"), "the validator finds a fault where one is"
faults = found("real")
for fault in faults[:20]:
    place = fault["locations"][0]["physicalLocation"].get("region", {})
    print(fault["ruleId"], place.get("startLine"), fault["message"], file=sys.stderr)
results = len(json.load(open("real.sarif"))["runs"][0]["results"])
print(f"SARIF: {results} findings in {sys.argv[1]} real files, {len(faults)} faults of the format")
sys.exit(bool(faults))
PY
