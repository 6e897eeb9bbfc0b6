# Functions that run, print and skip steps. Sourced by .ci/run.

# Prints the command, with the seconds since the start of the script, and runs the command.
step() {
    local began=$SECONDS
    printf '\n== %s (at %ss)\n' "$*" "$began"
    "$@"
    timed "$((SECONDS - began))" "$*"
}

# A file with the duration of each step. .ci/run prints it as a table at the end.
timings=$(mktemp)
timed() { printf '%5s s  %.120s\n' "$1" "$2" >> "$timings"; }

# `begin COMMAND…` starts a step in the background, in parallel with the following steps. Use it for
# steps that mostly wait, or that use only one processor. `finish` waits for all steps in the
# background, prints their output, and fails if one of them failed. `finish WORD` waits only for the
# steps whose command contains WORD. `set -m` gives each of these steps its own process group, so
# that all of its processes can be killed if CI fails or is interrupted.
begun=()
trap 'for group in $(jobs -p); do kill -- "-$group" 2> /dev/null || true; done; rm -f "$timings"' EXIT
begin() {
    local output
    output=$(mktemp)
    printf '\n== in the background: %s (at %ss)\n' "$*" "$SECONDS"
    set -m
    (
        began=$SECONDS status=0
        "$@" || status=$?
        timed "$((SECONDS - began))" "(in the background) $*"
        exit "$status"
    ) < /dev/null > "$output" 2>&1 &
    set +m
    begun+=("$! $output $*")
}
finish() {
    local job pid output words status others=() failed=()
    for job in "${begun[@]}"; do
        read -r pid output words <<< "$job"
        if [[ $words != *"${1:-}"* ]]; then
            others+=("$job")
            continue
        fi
        status=0
        wait "$pid" || status=$?
        printf '\n== exit status %s: %s (at %ss)\n' "$status" "$words" "$SECONDS"
        cat "$output"
        rm "$output"
        [ "$status" = 0 ] || failed+=("$words")
    done
    begun=("${others[@]}")
    [ ${#failed[@]} = 0 ] || { printf 'failed: %s\n' "${failed[@]}" >&2; exit 1; }
}

has() { command -v "$1" > /dev/null; }

# Reports whether everything that a step needs is installed. The arguments are names of commands or paths of files. If something is missing,
# prints that the step is skipped; in CI, exits with an error.
needs() {
    local need missing=()
    for need in "$@"; do
        has "$need" || [ -e "$need" ] || missing+=("$need")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ -n "${CI:-}" ]; then
        echo "missing, and CI needs it: ${missing[*]}" >&2
        exit 1
    fi
    echo "skipped, because these are not installed: ${missing[*]}"
    return 1
}
