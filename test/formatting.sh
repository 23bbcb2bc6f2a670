#!/bin/sh
# Every C file is as .clang-format says; ./dev format makes it so. One TAP case.  SPDX-License-Identifier: MIT
set -u
cd "$(dirname "$0")/.." || exit 1

echo 1..1
if ! command -v clang-format-14 >/dev/null; then
    echo "ok 1 - every C file is formatted # SKIP clang-format-14 is not installed"
    exit 0
fi
if unformatted=$(find src include test example bench -name '*.[ch]' | LC_ALL=C sort | xargs clang-format-14 --dry-run --Werror 2>&1); then
    echo "ok 1 - every C file is formatted"
else
    printf '%s\n' "$unformatted" | sed 's/^/# /'
    echo "not ok 1 - every C file is formatted"
    exit 1
fi
