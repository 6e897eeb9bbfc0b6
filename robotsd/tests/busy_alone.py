"""Runs each test that waits many times, alone in its process. Called by busy.sh.

Usage: busy_alone.py BUILT ROUNDS      BUILT: the output of `cargo test --no-run --message-format json`

A test waits if its first run takes at least a quarter of a second longer than its processor time.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time

PROCESSES = 8
WAITS = 0.25


def tests(built):
    """Yields every test, as its program, its working directory and its name."""
    for line in pathlib.Path(built).read_text().splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            program, folder = message["executable"], str(pathlib.Path(message["manifest_path"]).parent)
            listed = subprocess.run([program, "--list", "--format", "terse"], cwd=folder, check=True, capture_output=True, text=True)
            yield from ((program, folder, line.removesuffix(": test")) for line in listed.stdout.splitlines() if line.endswith(": test"))


def run(test):
    """Runs a test. Returns its output if it failed (otherwise None), and the seconds for which it waited."""
    program, folder, name = test
    began = time.monotonic()
    process = subprocess.Popen([program, "--exact", name], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    waited = time.monotonic() - began - used.ru_utime - used.ru_stime
    return output.decode(errors="replace") if status else None, waited


def main():
    built, rounds = sys.argv[1], int(sys.argv[2])
    failures = collections.Counter()
    found = list(tests(built))

    def report(test, output):
        failures[test[2]] += 1
        print(f"test {test[2]} ... FAILED", output, sep="\n", flush=True)

    # The first runs are made one after the other, so that their time is not spent waiting for a processor.
    waiting = []
    for test in found:
        output, waited = run(test)
        if output is not None:
            report(test, output)
        if waited >= WAITS:
            waiting.append(test)
    print(f"{len(waiting)} of {len(found)} tests wait", flush=True)
    with concurrent.futures.ThreadPoolExecutor(PROCESSES) as pool:
        runs = [test for _ in range(rounds) for test in waiting]
        for test, (output, _) in zip(runs, pool.map(run, runs)):
            if output is not None:
                report(test, output)
    print("failures:", *(f"    {name}: {count} times" for name, count in failures.items()), sep="\n")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
