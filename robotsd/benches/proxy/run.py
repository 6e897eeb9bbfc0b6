#!/usr/bin/env python3
"""Compares robotsd as a proxy with nginx and HAProxy: CPU per request and per handshake, latency at half load, memory per idle connection.

    cargo build --profile dist -p robotsd
    robotsd/benches/proxy/run.py [--short] [--robotsd PATH]... [--only CASE] [--rounds N] [--seconds S]

Needs nginx, haproxy, wrk, h2load and openssl (Debian: nginx-light haproxy wrk nghttp2-client openssl), Linux, and two cores. README.md
explains what is measured and why.
"""

import argparse
import functools
import json
import os
import re
import resource
import shutil
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
PROXY_CORE, OTHER_CORE = "0", "1"
CONNECTIONS = 64
IDLE = 1000
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
GPTBOT = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)"
BROWSER = {
    "User-Agent": FIREFOX,
    "Accept": "text/html,application/xhtml+xml,*/*;q=0.8",
    "Accept-Language": "en-US,en;q=0.5",
    "Accept-Encoding": "gzip, deflate",
}
# For each case: the path, the header fields, the first digit of the expected status, and for TLS the options of h2load.
CASES = {
    "1 KiB": ("/1k", BROWSER, "2", None),
    "1 KiB, HTTP/2 upstream": ("/1k", BROWSER, "2", None),
    "refused": ("/private/x", {"User-Agent": GPTBOT}, "4", None),
    "/robots.txt": ("/robots.txt", {"User-Agent": GPTBOT}, "2", None),
    "100 KiB": ("/100k", BROWSER, "2", None),
    "1 KiB, HTTP/1.1 over TLS": ("/1k", BROWSER, "2", ["--h1", f"-c{CONNECTIONS}"]),
    "1 KiB, HTTP/2 over TLS": ("/1k", BROWSER, "2", ["-c32", "-m10"]),
    "100 KiB, HTTP/2 over TLS": ("/100k", BROWSER, "2", ["-c8", "-m10"]),
}
HANDSHAKES = 400
# For each case: whether a connection resumes the session of the previous one.
HANDSHAKE_CASES = {"handshake": False, "handshake, resumed": True}


