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
valgrind -q --tool=cachegrind --branch-sim=yes --cachegrind-out-file=cachegrind-branches.out ./p
valgrind -q --tool=cachegrind --cache-sim=no --cachegrind-out-file=cachegrind-cat.out cat "$folder/program.c" >cat.txt
cp "$folder/program.php" xdebug.php
cat >xdebug-closures.php <<'TEXT'
<?php
$by = fn($a, $b) => $b % 7 <=> $a % 7;
function each_of($n) { for ($i = 0; $i < $n; $i++) yield $i * 3; }
for ($i = 1; $i < 20; $i++) { $all = iterator_to_array(each_of(10 * $i)); usort($all, $by); echo count(array_map('dechex', $all)), "\n"; }
TEXT
cat >xdebug-exceptions.php <<'TEXT'
<?php
function fails($n) { if ($n == 0) throw new LogicException("at the end"); return fails($n - 1); }
function caught($n) { try { fails($n); } catch (LogicException $e) { return strlen($e->getMessage()); } }
for ($i = 0; $i < 40; $i++) { caught($i); preg_match('/(a+)+b/', str_repeat('a', $i % 15)); }
TEXT
for script in xdebug*.php; do
    php -d zend_extension=xdebug.so -d xdebug.mode=profile -d xdebug.output_dir=. -d xdebug.use_compression=0 \
        -d xdebug.profiler_output_name="${script%.php}.out" "$script" >php.txt
done
for file in *.out; do sed "s,$work/,/opt/,g" "$file" | gzip -9n >"$folder/$file.gz"; done
rm -r "$work"
