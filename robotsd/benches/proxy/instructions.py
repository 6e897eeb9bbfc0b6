#!/usr/bin/env python3
"""Counts the instructions in user space per request, with an error of at most 1 %, and checks that their number does not grow unnoticed.

Only the thread that serves the requests is counted. What the other threads do depends on the time that a request takes: the thread that
writes the log, for example, wakes up at most once in 5 ms.

    cargo build --profile dist -p robotsd
    robotsd/benches/proxy/instructions.py [BINARY] [--peers] [--floors] [--rounds N]
    robotsd/benches/proxy/instructions.py --check BINARY    # fails if a scene takes over 3 % more than its figure in instructions.toml
    robotsd/benches/proxy/instructions.py --write BINARY    # writes figures that changed by over 1 % to that file

`--floors` builds `benches/floor.rs` and counts the instructions of h2, hyper and rustls without robotsd.

Needs valgrind, nginx, h2load, curl and openssl (Debian: valgrind nginx-light nghttp2-client curl openssl), with --peers haproxy, Linux,
and two cores. README.md explains what is measured and why; `run.py` contains the shared functions.
"""

import argparse
import contextlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from beside import ASKED, replaced
from run import BROWSER, GPTBOT, OTHER_CORE, PROJECT, PROXY_CORE, Server, fields, free_port, haproxy, nginx, print_table, robotsd, site

FIGURES = Path(__file__).with_suffix(".toml")
# Numbers of requests in the two loads. The result is computed from the difference of the two, so
# connections, handshakes and other one-time work do not count.
SHORT, LONG = 200, 1200
GROWTH = 0.03
# Minimum change that `--write` writes to the file. Smaller changes are noise.
NOISE = 0.01
CRAWLER = {"User-Agent": GPTBOT}
SLOW_CRAWLER = {"User-Agent": "Mozilla/5.0 (compatible; SeznamBot/4.0; +https://o-seznam.cz/napoveda/vyhledavani/en/seznambot-crawler/)"}
GRPC = {"Content-Type": "application/grpc", "TE": "trailers"}
# For each scene: the listener, the path, the header fields, and the expected status.
SCENES = {
    "page": ("http", "/1k", BROWSER, 200),
    "refused": ("http", "/private/x", CRAWLER, 403),
    "refused, log as text": ("http", "/private/x", CRAWLER, 403),
    "/robots.txt": ("http", "/robots.txt", CRAWLER, 200),
    "304": ("http", "/robots.txt", CRAWLER, 304),
    "429": ("http", "/1k", SLOW_CRAWLER, 429),
    "HTTP/2 over TLS": ("https", "/1k", BROWSER, 200),
    "HTTP/2 over TLS, 10 streams": ("https", "/1k", BROWSER, 200),
    "a question of nginx": ("decision", "/-/auth/nginx", {**BROWSER, **ASKED, "X-Original-URI": "/1k"}, 200),
    "a question of Envoy": ("decision", "/envoy.service.auth.v3.Authorization/Check", GRPC, 200),
}
# Number of concurrent requests per connection, for scenes with more than one.
STREAMS = {"HTTP/2 over TLS, 10 streams": 10}
HTTP2 = {scene for scene in SCENES if scene.startswith("HTTP/2 over TLS")}
# Scenes of a second robotsd with other settings.
SETTINGS = {"refused, log as text": '[log]\nformat = "text"\n'}
# The scenes of each peer. HAProxy has no scene with a conditional request, because it ignores the
# condition for files that it serves itself.
PEERS = {
    "nginx": {"page", *HTTP2},
    "nginx-list": {"page", "refused", "/robots.txt", "304", "429", *HTTP2},
    "haproxy": {"page", "refused", "/robots.txt", "429", *HTTP2},
}
FLOORS = {"h2 answers": False, "h2 forwards": True}


def field(number, content):
    """Encodes a field of type bytes in protocol buffers. The content may have at most 16,383 bytes."""
    length = [len(content)] if len(content) < 128 else [len(content) & 127 | 128, len(content) >> 7]
    return bytes([number << 3 | 2, *length]) + content


