#!/usr/bin/env bash
# initramfs.sh KERNEL LOCKPROF SCRIPT OUT: what a guest boots into.
#
# KERNEL is a folder of fetch.sh, LOCKPROF a program that needs no libraries, SCRIPT what runs in the
# guest. Holds busybox, guest/init, the modules for the disks and XFS in the order in which they load,
# lockprof and the script. Needs cpio and kmod, not root.
set -euo pipefail

kernel=$1 lockprof=$2 script=$3 out=$4
here=$(cd "$(dirname "$0")" && pwd)
release=$(basename "$kernel")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

mkdir -p "$root"/{bin,dev,mnt,modules,out,proc,root,sys,tmp}
cp /bin/busybox "$root/bin/busybox"
cp "$lockprof" "$root/bin/lockprof"
cp "$here/guest/init" "$root/init"
cp "$here/guest/steps" "$root/steps"
cp "$script" "$root/script"
# Users without rights look into it, too.
chmod 755 "$root" "$root/init"

# `insmod FILE` for what is a module, `builtin NAME` for what is not; each once, in order of need.
modules() {
    local wanted
    for wanted in virtio_pci virtio_blk crc32c_generic crc32c_intel xfs; do
        modprobe -d "$kernel" -S "$release" --show-depends "$wanted" 2>/dev/null || true
    done | sed -n 's/^insmod \(\S*\).*/\1/p' | awk '!seen[$0]++'
}

number=100
while read -r module; do
    name=$(basename "$module")
    case $name in
        *.xz) xz -dc "$module" >"$root/modules/$number-${name%.xz}" ;;
        *.zst) zstd -dcq "$module" >"$root/modules/$number-${name%.zst}" ;;
        *) cp "$module" "$root/modules/$number-$name" ;;
    esac
    number=$((number + 1))
done < <(modules)

(cd "$root" && find . | cpio -o -H newc -R 0:0 --quiet) >"$out"
