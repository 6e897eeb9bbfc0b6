#!/usr/bin/env python3
"""Measures the cost of a decision if nginx asks robotsd for it: the cost for robotsd, and the cost for nginx.

    cargo build --profile dist -p robotsd
    robotsd/benches/proxy/beside.py [--robotsd PATH] [--rounds N] [--seconds S] [--rate N]

Needs nginx, wrk and h2load (Debian: nginx-light wrk nghttp2-client), Linux, and two cores. README.md explains what is
measured and why; `run.py` contains the shared functions.
"""

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from run import BROWSER, GPTBOT, OTHER_CORE, PROJECT, PROXY_CORE, Server
from run import fields, free_port, latency, print_table, site

CONNECTIONS = 64
CRAWLER = {"User-Agent": GPTBOT}
ASKED = {"X-Original-Method": "GET", "X-Real-IP": "192.0.2.1"}


def robotsd(folder, binary, robots):
    port = free_port()
    config = folder / "robotsd.toml"
    config.write_text(
        f"""mode = "refuse"
workers = 1
[[listener]]
address = "127.0.0.1:{port}"
kind = "decision"
[[site]]
name = "bench"
robots.path = "{robots}"
"""
    )
    return Server("robotsd", PROXY_CORE, folder, [binary, "serve", "--config", str(config)], port)


def nginx(folder, name, origin_port, rules):
    port = free_port()
    config = folder / f"{name}.conf"
    config.write_text(
        f"""daemon off; master_process off; pid {folder}/{name}.pid; error_log /dev/null;
events {{ worker_connections 8000; }}
http {{ access_log off; keepalive_requests 1000000000; keepalive_timeout 300s;
  upstream site {{ server 127.0.0.1:{origin_port}; keepalive 128; keepalive_requests 1000000000; }}
  server {{ listen 127.0.0.1:{port} backlog=4096;
    location / {{ {rules} proxy_pass http://site; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr; }} }} }}
"""
    )
    return Server(name, PROXY_CORE, folder, ["nginx", "-c", str(config)], port)


def bare(folder):
    """Returns a server that allows every request. Its cost is the part that does not depend on robotsd."""
    port = free_port()
    config = folder / "bare.conf"
    config.write_text(
        f"""daemon off; master_process off; pid {folder}/bare.pid; error_log /dev/null;
events {{ worker_connections 8000; }}
http {{ access_log off; keepalive_requests 1000000000; keepalive_timeout 300s;
  server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ return 204; }} }} }}
"""
    )
    return Server("bare", PROXY_CORE, folder, ["nginx", "-c", str(config)], port)


def nginx_asking(folder, name, origin_port, asked_port, *changes):
    """Returns an nginx with config/beside/nginx.conf, but with other ports, log and lifetime of connections. `changes` apply to robotsd-http.conf."""
    port = free_port()
    beside = PROJECT / "config/beside"
    main, http = ((beside / name).read_text() for name in ("nginx.conf", "nginx/robotsd-http.conf"))
    main = replaced(
        main,
        ("127.0.0.1:8080", f"127.0.0.1:{port} backlog=4096"),
        ("127.0.0.1:3000;", f"127.0.0.1:{origin_port};"),
        ("worker_processes auto;", f"daemon off; master_process off; pid {folder}/{name}.pid; error_log /dev/null;"),
        ("events {", "events { worker_connections 8000;"),
        ("access_log /dev/stdout;", "access_log off; keepalive_requests 1000000000; keepalive_timeout 300s;"),
        ("keepalive 32;", "keepalive 128; keepalive_requests 1000000000;"),
        ("include nginx/robotsd-http.conf", f"include {name}-http.conf"),
        ("include nginx/", f"include {beside}/nginx/"),
    )
    http = replaced(
        http,
        ("127.0.0.1:9180 max", f"127.0.0.1:{asked_port} max"),
        ("127.0.0.1:9181", f"127.0.0.1:{free_port()}"),
        ("keepalive 32;", "keepalive 128; keepalive_requests 1000000000;"),
        *changes,
    )
    (folder / f"{name}-http.conf").write_text(http)
    config = folder / f"{name}.conf"
    config.write_text(main)
    return Server(name, PROXY_CORE, folder, ["nginx", "-c", str(config)], port)


def replaced(text, *changes):
    for old, new in changes:
        assert old in text, old
        # Comments also contain the ports, so only other lines are changed.
        text = "\n".join(line if line.lstrip().startswith("#") else line.replace(old, new) for line in text.split("\n"))
    return text


