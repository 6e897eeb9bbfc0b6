#!/usr/bin/env python3
"""Finishes the wheel that maturin has built. Adds the notices of third-party code to the wheel, and their licences to its metadata.
Reduces the bill of materials to the crates of this target. Also removes folders of this machine from the bill, so that two builds of the
same source have the same bill. Writes the bill to a file next to the wheel as well.

Usage: finish_wheel.py WHEEL OUT LICENSES       The variable SOURCE_DATE_EPOCH is the time in the bill.
  LICENSES  a folder with the notices
"""

import base64
import datetime
import hashlib
import json
import os
import pathlib
import re
import sys
import uuid
import zipfile

import third_party


def neutral(bill, target):
    """Returns the bill of materials for one target. Removes the folder, the time and the random name of this build.

    maturin's bill also contains crates that only other targets need, such as Windows or WebAssembly.
    """
    # The bill contains the build folder as the address of a workspace crate. This replaces it with a fixed folder.
    document = json.loads(bill.replace(f"file://{third_party.PROJECT}", "file:///tower-robots"))
    edges = third_party.edges(target)
    top = document["metadata"]["component"]
    of = {(component["name"], component["version"]): component for component in [top, *document["components"]]}
    unnamed = set(edges) - set(of)
    assert not unnamed, f"the bill of materials lacks {unnamed}"
    document["components"] = [component for component in document["components"] if (component["name"], component["version"]) in edges]
    for component in [top, *top["components"], *document["components"]]:
        component["purl"] = purl(component["purl"])
    refs = {crate: of[crate]["bom-ref"] for crate in edges}
    document["dependencies"] = sorted(
        ({"ref": refs[crate], "dependsOn": sorted(refs[other] for other in others)} for crate, others in edges.items()),
        key=lambda dependency: dependency["ref"],
    )
    properties = document["metadata"]["properties"]
    properties[:] = [known for known in properties if known["name"] != "cdx:rustc:sbom:target:all_targets"]
    properties.append({"name": "cdx:rustc:sbom:target:triple", "value": target})
    moment = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    document["metadata"]["timestamp"] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    del document["serialNumber"]
    content = json.dumps(document, sort_keys=True)
    document["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, content).urn
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    assert str(third_party.PROJECT) not in text, "a path of this machine is left"
    return text.encode()


def purl(address):
    """Returns the address of a workspace crate without its build folder, which does not exist on other machines."""
    return re.sub(r"\?download_url=file://[^#]*", "", address)


def metadata(text, licences, expression):
    """Adds the licences of the wheel's whole content to its metadata. `text` is the metadata with robotsd's own licence only."""
    head, body = text.split("\n\n", 1)
    lines = [line for line in head.split("\n") if not line.startswith("License-Expression:")]
    assert len(lines) + 1 == len(head.split("\n")), "exactly one line must contain the licence"
    lines.append(f"License-Expression: {expression}")
    lines += [f"License-File: {name}" for name in licences]
    return "\n".join(lines) + "\n\n" + body


def record_line(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def main():
    wheel, out, folder = (pathlib.Path(argument) for argument in sys.argv[1:])
    target = third_party.host()
    licences = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    version = wheel.name.split("-")[1]
    information = f"robotsd-{version}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        entries = {entry: archive.read(entry) for entry in archive.infolist()}
    contents = {}
    for entry, content in entries.items():
        name = entry.filename
        if name == f"{information}/METADATA":
            content = metadata(content.decode(), licences, third_party.expression(third_party.crates(target))).encode()
        elif name.endswith(".cyclonedx.json"):
            content = neutral(content.decode(), target)
            (out / f"robotsd-{version}.cdx.json").write_bytes(content)
        contents[name] = (entry, content)
    (record,) = [name for name in contents if name.endswith("/RECORD")]
    # The file RECORD must be the last one.
    entry, _ = contents.pop(record)
    for licence, content in licences.items():
        name = f"{information}/licenses/{licence}"
        added = zipfile.ZipInfo(name, entry.date_time)
        added.external_attr = entry.external_attr
        contents[name] = (added, content)
    lines = "".join(record_line(name, content) for name, (_, content) in contents.items()) + f"{record},,\n"
    contents[record] = (entry, lines.encode())
    with zipfile.ZipFile(out / wheel.name, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for entry, content in contents.values():
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)


main()
