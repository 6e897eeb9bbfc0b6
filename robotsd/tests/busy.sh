#!/usr/bin/env bash
# Looks for tests that sometimes fail on a busy machine. Needs python3 and everything that the tests
# need.
#
# Usage: robotsd/tests/busy.sh [suite] [threads] [alone]     all three by default; over two hours on two cores
#   suite    runs the whole suite three times, next to one endless loop per core
#   threads  runs the integration tests of robotsd five times with 16 threads
#   alone    runs each test that waits 50 times in a process of its own, eight processes at a time
#
# Prints the output of each test that failed, and how many runs failed. ROUNDS changes how often each part runs its tests.
set -euo pipefail
cd "$(dirname "$0")/../.."
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(suite threads alone)
export CARGO_TERM_COLOR=never
output=$(mktemp -d)
loops=()
trap 'kill "${loops[@]}" 2> /dev/null || true; rm -rf "$output"' EXIT
cargo test --locked --all-features --no-run --message-format json > "$output/built.json" 2> "$output/build.log" || { cat "$output/build.log" >&2; exit 2; }

# Runs a command several times, and counts the tests that failed. A run that ends with an error without naming a test counts as one.
failed=0
rounds() {
    local times=$1 round log count
    shift
    for round in $(seq "$times"); do
        log=$output/$round.log
        count=0
        if ! "$@" > "$log" 2>&1; then
            count=$(grep -c '^test .* \.\.\. FAILED$' "$log" || true)
            [ "$count" -gt 0 ] || count=1
            grep -v '^test .* \.\.\. ok$' "$log" || true
        fi
        printf '%s, round %s of %s: %s failed\n' "$*" "$round" "$times" "$count"
        failed=$((failed + count))
    done
}

for part in "${parts[@]}"; do
    case $part in
        suite)
            for _ in $(seq "$(nproc)"); do
                while :; do :; done &
                loops+=($!)
            done
            rounds "${ROUNDS:-3}" cargo test --locked --all-features --no-fail-fast
            kill "${loops[@]}"
            wait "${loops[@]}" 2> /dev/null || true
            loops=()
            ;;
        threads) rounds "${ROUNDS:-5}" env RUST_TEST_THREADS=16 cargo test --locked --all-features -p robotsd --test it ;;
        alone) rounds 1 python3 robotsd/tests/busy_alone.py "$output/built.json" "${ROUNDS:-50}" ;;
        *) echo "usage: robotsd/tests/busy.sh [suite] [threads] [alone]" >&2; exit 2 ;;
    esac
done
printf 'busy: %s failed\n' "$failed"
[ "$failed" = 0 ]
