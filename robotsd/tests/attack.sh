#!/usr/bin/env bash
# Starts a robotsd on loopback, and runs the shared attack suite against it.
# Usage: robotsd/tests/attack.sh ROBOTSD ATTACK-FOLDER [more arguments for attack.py]
# With HTTP2_UPSTREAM=1, this robotsd uses HTTP/2 to its upstream. The upstream is then a second
# robotsd, which enforces nothing and forwards requests to the origin.
set -euo pipefail
robotsd=$1 attack=$2
shift 2
folder=$(mktemp -d)
proxies=()
trap 'for proxy in "${proxies[@]}"; do kill "$proxy" 2>/dev/null || true; done; rm -rf "$folder"' EXIT

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
port=$(free_port) origin=$(free_port)
upstream=$origin http2=false
limits='header_read = "8s"
body_idle = "4s"
connect = "2s"
response = "4s"'

# The file has its own folder, because one case of the suite moves the folder away.
mkdir "$folder/site"
cp "$attack/robots.txt" "$folder/site/robots.txt"
chmod u+w "$folder/site/robots.txt"
# Starts a robotsd with the named config, and waits until it listens.
start() {
    "$robotsd" serve --config "$folder/$1.toml" > "$folder/$1.log" &
    proxies+=($!)
    for _ in $(seq 200); do
        grep -q '"event":"listening"' "$folder/$1.log" && break
        sleep 0.05
    done
}
if [ -n "${HTTP2_UPSTREAM:-}" ]; then
    upstream=$(free_port) http2=true
    cat > "$folder/between.toml" <<TOML
[[listener]]
address = "127.0.0.1:$upstream"
trusted_proxies = ["127.0.0.0/8"]
[[site]]
name = "between"
upstreams = ["http://127.0.0.1:$origin"]
robots.source = "inline"
robots.text = "# nothing"
[admin]
address = "127.0.0.1:$(free_port)"
[limits]
$limits
TOML
    start between
    # A WebSocket needs an Upgrade of an HTTP/1.1 connection (RFC 9110, section 7.8); HTTP/2 has no Upgrade (RFC 9113, section 8.6).
    echo "skipped: A97, a WebSocket, because an upstream with http2 = true gets a plain GET"
    grep -v '"id": *"A97"' "$attack/../cases/proxy_cases.jsonl" > "$folder/cases.jsonl"
    set -- --cases "$folder/cases.jsonl" "$@"
fi
cat > "$folder/robotsd.toml" <<TOML
mode = "refuse"
[[listener]]
address = "127.0.0.1:$port"
[[site]]
name = "attacked"
upstreams = ["http://127.0.0.1:$upstream"]
upstream.http2 = $http2
robots.path = "site/robots.txt"
# The settings that the suite requires: at most ten seconds for a request head, and five seconds for the upstream.
[limits]
$limits
TOML
start robotsd
if ! python3 "$attack/attack.py" --target "127.0.0.1:$port" --h2c "127.0.0.1:$port" --origin-port "$origin" \
    --have robots --robots-file "$folder/site/robots.txt" "$@"; then
    echo "the end of the proxy's log:" >&2
    tail -n 20 "$folder/robotsd.log" >&2
    exit 1
fi
kill -0 "${proxies[@]}"
