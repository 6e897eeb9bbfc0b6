#!/usr/bin/env python3
"""Finishes the wheel that maturin made: without the symbols of the program, which are a third of it, and with a bill of materials that
names no folder of the machine and is the same in each build of one source. Writes the bill beside the wheel as well.

Usage: finish_wheel.py WHEEL OUT PROJECT        SOURCE_DATE_EPOCH: the time that the bill bears
"""

import base64
import datetime
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import uuid
import zipfile


def stripped(program):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "robotsd")
        path.write_bytes(program)
        subprocess.run(["strip", path], check=True)
        return path.read_bytes()


def neutral(bill, project):
    """The bill of materials without the folder, the moment and the random name of this build."""
    # A crate of the workspace is named by its folder.
    document = json.loads(bill.replace(f"file://{project}", "file:///tower-robots"))
    moment = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    document["metadata"]["timestamp"] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    del document["serialNumber"]
    content = json.dumps(document, sort_keys=True)
    document["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, content).urn
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    assert str(project) not in text, "a path of this machine is left"
    return text.encode()


def record_line(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def main():
    wheel, out, project = (pathlib.Path(argument) for argument in sys.argv[1:])
    with zipfile.ZipFile(wheel) as archive:
        entries = {entry: archive.read(entry) for entry in archive.infolist()}
    record = ""
    with zipfile.ZipFile(out / wheel.name, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for entry, content in entries.items():
            name = entry.filename
            if name.endswith("/RECORD"):
                record += f"{name},,\n"
                content = record.encode()
            elif name.endswith("/scripts/robotsd"):
                content = stripped(content)
            elif name.endswith(".cyclonedx.json"):
                content = neutral(content.decode(), project)
                version = wheel.name.split("-")[1]
                (out / f"robotsd-{version}.cdx.json").write_bytes(content)
            if not name.endswith("/RECORD"):
                record += record_line(name, content)
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    assert record.endswith(",,\n"), "the list of files is the last file"


main()
