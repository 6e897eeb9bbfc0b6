#!/usr/bin/env bash
# Holds two robotsd under mixed load and faults of every kind, on loopback: one as long as it lasts, one that is upgraded each minute.
# Usage: robotsd/tests/soak.sh MINUTES [--into FOLDER] [--robotsd PATH] [--idle CONNECTIONS]
# With --into a run goes on where it stopped: `soak.sh 120 --into FOLDER` begins with the minutes that the folder lacks, and plots all in
# its soak.svg. soak/minutes has two hours in one piece, with builds of a lower priority beside them.
# Needs openssl; grpcio and Valkey, or Redis, where ROBOTSD_BESIDE_BIN has them; root for a disk that is full. What is not there is left
# out, with a line that says so.
set -euo pipefail
soak=$(realpath "$(dirname "$0")/soak")
# More connections than a shell may have by default, where that is allowed.
ulimit -Hn 65536 2> /dev/null || true
ulimit -n "$(ulimit -Hn)"
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${ROBOTSD_BESIDE_BIN:-}:${PYTHONPATH:-} exec python3 "$soak/soak.py" "$@"
