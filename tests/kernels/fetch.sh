#!/usr/bin/env bash
# fetch.sh VERSION: the newest kernel VERSION (5.10, 6.12-rt ...) that Debian has, unpacked into the cache.
#
# Prints the folder, named as `uname -r` there. Nothing is installed: apt has lists of its own here and
# checks what it downloads; maintainer scripts are not run. Fails with one line that says why.
set -euo pipefail

version=$1
cache=${LOCKPROF_KERNELS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/lockprof-kernels}
apt=$cache/apt
# What Debian calls its releases; those that the mirror no longer has cost a warning.
suites=(bullseye bookworm trixie trixie-backports sid)

fail() { echo "$*" >&2; exit 1; }

case $version in
    *-rt) number=${version%-rt} flavour=rt-amd64 ;;
    *) number=$version flavour=cloud-amd64 ;;
esac

# The mirror that this machine uses for itself, or Debian's own.
mirror() {
    local sources=(/etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources)
    cat "${sources[@]}" 2>/dev/null |
        sed -nE 's/^URIs: *(\S+).*/\1/p; s/^deb (\[[^]]*\] )?(\S+).*/\2/p' |
        grep -E '/debian/?$' | head -n 1 || true
}

apt_get() {
    local command=$1
    shift
    "$command" -qq -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=- \
        -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root \
        -o Acquire::Languages=none -o Acquire::http::Timeout=30 \
        -o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false \
        -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false "$@"
}

# The lists, not older than a day.
update() {
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    if [ -n "$(find "$apt/updated" -mtime -1 2>/dev/null)" ]; then return; fi
    local from suite
    from=$(mirror)
    for suite in "${suites[@]}"; do
        echo "deb ${from:-http://deb.debian.org/debian} $suite main"
    done >"$apt/sources.list"
    if apt_get apt-get update >"$apt/update.log" 2>&1; then touch "$apt/updated"; fi
}

# `uname -r` of the newest kernel of this number and flavour in the lists.
newest() {
    apt_get apt-cache pkgnames "linux-image-$number" |
        sed -nE "s/^linux-image-(${number//./\\.}[.+][0-9a-z.+~-]*-$flavour)\$/\1/p" | sort -V | tail -n 1
}

# From Debian 14 on an image package is empty, and what it needs are others of the same release.
packages() {
    local part
    for part in image binary modules base; do
        if [ -n "$(apt_get apt-cache show "linux-$part-$1" 2>/dev/null)" ]; then echo "linux-$part-$1"; fi
    done
}

unpack() {
    local release=$1 downloads=$apt/downloads-$1 package
    rm -rf "$downloads" "$cache/$release.partial"
    mkdir -p "$downloads" "$cache/$release.partial"
    # shellcheck disable=SC2046 # package names have no blanks
    (cd "$downloads" && apt_get apt-get download $(packages "$release")) >&2 ||
        fail "linux-image-$release could not be downloaded"
    for package in "$downloads"/*.deb; do dpkg-deb -x "$package" "$cache/$release.partial"; done
    # modprobe and depmod look into lib/modules; packages since Debian 13 have it in usr/lib.
    [ -e "$cache/$release.partial/lib/modules" ] || ln -s usr/lib "$cache/$release.partial/lib"
    # Since Debian 14 the kernel itself lies beside its modules.
    if [ ! -e "$cache/$release.partial/boot/vmlinuz-$release" ]; then
        mkdir -p "$cache/$release.partial/boot"
        ln -s "../lib/modules/$release/vmlinuz" "$cache/$release.partial/boot/vmlinuz-$release"
    fi
    depmod -b "$cache/$release.partial" "$release"
    rm -rf "$downloads" "${cache:?}/$release"
    mv "$cache/$release.partial" "$cache/$release"
}

update
release=$(newest)
if [ -z "$release" ]; then
    # No network, perhaps: a kernel of an earlier run will do.
    release=$(cd "$cache" && ls -d "$number"[.+]*-"$flavour" 2>/dev/null | sort -V | tail -n 1) || true
    [ -n "$release" ] || fail "Debian has no linux-image-$number*-$flavour ($(tail -n 1 "$apt/update.log"))"
fi
[ -d "$cache/$release" ] || unpack "$release"
echo "$cache/$release"
