#!/bin/sh
# Debian packages, in a fresh machine that is thrown away: built, checked by lintian, installed, used, removed. As root, in the
# repository:    test/chroot.sh test/package.sh
# SPDX-License-Identifier: MIT
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
work=$(mktemp -d)
chmod 0755 "$work"

say() {
    printf '=== %s\n' "$*" >&2
}

fail() {
    say "FAILED: $*"
    exit 1
}

has() {
    grep -q -e "$2" "$1" || { cat "$1" >&2; fail "$1 lacks $2"; }
}

quiet_apt() {
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 "$@" >"$work/apt.log" 2>&1 ||
        { tail -n 20 "$work/apt.log" >&2; fail "apt-get $*"; }
}

"$root/dev" package "$work/packages" >"$work/list"
cat "$work/list" >&2
[ "$(wc -l <"$work/list")" = 4 ] || fail "there are not four packages"
for package in offbeat offbeat-helper liboffbeat0 liboffbeat-dev; do has "$work/list" "/${package}_"; done
(cd "$work/packages" && sha256sum --quiet -c SHA256SUMS) || fail "the checksums are of other files"
for word in SPDX-2.3 '"name": "liboffbeat0"' '"name": "libdw1"'; do has "$(echo "$work"/packages/*.spdx.json)" "$word"; done

say "installing"
find / -xdev -path /proc -prune -o -path "$work" -prune -o -path '*offbeat*' -print | sort >"$work/before"
quiet_apt install --no-install-recommends "$work"/packages/*.deb gcc g++ libc6-dev pkg-config man-db bash zsh fish xz-utils
[ "$(command -v offbeat)" = /usr/bin/offbeat ] || fail "offbeat is not in PATH"

say "using the program"
cd "$work"
offbeat record -o x.pb.gz -o x.speedscope.json -- xz -9 -k -c /usr/bin/perl >/dev/null
offbeat top x.pb.gz >table
has table liblzma
offbeat record -o - --to collapsed -- xz -9 -k -c /usr/bin/perl 2>/dev/null >x.collapsed
has x.collapsed liblzma
# shellcheck disable=SC2016 # expanded inside
runuser -u nobody -- sh -c 'cd /tmp && offbeat record -o "$0" -- sleep 0.2' /tmp/nobody.pb.gz
offbeat info /tmp/nobody.pb.gz >facts
has facts sleep

say "the runtime library without the files for developers"
mkdir "$work/runtime"
for package in offbeat liboffbeat0; do dpkg-deb -x "$work/packages/$package"_*.deb "$work/runtime"; done
library=$(find "$work/runtime" -name liboffbeat.so)
OFFBEAT_DSN=http://0123456789abcdef0123456789abcdef@127.0.0.1:9/1 OFFBEAT_DEBUG=1 LD_LIBRARY_PATH=$(dirname "$library") \
    LD_PRELOAD=liboffbeat.so perl -e 'print "hi\n"' >out 2>err
has out hi
has err 'service'
! grep -q 'cannot be preloaded' err || fail "liboffbeat.so is not in liboffbeat0"

say "using the library"
cat >program.c <<'TEXT'
#include <offbeat.h>
#include <stdio.h>
int main(void)
{
    printf("%d\n", offbeat_init(&(struct offbeat_options){.size = sizeof(struct offbeat_options), .dsn = ""}) == 0);
    offbeat_shutdown();
    return 0;
}
TEXT
# shellcheck disable=SC2046 # a list of words
gcc program.c -o program $(pkg-config --cflags --libs offbeat)
# shellcheck disable=SC2046
gcc program.c -o program-static $(pkg-config --cflags --libs offbeat-static)
./program >/dev/null || fail "a program with the shared library does not run"
./program-static >/dev/null || fail "a program with the static library does not run"
ldd program | grep -q 'liboffbeat.so.0 => /usr/lib\|liboffbeat.so.0 => /lib' || fail "the library is not the installed one"

say "manual pages, completions, copyright"
MANPAGER='cat' man offbeat-record >page
has page SYNOPSIS
man --path 3 offbeat.h >page || fail "no page offbeat.h(3)"
bash -n /usr/share/bash-completion/completions/offbeat
zsh -n /usr/share/zsh/vendor-completions/_offbeat
fish -n /usr/share/fish/vendor_completions.d/offbeat.fish
fish -c 'complete -C "offbeat record --mo"' >offered
has offered --mode
fish -c 'complete -C "offbeat reco"' >offered
has offered record
for package in offbeat offbeat-helper liboffbeat0 liboffbeat-dev; do
    [ -s "/usr/share/doc/$package/copyright" ] || fail "$package has no copyright file"
done

say "documents, their links and pictures"
find /usr/share/doc/offbeat /usr/share/doc/liboffbeat-dev -name '*.md' >documents
while read -r document; do
    grep -o '](\([^)# ]*\)' "$document" | sed 's/^](//' | grep -v '^http' >links || continue
    while read -r link; do
        case $link in /*) path=$link ;; *) path=$(dirname "$document")/$link ;; esac
        [ -e "$path" ] || fail "$document links to $link, which is not installed"
    done <links
done <documents
[ -e /usr/share/doc/offbeat/images/page.png ] || fail "the pictures are not installed"

say "removing"
rm -rf /root/.cache/offbeat /tmp/nobody.pb.gz
quiet_apt purge offbeat offbeat-helper liboffbeat0 liboffbeat-dev
find / -xdev -path /proc -prune -o -path "$work" -prune -o -path '*offbeat*' -print | sort >"$work/after"
# What the build itself leaves in the repository, and what other programs remember, are no files of the packages.
diff "$work/before" "$work/after" | grep '^>' | grep -v "$root\|/var/lib/dpkg/info\|/var/cache\|/var/lib/apt\|/proc/" >left && fail "remaining files: $(cat left)"
say "the packages are good"
