#!/usr/bin/env bash
# Runs the shared attack suite against a robotsd of its own, on loopback.
# Usage: robotsd/tests/attack.sh ROBOTSD ATTACK-FOLDER [more arguments for attack.py]
set -euo pipefail
robotsd=$1 attack=$2
shift 2
folder=$(mktemp -d)
proxy=
trap 'if [ -n "$proxy" ]; then kill "$proxy" 2>/dev/null || true; fi; rm -rf "$folder"' EXIT

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
port=$(free_port) origin=$(free_port)

# The file has a folder of its own: one case moves the folder away.
mkdir "$folder/site"
cp "$attack/robots.txt" "$folder/site/robots.txt"
chmod u+w "$folder/site/robots.txt"
cat > "$folder/robotsd.toml" <<TOML
mode = "refuse"
[[listener]]
address = "127.0.0.1:$port"
[[site]]
name = "attacked"
upstreams = ["http://127.0.0.1:$origin"]
robots.path = "site/robots.txt"
# What the suite asks for: a header deadline of at most ten seconds, five towards the upstream.
[limits]
header_read = "8s"
body_idle = "4s"
connect = "2s"
response = "4s"
TOML
"$robotsd" serve --config "$folder/robotsd.toml" > "$folder/log" &
proxy=$!
for _ in $(seq 200); do
    grep -q '"event":"listening"' "$folder/log" && break
    sleep 0.05
done
if ! python3 "$attack/attack.py" --target "127.0.0.1:$port" --h2c "127.0.0.1:$port" --origin-port "$origin" \
    --have robots --robots-file "$folder/site/robots.txt" "$@"; then
    echo "the proxy's last words:" >&2
    tail -n 20 "$folder/log" >&2
    exit 1
fi
kill -0 "$proxy"
