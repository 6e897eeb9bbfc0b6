#!/usr/bin/env python3
"""Lists the third-party code in robotsd with its licences. This is every crate that cargo links into robotsd for a target, with the crate's
licence files, including those of its C code. A crate without a licence file is an error.

Usage: third_party.py expression        prints the licences of the program as one SPDX expression
       third_party.py notices OUT       writes two files to the folder OUT: the crates with their licence texts, and the notices of Rust's
                                        standard library
The target is rustc's default. Crates that are not in Cargo's cache are fetched.
"""

import argparse
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[2]
# Names of licence files. They are searched in every folder of a crate, because the C code in a crate has its own. A file whose ending is in
# CODE is not a licence, but source code that deals with licences.
TEXT = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense|authors|patents)", re.IGNORECASE)
CODE = {".c", ".cc", ".h", ".json", ".py", ".rs", ".sh", ".toml", ".yaml", ".yml"}

Crate = collections.namedtuple("Crate", "name version license folder repository license_file ours")


def cargo(*arguments):
    command = ["cargo", *arguments, "--locked"]
    return subprocess.run(command, cwd=PROJECT, check=True, stdout=subprocess.PIPE, text=True).stdout


def host():
    said = subprocess.run(["rustc", "-vV"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return re.search(r"^host: (.+)$", said, re.MULTILINE)[1]


def edges(target):
    """Maps each crate of the program (name and version) to its dependencies for this target, as `cargo tree` shows them."""
    tree = cargo("tree", "--package", "robotsd", "--edges", "normal", "--target", target, "--no-dedupe", "--prefix", "depth", "--format", " {p}")
    found, above = {}, []
    for line in tree.splitlines():
        depth, name, version = re.match(r"(\d+) (\S+) v(\S+)", line).groups()
        crate = (name, version)
        del above[int(depth) :]
        if above:
            found[above[-1]].add(crate)
        found.setdefault(crate, set())
        above.append(crate)
    return found


def crates(target):
    """Returns every crate of the program, including robotsd itself, sorted by name."""
    wanted = set(edges(target))
    packages = json.loads(cargo("metadata", "--format-version", "1", "--filter-platform", target))["packages"]
    found = [
        Crate(
            package["name"],
            package["version"],
            spdx(package["license"]),
            pathlib.Path(package["manifest_path"]).parent,
            package["repository"],
            package["license_file"],
            package["source"] is None,
        )
        for package in packages
        if (package["name"], package["version"]) in wanted
    ]
    assert len(found) == len(wanted), "the metadata must contain each crate of the tree"
    unnamed = [crate.name for crate in found if not crate.license]
    if unnamed:
        sys.exit(f"the manifests of these crates contain no licence: {', '.join(unnamed)}")
    return sorted(found)


def spdx(expression):
    """Replaces slashes by `OR`, because manifests of old crates contain a slash instead."""
    return re.sub(r"\s*/\s*", " OR ", expression) if expression else None


def conjuncts(expression):
    """Returns the parts of an expression that are joined by `AND`. Each part is a choice of licences in alphabetical order: `A OR B`."""
    parts, depth, start = [], 0, 0
    for sign in re.finditer(r"\(|\)| AND ", expression):
        depth += {"(": 1, ")": -1}.get(sign[0], 0)
        if sign[0] == " AND " and depth == 0:
            parts.append(expression[start : sign.start()])
            start = sign.end()
    parts.append(expression[start:])
    for part in parts:
        part = part.strip()
        while part.startswith("(") and part.endswith(")"):
            part = part[1:-1].strip()
        if "(" in part or " AND " in part:
            sys.exit(f'the licence "{expression}" is neither a choice of licences nor several such choices joined by AND')
        yield " OR ".join(sorted(part.split(" OR ")))


def expression(found):
    """Returns the licences of all crates, joined by `AND`, with robotsd's own first."""
    parts = list(dict.fromkeys(crate.license for crate in found if crate.ours))
    known = {conjunct for part in parts for conjunct in conjuncts(part)}
    parts += sorted({conjunct for crate in found for conjunct in conjuncts(crate.license)} - known, key=lambda part: (" OR " in part, part))
    return " AND ".join(f"({part})" if " OR " in part else part for part in parts)


def texts(crate):
    """Returns the licence files of a crate, as pairs of path and text."""
    paths = {path for path in crate.folder.rglob("*") if path.is_file() and TEXT.match(path.name) and path.suffix.lower() not in CODE}
    if crate.license_file:
        paths.add(crate.folder / crate.license_file)
    for path in sorted(paths):
        text = path.read_bytes().decode("utf-8", "replace")
        text = "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
        if text:
            yield path.relative_to(crate.folder).as_posix(), text


def notices(found):
    """Returns a list of the crates, followed by each licence text once, with the files that contain it."""
    strangers = [crate for crate in found if not crate.ours]
    of_crate = {crate: list(texts(crate)) for crate in strangers}
    borrowed = {}
    for crate, own in of_crate.items():
        if not own:
            # The repositories of some crates have a licence file that the crates lack. The file of another crate from the same repository
            # is then used.
            same = [other for other in strangers if other.repository == crate.repository and other.license == crate.license and of_crate[other]]
            if not crate.repository or not same:
                sys.exit(f"{crate.name} {crate.version} ({crate.license}) has no licence file, and no other crate of its repository has one")
            borrowed[crate] = same[0]
    numbers, where = {}, collections.defaultdict(list)
    for crate, own in of_crate.items():
        for path, text in own:
            numbers.setdefault(text, len(numbers) + 1)
            where[text].append(f"{crate.name} {crate.version}: {path}")
    lines = [
        "robotsd contains code of the crates below. They are linked into the program or used to build it, each under its own licence. The",
        "licence texts follow the list, each once, with the files that contain it. RUST-STANDARD-LIBRARY.html contains the",
        "notices of Rust's standard library.",
        "",
    ]
    for crate in strangers:
        source = borrowed.get(crate, crate)
        shown = sorted({numbers[text] for _, text in of_crate[source]})
        line = f"{crate.name} {crate.version}: {crate.license}; texts {', '.join(map(str, shown))}"
        if crate in borrowed:
            line += f", from {source.name} {source.version} of the same repository"
        lines.append(line)
    for text, number in numbers.items():
        lines += ["", "-" * 100, f"Text {number}, in", *(f"  {place}" for place in where[text]), "-" * 100, "", text]
    return "\n".join(lines) + "\n"


def standard_library():
    """Returns the path of the notices of the standard library, which every Rust program contains. rustc installs them."""
    root = subprocess.run(["rustc", "--print", "sysroot"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    path = pathlib.Path(root, "share/doc/rust/COPYRIGHT-library.html")
    if not path.is_file():
        sys.exit(f"{path}: the notices of the standard library are missing; rustup and Rust's images install them since Rust 1.84")
    return path


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("expression")
    commands.add_parser("notices").add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    found = crates(host())
    if arguments.command == "expression":
        print(expression(found))
        return
    (arguments.out / "THIRD-PARTY-NOTICES.txt").write_text(notices(found), encoding="utf-8")
    shutil.copyfile(standard_library(), arguments.out / "RUST-STANDARD-LIBRARY.html")


if __name__ == "__main__":
    main()
