#!/bin/bash
# Records fs_mark while 16 threads make empty files on XFS: the locks of the log, of the inode
# buffers and of the super block. See README.md.
#
# SCALE: thousand files in each of 16 directories (default 10: 160,000 files). The other variables
# are those of ../scratch_xfs.sh.

# shellcheck source=examples/scratch_xfs.sh
. "$(dirname "${BASH_SOURCE[0]}")/../scratch_xfs.sh"
SCALE=${SCALE:-10}

need_root
need mkfs.xfs xfsprogs
need fs_mark fsmark
need losetup mount
find_lockprof

# Few allocation groups, as mkfs.xfs makes them of itself: the 16 threads meet in them.
make_scratch -m crc=1,finobt=1
mount_scratch

say "recording fs_mark while it makes $((SCALE * 16000)) files"
run_fs_mark "$SCALE" "$LOCKPROF" record -o "$OUT/fs_mark.data" --
summarise fs_mark