def crawlers(count):
    """Returns `count` names of crawlers. GPTBot, which sends the requests, is one of them."""
    text = (PROJECT / "robots-core/src/agent/crawlers.toml").read_text()
    names = re.findall(r'^name = "([A-Za-z][A-Za-z0-9_-]{3,})"$', text, re.M)
    names = [name for name in names if name != "GPTBot"][: count - 1]
    # GPTBot is in the middle of the list. For a search that ends at the first match, this is
    # neither the best nor the worst case.
    names.insert(len(names) // 2, "GPTBot")
    return names


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A process that is pinned to a core and listens on a port."""

    def __init__(self, name, core, folder, command, port, http2_port=None, https_port=None):
        self.name, self.core, self.folder, self.command, self.port = name, core, folder, command, port
        self.https_port = https_port
        # The port for HTTP/2 without TLS.
        self.http2_port = http2_port
        self.process = None

    def start(self):
        out = open(self.folder / f"{self.name}.log", "wb")
        self.process = subprocess.Popen(["taskset", "-c", self.core, *self.command], stdout=out, stderr=out)
        for _ in range(4000):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return self
            except OSError:
                if self.process.poll() is not None:
                    sys.exit(f"{self.name} ended: {(self.folder / f'{self.name}.log').read_text()[-2000:]}")
                time.sleep(0.05)
        sys.exit(f"{self.name} does not listen")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def processes(self):
        """Returns the ids of the process and its descendants."""
        found = [self.process.pid]
        for pid in found:
            for task in os.listdir(f"/proc/{pid}/task"):
                found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
        return found

    def cpu(self):
        """Returns the CPU seconds of all processes in kernel and user mode, including ended threads (clock_getcpuclockid(3))."""
        return sum(time.clock_gettime(~pid << 3 | 2) for pid in self.processes())

    def memory(self):
        """Returns the resident memory of all processes, in KiB."""
        return sum(int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) for pid in self.processes())


def origin(folder):
    port, http2_port = free_port(), free_port()
    site = folder / "site"
    site.mkdir()
    (site / "1k").write_bytes(b"x" * 1024)
    (site / "100k").write_bytes(b"x" * 102400)
    config = folder / "origin.conf"
    config.write_text(
        f"""daemon off; master_process off; pid {folder}/origin.pid; error_log /dev/null;
events {{ worker_connections 8000; }}
http {{ access_log off; sendfile on; tcp_nopush off; keepalive_requests 1000000000; keepalive_timeout 300s;
  open_file_cache max=16; open_file_cache_valid 300s;
  server {{ listen 127.0.0.1:{port} backlog=4096; listen 127.0.0.1:{http2_port} http2 backlog=4096; root {site}; }} }}
"""
    )
    return Server("origin", OTHER_CORE, folder, ["nginx", "-c", str(config)], port, http2_port)


def nginx(folder, name, origin_port, names, robots, http2=False):
    port, https_port = free_port(), free_port()
    config = folder / f"{name}.conf"
    # nginx supports HTTP/2 to an upstream only in its gRPC module, which accepts any content.
    hand_on = "grpc_pass grpc://origin;"
    if not http2:
        hand_on = 'proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection "";'
    set_header = "grpc_set_header" if http2 else "proxy_set_header"
    rules = f'if ($http_user_agent ~* "({"|".join(names)})") {{ return 403; }}' if names else ""
    config.write_text(
        f"""daemon off; master_process off; pid {folder}/{name}.pid; error_log /dev/null; pcre_jit on;
events {{ worker_connections 8000; }}
http {{ access_log off; keepalive_requests 1000000000; keepalive_timeout 300s;
  ssl_certificate {folder}/certificate.pem; ssl_certificate_key {folder}/key.pem;
  upstream origin {{ server 127.0.0.1:{origin_port}; keepalive 128; keepalive_requests 1000000000; }}
  server {{ listen 127.0.0.1:{port} backlog=4096; listen 127.0.0.1:{https_port} ssl http2 backlog=4096;
    location = /robots.txt {{ alias {robots}; }}
    location / {{ {rules} {hand_on}
      {set_header} Host $host; {set_header} X-Forwarded-For $remote_addr; {set_header} X-Forwarded-Proto $scheme; }} }} }}
"""
    )
    return Server(name, PROXY_CORE, folder, ["nginx", "-c", str(config)], port, https_port=https_port)


def haproxy(folder, name, origin_port, names, robots, logs=False, http2=False):
    port, https_port = free_port(), free_port()
    (folder / "names.lst").write_text("\n".join(names) + "\n")
    config = folder / f"{name}.cfg"
    log = "option httplog\n  http-request set-log-level silent unless bot" if logs else ""
    config.write_text(
        f"""global
  maxconn 8000
  nbthread 1
  {"log stdout format raw local0" if logs else ""}
defaults
  mode http
  timeout connect 3s
  timeout client 300s
  timeout server 30s
  option forwardfor
frontend in
  bind 127.0.0.1:{port} backlog 4096
  bind 127.0.0.1:{https_port} ssl crt {folder}/both.pem alpn h2,http/1.1 backlog 4096
  acl robots path /robots.txt
  acl bot req.hdr(user-agent) -i -m sub -f {folder}/names.lst
  {"log global" if logs else ""}
  {log}
  http-request return status 200 content-type text/plain file {robots} if robots
  http-request deny deny_status 403 if bot
  default_backend origin
backend origin
  http-reuse always
  server origin 127.0.0.1:{origin_port} {"proto h2" if http2 else ""}
"""
    )
    return Server(name, PROXY_CORE, folder, ["haproxy", "-db", "-f", str(config)], port, https_port=https_port)


def robotsd(folder, name, binary, origin_port, robots, mode, http2=False):
    port, https_port = free_port(), free_port()
    config = folder / f"{name}.toml"
    config.write_text(
        f"""mode = "{mode}"
workers = 1
[[listener]]
address = "127.0.0.1:{port}"
[[listener]]
address = "127.0.0.1:{https_port}"
[[listener.certificate]]
chain = "{folder}/certificate.pem"
key = "{folder}/key.pem"
[[site]]
name = "bench"
upstreams = ["http://127.0.0.1:{origin_port}"]
{"upstream.http2 = true" if http2 else ""}
robots.path = "{robots}"
"""
    )
    return Server(name, PROXY_CORE, folder, [binary, "serve", "--config", str(config)], port, https_port=https_port)


def fields(headers):
    return [word for name, value in headers.items() for word in ("-H", f"{name}: {value}")]


def load(server, case, seconds):
    """Saturates a server. Returns CPU µs per request, and requests per second."""
    path, headers, status, tls = CASES[case]
    before = server.cpu()
    if tls:
        requests, wrong, out = load_over_tls(server, path, headers, tls, seconds)
    else:
        requests, wrong, out = load_in_plain(server, path, headers, status, seconds)
    spent = server.cpu() - before
    if wrong:
        print(f"  {server.name}, {case}: {wrong} unexpected answers; {out}", file=sys.stderr)
    return spent / requests * 1e6, requests / seconds


def load_in_plain(server, path, headers, status, seconds):
    command = ["taskset", "-c", OTHER_CORE, "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", *fields(headers)]
    out = subprocess.run([*command, f"http://127.0.0.1:{server.port}{path}"], capture_output=True, text=True).stdout
    requests = int(re.search(r"(\d+) requests in", out)[1])
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    refused = int(refused[1]) if refused else 0
    return requests, (requests - refused if status == "4" else refused) or "Socket errors" in out, out


def load_over_tls(server, path, headers, options, seconds):
    command = ["taskset", "-c", OTHER_CORE, "h2load", "-t1", *options, f"-D{seconds}", *fields(headers)]
    out = subprocess.run([*command, f"https://127.0.0.1:{server.https_port}{path}"], capture_output=True, text=True).stdout
    requests = int(re.search(r"status codes: (\d+) 2xx", out)[1])
    return requests, int(re.search(r"(\d+) failed", out)[1]), out


def handshakes(server, is_resumed):
    """Measures CPU µs per TLS 1.3 connection that makes one request and ends."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    request, session = b"GET /robots.txt HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", None
    before = server.cpu()
    for number in range(HANDSHAKES):
        plain = socket.create_connection(("127.0.0.1", server.https_port))
        with context.wrap_socket(plain, session=session) as connection:
            assert number == 0 or connection.session_reused == is_resumed, server.name
            connection.sendall(request)
            # The session tickets arrive after the handshake and before the answer.
            while connection.recv(65536):
                pass
            session = connection.session if is_resumed else None
    return (server.cpu() - before) / HANDSHAKES * 1e6


def latency(port, path, headers, rate, seconds, folder):
    """Returns requests per second, and p50 and p99 in µs, at a given rate."""
    log = folder / "latency.tsv"
    log.unlink(missing_ok=True)
    clients = 32
    command = ["taskset", "-c", OTHER_CORE, "h2load", "--h1", "-t1", f"-c{clients}", f"-D{seconds}"]
    command += [f"--rps={rate / clients:.0f}", f"--log-file={log}", *fields(headers)]
    subprocess.run([*command, f"http://127.0.0.1:{port}{path}"], capture_output=True)
    times = sorted(int(line.split("\t")[2]) for line in log.read_text().splitlines())
    return len(times) / seconds, times[len(times) // 2], times[len(times) * 99 // 100]


def connected(server, kind):
    """A connection that has made one request and is kept."""
    plain = socket.create_connection(("127.0.0.1", server.port if kind == "plain" else server.https_port), 60)
    if kind == "plain":
        return plain
    return client_tls(kind).wrap_socket(plain)


@functools.cache
def client_tls(kind):
    """Returns one TLS context for all connections of a kind, because each context contains the system's root certificates (about 800 KiB)."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2" if kind == "HTTP/2 over TLS" else "http/1.1"])
    return context


def literal(name, value):
    """Encodes an HTTP/2 field without an index and without Huffman coding (RFC 7541, section 6.2.2)."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def ask(connection, server, kind, number):
    """Sends the request with this number on the connection, and reads its whole answer."""
    if kind == "HTTP/2 over TLS":
        block = b"".join(literal(*field) for field in [(":method", "GET"), (":scheme", "https"), (":path", "/1k"), (":authority", "127.0.0.1")])
        block += b"".join(literal(name.lower(), value) for name, value in BROWSER.items())
        start = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5) if number == 0 else b""
        head = len(block).to_bytes(3, "big") + b"\x01\x05" + (2 * number + 1).to_bytes(4, "big")
        connection.sendall(start + head + block)
        answer, stream = b"", (2 * number + 1).to_bytes(4, "big")
        while not ended(answer, stream):
            piece = connection.recv(65536)
            assert piece, f"{server.name} closed an idle connection"
            answer += piece
        return
    text = "".join(f"{name}: {value}\r\n" for name, value in BROWSER.items())
    connection.sendall(f"GET /1k HTTP/1.1\r\nHost: 127.0.0.1\r\n{text}\r\n".encode())
    answer = b""
    while len(answer.split(b"\r\n\r\n", 1)[-1]) < 1024 or b"\r\n\r\n" not in answer:
        piece = connection.recv(65536)
        assert piece, f"{server.name} closed an idle connection"
        answer += piece


def ended(data, stream):
    """Reports whether one of the HTTP/2 frames ends a stream."""
    while len(data) >= 9:
        length = int.from_bytes(data[:3], "big")
        if len(data) >= 9 + length and data[3] in (0, 1) and data[4] & 1 and data[5:9] == stream:
            return True
        data = data[9 + length :]
    return False


KINDS = ["plain", "TLS", "HTTP/2 over TLS"]


def idle_memory(server, kind, count=IDLE):
    """Measures KiB of resident memory per idle kept-alive connection that has made one request."""
    server.start()
    # The first requests allocate memory that does not belong to connections and is not freed. So a
    # load runs first.
    load(server, "1 KiB", 1)
    for _ in range(32):
        ask(connected(server, kind), server, kind, 0)
    time.sleep(3)
    before = server.memory()
    connections = []
    for _ in range(count):
        connections.append(connected(server, kind))
        ask(connections[-1], server, kind, 0)
    time.sleep(3)
    after = server.memory()
    # Makes sure that the connections are still open, because closed ones use no memory.
    ask(connections[0], server, kind, 1)
    ask(connections[-1], server, kind, 1)
    for connection in connections:
        connection.close()
    server.stop()
    return (after - before) / count


def print_table(head, rows):
    widths = [max(len(str(row[at])) for row in [head, *rows]) for at in range(len(head))]
    for row in [head, ["-" * width for width in widths], *rows]:
        print("| " + " | ".join(str(cell).ljust(width) for cell, width in zip(row, widths)) + " |")
    print()


def site(folder):
    """Prepares the names of 166 crawlers, a robots.txt that disallows /private/ for them, a certificate, and the origin of all proxies."""
    # nginx's worker may run as another user, who must be able to read this folder.
    folder.chmod(0o755)
    names = crawlers(166)
    robots = folder / "robots.txt"
    robots.write_text("".join(f"User-agent: {name}\n" for name in names) + "Disallow: /private/\n")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    chain, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run([*command.split(), "-keyout", key, "-out", chain], check=True, capture_output=True)
    (folder / "both.pem").write_text(chain.read_text() + key.read_text())
    return names, robots, origin(folder).start()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robotsd", action="append", help="a binary to measure; several are compared")
    parser.add_argument("--short", action="store_true", help="two short rounds")
    parser.add_argument("--only", action="append", help=f"one of {', '.join(CASES)}, handshakes, latency, memory")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--json", help="write the medians to this file, too")
    options = parser.parse_args()
    rounds = options.rounds or (2 if options.short else 7)
    seconds = options.seconds or (1 if options.short else 2)
    binaries = options.robotsd or [str(PROJECT / "target/dist/robotsd")]
    for tool in ["nginx", "haproxy", "wrk", "h2load", "taskset", "openssl", *binaries]:
        if not shutil.which(tool):
            sys.exit(f"{tool} is not installed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    wanted = options.only or [*CASES, "handshakes", "latency", "memory"]

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names, robots, behind = site(folder)
        rs = ["robotsd"] + [f"robotsd-{number}" for number in range(2, len(binaries) + 1)]
        servers = {
            "nginx": nginx(folder, "nginx", behind.port, [], robots),
            "nginx-list": nginx(folder, "nginx-list", behind.port, names, robots),
            "haproxy": haproxy(folder, "haproxy", behind.port, names, robots),
            "haproxy-log": haproxy(folder, "haproxy-log", behind.port, names, robots, logs=True),
        }
        for name, binary in zip(rs, binaries):
            servers[name] = robotsd(folder, name, binary, behind.port, robots, "refuse")
        servers["robotsd-off"] = robotsd(folder, "robotsd-off", binaries[0], behind.port, robots, "off")
        over_http2 = {
            "nginx": nginx(folder, "nginx-http2", behind.http2_port, [], robots, http2=True),
            "haproxy": haproxy(folder, "haproxy-http2", behind.http2_port, names, robots, http2=True),
        }
        for name, binary in zip(rs, binaries):
            over_http2[name] = robotsd(folder, f"{name}-http2", binary, behind.http2_port, robots, "refuse", http2=True)
        try:
            measure(servers, over_http2, rs, wanted, rounds, seconds, folder, options)
        finally:
            for server in [behind, *servers.values(), *over_http2.values()]:
                if server.process and server.process.poll() is None:
                    server.stop()


def measure(servers, over_http2, rs, wanted, rounds, seconds, folder, options):
    def of_case(case):
        return over_http2 if case == "1 KiB, HTTP/2 upstream" else servers

    skipped = {
        "1 KiB": {"haproxy-log"},
        "refused": {"nginx", "robotsd-off"},
        "/robots.txt": {"robotsd-off", "nginx-list", "haproxy-log"},
        "100 KiB": {"robotsd-off", "haproxy-log"},
    }
    over_tls = [case for case in CASES if CASES[case][3]]
    skipped.update({case: {"nginx-list", "haproxy-log", "robotsd-off"} for case in [*over_tls, *HANDSHAKE_CASES]})
    cases = [case for case in CASES if case in wanted or case == "1 KiB" and {"latency", "handshakes"} & {*wanted}]
    cpu, rate = {}, {}
    started = {server.name: server for case in cases for server in of_case(case).values()}.values()
    for server in started:
        server.start()
        load(server, "1 KiB", 1)
    for turn in range(rounds):
        for case in cases:
            order = [name for name in of_case(case) if name not in skipped.get(case, ())]
            # The order rotates in each round, so that no case always runs after the same one.
            for name in order[turn % len(order) :] + order[: turn % len(order)]:
                micros, speed = load(of_case(case)[name], case, seconds)
                cpu.setdefault((case, name), []).append(micros)
                rate.setdefault((case, name), []).append(speed)
        for case, is_resumed in HANDSHAKE_CASES.items() if "handshakes" in wanted else []:
            for name in servers:
                if name not in skipped[case]:
                    cpu.setdefault((case, name), []).append(handshakes(servers[name], is_resumed))

    def ratio(case, name, other):
        """Returns the median of the ratios of all rounds, and their range without the lowest and highest quarter."""
        ratios = sorted(mine / theirs for mine, theirs in zip(cpu[case, name], cpu[case, other]))
        quarter = len(ratios) // 4
        return f"{statistics.median(ratios):.2f} ({ratios[quarter]:.2f}–{ratios[-1 - quarter]:.2f})"

    medians = {key: statistics.median(values) for key, values in cpu.items()}
    others = ["nginx", "nginx-list", "haproxy", "haproxy-log", rs[0]]
    rows = []
    for case in [*cases, *HANDSHAKE_CASES]:
        for name in servers:
            if (case, name) not in medians:
                continue
            is_compared = name.startswith("robotsd")
            against = [
                ratio(case, name, other) if is_compared and other != name and (case, other) in medians else "" for other in others
            ]
            speed = f"{statistics.median(rate[case, name]):.0f}" if (case, name) in rate else ""
            rows.append([case, name, f"{medians[case, name]:.2f}", *against, speed])
    if rows:
        print(f"CPU µs per request: medians of {rounds} interleaved rounds of {seconds} s, {CONNECTIONS} connections")
        print_table(["case", "proxy", "CPU µs", *(f"÷ {other}" for other in others), "requests/s"], rows)
    if "latency" in wanted:
        half = min(statistics.median(rate["1 KiB", name]) for name in ("haproxy", *rs)) / 2
        times = {}
        for _ in range(max(1, rounds // 2)):
            for name in ("nginx", "haproxy", *rs):
                path, headers, *_ = CASES["1 KiB"]
                found = latency(servers[name].port, path, headers, half, max(2, seconds), folder)
                times.setdefault(name, []).append(found[1:])
        rows = [[name, *(f"{statistics.median(found):.0f}" for found in zip(*values))] for name, values in times.items()]
        print(f"Latency in µs at {half:.0f} requests/s, half of the maximum of the slower of haproxy and robotsd")
        print_table(["proxy", "p50", "p99"], rows)
    for server in started:
        server.stop()
    if "memory" in wanted:
        rows = [[name, *(f"{idle_memory(servers[name], kind):.2f}" for kind in KINDS)] for name in ("nginx", "haproxy", *rs)]
        print(f"Memory: KiB of RSS per idle kept-alive connection, over {IDLE} that made one request each")
        print_table(["proxy", *KINDS], rows)
    if options.json:
        found = [{"case": case, "proxy": name, "cpu_us": value} for (case, name), value in medians.items()]
        Path(options.json).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
