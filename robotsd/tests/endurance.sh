#!/usr/bin/env bash
# Starts a robotsd on loopback, puts it under load from slow clients and then to saturation, and requests pages meanwhile.
# Usage: robotsd/tests/endurance.sh ROBOTSD [SECONDS]          slow heads, slow bodies, slow readers, then saturation
# Needs slowhttptest, wrk, h2load and curl.
set -euo pipefail
robotsd=$1
seconds=${2:-10}

for tool in slowhttptest wrk h2load curl; do
    command -v "$tool" > /dev/null || { echo "$tool is not installed: apt-get install slowhttptest wrk nghttp2-client curl" >&2; exit 2; }
done
ulimit -n "$(ulimit -Hn)" 2> /dev/null || true

folder=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2> /dev/null || true; wait 2> /dev/null || true; rm -rf "$folder"' EXIT

mkdir "$folder/pages"
head -c 1024 /dev/zero | tr '\0' x > "$folder/pages/index.html"
head -c 102400 /dev/zero | tr '\0' x > "$folder/pages/large.html"
printf 'User-agent: GPTBot\nDisallow: /\n' > "$folder/pages/robots.txt"
cp "$folder/pages/robots.txt" "$folder/robots.txt"

# Starts a robotsd with the named config, and prints the address on which it listens.
start() {
    : > "$folder/$1.log"
    "$robotsd" serve --config "$folder/$1.toml" >> "$folder/$1.log" &
    pids+=($!)
    for _ in $(seq 200); do
        if grep -q '"event":"listening"' "$folder/$1.log"; then
            address=$(grep -o -m 1 'http://127.0.0.1:[0-9]*' "$folder/$1.log")
            return
        fi
        sleep 0.05
    done
    echo "$1 does not start:" >&2
    cat "$folder/$1.log" >&2
    exit 1
}

cat > "$folder/origin.toml" <<TOML
[[listener]]
address = "127.0.0.1:0"
[[site]]
name = "origin"
root = "pages"
TOML
start origin
# A static file server answers a POST immediately; this server reads the whole body first.
python3 - > "$folder/patient" <<'PY' &
import http.server, sys
class Patient(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Patient)
print(server.server_address[1], flush=True)
server.serve_forever()
PY
pids+=($!)
for _ in $(seq 200); do [ ! -s "$folder/patient" ] || break; sleep 0.05; done
cat > "$folder/proxy.toml" <<TOML
mode = "refuse"
[[listener]]
address = "127.0.0.1:0"
[[site]]
name = "site"
upstreams = ["$address"]
robots.path = "robots.txt"
[[site]]
name = "patient"
hosts = ["localhost"]
upstreams = ["http://127.0.0.1:$(cat "$folder/patient")"]
robots.path = "robots.txt"
[limits]
header_read = "5s"
body_idle = "5s"
TOML
start proxy
proxy=${pids[2]}

resident() { awk '/^VmRSS/ { print $2 }' "/proc/$proxy/status"; }

# Requests a page ten times per second until stopped; every answer must be 200 within one second.
probe() {
    local asked=0 failed=0 slowest=0
    while [ ! -e "$folder/stop" ]; do
        asked=$((asked + 1))
        if answer=$(curl -s -o /dev/null --max-time 5 -w '%{http_code} %{time_total}' "$address/"); then
            case $answer in 200\ *) ;; *) failed=$((failed + 1)) ;; esac
            slowest=$(printf '%s\n%s\n' "$slowest" "${answer#* }" | sort -g | tail -n 1)
        else
            failed=$((failed + 1))
        fi
        sleep 0.1
    done
    echo "$asked $failed $slowest" > "$folder/probed"
}

# Runs a command while the page is requested.
beside() {
    local what=$1
    shift
    rm -f "$folder/stop"
    probe &
    local prober=$!
    "$@" > "$folder/output" 2>&1 || true
    touch "$folder/stop"
    wait "$prober"
    read -r asked failed slowest < "$folder/probed"
    printf '%-28s %4d asked meanwhile, %d failed, slowest %s s, %d KiB resident\n' \
        "$what" "$asked" "$failed" "$slowest" "$(resident)"
    if [ "$failed" -gt 0 ]; then
        tail -n 20 "$folder/output" "$folder/proxy.log" >&2
        exit 1
    fi
}

# Checks that the output of wrk or h2load reports no errors of any kind.
clean() {
    if grep -E 'Socket errors|Non-2xx' "$folder/output" >&2; then exit 1; fi
    if grep -E '[1-9][0-9]* (failed|errored|timeout)' "$folder/output" >&2; then exit 1; fi
    grep -hE 'Requests/sec|finished in' "$folder/output" | sed 's/^/    /'
}

connections=1000
beside "slow heads" slowhttptest -H -c "$connections" -r 500 -i 1 -l "$seconds" -u "$address/"
beside "slow bodies" slowhttptest -B -c "$connections" -r 500 -i 1 -s 8192 -l "$seconds" \
    -u "http://localhost:${address##*:}/"
beside "slow readers" slowhttptest -X -c "$connections" -r 500 -n 1 -w 512 -y 1024 -z 32 -k 3 -l "$seconds" -u "$address/large.html"
beside "HTTP/1.1 at saturation" wrk -t1 -c256 -d"${seconds}s" "$address/"
clean
beside "HTTP/1.1, large, closing" wrk -t1 -c64 -d"${seconds}s" -H 'Connection: close' "$address/large.html"
clean
beside "HTTP/2 at saturation" h2load -c 32 -m 50 -n $((seconds * 3000)) "$address/"
clean
kill -0 "$proxy"
