#!/bin/sh
# The newcomer's test: a fresh Debian 12 with nothing but apt working, this repository, and one command typed. Run by
# hand, as root; needs debootstrap and a few minutes.
#
#   test/chroot.sh                      ./dev run -- xz …, and in another fresh one ./dev test
#   test/chroot.sh COMMAND [ARG]…       COMMAND in a fresh one, in the folder of the repository
#
# The packages come from where this machine has its own.  SPDX-License-Identifier: MIT
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
folder=$(mktemp -d "${TMPDIR:-/var/tmp}/offbeat-chroot.XXXXXX")
trap 'finish' EXIT

finish() {
    umount -l "$folder/system/proc" 2>/dev/null || true
    rm -rf "$folder"
}

# The first address of Debian itself that this machine's apt knows, in either of apt's two forms.
mirror() {
    cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
        sed -n -e 's/^deb \(\[[^]]*\] *\)\{0,1\}\([^ ]*\) bookworm .*main.*/\2/p' \
            -e '/^URIs: */{s///;s/ .*//;/debian\/*$/p}' | head -n 1
}

make_base() {
    debootstrap --variant=minbase bookworm "$folder/base" "$(mirror)" >"$folder/debootstrap.log" 2>&1 ||
        { tail -n 5 "$folder/debootstrap.log"; exit 1; }
    # How this machine reaches its packages (a proxy, say) is how the new one does.
    grep -lsi proxy /etc/apt/apt.conf /etc/apt/apt.conf.d/* | while read -r file; do
        cp "$file" "$folder/base/etc/apt/apt.conf.d/"
    done
    cp /etc/resolv.conf "$folder/base/etc/" 2>/dev/null || true
}

# in_fresh_system COMMAND [ARG]…
in_fresh_system() {
    rm -rf "$folder/system"
    cp -a "$folder/base" "$folder/system"
    mkdir "$folder/system/offbeat"
    (cd "$root" && tar -c --exclude=./.git --exclude='./build*' .) | tar -x -C "$folder/system/offbeat"
    mount -t proc proc "$folder/system/proc"
    printf '\n=== in a fresh system: %s\n' "$*"
    status=0
    start=$(date +%s)
    # shellcheck disable=SC2016 # expanded inside
    chroot "$folder/system" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb \
        ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
        sh -c 'cd /offbeat && "$@"' sh "$@" || status=$?
    printf '=== status %s after %s seconds\n' "$status" "$(($(date +%s) - start))"
    umount -l "$folder/system/proc"
    return "$status"
}

make_base
if [ $# -gt 0 ]; then
    in_fresh_system "$@"
else
    in_fresh_system ./dev run -- xz -9 -T2 -k -c /usr/bin/perl
    in_fresh_system ./dev test
fi
