#!/bin/sh
# Makes the files of this folder: valgrind 3.19, php 8.2 with xdebug 3.2.  SPDX-License-Identifier: MIT
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
cd "$work"
gcc -O1 -g "$folder/program.c" -o p
valgrind -q --tool=callgrind --callgrind-out-file=calls.out ./p
valgrind -q --tool=callgrind --dump-instr=yes --cache-sim=yes --branch-sim=yes --callgrind-out-file=instructions.out ./p
valgrind -q --tool=callgrind --separate-threads=yes --compress-strings=no --compress-pos=no --callgrind-out-file=threads.out ./p
mv threads.out-01 threads.out
valgrind -q --tool=cachegrind --cachegrind-out-file=cachegrind.out ./p
cp "$folder/program.php" x.php
php -d zend_extension=xdebug.so -d xdebug.mode=profile -d xdebug.output_dir=. -d xdebug.use_compression=0 \
    -d xdebug.profiler_output_name=xdebug.out x.php
for file in *.out; do sed "s,$work/,/opt/,g" "$file" | gzip -9n >"$folder/$file.gz"; done
rm -r "$work"