def envoys_question():
    """Encodes Envoy's CheckRequest for a browser's request as a gRPC message."""
    sent = {":method": "GET", ":path": "/1k", ":authority": "127.0.0.1", ":scheme": "http", **BROWSER}
    entries = b"".join(field(3, field(1, name.lower().encode()) + field(2, value.encode())) for name, value in sent.items())
    http = field(1, b"4711") + field(2, b"GET") + entries + field(4, b"/1k") + field(5, b"127.0.0.1") + field(6, b"http")
    peer = field(1, field(1, field(2, b"192.0.2.1") + b"\x18\x50"))
    message = field(1, field(1, peer) + field(4, field(2, http)))
    return b"\0" + len(message).to_bytes(4, "big") + message


class Counted:
    """A server under callgrind, with the ports of its listeners."""

    def __init__(self, server, **ports):
        self.server, self.ports, self.dumps = server, {"http": server.port, "https": server.https_port, **ports}, 0
        self.out = server.folder / f"{server.name}.callgrind"
        # vgdb looks for its files in this temporary folder instead of /tmp.
        self.prefix = f"--vgdb-prefix={server.folder}/vgdb"
        server.command = ["valgrind", "-q", "--tool=callgrind", "--separate-threads=yes", self.prefix, f"--callgrind-out-file={self.out}", *server.command]

    def instructions(self):
        """Returns the numbers of instructions since the last call: of the busiest thread, which serves the requests, and of all others."""
        command = ["vgdb", self.prefix, f"--pid={self.server.process.pid}", "dump"]
        dumped = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if dumped.returncode:
            sys.exit(f"{self.server.name} cannot be counted (vgdb needs ptrace): {dumped.stderr}")
        self.dumps += 1
        threads = self.out.parent.glob(f"{self.out.name}.{self.dumps}-*")
        counts = [int(re.search(r"^totals: (\d+)$", thread.read_text(), re.M)[1]) for thread in threads]
        return max(counts), sum(counts) - max(counts)

    def request(self, scene, folder):
        """Returns the URL of a scene, its header fields as options for curl and h2load, and the file with the content of the request."""
        listener, path, headers, status = SCENES[scene]
        scheme = "https" if listener == "https" else "http"
        url = f"{scheme}://127.0.0.1:{self.ports[listener]}{path}"
        if status == 304:
            head = subprocess.run(["curl", "-sD-", "-o", folder / "answer", url], capture_output=True, text=True).stdout
            headers = {**headers, "If-None-Match": re.search(r"^etag: (\S+)", head, re.M | re.I)[1]}
        return url, fields(headers), folder / "question" if headers is GRPC else None

    def measure(self, scene, folder):
        """Returns the numbers of instructions per request: of the thread that serves requests, and of all others."""
        url, headers, content = self.request(scene, folder)
        self.expect(scene, url, headers, content, folder)
        version = ["--h1"] if url.startswith("http:") and not content else []
        load = ["taskset", "-c", OTHER_CORE, "h2load", *version, "-t1", "-c1", f"-m{STREAMS.get(scene, 1)}", *headers, *(["-d", content] if content else [])]
        counts = []
        self.instructions()
        for number in (SHORT, LONG):
            out = subprocess.run([*load, "-n", str(number), url], capture_output=True, text=True, timeout=120).stdout
            counts.append(self.instructions())
            if not re.search(rf"\b{number} {SCENES[scene][3] // 100}xx", out):
                sys.exit(f"{self.server.name}, {scene}: unexpected answers\n{out}")
        return tuple((long - short) / (LONG - SHORT) for short, long in zip(*counts))

    def expect(self, scene, url, headers, content, folder):
        """Checks the status of the tenth response. The nine requests before it use up the burst of a crawler with a delay."""
        version = "--http2" if url.startswith("https:") else "--http2-prior-knowledge" if content else "--http1.1"
        command = ["curl", "-sk", version, *headers, "-o", folder / "answer", "-w", "%{http_code}"]
        command += ["--data-binary", f"@{content}"] if content else []
        for _ in range(10):
            status = subprocess.run([*command, url], capture_output=True, text=True, timeout=60).stdout
        # A gRPC error has status 200, too, but no message.
        if status != str(SCENES[scene][3]) or content and not (folder / "answer").stat().st_size:
            sys.exit(f"{self.server.name}, {scene}: {status} instead of {SCENES[scene][3]}")


