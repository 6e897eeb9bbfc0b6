#!/usr/bin/env python3
"""Runs every command of README.md and CRATE.md exactly as written, in a fresh clone, and compares its output with the output shown below
it. The test `transcripts` does the same for the handbook.

Usage: readme.py

Commands that need a published release must be between `<!-- releasing` and `<!-- /releasing -->`, and are skipped. `cargo` runs in the
working copy of this script, which has the same files as the clone, and the output of earlier builds. Needs git, bash, curl, and port 8080.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

PROJECT = pathlib.Path(__file__).resolve().parents[2]
POLICY = "docs/src/howto/test-a-policy.md"
DOCUMENTS = ["README.md", "CRATE.md"]

# Commands and lines that need a published release.
TAKES_A_RELEASE = re.compile(r"(pip|pipx) install robotsd|cargo install( --locked)? robotsd|cargo add tower-robots|tower-robots@v\d|version = \"0")
# Commands that .ci/run runs itself. It also runs this script.
ELSEWHERE = {"cargo test --all-features"}
# Commands that may fail, with the expected exit statuses. There may be no network, the demo has no
# fleet and no audit file, and a diff exits with 1.
ENDS = {"robotsd check https://example.com": {0, 1, 2}, "robotsd enforce off --fleet": {2}, "robotsd audit": {2},
        "robotsd edit --diff examples/site/robots.txt --disallow category:ai-training": {1}}
# Subcommands that need a running robotsd.
OF_A_SERVER = {"accept", "board", "enforce", "reload", "status", "upgrade"}


def commands(text):
    """Returns each command of the blocks marked `sh`, with the comments directly below it."""
    for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        command, shown = None, []
        for line in [*block.splitlines(), ""]:
            if line.startswith("#") and command:
                shown.append(line[2:])
                continue
            if command:
                yield command, shown
            command, shown = (line if line and not line.startswith("#") else None), []


def fits(shown, printed):
    """Reports whether the printed lines match the shown ones. `…` matches any number of lines."""
    if not shown:
        return not printed
    if shown[0] == "…" or shown[0].endswith(" …"):
        begins = shown[0].removesuffix("…").rstrip()
        return any(fits(shown[1:], printed[at:]) for at in range(len(printed) + 1)) and (not begins or printed[0].startswith(begins))
    return bool(printed) and shown[0] == printed[0].rstrip() and fits(shown[1:], printed[1:])


class Reader:
    """A reader of the documents who types the commands."""

    def __init__(self, folder):
        self.clone = folder / "tower-robots"
        subprocess.run(["git", "clone", "--quiet", PROJECT, self.clone], check=True)
        self.environment = {
            **os.environ,
            "PATH": f"{folder / 'root/bin'}:{os.environ['PATH']}",
            "CARGO_INSTALL_ROOT": str(folder / "root"),
            "RUNTIME_DIRECTORY": str(folder / "run"),
        }
        (folder / "run").mkdir(mode=0o700)
        self.environment.pop("ROBOTSD_CONFIG", None)
        self.server = None

    def start(self, command):
        folder = PROJECT if command.startswith("cargo ") else self.clone
        return subprocess.Popen(
            ["bash", "-c", command], cwd=folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip

    def serve(self, command):
        self.stop()
        self.server = self.start(f"{command} > {self.clone.parent / 'server.log'} 2>&1")
        deadline = time.monotonic() + 1800
        while time.monotonic() < deadline and self.server.poll() is None:
            try:
                return urllib.request.urlopen("http://127.0.0.1:8080/robots.txt", timeout=5).read()
            except OSError:
                time.sleep(0.1)
        raise AssertionError(f"{command}: nothing is served\n{(self.clone.parent / 'server.log').read_text()}")

    def stop(self):
        if self.server:
            # After an upgrade, the server is a different process in the same group.
            os.killpg(self.server.pid, signal.SIGKILL)
            self.server.wait()
            self.server = None

    def run(self, command, shown):
        process = self.start(command)
        printed, _ = process.communicate(timeout=1800)
        ends = ENDS.get(re.split(r"\s+#\s", command)[0], {0})
        assert process.returncode in ends, f"{command}: ends with {process.returncode}\n{printed}"
        assert not shown or fits(shown, printed.splitlines()), f"{command}: prints\n{printed}"


def main():
    texts = {}
    for name in [*DOCUMENTS, *sorted(str(path.relative_to(PROJECT)) for path in (PROJECT / "config/ci").iterdir())]:
        text = (PROJECT / name).read_text()
        texts[name], places = re.subn(r"<!-- releasing.*?<!-- /releasing -->", "", text, flags=re.DOTALL)
        assert places == (name == "README.md"), f"{name}: {places} places that a release changes"
        if name in DOCUMENTS:
            assert not (found := TAKES_A_RELEASE.search(texts[name])), f"{name}: {found[0]!r} takes a release"
        else:
            assert "What is published" in re.sub(r"[\s#]+", " ", text), f"{name}: it takes a release, and does not say what to do before"
    example = (PROJECT / "examples/robots.test.toml").read_text()
    assert f"```toml\n{example}```" in (PROJECT / POLICY).read_text(), f"{POLICY}: the expectations are not those of examples/robots.test.toml"

    found = [pair for name in DOCUMENTS for pair in commands(texts[name])]
    is_server = re.compile(r"\bserve --config ")
    assert len(found) >= 5 and ELSEWHERE <= {command for command, _ in found}, found
    first_server = next(command for command, _ in found if is_server.search(command))
    with tempfile.TemporaryDirectory() as folder:
        reader = Reader(pathlib.Path(folder))
        try:
            for command, shown in found:
                if command in ELSEWHERE:
                    continue
                if is_server.search(command):
                    reader.serve(command)
                else:
                    words = command.split()
                    if words[0] == "robotsd" and words[1] in OF_A_SERVER and not reader.server:
                        reader.serve(first_server)
                    reader.run(command, shown)
                print(f"ok  {command}", flush=True)
        except AssertionError as error:
            sys.exit(f"readme: {error}")
        finally:
            reader.stop()
    print(f"readme: {len(found)} commands")


if __name__ == "__main__":
    main()
