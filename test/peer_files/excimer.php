<?php
// Records itself with Excimer: PERIOD NAME.  SPDX-License-Identifier: MIT
function leaf($n) { $sum = 0; for ($i = 0; $i < $n; $i++) { $sum += strlen(str_repeat("a", $i % 10)); } return $sum; }
function middle($n) { for ($i = 0; $i < $n; $i++) leaf(200 + $i); }
function recurse($n) { return $n == 0 ? leaf(5000) : recurse($n - 1) + 1; }
$profiler = new ExcimerProfiler();
$profiler->setPeriod((float)$argv[1]);
$profiler->start();
for ($end = microtime(true) + 0.4; microtime(true) < $end;) { middle(50); recurse(10); }
$profiler->stop();
$log = $profiler->flush();
file_put_contents("$argv[2].collapsed", $log->formatCollapsed());
$functions = [];
foreach ($log->aggregateByFunction() as $name => $row) $functions[$name] = [$row["self"], $row["inclusive"]];
file_put_contents("$argv[2].json", json_encode([$log->getEventCount(), $functions]));
