#!/bin/bash
# Compares `lockprof report` with `perf lock contention -i` on one recording, run in turn: wall time
# and peak memory, each as the median of RUNS, and their ratios.
#
#   benches/against_perf.sh [FILE]
#
# Without FILE one is recorded: 60 s of stress-ng, some 200 MB. Needs root, perf, and stress-ng.
set -euo pipefail
LOCKPROF=${LOCKPROF:-$(dirname "$0")/../target/release/lockprof}
RUNS=${RUNS:-7}
file=${1:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "$file" ]; then
    file=$work/big.data
    perf record -q -o "$file" -m 16M -e lock:contention_begin,lock:contention_end -a -g -- \
        stress-ng --quiet --rename 2 --mutex 4 --dentry 2 -t 60
fi

measure() { # NAME COMMAND...
    local name=$1
    shift
    /usr/bin/time -a -o "$work/$name" -f '%e %M' "$@" >/dev/null 2>&1
}
for _ in $(seq "$RUNS"); do
    measure lockprof "$LOCKPROF" report "$file"
    measure perf perf lock contention -i "$file"
done

median() { # NAME COLUMN
    awk -v column="$2" '{ print $column }' "$work/$1" | sort -n | sed -n "$(((RUNS + 1) / 2))p"
}
printf '%s, %s bytes, median of %s runs in turn\n' "$(basename "$file")" "$(stat -c %s "$file")" "$RUNS"
for name in lockprof perf; do
    printf '%-10s %6s s  %8s KiB\n' "$name" "$(median $name 1)" "$(median $name 2)"
done
awk -v a="$(median lockprof 1)" -v b="$(median perf 1)" -v c="$(median lockprof 2)" -v d="$(median perf 2)" \
    'BEGIN { printf "ratio      %6.2f    %8.2f\n", a / b, c / d }'
