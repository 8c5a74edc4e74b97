#!/bin/bash
# What recording costs a workload: operations per CPU second without a recorder, under `lockprof record`
# as it comes, and under `perf record` of the same events with the same stacks, run in turn. Prints the
# median of ROUNDS of each, how much slower each makes the workload, and lockprof's cost over perf's.
#
#   benches/cost.sh [WORKLOAD...]
#
# WORKLOAD: rename (stress-ng --rename 4), mmap-sem (lockprof hammer, 4 readers and 4 writers), pipe
# (perf bench sched pipe); all three by default. Needs root, perf, and stress-ng. CPU seconds are those
# of the workload alone, as getrusage(2) counts them.
set -euo pipefail
LOCKPROF=${LOCKPROF:-$(dirname "$0")/../target/release/lockprof}
ROUNDS=${ROUNDS:-7}
SECONDS_A_RUN=${SECONDS_A_RUN:-2}
[ $# -gt 0 ] || set -- rename mmap-sem pipe
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The events of `lockprof record` by default: callchains where it takes them, nowhere else.
events=(-e lock:contention_begin/call-graph=fp/ -e lock:contention_end
    -e sched:sched_waking/call-graph=fp/
    -e sched:sched_switch/call-graph=fp/ --filter 'prev_state != 0 && prev_state != 256'
    -e cpu-clock/freq=997,call-graph=fp/ --switch-events)

# workload NAME: the command line that does it, in `command`.
workload() {
    case $1 in
        rename) command=(stress-ng --rename 4 -t "$SECONDS_A_RUN" --metrics-brief) ;;
        mmap-sem) command=("$LOCKPROF" hammer mmap-sem --readers 4 --writers 4 --seconds "$SECONDS_A_RUN") ;;
        pipe) command=(perf bench sched pipe -l "$((SECONDS_A_RUN * 40000))") ;;
        *) echo "no such workload: $1" >&2 && exit 2 ;;
    esac
}

# operations NAME LOG: how many the log says that the workload did.
operations() {
    case $1 in
        rename) awk '/metrc/ && $4 == "rename" { print $5 }' "$2" ;;
        mmap-sem) awk '$1 == "operations" { sum += $2 } END { print sum }' "$2" ;;
        pipe) awk '/pipe operations/ { print $3 }' "$2" ;;
    esac
}

# measure NAME WAY [RECORDER...]: one run; adds operations a CPU second to the file of the way.
measure() {
    local name=$1 way=$2
    shift 2
    rm -f "$work/file"*
    "$@" /usr/bin/time -o "$work/time" -f '%U %S' "${command[@]}" >"$work/log" 2>&1 ||
        { cat "$work/log" >&2 && exit 1; }
    awk -v operations="$(operations "$name" "$work/log")" '{ print operations / ($1 + $2) }' "$work/time" \
        >>"$work/$name.$way"
}

median() { # NAME WAY
    sort -g "$work/$1.$2" | sed -n "$(((ROUNDS + 1) / 2))p"
}

printf 'operations a CPU second, medians of %s runs in turn of %s s\n' "$ROUNDS" "$SECONDS_A_RUN"
printf '%-10s %10s %10s %10s   %17s %13s\n' workload without lockprof perf 'lockprof slower' 'perf slower'
for name in "$@"; do
    workload "$name"
    for _ in $(seq "$ROUNDS"); do
        measure "$name" without
        measure "$name" lockprof "$LOCKPROF" record -o "$work/file" --
        measure "$name" perf perf record -q -o "$work/file" -a "${events[@]}" --
    done
    awk -v name="$name" -v without="$(median "$name" without)" -v ours="$(median "$name" lockprof)" \
        -v perf="$(median "$name" perf)" 'BEGIN {
            printf "%-10s %10.0f %10.0f %10.0f   %14.2f x %11.2f x   ", name, without, ours, perf,
                without / ours, without / perf
            printf "lockprof over perf: %.2f\n", perf / ours
        }'
done
