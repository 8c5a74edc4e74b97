#!/bin/bash
# What the screen costs: `lockprof record` of one workload with its screen, on a terminal of 120x40, and with
# --no-tui, in turn. Prints for each run the recorder's CPU time, waits and lost records, then the medians.
#
#   benches/screen_cost.sh [COMMAND...]        default: stress-ng --rename 4 -t 4
#
# Needs root, script(1), jq and what the command needs. ROUNDS: runs of each (default 7).
set -euo pipefail
LOCKPROF=$(realpath "${LOCKPROF:-$(dirname "$0")/../target/release/lockprof}")
ROUNDS=${ROUNDS:-7}
[ $# -gt 0 ] || set -- stress-ng --rename 4 -t 4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# measure WAY [OPTION...]: one run; its figures, also at the end of the file of the way.
measure() {
    local way=$1
    shift
    script -qec "stty cols 120 rows 40; $LOCKPROF record -o file $* -- ${command[*]}" /dev/null >log 2>&1 </dev/null ||
        { cat log >&2 && exit 1; }
    "$LOCKPROF" report file --format json >report
    jq -r '"\(.trust.recorder_cpu_ns / 1e6 | floor) ms of CPU time in \(.header.elapsed_ns / 1e8 | floor / 10) s, " +
        "\(.total.contended) waits, \([.trust.lost[].lost] | add // 0) lost"' report | tee -a "$way" | sed "s/^/$way: /"
    rm -f file*
}

command=("$@")
for _ in $(seq "$ROUNDS"); do
    measure screen
    measure without --no-tui
done
for way in screen without; do
    printf 'median %s: %s ms\n' "$way" "$(cut -d ' ' -f 1 "$way" | sort -n | sed -n "$(((ROUNDS + 1) / 2))p")"
done
