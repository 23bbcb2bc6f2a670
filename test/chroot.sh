#!/bin/sh
# A fresh Debian 12 with nothing but apt, certificates and git, this repository cloned into root's home, and one command.
# Needs root, and installs debootstrap where it is missing.
#
#   test/chroot.sh                   ./dev run, and in another fresh machine ./dev test
#   test/chroot.sh [OPTION]… COMMAND [ARGUMENT]…   COMMAND in a fresh machine, in the folder of the clone
#
#   --shared    ../shared, if it is beside this repository, is in /mnt/shared of the fresh machine, read-only; what `./dev setup all`
#               got from npm on this machine is there, too, because Debian's npm is some hundred packages
#   --or-here   runs COMMAND on this machine, with a warning, if no fresh one can be created
#
# The exit status is the command's, or 125 if no fresh machine can be created. Packages come from where this machine gets
# its own. The base system and the packages are kept for a week in OFFBEAT_CHROOT_CACHE (/var/cache/offbeat-chroot).
# All mounts are made in a mount namespace: the kernel unmounts them when the last process of the fresh machine ends.
# SPDX-License-Identifier: MIT
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
cache=${OFFBEAT_CHROOT_CACHE:-/var/cache/offbeat-chroot}
packages=ca-certificates,git
CANNOT_CREATE=125
MEGABYTES_MIN=5000
folder='' child='' has_shared=''

say() {
    printf '=== %s\n' "$*" >&2
}

cannot() {
    say "no fresh machine can be created: $*"
    exit "$CANNOT_CREATE"
}

# --- inside the mount namespace -------------------------------------------------------------------------------------

# enter SYSTEM SHARED COMMAND…: mounts what programs expect of a machine, and becomes COMMAND in it. SYSTEM becomes the root
# of the mount namespace: in a mere chroot the kernel denies user namespaces, and nsenter leaves it.
enter() {
    system=$1 shared=$2
    shift 2
    mount --bind "$system" "$system"
    mount -t proc proc "$system/proc"
    mount -t sysfs -o ro sysfs "$system/sys" 2>/dev/null || say "no /sys in the fresh machine"
    mount -t tmpfs -o mode=1777 tmpfs "$system/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$system/dev/pts"
    if [ -n "$shared" ]; then
        mount --bind "$shared" "$system/mnt/shared"
        mount -o remount,bind,ro "$system/mnt/shared"
    fi
    # The shell that started this in the background made it ignore SIGINT and SIGQUIT.
    # shellcheck disable=SC2016 # expanded inside
    cd "$system"
    mkdir -p mnt/outside
    pivot_root . mnt/outside
    exec chroot . env -i --default-signal PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb ${CI:+CI="$CI"} \
        ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} ${no_proxy:+no_proxy="$no_proxy"} \
        sh -c 'umount -l /mnt/outside && cd /root/offbeat && exec "$@"' sh "$@"
}

# --- the machine ----------------------------------------------------------------------------------------------------

# Kills the processes whose root directory is the fresh machine, and removes it.
finish() {
    trap '' HUP INT TERM
    if [ -n "$child" ]; then kill -KILL "$child" 2>/dev/null || true; fi
    if [ -n "$folder" ]; then
        stop_processes
        rm -rf --one-file-system "$folder"
    fi
}

# The numbers of the processes whose root directory is $folder/system.
processes_inside() {
    identity=$(stat -c %d:%i "$folder/system" 2>/dev/null) || return 0
    stat -L -c '%d:%i %n' /proc/[0-9]*/root 2>/dev/null | sed -n "s|^$identity /proc/\([0-9]*\)/root\$|\1|p"
}

stop_processes() {
    for _ in 1 2 3 4 5; do # what was forked meanwhile
        inside=$(processes_inside)
        [ -n "$inside" ] || return 0
        # shellcheck disable=SC2086 # numbers
        kill -KILL $inside 2>/dev/null || true
        sleep 0.2
    done
}

