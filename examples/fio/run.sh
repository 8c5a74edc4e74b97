#!/bin/bash
# Records fio while many threads read and write (rw.fio) or only write (wo.fio) one file on XFS: the
# file's i_rwsem. See README.md.
#
# JOB          rw or wo (default rw)
# FIO_SECONDS  how long (default 10)        FIO_SIZE  size of each of two files (default 256M)
# FIO_JOBS     threads a file (default: the number of CPUs, at least 4)
# FIO_DIRECT   1: without the page cache, as in the mail (default 0, README.md says why)
# The other variables are those of ../scratch_xfs.sh.

# shellcheck source=examples/scratch_xfs.sh
. "$(dirname "${BASH_SOURCE[0]}")/../scratch_xfs.sh"
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
JOB=${JOB:-rw}

# The CPUs that we may run on, one a line: the list 0-2,5 is 0 1 2 5.
allowed_cpus() {
    local range
    awk '/^Cpus_allowed_list:/ { gsub(",", "\n", $2); print $2 }' /proc/self/status |
        while read -r range; do
            seq "${range%-*}" "${range#*-}"
        done
}

# cpus FROM COUNT: some of them with commas in between.
cpus() {
    local IFS=,
    printf '%s' "${all[*]:$1:$2}"
}

need_root
need mkfs.xfs xfsprogs
need fio fio
need losetup mount
find_lockprof
[[ -f $folder/$JOB.fio ]] || fail "no job file $JOB.fio" 'JOB=rw or JOB=wo'

mapfile -t all < <(allowed_cpus)
# As in the mail, the first half for one file and the second for the other; below 4 CPUs all for both,
# because threads of one file that share one CPU hardly meet.
half=$((${#all[@]} / 2))
if ((${#all[@]} < 4)); then
    first=$(cpus 0 ${#all[@]})
    second=$first
else
    first=$(cpus 0 "$half")
    second=$(cpus "$half" ${#all[@]})
fi
export FIO_CPUS_0 FIO_CPUS_1 FIO_DIR FIO_DIRECT FIO_JOBS FIO_SECONDS FIO_SIZE
FIO_CPUS_0=$first
FIO_CPUS_1=$second
FIO_DIRECT=${FIO_DIRECT:-0}
FIO_JOBS=${FIO_JOBS:-$((${#all[@]} > 4 ? ${#all[@]} : 4))}
FIO_SECONDS=${FIO_SECONDS:-10}
FIO_SIZE=${FIO_SIZE:-256M}

make_scratch -m crc=1
mount_scratch
FIO_DIR=$scratch_mount

say "laying out two files of $FIO_SIZE"
for name in fio fio2; do
    # Written once, so that the recording shows the lock and not the allocation of blocks.
    fio --name=layout --filename="$FIO_DIR/$name" --rw=write --bs=1M --size="$FIO_SIZE" --end_fsync=1 \
        --minimal >/dev/null
done

say "recording $JOB.fio: 2 x $FIO_JOBS threads on CPUs $FIO_CPUS_0 and $FIO_CPUS_1"
"$LOCKPROF" record -o "$OUT/fio-$JOB.data" -- fio "$folder/$JOB.fio"
summarise "fio-$JOB"
