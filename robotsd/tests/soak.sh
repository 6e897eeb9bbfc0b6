#!/usr/bin/env bash
# Puts two robotsd on loopback under mixed load and faults of every kind: one runs throughout, the other is upgraded each minute.
# Usage: robotsd/tests/soak.sh MINUTES [--into FOLDER] [--robotsd PATH] [--idle CONNECTIONS]
# With --into, a run continues where it stopped: `soak.sh 120 --into FOLDER` runs the minutes that
# are missing in the folder, and plots all minutes in its soak.svg. soak/minutes contains a run of
# two hours, during which builds with a lower priority ran on the same machine. Needs openssl;
# grpcio and Valkey or Redis in ROBOTSD_BESIDE_BIN; root for a full disk. Parts whose programs are
# missing are skipped with a message.
set -euo pipefail
soak=$(realpath "$(dirname "$0")/soak")
# Raises the limit of open files for more connections than a shell may have by default, if that is allowed.
ulimit -Hn 65536 2> /dev/null || true
ulimit -n "$(ulimit -Hn)"
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${ROBOTSD_BESIDE_BIN:-}:${PYTHONPATH:-} exec python3 "$soak/soak.py" "$@"