# The first address of Debian itself that this machine's apt knows, in either of apt's two forms.
mirror() {
    cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
        sed -n -e 's/^deb \(\[[^]]*\] *\)\{0,1\}\([^ ]*\) bookworm .*main.*/\2/p' \
            -e '/^URIs: */{s///;s/ .*//;/debian\/*$/p}' | head -n 1
}

need_tools() {
    [ "$(id -u)" = 0 ] || cannot "this needs root"
    unshare --mount --propagation private true 2>/dev/null || cannot "mount namespaces are denied here"
    command -v debootstrap >/dev/null || {
        say "installing debootstrap"
        apt-get update -qq >/dev/null 2>&1 || true
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o DPkg::Lock::Timeout=300 debootstrap >/dev/null 2>&1
    } || cannot "debootstrap cannot be installed"
}

# True if the cache may be used: a folder that only root can write to.
has_cache() {
    { [ -d "$cache" ] || (umask 077 && mkdir -p "$cache") 2>/dev/null; } && [ -O "$cache" ] && [ ! -L "$cache" ]
}

# What the cache holds is from this week, of the same mirror, and undamaged.
is_cache_valid() {
    [ "$(cat "$cache/key" 2>/dev/null)" = "$(cache_key)" ] && [ -z "$(find "$cache/base.tar" -mtime +6)" ] &&
        (cd "$cache" && sha256sum --check --status base.sum)
}

cache_key() {
    echo "bookworm $packages $(mirror)"
}

# A new base system in $folder/base, and in the cache. A base.sum that is written last makes the cache valid.
make_base() {
    say "creating a Debian 12 base system with debootstrap (one to four minutes)"
    # shellcheck disable=SC2046 # no argument where no mirror is known: debootstrap has a default
    debootstrap --variant=minbase --include="$packages" bookworm "$folder/base" $(mirror) >"$folder/debootstrap.log" 2>&1 ||
        { tail -n 5 "$folder/debootstrap.log" >&2; cannot "debootstrap failed"; }
    rm -f "$folder/base/var/cache/apt/archives/"*.deb
    has_cache || return 0
    rm -rf "$cache/base.sum" "$cache/archives"
    if tar -c --numeric-owner -f "$cache/base.tar" -C "$folder/base" . && cache_key >"$cache/key"; then
        (cd "$cache" && sha256sum base.tar >base.sum.new && mv base.sum.new base.sum)
    else
        rm -f "$cache/base.tar" # no room
    fi
}

# A copy of the base system in $folder/system.
make_system() {
    rm -rf --one-file-system "$folder/system"
    mkdir "$folder/system"
    if [ -d "$folder/base" ]; then
        cp -a "$folder/base/." "$folder/system"
    elif has_cache && is_cache_valid && tar -x -p --numeric-owner -f "$cache/base.tar" -C "$folder/system"; then
        say "the base system comes from $cache"
    else
        rm -rf --one-file-system "$folder/system"
        make_base
        make_system
        return
    fi
    take_over_network
    echo force-unsafe-io >"$folder/system/etc/dpkg/dpkg.cfg.d/unsafe-io" # this machine does not outlive a power cut
    take_cached_packages
}

