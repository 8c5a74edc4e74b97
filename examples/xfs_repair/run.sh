#!/bin/bash
# Records xfs_repair on a file system with many inodes: 32 threads of one process that grow their
# heaps fight for its mmap_lock. See README.md.
#
# SCALE: thousand files in each of 16 directories (default 40: 640,000 files). The other variables
# are those of ../scratch_xfs.sh.

# shellcheck source=examples/scratch_xfs.sh
. "$(dirname "${BASH_SOURCE[0]}")/../scratch_xfs.sh"
SCALE=${SCALE:-40}

need_root
need mkfs.xfs xfsprogs
need xfs_repair xfsprogs
need fs_mark fsmark
need losetup mount
find_lockprof

say "making $SIZE of XFS with $((SCALE * 16000)) files"
make_scratch -m crc=1,finobt=1 -d agcount=32
mount_scratch
run_fs_mark "$SCALE"
df -i "$scratch_mount"
unmount_scratch

say 'recording xfs_repair'
"$LOCKPROF" record -o "$OUT/xfs_repair.data" -- \
    xfs_repair -o bhash=500000 -o ag_stride=2 "$scratch_device"
summarise xfs_repair
