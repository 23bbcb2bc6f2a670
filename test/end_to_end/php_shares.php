<?php
/* A PHP program with known shares, which test/end_to_end/interpreters.py records: it measures the CPU time of its parts
 * itself and prints it as JSON. Argument: seconds of CPU time. SPDX-License-Identifier: MIT */
function cpu(): float
{
    $usage = getrusage();
    return $usage["ru_utime.tv_sec"] + $usage["ru_stime.tv_sec"] + 1e-6 * ($usage["ru_utime.tv_usec"] + $usage["ru_stime.tv_usec"]);
}

function spin(int $count): int
{
    $total = 0;
    for ($i = 0; $i < $count; $i++) $total += $i * $i % 7;
    return $total;
}

class Parts
{
    function large() { spin(300000); }
    static function small() { spin(100000); }
}

function negative($number) { return -$number * $number % 1000; }
function callback() { return array_map('negative', range(1, 60000)); }

function numbers(int $count)
{
    for ($i = 0; $i < $count; $i++) yield $i * $i;
}

function generator() { $most = 0; foreach (numbers(100000) as $number) $most = max($most, $number); return $most; }
function descend(int $depth) { return $depth == 0 ? spin(4000) : descend($depth - 1) + spin(4000); }
function recursion() { descend(40); }

function raises() { throw new Exception("raised"); }
function exceptions() { for ($i = 0; $i < 15000; $i++) try { raises(); } catch (Exception $e) { } }
function native() { return md5(str_repeat("0123456789", 500000)); }

$parts = ["Parts::large" => [new Parts, "large"], "Parts::small" => "Parts::small", "callback" => "callback",
          "generator" => "generator", "recursion" => "recursion", "exceptions" => "exceptions", "native" => "native"];
$spent = array_fill_keys(array_keys($parts), 0.0);
while (cpu() < (float)$argv[1]) {
    foreach ($parts as $name => $part) {
        $before = cpu();
        $part();
        $spent[$name] += cpu() - $before;
    }
}
echo json_encode($spent), "\n";