def counted_robotsd(folder, name, binary, behind, robots, more=""):
    server = robotsd(folder, name, binary, behind.port, robots, "refuse")
    decision = free_port()
    listeners = f"""[[listener]]
address = "127.0.0.1:{decision}"
kind = "decision"
[[site]]"""
    config = Path(server.command[-1])
    limit = 'rate.mode = "refuse"\n[site.modes]\n"agent:SeznamBot" = { rate = "refuse" }\n'
    config.write_text(replaced(config.read_text(), ("[[site]]", listeners)) + limit + more)
    return Counted(server, decision=decision)


def counted_nginx(folder, name, behind, robots, names):
    server = nginx(folder, name, behind.port, names, robots)
    config = Path(server.command[-1])
    config.write_text(
        replaced(
            config.read_text(),
            ("location = /robots.txt", "limit_req zone=slow; limit_req_status 429; location = /robots.txt"),
            (
                "http {",
                'http { map $http_user_agent $slow { default ""; "~*SeznamBot" $binary_remote_addr; }'
                " limit_req_zone $slow zone=slow:1m rate=1r/m;",
            ),
        )
    )
    return Counted(server)


def counted_haproxy(folder, behind, robots, names):
    server = haproxy(folder, "haproxy", behind.port, names, robots)
    config = Path(server.command[-1])
    limit = """stick-table type ip size 1k expire 1h store http_req_rate(1h)
  acl slow req.hdr(user-agent) -i -m sub SeznamBot
  http-request track-sc0 src if slow
  http-request deny deny_status 429 if slow { sc_http_req_rate(0) gt 1 }
  default_backend"""
    config.write_text(replaced(config.read_text(), ("default_backend", limit)))
    return Counted(server)


def counted_floor(folder, name, binary, origin):
    https = free_port()
    files = [str(folder / "certificate.pem"), str(folder / "key.pem")]
    command = [binary, f"127.0.0.1:{https}", *files, *([f"127.0.0.1:{origin.port}"] if origin else [])]
    return Counted(Server(name, PROXY_CORE, folder, command, https, https_port=https))


def built_floor():
    command = "cargo bench --no-run -p robotsd --bench floor --message-format short"
    out = subprocess.run(command.split(), cwd=PROJECT, check=True, capture_output=True, text=True).stderr
    return str(PROJECT / re.search(r"Executable .*\((.*)\)", out)[1])


def judge(figures, found):
    """Returns messages about scenes that take too many instructions, and about scenes that take fewer than their figure."""
    wrong, better = [], []
    for scene in {**figures, **found}:
        if scene not in figures or scene not in found:
            wrong.append(f"{scene}: " + ("is not measured" if scene in figures else "has no figure: --write adds it"))
            continue
        change = found[scene] / figures[scene] - 1
        text = f"{scene}: {found[scene]:,.0f} instructions a request, {change:+.1%} to the figure of {figures[scene]:,}"
        if change > GROWTH:
            wrong.append(f"{text}; at most {GROWTH:+.0%}: make it cheaper, or change the figure and write the reason beside it")
        elif change < -GROWTH:
            better.append(f"{text}: lower the figure, so that it cannot be lost again")
    return wrong, better


def write(path, found):
    """Writes the figures to the file, and keeps its comments."""
    text = path.read_text()
    for scene, number in found.items():
        line = re.search(rf'^"{re.escape(scene)}" = (\d+)', text, re.M)
        if not line:
            text += f'"{scene}" = {number:.0f} # first\n'
        elif abs(number / int(line[1]) - 1) > NOISE:
            text = text[: line.start(1)] + f"{number:.0f}" + text[line.end(1) :]
    path.write_text(text)


@contextlib.contextmanager
def running(counted):
    counted.server.start()
    try:
        yield counted
    finally:
        counted.server.stop()


