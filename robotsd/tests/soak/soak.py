#!/usr/bin/env python3
"""Runs two robotsd under mixed load and faults, minute by minute. See soak.sh for its usage.

Each minute has the same events: servers that reset, die, hang and return; a rate store that hangs, dies and returns; a full disk; a new
robots.txt, an invalid one, and a changed config; an upgrade. At the end of a minute all clients pause, and the answers that they received
are compared with the counts and the log of robotsd. The run fails if:

- a request failed that a healthy server could have answered: no broken server received the request, and no server died while the
  request was in progress
- a count differs from the count of the clients, even by one
- the resident memory of a process grows by more than 1 % per hour after its first half hour
- at the end, with all clients gone, there are more descriptors or threads than before the first client connected
"""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

import clients
from servers import Servers

PROJECT = Path(__file__).resolve().parents[3]
MINUTE = 60
# Age of a process, in minutes, from which its memory growth counts, and the maximum growth in per
# cent per hour.
STEADY_AFTER, MOST_GROWTH = 30, 1.0
# Maximum number of allowed requests per minute with a crawl delay of one second. It includes a
# burst, requests that a process counts by itself while the store is unavailable, and counts that
# arrive late.
MOST_PASSED = MINUTE + 30
PLOTTED = {
    "rss": "resident KiB",
    "descriptors": "descriptors",
    "threads": "threads",
    "p999": "p99.9 in ms",
    "requests": "requests",
    "failed": "failed by a broken server",
}


def begin_clients(servers, idle):
    steady, upgraded = servers.steady, servers.upgraded
    port = steady.ports
    steady.begin(clients.pages, "web", port["web"], None, 6, 0.03)
    steady.begin(clients.pages, "tls", port["tls"], "http/1.1", 2, 0.05)
    steady.begin(clients.streams, "tls", port["tls"], True, 2, 0.1)
    steady.begin(clients.streams, "web", port["web"], False, 1, 0.1)
    steady.begin(clients.crawlers, port["web"], 0.03)
    steady.begin(clients.sick, port["web"], 0.1)
    steady.begin(clients.questions, port["ask"], 0.02)
    steady.begin(clients.websockets, port["web"], 0.2)
    if servers.calls.port:
        steady.begin(clients.calls, port["web"], 0.1)
    steady.begin(clients.hostile, port["hostile"], port["hostile-tls"], 0.02)
    if idle:
        steady.begin(clients.idle, port["web"], idle, 240)
    port = upgraded.ports
    upgraded.begin(clients.pages, "web", port["web"], None, 4, 0.03)
    upgraded.begin(clients.streams, "tls", port["tls"], True, 2, 0.1)
    upgraded.begin(clients.crawlers, port["web"], 0.1)


def publish(robotsd, faults):
    """Checks that a new version is served within seconds, and that an invalid robots.txt is never served."""
    robotsd.write_robots("<html><body>not found</body></html>")
    time.sleep(1)
    robotsd.write_robots()
    want, end = robotsd.robots.read_text(), time.monotonic() + 10
    while (text := robotsd.served_robots()) != want:
        if "html" in text or time.monotonic() > end:
            return faults.append(f"{robotsd.name}: after a new version this is served: {text[:60]!r}")
        time.sleep(0.1)


def upgrade(servers, faults):
    upgraded = servers.upgraded
    faults += upgraded.upgrade()
    # The counts of the old process end with this process. The counts of the new process begin while
    # no request is in progress.
    seen = upgraded.quiet()
    upgraded.count_anew()
    upgraded.go()
    return seen


def schedule(servers, faults, earlier):
    """Returns the actions of a minute, each with the second at which it happens."""
    store, steady = servers.store, servers.steady

    def configure(robotsd):
        robotsd.configure(servers.disk.folder / "state" if robotsd is steady else servers.folder / "state", servers.shared)
        ended = robotsd.command("reload")
        if ended.returncode not in (0, 1):
            faults.append(f"{robotsd.name}: reload: {ended.stdout}{ended.stderr}")

    return [
        (4, lambda: servers.mode(1, "reset")),
        (5, lambda: servers.mode(3, "die")),
        (8, lambda: store.signal(signal.SIGSTOP)),
        (9, lambda: publish(servers.upgraded, faults)),
        (12, lambda: (servers.mode(1, "serve"), servers.mode(2, "die"))),
        (14, lambda: servers.disk.fill()),
        (15, lambda: publish(steady, faults)),
        (18, lambda: store.signal(signal.SIGCONT)),
        (19, lambda: servers.mode(3, "hang")),
        (20, lambda: (servers.mode(2, "serve"), servers.mode(1, "hang"))),
        # robotsd retries failed writes within half a minute, which is before the end of this minute.
        (21, lambda: servers.disk.free()),
        (24, lambda: store.stop()),
        (26, lambda: servers.mode(1, "serve")),
        (28, lambda: earlier.extend(upgrade(servers, faults))),
        (44, lambda: (servers.mode(1, "die"), servers.mode(3, "reset"))),
        (45, lambda: store.start()),
        (46, lambda: (configure(steady), configure(servers.upgraded))),
        (50, lambda: (servers.mode(1, "serve"), servers.mode(3, "serve"))),
        (54, lambda: None),
    ]


