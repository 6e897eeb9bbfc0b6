#!/usr/bin/env python3
"""Measures how long the kill switch takes: from the start of `robotsd enforce off` until requests are no longer refused.

    cargo build --profile dist -p robotsd
    robotsd/benches/proxy/kill_switch.py [--robotsd PATH] [--runs N]

Needs wrk, Linux, and two cores. The scene with a full disk needs permission to mount a disk. README.md explains what is measured.
"""

import argparse
import contextlib
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from run import GPTBOT, PROJECT, free_port, print_table

BAR = 1.0
ROBOTS = "User-agent: GPTBot\nDisallow: /private/\n"


class Site:
    """A robotsd with a site that refuses GPTBot's requests below /private/."""

    def __init__(self, folder, binary, state):
        self.folder, self.binary = folder, binary
        self.port, self.admin = free_port(), free_port()
        self.config = folder / "robotsd.toml"
        (folder / "pages").mkdir(exist_ok=True)
        (folder / "pages/robots.txt").write_text(ROBOTS)
        self.text = f"""mode = "refuse"
state_dir = "{state}"
[[listener]]
address = "127.0.0.1:{self.port}"
[admin]
address = "127.0.0.1:{self.admin}"
[[site]]
name = "shop"
root = "{folder}/pages"
"""
        self.config.write_text(self.text)
        with open(folder / "log", "wb") as log:
            self.process = subprocess.Popen([binary, "serve", "--config", self.config], stdout=log, stderr=log)
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.05)
        sys.exit((folder / "log").read_text()[-2000:])

    def status(self, connection):
        """Sends a request that is refused while rules are enforced. Returns its status."""
        connection.sendall(f"GET /private/x HTTP/1.1\r\nHost: a\r\nUser-Agent: {GPTBOT}\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(65536)
        head, _, body = head.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        left = int(fields.get(b"content-length", 0)) - len(body)
        while left > 0:
            left -= len(connection.recv(left))
        return int(head.split(b" ", 2)[1])

    def enforce(self, mode):
        command = [self.binary, "enforce", mode, "--admin", f"127.0.0.1:{self.admin}"]
        done = subprocess.run(command, capture_output=True, text=True)
        # The command fails if the switch cannot be saved because the disk is full. Enforcement is
        # off nevertheless.
        return done.stdout + done.stderr

    def switch_off(self):
        """Turns enforcement off while a client sends requests. Returns the seconds until its last refusal, and until the end of the command."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            if self.status(connection) != 403:
                sys.exit("no request is refused before the switch is turned off")
            ended, passed, last_refused = threading.Event(), 0, None
            started = time.monotonic()

            def command():
                self.enforce("off")
                ended.at = time.monotonic() - started
                ended.set()

            threading.Thread(target=command).start()
            while not ended.is_set() or passed < 20:
                if self.status(connection) == 403:
                    last_refused, passed = time.monotonic() - started, 0
                else:
                    passed += 1
                if time.monotonic() - started > 30:
                    sys.exit("requests are still refused after 30 s")
        self.enforce("on")
        return last_refused or 0.0, ended.at

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


@contextlib.contextmanager
def nothing(_site):
    yield


@contextlib.contextmanager
def rejected_config(site):
    site.config.write_text(site.text + "no_such_key = 1\n")
    site.process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    yield
    site.config.write_text(site.text)


@contextlib.contextmanager
def saturated(site):
    """Keeps every core busy with computations, and with more requests than can be answered."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * os.cpu_count())]
    command = ["wrk", "-t2", "-c256", "-d600s", "-H", f"User-Agent: {GPTBOT}", f"http://127.0.0.1:{site.port}/private/x"]
    busy.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    time.sleep(1)
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


@contextlib.contextmanager
def full_disk(site):
    filler = site.folder / "state/filler"
    with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    yield
    filler.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robotsd", default=str(PROJECT / "target/dist/robotsd"))
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    scenes = {"nothing else": nothing, "a rejected config": rejected_config, "saturated": saturated, "a full disk": full_disk}
    rows = []
    for name, scene in scenes.items():
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            state = folder / "state"
            state.mkdir()
            mounted = scene is full_disk
            if mounted and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", state]).returncode:
                print(f"{name}: skipped, because no disk can be mounted", file=sys.stderr)
                continue
            site = Site(folder, options.robotsd, state)
            try:
                with scene(site):
                    times = [site.switch_off() for _ in range(options.runs)]
            finally:
                site.stop()
                if mounted:
                    subprocess.run(["umount", state], check=True)
        refused, ended = zip(*times)
        cells = (statistics.median(refused), max(refused), statistics.median(ended), max(ended), BAR)
        rows.append([name, *(f"{seconds:.3f}" for seconds in cells)])
    print(f"Seconds from starting the command, {options.runs} runs")
    print_table(["scene", "last refusal, median", "at most", "command ended, median", "at most", "bar"], rows)


if __name__ == "__main__":
    main()
