#!/usr/bin/env python3
"""Measures how much longer requests to nginx take if nginx asks robotsd: p50, p99 and p99.9 at a constant rate. robotsd is healthy, reloads
or hangs.

    cargo build --profile dist -p robotsd && cargo bench --no-run -p robotsd --bench open_loop
    robotsd/benches/proxy/latency.py [--robotsd PATH] [--generator PATH] [--rates 1000,5000,20000] [--rounds N] [--seconds S]

Needs nginx (Debian: nginx-light), Linux, and two cores. README.md explains what is measured and why; `run.py` and `beside.py` contain
the shared functions.
"""

import argparse
import json
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

from beside import nginx, nginx_asking, robotsd
from run import BROWSER, OTHER_CORE, PROJECT, fields, print_table, site

STATES = ("healthy", "reloading", "hung")
SHARES = ("p50", "p99", "p999")
WARM_UP = 1


def newest_generator():
    found = (PROJECT / "target/release/deps").glob("open_loop-*")
    programs = [path for path in found if not path.suffix]
    return str(max(programs, key=lambda path: path.stat().st_mtime)) if programs else ""


def measure(generator, port, rate, seconds):
    headers = [word for word in fields(BROWSER) if word != "-H"]
    command = ["taskset", "-c", OTHER_CORE, generator, f"127.0.0.1:{port}", "/1k", str(rate), str(seconds), *headers]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@contextmanager
def state(name, asked, robots):
    """Keeps robotsd in this state (healthy, reloading or hanging) for a `with` block."""
    done = threading.Event()

    def reload():
        # Writes a different file ten times per second, so that every reload has to parse all rules.
        text, number = robots.read_text(), 0
        while not done.wait(0.1):
            number += 1
            fresh = robots.with_suffix(".fresh")
            fresh.write_text(f"# {number}\n{text}")
            fresh.rename(robots)
            asked.process.send_signal(signal.SIGHUP)
        robots.write_text(text)

    if name == "hung":
        asked.process.send_signal(signal.SIGSTOP)
    thread = threading.Thread(target=reload) if name == "reloading" else None
    if thread:
        thread.start()
    try:
        yield
    finally:
        done.set()
        if thread:
            thread.join()
        asked.process.send_signal(signal.SIGCONT)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robotsd", default=str(PROJECT / "target/dist/robotsd"))
    parser.add_argument("--generator", default=newest_generator())
    parser.add_argument("--rates", default="1000,5000,20000")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10)
    options = parser.parse_args()
    if not options.generator:
        sys.exit("the generator is not built: cargo bench --no-run -p robotsd --bench open_loop")
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    rates = [int(rate) for rate in options.rates.split(",")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _, robots, behind = site(folder)
        robots = Path(robots)
        asked = robotsd(folder, options.robotsd, robots).start()
        plain = nginx(folder, "nginx", behind.port, "")
        asking = nginx_asking(folder, "asking", behind.port, asked.port)
        for server in (plain, asking):
            # If robotsd hangs, thousands of requests wait for it at the same time. Each waiting
            # request uses three connections.
            config = Path(server.command[-1])
            config.write_text(config.read_text().replace("worker_connections 8000", "worker_connections 60000"))
            server.start()
        try:
            run(options, rates, asked, robots, plain, asking)
        finally:
            for server in (behind, asked, plain, asking):
                server.stop()


def run(options, rates, asked, robots, plain, asking):
    found = {}
    for rate in rates:
        for _ in range(options.rounds):
            # The states alternate, so that other work on the machine affects all of them.
            for name in ("nginx alone", *STATES):
                port = plain.port if name == "nginx alone" else asking.port
                with state(name, asked, robots):
                    measure(options.generator, port, rate, WARM_UP)
                    told = measure(options.generator, port, rate, options.seconds)
                found.setdefault((rate, name), []).append(told)
    rows = []
    for rate in rates:
        alone = found[rate, "nginx alone"]
        for name in ("nginx alone", *STATES):
            told = found[rate, name]
            row = [f"{rate:,}", name]
            for share in SHARES:
                own = statistics.median(round[share] for round in told)
                added = statistics.median(round[share] - before[share] for round, before in zip(told, alone))
                row.append(f"{own / 1000:.2f}" if name == "nginx alone" else f"{own / 1000:.2f} ({added / 1000:+.2f})")
            # The times include failed requests. Because a failure may be fast, the number of
            # failures is shown, too.
            failed = sum(round["wrong"] for round in told) / sum(round["requests"] for round in told)
            rows.append([*row, f"{failed:.2%}" if failed else ""])
    print(f"ms from when a request is due, and the difference to nginx alone: medians of {options.rounds} rounds of {options.seconds} s")
    print_table(["per second", "robotsd", "p50", "p99", "p99.9", "not 200"], rows)


if __name__ == "__main__":
    main()
