#!/usr/bin/env python3
"""Builds the tester's page, one HTML file that needs no other file, and prints its path.

Usage: docs/tester/build.py

Needs cargo with the target wasm32-wasip1 (`rustup target add wasm32-wasip1`). The page is `tester.html` in the target folder. Its
style begins with the style sheet of the board and of the reports. Its script contains the program, and the policy of the page permits
only this script, by its hash. So the page works from a disk, and can neither load nor send anything.
"""

import base64
import gzip
import hashlib
import lzma
import os
import pathlib
import subprocess
import sys

# Maximum size of the page, packed with gzip, in bytes.
MAX_BYTES = 350_000
TARGET = "wasm32-wasip1"

here = pathlib.Path(__file__).resolve().parent
project = here.parent.parent
target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", project / "target")).resolve()


def read(path):
    return path.read_text(encoding="utf-8")


def program():
    """Returns the program: WebAssembly."""
    # Without these flags, panic messages would contain paths of this machine.
    flags = subprocess.run([project / "robotsd/packaging/rustflags.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    environment = dict(os.environ, RUSTFLAGS=flags, CARGO_TARGET_DIR=str(target / "tester"))
    command = ["cargo", "build", "--quiet", "--locked", "--release", "--target", TARGET]
    subprocess.run(command, check=True, cwd=here, env=environment, stdout=sys.stderr)
    return (target / "tester" / TARGET / "release/tester.wasm").read_bytes()


def packed(data):
    """Packs the program for `unpacked` in tester.js, which knows these settings."""
    settings = {"id": lzma.FILTER_LZMA1, "preset": 9 | lzma.PRESET_EXTREME, "lc": 3, "lp": 0, "pb": 0, "dict_size": 1 << 22}
    return base64.b64encode(lzma.compress(data, format=lzma.FORMAT_RAW, filters=[settings])).decode("ascii")


def source(text):
    """Returns the source expression of a policy for an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


style = read(project / "robotsd/src/html/style.css") + read(here / "tester.css")
wasm = program()
script = read(here / "tester.js").replace("{{program}}", packed(wasm)).replace("{{size}}", str(len(wasm)))
policy = (
    f"default-src 'none'; script-src {source(script)} 'wasm-unsafe-eval'; style-src {source(style)}; "
    "connect-src 'none'; base-uri 'none'; form-action 'none'"
)
page = read(here / "tester.html")
for name, value in [("policy", policy), ("style", style), ("script", script)]:
    page = page.replace("{{%s}}" % name, value)
size = len(gzip.compress(page.encode(), 9))
print(f"tester.html: {len(page):,} bytes, {size:,} with gzip", file=sys.stderr)
if size > MAX_BYTES:
    sys.exit(f"the page is larger than {MAX_BYTES:,} bytes with gzip: make the program smaller, or raise MAX_BYTES")
target.mkdir(parents=True, exist_ok=True)
(target / "tester.html").write_text(page, encoding="utf-8")
print(target / "tester.html")