# How this machine reaches its packages (a proxy, say) is how the new one does.
take_over_network() {
    etc=$folder/system/etc
    grep -lsi -e proxy -e Acquire:: /etc/apt/apt.conf /etc/apt/apt.conf.d/* | while read -r file; do
        cp "$file" "$etc/apt/apt.conf.d/"
    done
    for file in resolv.conf hosts ssl/certs/ca-certificates.crt; do
        [ ! -e "/etc/$file" ] || cp -L "/etc/$file" "$etc/$file" || true
    done
}

# apt-get uses packages in its archive folder instead of downloading them, if they are those that its lists name.
take_cached_packages() {
    if has_cache && (cd "$cache/archives" && sha256sum --check --status packages.sum) 2>/dev/null; then
        cp "$cache"/archives/*.deb "$folder/system/var/cache/apt/archives/"
    fi
}

keep_packages() {
    has_cache && [ -f "$cache/base.sum" ] || return 0
    new=$(mktemp -d "$cache/new.XXXXXX") || return 0
    set -- "$folder/system/var/cache/apt/archives/"*.deb
    if { cp -l "$@" "$new/" || cp -f "$@" "$new/"; } 2>/dev/null && (cd "$new" && sha256sum -- *.deb >packages.sum); then
        rm -rf "$cache/archives"
        mv "$new" "$cache/archives"
    fi
    rm -rf "$new"
}

# The repository in root's home, which only root may enter. Without uncommitted changes it is a clone.
copy_repository() {
    home=$folder/system/root
    chmod 0700 "$home"
    if [ -z "$(git -C "$root" status --porcelain 2>&1)" ] && git clone -q --no-hardlinks "$root" "$home/offbeat" 2>/dev/null; then
        return
    fi
    say "this is no clean clone: the fresh machine gets a copy of its files"
    rm -rf "$home/offbeat"
    mkdir "$home/offbeat"
    (cd "$root" && tar -c --exclude=./.git --exclude='./build*' .) | tar -x --no-same-owner -C "$home/offbeat"
}

take_node_packages() {
    taken=${XDG_CACHE_HOME:-$HOME/.cache}/offbeat-npm
    [ -d "$taken/node_modules" ] || { say "no npm packages in $taken: tests that need axe-core or speedscope are skipped"; return 0; }
    mkdir -p "$folder/system/root/.cache"
    cp -a "$taken" "$folder/system/root/.cache/"
}

# in_fresh_machine COMMAND [ARGUMENT]…
in_fresh_machine() {
    start=$(date +%s)
    make_system
    copy_repository
    shared=
    if [ -n "$has_shared" ] && [ -d "$root/../shared" ]; then
        shared=$(cd "$root/../shared" && pwd -P)
        mkdir "$folder/system/mnt/shared"
    fi
    [ -z "$has_shared" ] || take_node_packages
    say "a fresh Debian 12 after $(($(date +%s) - start)) seconds; in /root/offbeat: $*"
    unshare --mount --propagation private sh "$root/test/chroot.sh" --inside "$folder/system" "$shared" "$@" <&3 &
    child=$!
    status=0
    wait "$child" || status=$?
    child=
    stop_processes
    keep_packages
    return "$status"
}

# --- this machine ---------------------------------------------------------------------------------------------------

# Runs the rest of the arguments in a fresh machine; COMMAND on this one if there is none.
or_here() {
    status=0
    exec 3<&0
    # shellcheck disable=SC2086 # a word or none
    sh "$root/test/chroot.sh" $has_shared "$@" <&3 &
    child=$!
    trap 'kill -TERM "$child"; wait "$child" || true; exit 143' HUP INT TERM
    wait "$child" || status=$?
    [ "$status" = "$CANNOT_CREATE" ] || exit "$status"
    say "WARNING: this runs on the current machine, not on a fresh one: packages that are installed here by chance are not noticed"
    cd "$root"
    exec "$@"
}

if [ "${1-}" = --inside ]; then
    shift
    enter "$@"
fi
is_or_here=
while :; do
    case ${1-} in
    --shared) has_shared=--shared ;;
    --or-here) is_or_here=yes ;;
    *) break ;;
    esac
    shift
done
[ -z "$is_or_here" ] || or_here "$@"

exec 3<&0
need_tools
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
parent=${TMPDIR:-/var/tmp}
[ "$(df -Pm "$parent" | awk 'NR == 2 { print $4 }')" -ge "$MEGABYTES_MIN" ] || cannot "$parent has less than $MEGABYTES_MIN MB free"
# A run that was killed with SIGKILL left its folder. Nothing is mounted in it: the mounts ended with their namespace.
find "$parent" -maxdepth 1 -name 'offbeat-chroot.??????' -mtime +0 -exec rm -rf --one-file-system {} +
folder=$(mktemp -d "$parent/offbeat-chroot.XXXXXX") || cannot "cannot write to $parent"
if [ $# -gt 0 ]; then
    in_fresh_machine "$@"
else
    in_fresh_machine ./dev run -- xz -9 -T2 -k -c /usr/bin/perl
    in_fresh_machine ./dev test
fi
