#!/usr/bin/env python3
"""Copies the chapters into a folder as files. In the crate's documentation, a link contains the path of an item, such as
`crate::docs::beside`, which does not work in a file. It is replaced by the name of the chapter's file, or by the address of the item's
page on docs.rs.

Usage: chapters.py FROM TO VERSION
"""

import pathlib
import re
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"(\]\(|^\[[^\]\n]+\]: )(?:mod@)?((?:crate|tower_robots)(?:::\w+)+)(#[\w-]+)?", re.MULTILINE)


def page(path, anchor, version):
    """Returns the address on docs.rs of a module, of a type (whose page is named after its kind) or of a method of a type."""
    modules = [part for part in path if part[0].islower()]
    if len(modules) == len(path):
        return f"https://docs.rs/tower-robots/{version}/{'/'.join(path)}/index.html{anchor}"
    place = next(index for index, part in enumerate(path) if part[0].isupper())
    kinds = {
        kind
        for source in sorted(PROJECT.glob("src/**/*.rs"))
        for kind in re.findall(rf"^pub (struct|enum|trait) {path[place]}\b", source.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert len(kinds) == 1, f"{path[place]} must be exactly one type of the library, not {kinds}"
    method = "".join(f"#method.{part}" for part in path[place + 1 :])
    return f"https://docs.rs/tower-robots/{version}/{'/'.join(path[:place])}/{kinds.pop()}.{path[place]}.html{method or anchor}"


def main():
    source, out, version = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    chapters = {path.stem: path for path in sorted(source.glob("*.md"))}
    for path in chapters.values():

        def rewritten(link, path=path):
            before, item, anchor = link[1], link[2].split("::"), link[3] or ""
            if item[0] == "tower_robots":
                return before + page(item, anchor, version)
            if item[:2] != ["crate", "docs"] or len(item) != 3 or item[2] not in chapters:
                sys.exit(f"{path}: the link to {link[2]} is neither a chapter in this folder nor an item of the library")
            return f"{before}{item[2]}.md{anchor}"

        text = LINK.sub(rewritten, path.read_text(encoding="utf-8"))
        (out / path.name).write_text(text, encoding="utf-8")


main()
