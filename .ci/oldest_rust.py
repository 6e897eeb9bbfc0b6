#!/usr/bin/env python3
"""Fails if a dependency needs a newer Rust than `rust-version` in Cargo.toml. Dependencies that only tests use may need a newer Rust."""

import json
import subprocess
import sys

command = ["cargo", "metadata", "--locked", "--all-features", "--format-version", "1"]
metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}


def version(text):
    return tuple(map(int, text.split(".")))[:2]


supported = packages[metadata["workspace_members"][0]]["rust_version"]
seen, waiting = set(), list(metadata["workspace_members"])
while waiting:
    package = waiting.pop()
    if package not in seen:
        seen.add(package)
        waiting += [found["pkg"] for found in nodes[package]["deps"] if any(kind["kind"] != "dev" for kind in found["dep_kinds"])]
newer = [package for package in map(packages.get, seen) if version(package["rust_version"] or "1.0") > version(supported)]
if newer:
    lines = sorted("{name} {version} needs Rust {rust_version}".format(**package) for package in newer)
    sys.exit(f"these dependencies need a Rust newer than rust-version {supported}:\n" + "\n".join(lines))
