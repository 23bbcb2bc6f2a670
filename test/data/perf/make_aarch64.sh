#!/bin/sh
# Makes the files of 64-bit Arm again, in the emulated machine: ./dev emulate sh test/data/perf/make_aarch64.sh. Before, on the machine
# with the cross compiler, the program: make_aarch64.sh program. The emulated processor has registers that perf 6.1 cannot record, so
# that the registers are named.  SPDX-License-Identifier: MIT
set -e
cd "$(dirname "$0")"
if [ "${1-}" = program ]; then
    exec aarch64-linux-gnu-gcc -O2 -mbranch-protection=none -fasynchronous-unwind-tables -nostdlib -static -Wl,--build-id \
        -Wl,--eh-frame-hdr -Wl,-z,max-page-size=4096 -Wl,-z,noseparate-code aarch64.c -o aarch64.elf
fi
folder=/tmp/recorded-in-an-emulated-machine-so-that-a-test-can-write-another-path-here
mkdir -p "$folder"
cp aarch64.elf "$folder/aarch64.elf"
perf record -q -e cpu-clock:u -F 29 --call-graph dwarf,1024 --user-regs=x0,x29,lr,sp,pc --buildid-mmap -k mono \
    -o aarch64.data -- "$folder/aarch64.elf"
perf script -i aarch64.data --no-inline -F comm,tid,time,period,event,ip,sym --ns | gzip -9n >aarch64.script.gz
rm -f aarch64.data.old
chmod 644 aarch64.data
