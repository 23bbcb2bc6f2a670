<?php
class Point { function __construct(public int $x) {} function twice() { return work($this->x) * 2; } }
function work($n) { $s = 0; for ($i = 0; $i < $n; $i++) { $s += strlen(str_repeat("a", $i % 10)); } return $s; }
function recurse($n) { return $n == 0 ? work(50) : recurse($n - 1) + 1; }
$t = 0; for ($i = 0; $i < 20; $i++) { $t += (new Point($i * 10))->twice(); $t += recurse(5); }
