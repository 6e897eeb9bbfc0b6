#!/usr/bin/env bash
# Runs the public test suite for HTTP caches (npm `http-cache-tests`) against its own server, directly and through robotsd, and
# compares the result of each test. robotsd does not cache, so the results should not differ. The
# suite runs through one robotsd, and through a chain of two robotsd that use HTTP/2 between them.
# cases/cache_suite_differences.txt lists tests that may differ, with the reason.
# Usage: robotsd/tests/cache_suite.sh ROBOTSD FOLDER-OF-THE-SUITE
set -euo pipefail
robotsd=$(realpath "$1") suite=$2
differences=$(realpath "$(dirname "$0")/cases/cache_suite_differences.txt")
folder=$(mktemp -d)
processes=()
trap 'for process in "${processes[@]}"; do kill "$process" 2>/dev/null || true; done; rm -rf "$folder"' EXIT

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
await() {
    for _ in $(seq 200); do
        grep -q "$2" "$1" && return
        sleep 0.05
    done
    echo "did not start:" >&2
    tail -n 20 "$1" >&2
    return 1
}
# proxy NAME PORT UPSTREAM-PORT HTTP2
proxy() {
    cat > "$folder/$1.toml" <<TOML
[[listener]]
address = "127.0.0.1:$2"
[[site]]
name = "$1"
upstreams = ["http://127.0.0.1:$3"]
upstream.http2 = $4
robots.source = "inline"
robots.text = "# nothing"
[admin]
address = "127.0.0.1:$(free_port)"
TOML
    "$robotsd" serve --config "$folder/$1.toml" > "$folder/$1.log" 2>&1 &
    processes+=($!)
    await "$folder/$1.log" '"event":"listening"'
}

# The variables that `npm run` sets.
export npm_config_protocol=http npm_config_port=0 npm_config_pidfile="$folder/pid" npm_config_id="" npm_package_config_id=""
cd "$suite"
node --no-warnings server/server.mjs > "$folder/server.log" 2>&1 &
processes+=($!)
await "$folder/server.log" "Listening on"
origin=$(grep -o '[0-9]*/$' "$folder/server.log" | tr -d /)
one=$(free_port) front=$(free_port) back=$(free_port)
proxy one "$one" "$origin" false
proxy back "$back" "$origin" false
proxy front "$front" "$back" true

# A single result may differ because the machine is busy, so only tests that differ twice count.
for round in 1 2; do
    pids=()
    for port in "$origin" "$one" "$front"; do
        npm_config_base="http://127.0.0.1:$port" timeout 300 node --no-warnings cli.mjs > "$folder/$port.$round.json" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid"; done
    if python3 - "$folder" "$round" "$differences" "$origin" "one robotsd=$one" "two robotsd and HTTP/2=$front" <<'PYTHON'
import json, re, sys

folder, round_, differences, origin, *proxies = sys.argv[1:]
allowed = dict(line.split(": ", 1) for line in open(differences).read().splitlines() if line and not line.startswith("#"))


def results(port, of_round):
    found = json.load(open(f"{folder}/{port}.{of_round}.json"))
    return {test: re.sub(r"http://\S+", "URL", json.dumps(result)) for test, result in found.items()}


def differing(port, of_round):
    direct, through = results(origin, of_round), results(port, of_round)
    return {test: (direct.get(test), through.get(test)) for test in direct | through if direct.get(test) != through.get(test)}


fine = True
rounds = range(1, int(round_) + 1)
unknown = set(allowed) - set(results(origin, 1))
if unknown:
    sys.exit(f"cache_suite_differences.txt: no such tests: {', '.join(sorted(unknown))}")
for proxy in proxies:
    name, port = proxy.rsplit("=", 1)
    found = [differing(port, of_round) for of_round in rounds]
    both = {test for test in found[0] if all(test in others for others in found)}
    unexpected = {test: found[-1][test] for test in both if test not in allowed}
    for test, (direct, through) in sorted(unexpected.items()):
        print(f"{name}: {test}: directly {direct}, through it {through}")
    listed = len(both & set(allowed))
    print(f"{name}: {len(results(port, 1))} tests, {listed} of them differ as listed, {len(unexpected)} otherwise")
    fine &= not unexpected
sys.exit(0 if fine else 1)
PYTHON
    then
        exit 0
    fi
done
exit 1
