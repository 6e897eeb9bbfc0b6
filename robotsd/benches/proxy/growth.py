#!/usr/bin/env python3
"""Measures how time and memory grow with rules, names, sites, workers, idle connections and log lines.

    cargo build --profile dist -p robotsd
    robotsd/benches/proxy/growth.py [BINARY] [--only AXIS]... [--write]    # --write: writes growth.md and growth.svg in this folder

Prints a table for each axis. The last row contains the exponent of each column: the slope between the two largest sizes, on logarithmic
scales. An exponent of 0 means constant, and 1 means linear. If an exponent is greater than 1.15, the command exits with status 1. Times are
processor time: per page, per refusal, for a start, per second without requests (when the server only checks its files), and for `replay`.
Memory is the process's private memory (`Private_Dirty`).

Needs nginx, h2load, openssl, GNU time and two cores.
"""

import argparse
import math
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import instructions
from run import BROWSER, GPTBOT, KINDS, OTHER_CORE, PROJECT, ask, connected, print_table, robotsd, site

LINEAR = 1.15
COLOURS = ["#1b6ca8", "#c8553d", "#3c7a3e", "#7a4b8c", "#8a6d1b"]
SCENES = [("/1k", BROWSER, 2), ("/private/x", {"User-Agent": GPTBOT}, 4)]
REQUESTS = 20_000
READ = """One run of `growth.py`; its comment explains what is measured and how. The exponent is the slope between the two largest sizes: 0 means constant, 1 linear.
All workers share one core here, so with more than one worker the kernel switches between them."""


def private(server):
    """Returns the private memory of a process, in KiB."""
    return int(re.search(r"Private_Dirty:\s+(\d+)", Path(f"/proc/{server.process.pid}/smaps_rollup").read_text())[1])


def cost(folder, binary, config, behind):
    """Measures one row of a table, with the columns of COST."""
    server = robotsd(folder, "grown", binary, behind.port, folder / "grown.txt", "refuse")
    if config:
        text = Path(server.command[-1]).read_text()
        Path(server.command[-1]).write_text(config(text))
    server.start()
    start = server.cpu() * 1e3
    # After this time, the server has finished all work that it does only once after a start.
    time.sleep(30)
    memory, by_itself = private(server), idle(server)
    # Takes the minimum of three measurements, because other work on the machine can only increase
    # the time.
    times = [min(request(server, *scene, by_itself) for _ in range(3)) for scene in SCENES]
    server.stop()
    return [*times, memory, start, by_itself * 1e3]


def idle(server):
    """Returns the seconds of processor time that the server uses per second without requests."""
    before, began = server.cpu(), time.monotonic()
    time.sleep(5)
    return (server.cpu() - before) / (time.monotonic() - began)


def request(server, path, headers, status, by_itself):
    """Returns the microseconds of processor time per request, without the time `by_itself` that the server uses even without requests."""
    load = ["taskset", "-c", OTHER_CORE, "h2load", "--h1", "-t1", "-c8", "-n", str(REQUESTS), *instructions.fields(headers)]
    before, began = server.cpu(), time.monotonic()
    out = subprocess.run([*load, f"http://127.0.0.1:{server.port}{path}"], capture_output=True, text=True, timeout=120).stdout
    taken = server.cpu() - before - by_itself * (time.monotonic() - began)
    if not re.search(rf"\b{REQUESTS} {status}xx", out):
        sys.exit(f"unexpected answers\n{out}")
    return taken / REQUESTS * 1e6


COST = ["µs, page", "µs, refused", "KiB", "ms to start", "ms per second, idle"]


def rules(folder, binary, behind):
    for size in (10, 100, 1_000, 10_000, 30_000):
        lines = "".join(f"Disallow: /{number:x}/\n" for number in range(size - 1))
        (folder / "grown.txt").write_text(f"User-agent: *\n{lines}Disallow: /private/\n")
        yield size, cost(folder, binary, None, behind)


def names(folder, binary, behind):
    for size in (10, 100, 1_000, 10_000):
        lines = "".join(f"User-agent: made-up-{number}\n" for number in range(size - 1))
        (folder / "grown.txt").write_text(f"{lines}User-agent: GPTBot\nDisallow: /private/\n")
        yield size, cost(folder, binary, None, behind)


def sites(folder, binary, behind):
    (folder / "grown.txt").write_text("User-agent: GPTBot\nDisallow: /private/\n")
    for size in (1, 10, 100, 1_000, 10_000):

        def with_others(text):
            one = '[[site]]\nname = "{0}"\nhosts = ["{0}.example"]\nupstreams = ["http://127.0.0.1:{1}"]\nrobots.path = "grown.txt"\n'
            return text + "".join(one.format(f"s{number}", behind.port) for number in range(size - 1))

        yield size, cost(folder, binary, with_others, behind)


def workers(folder, binary, behind):
    (folder / "grown.txt").write_text("User-agent: GPTBot\nDisallow: /private/\n")
    for size in (1, 2, 4, 8, 16, 32):
        yield size, cost(folder, binary, lambda text: text.replace("workers = 1", f"workers = {size}"), behind)