def rounds(counted, scenes, number, folder):
    """Returns the results of `Counted.measure` in each round, per scene."""
    with running(counted):
        return {scene: [counted.measure(scene, folder) for _ in range(number)] for scene in scenes}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robotsd", nargs="?", default=str(PROJECT / "target/dist/robotsd"), metavar="BINARY")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--peers", action="store_true", help="nginx and HAProxy, too")
    parser.add_argument("--floors", action="store_true", help="a bare server on h2, too")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds; the result is their median")
    parser.add_argument("--only", action="append", choices=SCENES)
    parser.add_argument("--figures", type=Path, default=FIGURES)
    options = parser.parse_args()
    for tool in ["valgrind", "vgdb", "nginx", "h2load", "curl", "openssl", options.robotsd, *(["haproxy"] if options.peers else [])]:
        if not shutil.which(tool):
            sys.exit(f"{tool} is not installed")
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as last:
        folder = Path(name)
        names, robots, behind = site(folder)
        last.callback(behind.stop)
        measure(options, folder, names, robots, behind)


def measure(options, folder, names, robots, behind):
    # Without sendfile, the origin writes head and content at once, so the proxy reads only once.
    behind.stop()
    config = Path(behind.command[-1])
    config.write_text(replaced(config.read_text(), ("sendfile on", "sendfile off")))
    behind.start()
    # This crawler has its own group, because it has a delay.
    names = [name for name in names if name != "SeznamBot"]
    groups = "".join(f"User-agent: {name}\n" for name in names) + "Disallow: /private/\n\nUser-agent: SeznamBot\nCrawl-delay: 3600\n"
    robots.write_text(groups)
    (folder / "question").write_bytes(envoys_question())

    scenes = options.only or list(SCENES)
    usual = counted_robotsd(folder, "robotsd", options.robotsd, behind, robots)
    all_rounds = {"robotsd": rounds(usual, [scene for scene in scenes if scene not in SETTINGS], options.rounds, folder)}
    for number, scene in enumerate(SETTINGS.keys() & scenes):
        other = counted_robotsd(folder, f"robotsd{number}", options.robotsd, behind, robots, SETTINGS[scene])
        all_rounds["robotsd"] |= rounds(other, [scene], options.rounds, folder)
    if options.peers:
        for peer in PEERS:
            if peer == "haproxy":
                counted = counted_haproxy(folder, behind, robots, names)
            else:
                counted = counted_nginx(folder, peer, behind, robots, names if peer == "nginx-list" else [])
            all_rounds[peer] = rounds(counted, [scene for scene in scenes if scene in PEERS[peer]], options.rounds, folder)

    if options.floors:
        binary = built_floor()
        for name, forwards in FLOORS.items():
            counted = counted_floor(folder, name, binary, behind if forwards else None)
            all_rounds[name] = rounds(counted, [scene for scene in scenes if scene in HTTP2], options.rounds, folder)

    medians = {
        server: {scene: statistics.median(count for count, _ in counts) for scene, counts in found.items()}
        for server, found in all_rounds.items()
    }
    found = medians["robotsd"]
    rows = []
    for scene in scenes:
        counts, others = zip(*all_rounds["robotsd"][scene])
        cells = [f"{medians[server][scene]:,.0f}" if scene in medians[server] else "" for server in medians]
        rows.append([scene, *cells, f"{(max(counts) - min(counts)) / found[scene]:.2%}", f"{statistics.median(others):,.0f}"])
    print(f"Instructions per request in user space: medians of {options.rounds} rounds")
    print_table(["scene", *medians, "robotsd's rounds differ by", "robotsd's other threads"], rows)

    figures = tomllib.loads(options.figures.read_text())
    if options.write:
        write(options.figures, found)
    if options.check:
        check({scene: figure for scene, figure in figures.items() if not options.only or scene in options.only}, found)
        # Makes sure that the check can fail: it must detect the additional instructions of a page
        # if robotsd writes a log line for each request.
        slowed = counted_robotsd(folder, "slowed", options.robotsd, behind, robots, '[log]\naccess = "json"\n')
        found = {"page": rounds(slowed, ["page"], 1, folder)["page"][0][0]}
        if not judge({"page": figures["page"]}, found)[0]:
            sys.exit(f"this check detects nothing: a page with a log line takes {found['page']:,.0f} instructions, and passes")


def check(figures, found):
    wrong, better = judge(figures, found)
    for line in better:
        print(line)
    if wrong:
        sys.exit("\n".join(wrong))
    print("no scene takes more than its figure allows")


if __name__ == "__main__":
    main()
