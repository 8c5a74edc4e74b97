#!/usr/bin/env bash
# run.sh [--events] [VERSION...]: lockprof on real kernels, under QEMU. Without versions: all of the matrix.
#
# Each kernel is fetched from Debian, booted with 4 CPUs (guest/events: all kinds of recordings) and with
# 8 (guest/spin: CPU samples of spinning; --events leaves these out), and what the guests recorded is
# checked here by tests/kernels/main.rs, which prints a table. What cannot be had or booted is SKIPPED in
# it, with the reason. Needs no root once the packages are there; KVM is not used.
#
# LOCKPROF_KERNELS_CACHE: where kernels are kept between runs. Results: target/kernels/VERSION.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=tests/kernels
guests=(events spin)
if [ "${1-}" = --events ]; then
    guests=(events)
    shift
fi
versions=("$@")
[ ${#versions[@]} -gt 0 ] || versions=(5.10 6.1 6.12 7.2 5.10-rt 6.12-rt)
target=${CARGO_TARGET_DIR:-target}
results=$(realpath -m "$target/kernels")
declare -A cpus=([events]=4 [spin]=8)

# The packages that boot a kernel, by a program of each.
declare -A packages=([qemu-system-x86_64]=qemu-system-x86 [busybox]=busybox-static [cpio]=cpio
    [modprobe]=kmod [xz]=xz-utils [mkfs.xfs]=xfsprogs)
missing() {
    local program
    for program in "${!packages[@]}"; do
        PATH=$PATH:/sbin:/usr/sbin command -v "$program" >/dev/null || echo "${packages[$program]}"
    done
}
export PATH=$PATH:/sbin:/usr/sbin
if [ -n "$(missing)" ] && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    apt-get update -q
    # shellcheck disable=SC2046 # one word a package
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $(missing) || true
fi

# A program for guests without a single library: musl where rustup has it, else a static glibc.
build() {
    local triple=x86_64-unknown-linux-gnu
    [ -d "$(rustc --print target-libdir --target x86_64-unknown-linux-musl)" ] &&
        triple=x86_64-unknown-linux-musl
    RUSTFLAGS="${RUSTFLAGS-} -C target-feature=+crt-static" \
        CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_DEBUG=false \
        cargo build --quiet --release --target "$triple" --bin lockprof >&2
    echo "$target/$triple/release/lockprof"
}

skip() {
    echo "$2" >"$results/$1/skipped"
    echo "SKIPPED $1: $2"
}

# boot VERSION KERNEL GUEST: once more when it comes to nothing.
boot() {
    local out=$results/$1/$3 attempt
    for attempt in 1 2; do
        rm -rf "$out"
        mkdir -p "$out"
        "$here/initramfs.sh" "$2" "$lockprof" "$here/guest/$3" "$out/initramfs"
        "$here/boot.sh" "$2" "$out/initramfs" "${cpus[$3]}" "$out"
        rm "$out/initramfs"
        echo "$1 $3 (${cpus[$3]} CPUs), attempt $attempt: $(cat "$out/boot")"
        ! grep -q ^booted "$out/boot" || break
    done
}

rm -rf "$results"
for version in "${versions[@]}"; do mkdir -p "$results/$version"; done
if [ -n "$(missing)" ]; then
    for version in "${versions[@]}"; do skip "$version" "not installed: $(missing | paste -sd ' ')"; done
else
    lockprof=$(build)
    for version in "${versions[@]}"; do
        if ! kernel=$("$here/fetch.sh" "$version" 2>"$results/$version/fetch.err"); then
            skip "$version" "$(tail -n 1 "$results/$version/fetch.err")"
            continue
        fi
        # The emulator takes one real CPU a guest.
        for guest in "${guests[@]}"; do
            while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n || true; done
            boot "$version" "$kernel" "$guest" &
        done
    done
    wait
fi
LOCKPROF_KERNELS=$results cargo test --quiet --test kernels -- --nocapture real_kernels
