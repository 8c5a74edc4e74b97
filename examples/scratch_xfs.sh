# shellcheck shell=bash
# A scratch XFS file system on a loop device over a sparse file, and finding what a recipe needs.
#
# Sourced by the recipes next to it. A recipe calls, in this order:
#   need_root; need COMMAND PACKAGE (once a command); find_lockprof
#   make_scratch [MKFS OPTION...]; mount_scratch; ...; unmount_scratch
# From make_scratch on, everything it made goes away when the recipe ends, however it ends.
#
# Variables that the user may set:
#   LOCKPROF     the lockprof to use (default: from PATH, else target/release/lockprof here)
#   SCRATCH_DIR  where the sparse file and the mount point are put (default: /var/tmp)
#   SIZE         size of the file system; the file is sparse (default: 64G)
#   OUT          directory for the recording and the flame graph (default: the current one)
# Variables for the recipe: LOCKPROF and OUT (absolute), scratch_device, scratch_mount.

set -euo pipefail

OUT=$(cd "${OUT:-$PWD}" && pwd)
SCRATCH_DIR=${SCRATCH_DIR:-/var/tmp}
SIZE=${SIZE:-64G}
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

scratch_folder=
scratch_device=
scratch_mount=

fail() {
    printf 'error: %s\n\nhint: %s\n' "$1" "$2" >&2
    exit 1
}

say() {
    printf '\n== %s (after %d s)\n' "$*" "$SECONDS"
}

need_root() {
    if [[ $(id -u) != 0 ]]; then
        fail 'a loop device and a mount need root' "sudo $0"
    fi
}

# need COMMAND PACKAGE
need() {
    if ! command -v "$1" >/dev/null; then
        fail "$1 is not installed" "apt-get install $2"
    fi
}

find_lockprof() {
    LOCKPROF=${LOCKPROF:-$(command -v lockprof || printf '%s' "$repository/target/release/lockprof")}
    if ! command -v "$LOCKPROF" >/dev/null; then
        fail "no lockprof at $LOCKPROF" "cd $repository && cargo build --release"
    fi
    # Recipes change the directory.
    LOCKPROF=$(realpath "$(command -v "$LOCKPROF")")
}

make_scratch() {
    trap remove_scratch EXIT
    # Without these, bash skips the EXIT trap when a signal ends it.
    trap 'exit 130' INT
    trap 'exit 143' TERM
    trap 'exit 129' HUP
    scratch_folder=$(mktemp -d "$SCRATCH_DIR/lockprof-scratch.XXXXXX")
    truncate -s "$SIZE" "$scratch_folder/xfs.img"
    scratch_device=$(losetup --find --show "$scratch_folder/xfs.img")
    mkfs.xfs -q -f "$@" "$scratch_device"
}

mount_scratch() {
    scratch_mount=$scratch_folder/mnt
    mkdir -p "$scratch_mount"
    mount -t xfs -o logbsize=262144 "$scratch_device" "$scratch_mount"
}

unmount_scratch() {
    umount "$scratch_mount"
    scratch_mount=
}

remove_scratch() {
    # Clean-up goes on after a step that fails, unless the file system is still in use.
    set +e
    if [[ -n $scratch_mount ]] && mountpoint -q "$scratch_mount"; then
        # A command that was just told to end may keep it busy for a moment.
        umount "$scratch_mount" 2>/dev/null || { sleep 2; umount "$scratch_mount"; } || return
    fi
    if [[ -n $scratch_device ]]; then
        losetup --detach "$scratch_device"
    fi
    if [[ -n $scratch_folder ]]; then
        rm -rf --one-file-system "$scratch_folder"
    fi
}

# summarise NAME: the report and the flame graph of $OUT/NAME.data
summarise() {
    say "report of $OUT/$1.data"
    "$LOCKPROF" report "$OUT/$1.data"
    "$LOCKPROF" flamegraph -o "$OUT/$1.svg" "$OUT/$1.data"
    say "flame graph: $OUT/$1.svg"
}

# run_fs_mark SCALE [COMMAND...]: runs the fs_mark command of the mail, behind COMMAND if there is
# one, with SCALE thousand files in each of 16 directories of the scratch file system.
run_fs_mark() {
    local files=$(($1 * 1000)) directory
    local subdirectories=$((files < 10000 ? files : 10000))
    local mark=(fs_mark -D "$subdirectories" -S0 -n "$files" -s 0 -L 1)
    shift
    # Relative paths: Debian's fs_mark 3.3 aborts with a buffer overflow on longer ones.
    for directory in {0..15}; do
        mark+=(-d "mnt/$directory")
        # Made ahead, or 16 threads would first of all queue to make them in one directory.
        mkdir "$scratch_mount/$directory"
    done
    # fs_mark writes its log into the current directory.
    (cd "$scratch_folder" && "$@" "${mark[@]}")
}