def load(measured, port, path, headers, seconds, status="2"):
    """Saturates a server. Returns the CPU µs per request for each server in `measured`, and the number of requests per second."""
    before = [server.cpu() for server in measured]
    command = ["taskset", "-c", OTHER_CORE, "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", *fields(headers)]
    out = subprocess.run([*command, f"http://127.0.0.1:{port}{path}"], capture_output=True, text=True).stdout
    spent = [server.cpu() - start for server, start in zip(measured, before)]
    requests = int(re.search(r"(\d+) requests in", out)[1])
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    refused = int(refused[1]) if refused else 0
    wrong = refused if status == "2" else requests - refused
    if wrong or "Socket errors" in out:
        print(f"  {measured[0].name}, {path}: {wrong} of {requests} unexpected answers; {out}", file=sys.stderr)
    return [cpu / requests * 1e6 for cpu in spent], float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robotsd", default=str(PROJECT / "target/dist/robotsd"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rate", type=int, default=5000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names, robots, behind = site(folder)
        asked = robotsd(folder, options.robotsd, robots).start()
        yes = bare(folder).start()
        rule = f'if ($http_user_agent ~* "({"|".join(names)})") {{ return 403; }}'
        servers = {
            "nginx": nginx(folder, "nginx", behind.port, ""),
            "nginx, 166 names": nginx(folder, "nginx-list", behind.port, rule),
            "nginx asking": nginx_asking(folder, "asking", behind.port, asked.port),
            "nginx asking a bare server": nginx_asking(folder, "asking-bare", behind.port, yes.port),
            "nginx 1.23, not asking": nginx_asking(folder, "not-asking", behind.port, asked.port, (r"(?!1\.22\.)", "")),
        }
        answering = {"nginx asking": asked, "nginx asking a bare server": yes}
        for server in servers.values():
            server.start()
        try:
            measure(servers, answering, options, folder)
        finally:
            for server in [behind, asked, yes, *servers.values()]:
                server.stop()


def measure(servers, answering, options, folder):
    asked = answering["nginx asking"]
    decisions = {
        "a browser": ({**BROWSER, **ASKED, "X-Original-URI": "/1k"}, "2"),
        "a crawler, refused": ({**CRAWLER, **ASKED, "X-Original-URI": "/private/x"}, "4"),
    }
    cpu, rates, delays = {}, {}, []
    for turn in range(options.rounds):
        for case, (headers, status) in decisions.items():
            (micros,), rate = load([asked], asked.port, "/-/auth/nginx", headers, options.seconds, status)
            cpu.setdefault(case, []).append((micros, 0))
            rates.setdefault(case, []).append(rate)
        order = list(servers)
        # The order rotates in each round, so that no server always runs after the same one.
        for name in order[turn % len(order) :] + order[: turn % len(order)]:
            measured = [servers[name], *([answering[name]] if name in answering else [])]
            micros, rate = load(measured, servers[name].port, "/1k", BROWSER, options.seconds)
            cpu.setdefault(name, []).append((micros[0], sum(micros[1:])))
            rates.setdefault(name, []).append(rate)
        headers, _ = decisions["a browser"]
        delays.append(latency(asked.port, "/-/auth/nginx", headers, options.rate, options.seconds, folder))

    def ratio(name):
        pairs = zip(cpu[name], cpu["nginx, 166 names"])
        return statistics.median(sum(mine) / sum(theirs) for mine, theirs in pairs)

    rows = []
    for name, spent in cpu.items():
        own, robotsd_s = (statistics.median(part) for part in zip(*spent))
        against = f"{ratio(name):.2f}" if name in servers else ""
        rows.append([name, f"{own:.1f}", f"{robotsd_s:.1f}" if robotsd_s else "", against, f"{statistics.median(rates[name]):.0f}"])
    print(f"CPU µs per request: medians of {options.rounds} interleaved rounds of {options.seconds} s, {CONNECTIONS} connections")
    print_table(["", "its own", "whom it asks", "together ÷ 166 names", "requests/s"], rows)
    rate, p50, p99 = (statistics.median(part) for part in zip(*delays))
    print(f"a decision at {rate:.0f} per second: p50 {p50:.0f} µs, p99 {p99:.0f} µs")


if __name__ == "__main__":
    main()
