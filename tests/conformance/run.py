#!/usr/bin/env python3
"""Compares parsers of robots.txt with the cases, and writes the handbook's page docs/src/reference/conformance.md.

    tests/conformance/run.py --install    installs the parsers of PyPI and npm, and fetches the crates, below target/peers
    tests/conformance/run.py [--check]    runs all parsers and writes the page, or compares it
"""
import base64
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
from make import expand, local

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PAGE = ROOT / "docs/src/reference/conformance.md"
PEERS = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "peers/conformance"
KINDS = ["groups", "precedence", "wildcards", "encoding", "limits", "lines"]
RUST = ["robots-core Standard", "robots-core Reference", "robotstxt", "robotxt", "texting_robots"]
NPM = ["robots-parser", "robots-txt-guard", "robots-txt-parser"]
PYTHON = ["fast-robotstxt", "protego", "robotspy", "urllib.robotparser"]
# A parser that takes longer than this for a case has no answer. Most cases take milliseconds.
MAX_SECONDS = 30


def versions():
    """Returns the source of each parser (its package registry), and its pinned version."""
    packages = local("peers-npm/package.json")["dependencies"]
    locked = dict(re.findall(r'name = "(.*)"\nversion = "(.*)"', (HERE / "peers-rust/Cargo.lock").read_text()))
    pins = re.findall(r"^(\S+)==(\S+)$", (HERE / "requirements.txt").read_text(), re.MULTILINE)
    return ({name: f"PyPI {version}" for name, version in pins} | {name: f"npm {packages[name]}" for name in NPM}
            | {name: f"crate {locked[name.split(' ')[0]]}" for name in RUST}
            | {"urllib.robotparser": "Python " + sys.version.split()[0]})


def is_allowed(name, robots, agent, url):
    """Asks a Python parser. A parser that takes text gets invalid UTF-8 as replacement characters."""
    text = robots.decode(errors="replace")
    if name == "fast-robotstxt":
        import robotstxt
        return robotstxt.RobotsMatcher().is_allowed(text, agent, url)
    if name == "protego":
        import protego
        return protego.Protego.parse(text).can_fetch(url, agent)
    if name == "robotspy":
        import robots
        return robots.RobotsParser.from_string(text).can_fetch(agent, url)
    from urllib.robotparser import RobotFileParser
    parser = RobotFileParser()
    parser.parse(text.splitlines())
    return parser.can_fetch(agent, url)


def answer(name, cases, begin):
    """Prints a line for each case. Runs in a separate process, because the parser may hang."""
    for case in json.loads(Path(cases).read_text())[int(begin):]:
        try:
            allowed = is_allowed(name, base64.b64decode(case["robots"]), case["agent"], case["url"])
            print("allow" if allowed else "disallow", flush=True)
        except Exception:
            print("error", flush=True)


def answers(name, cases, count):
    """Returns the answers of a parser. If it crashes or hangs, the answer to this case is "none", and the run continues with the next case."""
    command = [sys.executable, "-W", "ignore", __file__, "--answer", name]
    if name in RUST:
        command = [PEERS / "rust/release/robots-conformance-peers", name]
    elif name in NPM:
        command = ["node", HERE / "peers-npm/answer.js", PEERS, name]
    found, environment = [], os.environ | {"PYTHONPATH": str(PEERS / "python")}
    while len(found) < count:
        process = subprocess.Popen([*command, cases, str(len(found))], env=environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        (timer := threading.Timer(MAX_SECONDS, process.kill)).start()
        for line in process.stdout:
            timer.cancel()
            found.append(line.strip())
            (timer := threading.Timer(MAX_SECONDS, process.kill)).start()
        timer.cancel()
        if process.wait() != 0 and len(found) < count:
            found.append("none")
    return found


def table(cases, all_answers, column):
    """Returns a table with the number of cases in which each parser gives the expected answer. Parsers are in alphabetical order."""
    decided = [number for number, case in enumerate(cases) if case[column]]
    rows = [f"| parser | all | {' | '.join(KINDS)} |", "|---" + "|--:" * (len(KINDS) + 1) + "|"]
    known, expected = versions(), [case[column] for case in cases]
    for name, found in [("*cases*", expected), *sorted(all_answers.items())]:
        counts = Counter(cases[number]["kind"] for number in decided if found[number] == expected[number])
        title = f"{name} ({known[name]})" if name in known else name
        cells = [title, counts.total(), *(counts[kind] for kind in KINDS)]
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(rows)


def page(cases, all_answers):
    silent = {name: sum(one in ("none", "error") for one in found) for name, found in sorted(all_answers.items())}
    values = {
        "count": len(cases), "open": sum(case["rfc9309"] is None for case in cases),
        "differing": sum(case["rfc9309"] not in (None, case["reference"]) for case in cases),
        "rfc9309": table(cases, all_answers, "rfc9309"), "reference": table(cases, all_answers, "reference"),
        "silent": ", ".join(f"{name} {count}" for name, count in silent.items() if count) or "none", "seconds": MAX_SECONDS,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: str(values[match[1]]), (HERE / "page.md").read_text(encoding="utf-8"))


def install():
    PEERS.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        (PEERS / name).write_bytes((HERE / "peers-npm" / name).read_bytes())
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--disable-pip-version-check", "--root-user-action=ignore"]
    for command in (
        [*pip, "--upgrade", "--target", PEERS / "python", "-r", HERE / "requirements.txt"],
        ["npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", PEERS],
        ["cargo", "fetch", "--locked", "--manifest-path", HERE / "peers-rust/Cargo.toml"],
    ):
        subprocess.run(command, check=True)


def run_all(cases):
    cargo = ["cargo", "build", "--release", "--locked", "--quiet", "--manifest-path", HERE / "peers-rust/Cargo.toml"]
    subprocess.run(cargo, env=os.environ | {"CARGO_TARGET_DIR": str(PEERS / "rust")}, check=True)
    plain = [{"robots": case.get("robots_base64") or base64.b64encode(expand(case["robots"]).encode()).decode(),
              "agent": expand(case["agent"]), "url": expand(case["url"])} for case in cases]
    names = [*RUST, *NPM, *PYTHON]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        path = Path(folder, "cases.json")
        path.write_text(json.dumps(plain))
        return dict(zip(names, pool.map(lambda name: answers(name, path, len(cases)), names)))


def main():
    if sys.argv[1:2] == ["--answer"]:
        return answer(*sys.argv[2:])
    if sys.argv[1:] == ["--install"]:
        return install()
    cases = local("cases.json")["cases"]
    text, written = page(cases, run_all(cases)), PAGE.read_text(encoding="utf-8")
    if versions()["urllib.robotparser"] not in written and sys.argv[1:]:
        # The page was written with another version of Python, whose own parser may give other
        # answers.
        text, written = (re.sub(r"\| urllib\.robotparser.*\n", "", one) for one in (text, written))
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(text, encoding="utf-8")
    elif written != text:
        sys.exit(f"{PAGE} differs: run tests/conformance/run.py\n{text}")


if __name__ == "__main__":
    sys.exit(main())