def play(servers, faults):
    """Plays one minute, and returns what the clients of both robotsd saw in it."""
    earlier, began = [], time.monotonic()
    for second, act in schedule(servers, faults, earlier):
        time.sleep(max(0.0, began + second - time.monotonic()))
        act()
    seen = [*earlier, *servers.upgraded.quiet(), *servers.steady.quiet()]
    return seen


def judge(servers, seen, faults):
    """Checks what happened in a minute, and returns its row."""
    faults += [fault for one in seen for fault in one.faults]
    broken, deaths = set(), []
    for one in servers.origins:
        left, died = one.order("left")
        broken |= left
        deaths += died
    failed = [failure for one in seen for failure in one.failed]
    for path, status, began, ended, said in failed:
        if path not in broken and not any(began - 0.1 <= death <= ended + 0.1 for death in deaths):
            faults.append(f"{status} for {path}, which a healthy server could have answered: {said!r}")
    passed = max(one.passed for one in seen)
    if servers.store.program and not 30 <= passed <= MOST_PASSED:
        faults.append(f"{passed} requests per minute were allowed for a crawler with a delay of one second")
    times = sorted(moment for one in seen for moment in one.times)
    row = {"requests": sum(count for one in seen for count in one.counts.values()), "failed": len(failed), "races": sum(one.races for one in seen)}
    row["p999"] = round(1000 * times[len(times) * 999 // 1000], 1)
    for robotsd in (servers.upgraded, servers.steady):
        faults += robotsd.compare_counts()
        row[robotsd.name] = robotsd.size()
        metrics = robotsd.metrics()
        dropped = [name for name, value in metrics.items() if name.startswith("robotsd_log_lines_dropped_total") and value]
        faults += [f"{robotsd.name}: {name}" for name in dropped]
    if servers.steady.metrics()["robotsd_state_writable"] != 1:
        status = servers.steady.command("status").stdout.splitlines()
        problems = " ".join(line for line in status if line.startswith("  problem"))
        faults.append(f"steady: the disk has space again, but the state is not written: {problems}")
    return row


def piece(options, rows, into):
    """Plays minutes until there are as many as requested. Writes descriptors and threads that are left at the end to a separate row."""
    servers = Servers(options.robotsd)
    number = 1 + max((row["piece"] for row in rows), default=0)

    def keep(row):
        rows.append({"piece": number, **row})
        with (into / "rows.jsonl").open("a") as out:
            out.write(json.dumps(rows[-1]) + "\n")
        for fault in row["faults"]:
            print(f"  {fault}", flush=True)

    try:
        room = max(value for name, value in servers.steady.metrics().items() if name.startswith("robotsd_connections_limit"))
        idle = min(options.idle, int(room) - 1000)
        if idle < options.idle:
            print(f"{idle} idle connections instead of {options.idle}: there are not enough descriptors")
        # Measures the size after an upgrade, because the process at the end is an upgraded process,
        # too.
        faults = servers.upgraded.upgrade()
        before = {robotsd.name: robotsd.size() for robotsd in (servers.steady, servers.upgraded)}
        begin_clients(servers, idle)
        age, minutes = 0, sum("p999" in row for row in rows)
        while minutes < options.minutes:
            servers.steady.go()
            servers.upgraded.go()
            seen = play(servers, faults)
            row = judge(servers, seen, faults)
            age, minutes = age + 1, minutes + 1
            keep({"age": age, **row, "faults": faults})
            steady = row["steady"]
            faults = []
            sizes = f"{steady['rss']} KiB, {steady['descriptors']} descriptors, {steady['threads']} threads"
            answers = f"{row['requests']} requests, {row['failed']} failed by broken servers, p99.9 {row['p999']} ms"
            print(f"{minutes:4} min: {answers}, {sizes}, {len(rows[-1]['faults'])} faults", flush=True)
        keep({"before": before, "after": lost(servers, before, faults := []), "faults": faults})
    finally:
        servers.stop()


def lost(servers, before, faults):
    """Returns the sizes of both robotsd after all clients have gone, and reports descriptors and threads that are left."""
    after = {}
    for robotsd in (servers.steady, servers.upgraded):
        robotsd.stop()
    for robotsd in (servers.steady, servers.upgraded):
        want, end = before[robotsd.name], time.monotonic() + 20
        while True:
            after[robotsd.name] = size = robotsd.size()
            more = [what for what in ("descriptors", "threads") if size[what] > want[what]]
            if not more or time.monotonic() > end:
                break
            time.sleep(0.2)
        for what in more:
            faults.append(f"{robotsd.name}: {size[what]} {what} at the end, {want[what]} before: {robotsd.listed(what)}")
    return after


def slope(points):
    """Returns the growth of memory in per cent per hour, by least squares over those minutes of each piece that count."""
    above = below = level = 0.0
    for piece_points in points:
        middle = sum(age for age, _ in piece_points) / len(piece_points)
        mean = sum(rss for _, rss in piece_points) / len(piece_points)
        above += sum((age - middle) * (rss - mean) for age, rss in piece_points)
        below += sum((age - middle) ** 2 for age, _ in piece_points)
        level += mean / len(points)
    return 100 * 60 * above / below / level


def verdict(rows):
    minutes = [row for row in rows if "p999" in row]
    faults = [fault for row in rows for fault in row["faults"]]
    pieces = {row["piece"]: [] for row in minutes}
    for row in minutes:
        if row["age"] > STEADY_AFTER:
            pieces[row["piece"]].append((row["age"], row["steady"]["rss"]))
    old = [points for points in pieces.values() if len(points) > 2]
    requests, failed = (sum(row[what] for row in minutes) for what in ("requests", "failed"))
    failed = f"{failed} of them failed by a broken server"
    lines = [f"{len(minutes)} minutes, pieces: {len(pieces)}; {requests:,} requests, {failed}, {len(faults)} faults"]
    growth = slope(old) if old else None
    lines.append(f"resident memory after {STEADY_AFTER} minutes: " + (f"{growth:+.2f} % per hour" if old else "not shown, no piece is longer"))
    ended = [row for row in rows if "after" in row]
    for name in ("steady", "upgraded"):
        for what in ("descriptors", "threads"):
            counts = [f"{row['before'][name][what]} and {row['after'][name][what]}" for row in ended]
            lines.append(f"{what} of {name}, before and after: {', '.join(counts) or 'not shown, no piece has ended'}")
    return lines, bool(ended) and not faults and (growth is None or growth <= MOST_GROWTH)


def plot(rows, lines):
    minutes, parts, wide, high = [row for row in rows if "p999" in row], [], 330, 150
    for at, (what, title) in enumerate(PLOTTED.items()):
        left, top = 20 + at % 3 * (wide + 30), 30 + at // 3 * (high + 60)
        series = {"#1b6ca8": [row.get(what, row["steady"].get(what)) for row in minutes]}
        if what not in minutes[0]:
            series["#c8553d"] = [row["upgraded"][what] for row in minutes]
        most = max(max(values) for values in series.values()) or 1
        parts.append(f'<text x="{left}" y="{top - 8}" font-weight="bold">{title}: 0 to {most:,}</text>')
        parts.append(f'<rect x="{left}" y="{top}" width="{wide}" height="{high}" fill="none" stroke="#999"/>')
        for colour, values in series.items():
            across, up = wide / max(1, len(values) - 1), high / most
            points = " ".join(f"{left + number * across:.1f},{top + high - value * up:.1f}" for number, value in enumerate(values))
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    top = 30 + 2 * (high + 60)
    words = ["blue: one process throughout; red: one that is upgraded each minute", *lines]
    parts += [f'<text x="20" y="{top + 16 * at}">{line}</text>' for at, line in enumerate(words)]
    size = (20 + 3 * (wide + 30), top + 16 * len(words))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" font-family="sans-serif" font-size="12">'
    return head + f'<rect width="{size[0]}" height="{size[1]}" fill="#fff"/>' + "\n".join(parts) + "</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("minutes", type=int)
    parser.add_argument("--into", type=Path, help="the folder that contains the minutes of earlier runs")
    parser.add_argument("--robotsd", default=str(PROJECT / "target/dist/robotsd"))
    parser.add_argument("--idle", type=int, default=10_000, help="number of idle connections")
    options = parser.parse_args()
    options.robotsd = os.path.realpath(options.robotsd)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    into = options.into or Path(os.environ.get("TMPDIR", "/tmp")) / f"soak-{os.getpid()}"
    into.mkdir(parents=True, exist_ok=True)
    kept = into / "rows.jsonl"
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    if sum("p999" in row for row in rows) < options.minutes:
        piece(options, rows, into)
    lines, is_well = verdict(rows)
    print("\n".join(lines))
    (into / "soak.svg").write_text(plot(rows, lines))
    print(f"{into}/soak.svg" if options.into else "", "holds" if is_well else "does not hold")
    sys.exit(not is_well)


if __name__ == "__main__":
    main()
