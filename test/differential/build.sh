#!/bin/sh
# Builds the programs that steps.c steps through, one for each set of options:  build.sh SOURCES OUTPUT
# SPDX-License-Identifier: MIT
set -eu
sources=$1 output=$2

# variant NAME [FLAG]…
variant() {
    name=$1
    shift
    folder=$output/steps_parts_$name
    mkdir -p "$folder"
    gcc -c -o "$folder/c.o" "$@" -mno-avx512f "$sources/steps_fixture.c"
    gcc -c -o "$folder/asm.o" "$@" "$sources/steps_fixture_asm.S"
    g++ -c -o "$folder/cpp.o" "$@" "$sources/steps_fixture_cpp.cc"
    g++ -o "$output/steps_$name" "$@" "$folder/c.o" "$folder/asm.o" "$folder/cpp.o"
}

variant plain -O0 -Wl,-z,lazy
variant optimized -O2 -Wl,-z,lazy
variant frame_pointers -O2 -fno-omit-frame-pointer
variant protected -O2 -fcf-protection=full -Wl,-z,lazy -Wl,-z,ibtplt
if command -v clang-14 >/dev/null; then
    folder=$output/steps_parts_clang
    mkdir -p "$folder"
    clang-14 -O2 -Wno-unknown-attributes -c -o "$folder/c.o" "$sources/steps_fixture.c"
    gcc -c -o "$folder/asm.o" "$sources/steps_fixture_asm.S"
    g++ -O2 -c -o "$folder/cpp.o" "$sources/steps_fixture_cpp.cc"
    g++ -o "$output/steps_clang" "$folder/c.o" "$folder/asm.o" "$folder/cpp.o" -Wl,-z,lazy
fi
: >"$output/steps.stamp"
