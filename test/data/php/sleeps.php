<?php
// Sleeps in a stack of every kind: test/unit/keep_interpreted.c keeps the memory of it.
class Clock
{
    static function tick() { foreach (ticks() as $tick); }
}

function ticks() { sleep(60); yield 1; }
function key_of(int $number) { if ($number == 0) Clock::tick(); return $number; }
function descend(int $depth) { return $depth == 0 ? array_map('key_of', [1, 0]) : descend($depth - 1); }

eval('descend(3);');
