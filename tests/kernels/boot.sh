#!/usr/bin/env bash
# boot.sh KERNEL INITRAMFS CPUS OUT: boots a guest, waits for its end, unpacks what it brought into OUT.
#
# OUT/boot says in one line how it went: `booted SECONDS` or `failed WHY`. Software emulation: KVM is not
# everywhere, and here not the same kernel. One thread of the emulator for all CPUs, because kernels that
# patch their own text (each opened tracepoint does) now and then run into a stale translation with one
# thread for each CPU: 4 of 9 such boots ended in an oops, against none of 8. maxcpus=1 leaves the
# patching of the boot to one CPU; guest/init brings up the others.
set -euo pipefail

kernel=$1 initramfs=$2 cpus=$3 out=$4
limit=${LOCKPROF_KERNELS_LIMIT:-300}
release=$(basename "$kernel")
disks=$(mktemp -d)
trap 'rm -rf "$disks"' EXIT

truncate -s 256M "$disks/out"
truncate -s 512M "$disks/xfs"
# What the oldest of the kernels can mount; xfsprogs 6.1 does not read its own file for that.
mkfs.xfs -q -c options=/usr/share/xfsprogs/mkfs/lts_5.10.conf "$disks/xfs" 2>"$out/mkfs.err" ||
    mkfs.xfs -q -m bigtime=0,inobtcount=0 -i nrext64=0 "$disks/xfs"

disk() { printf -- '-drive if=none,id=%s,file=%s,format=raw,cache=unsafe -device virtio-blk-pci,drive=%s,serial=%s ' "$1" "$disks/$1" "$1" "$1"; }

# What the emulator got of the real CPUs, in seconds: user, system, by the clock.
TIMEFORMAT='%U %S %R'

# -cpu max says that it is a hypervisor's, and then kernels take the queued spinlocks out of use.
# shellcheck disable=SC2046 # words
{
    time timeout --kill-after=5 "$limit" qemu-system-x86_64 -accel tcg,thread=single \
        -cpu max,-hypervisor -smp "$cpus" -m 2G -machine q35 -nodefaults -no-user-config -display none \
        -no-reboot -serial stdio -kernel "$kernel/boot/vmlinuz-$release" -initrd "$initramfs" \
        -append "console=ttyS0 quiet panic=-1 tsc=reliable mitigations=off maxcpus=1" \
        $(disk out) $(disk xfs) </dev/null >"$out/console" 2>"$out/qemu.err"
} 2>"$out/cpu" && status=0 || status=$?

tar -C "$out" -xf "$disks/out" 2>/dev/null || true
if [ -e "$out/dmesg" ]; then
    echo "booted $SECONDS" >"$out/boot"
elif [ $status -eq 124 ]; then
    echo "failed: not done after $limit s: $(tail -n 1 "$out/console" | tr -d '\r')" >"$out/boot"
else
    echo "failed: QEMU ended with status $status: $(grep -m 1 -aE 'BUG|Oops|panic' "$out/console" | tr -d '\r' || tail -n 1 "$out/qemu.err")" >"$out/boot"
fi
