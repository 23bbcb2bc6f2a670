#!/bin/sh
# Makes the static library that is installed: static_library.sh OUTPUT OBJCOPY AR COMPILER PART…
#
# The parts, objects and static libraries, become one object in which only offbeat_* is global. As they are,
# their names would clash with the program's own: hidden visibility means nothing to an archive.
# SPDX-License-Identifier: MIT
set -eu

output=$1
objcopy=$2
ar=$3
compiler=$4
shift 4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# All objects are linked in, and from archives what the objects need. A group of sections that the program has, too, would be
# dropped here; clang makes one for the counters of ./dev coverage.
# shellcheck disable=SC2086 # the compiler may be several words
$compiler -r -nostdlib -Wl,--force-group-allocation -o "$folder/offbeat.o" -Wl,--start-group "$@" -Wl,--end-group
"$objcopy" --localize-hidden --wildcard --keep-global-symbol 'offbeat_*' "$folder/offbeat.o"
rm -f "$output"
"$ar" rcsD "$output" "$folder/offbeat.o"