def connections(folder, binary, behind):
    """Measures the memory while this number of connections is open and idle."""
    (folder / "grown.txt").write_text("User-agent: GPTBot\nDisallow: /private/\n")
    for size in (10, 100, 1_000, 8_000):
        row = []
        for kind in KINDS:
            server = robotsd(folder, "grown", binary, behind.port, folder / "grown.txt", "refuse").start()
            for _ in range(32):
                ask(connected(server, kind), server, kind, 0)
            time.sleep(2)
            before, held = private(server), []
            for _ in range(size):
                held.append(connected(server, kind))
                ask(held[-1], server, kind, 0)
            time.sleep(2)
            row.append(max(private(server) - before, 1))
            for connection in held:
                connection.close()
            server.stop()
        yield size, row


def log_lines(folder, binary, behind):
    (folder / "grown.txt").write_text("User-agent: GPTBot\nDisallow: /private/\n")
    log = folder / "access.log"
    for size in (100_000, 1_000_000, 10_000_000):
        with log.open("w") as lines:
            for number in range(size):
                agent = GPTBOT if number % 4 == 0 else BROWSER["User-Agent"]
                second = number * 86_400 // size
                clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
                lines.write(f'192.0.2.{number % 250} - - [01/Oct/2026:{clock} +0000] "GET /{number % 9973:x}/page HTTP/1.1" 200 512 "-" "{agent}"\n')
        out = folder / "replay.time"
        replay = ["time", "-f", "%U %S %M", "-o", str(out), binary, "replay", "--robots", str(folder / "grown.txt"), str(log)]
        subprocess.run(replay, stdout=subprocess.DEVNULL, check=True)
        user, system, most = map(float, out.read_text().split())
        yield size, [user + system, most]
    log.unlink()


AXES = {
    "rules": (rules, COST),
    "names": (names, COST),
    "sites": (sites, COST),
    "workers": (workers, COST),
    "connections": (connections, [f"KiB, {kind}" for kind in KINDS]),
    "log lines": (log_lines, ["seconds", "KiB"]),
}


def exponents(rows):
    """Returns the slope of each column between the two largest sizes."""
    (small, before), (large, after) = rows[-2:]
    return [math.log(last / first) / math.log(large / small) if first > 0 and last > 0 else 0.0 for first, last in zip(before, after)]


def plot(found):
    """Draws a small chart for each axis, all in one picture. Both scales are logarithmic. Columns are relative to their first value."""
    wide, high, parts = 300, 220, []
    for place, (axis, (columns, rows)) in enumerate(found.items()):
        left, top = 20 + place % 3 * (wide + 30), 30 + place // 3 * (high + 100)
        sizes = [math.log10(size) for size, _ in rows]
        most = max(max(values[at] / rows[0][1][at] for _, values in rows) for at in range(len(columns)))
        decades = max(1.0, math.log10(most))
        parts.append(f'<text x="{left}" y="{top - 8}" font-weight="bold">{axis}: {rows[0][0]:,} to {rows[-1][0]:,}</text>')
        parts.append(f'<rect x="{left}" y="{top}" width="{wide}" height="{high}" fill="none" stroke="#999"/>')
        for at, column in enumerate(columns):
            points = []
            for size, (_, values) in zip(sizes, rows):
                x = left + (size - sizes[0]) / (sizes[-1] - sizes[0]) * wide
                y = top + high - max(0.0, math.log10(values[at] / rows[0][1][at])) / decades * high
                points.append(f"{x:.1f},{y:.1f}")
            colour = COLOURS[at]
            parts.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="2"/>')
            times = rows[-1][1][at] / rows[0][1][at]
            parts.append(f'<text x="{left}" y="{top + high + 15 + 14 * at}" fill="{colour}">{column}: × {times:,.3g}</text>')
    size = (20 + 3 * (wide + 30), 30 + (len(found) + 2) // 3 * (high + 100))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" font-family="sans-serif" font-size="12">'
    return head + f'<rect width="{size[0]}" height="{size[1]}" fill="#fff"/>' + "\n".join(parts) + "</svg>\n"


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", nargs="?", default=str(PROJECT / "target/dist/robotsd"))
    parser.add_argument("--only", action="append", choices=AXES)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    found, text, steep = {}, [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _, _, behind = site(folder)
        try:
            for axis in options.only or AXES:
                measure, columns = AXES[axis]
                rows = list(measure(folder, options.binary, behind))
                found[axis] = columns, rows
                slopes = exponents(rows)
                steep += [f"{axis}, {column}: {slope:.2f}" for column, slope in zip(columns, slopes) if slope > LINEAR]
                table = [[f"{size:,}", *map(number, values)] for size, values in rows]
                table.append(["exponent", *(f"{slope:.2f}" for slope in slopes)])
                print_table([axis, *columns], table)
                lines = [[axis, *columns], ["---"] * (len(columns) + 1), *table]
                text.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
        finally:
            behind.stop()
    if options.write:
        Path(__file__).with_suffix(".md").write_text(f"# How it grows\n\n{READ}\n\n" + "\n\n".join(text) + "\n")
        Path(__file__).with_suffix(".svg").write_text(plot(found))
    if steep:
        sys.exit("more than linear:\n" + "\n".join(steep))


if __name__ == "__main__":
    main()
