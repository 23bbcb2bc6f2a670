"""A Python program with known shares, which test/end_to_end/interpreters.py records: it measures the CPU time of its parts
itself and prints it as JSON. Argument: seconds of CPU time. The parts are made of functions, threads, generators, recursion, exceptions, a native
extension and callbacks from one. SPDX-License-Identifier: MIT"""
import json
import sys
import threading
import time
import zlib


def spin(count):
    total = 0
    for number in range(count):
        total += number * number
    return total


def plain_large():
    spin(36000)


def plain_small():
    spin(12000)


def numbers(count):
    total = 0
    for number in range(count):
        total += number * number
        yield total


def generator():
    return max(numbers(18000))


def descend(depth):
    return spin(800) if depth == 0 else descend(depth - 1) + spin(800)


def recursion():
    return descend(40)


def raises(number):
    raise ValueError(number)


def exceptions():
    for number in range(5000):
        try:
            raises(number)
        except ValueError:
            pass


def negative(number):
    return -number * number % 1000


def callback():
    return sorted(range(12000), key=negative)


DATA = bytes(range(256)) * 1500


def native():
    return zlib.compress(DATA, 9)


PARTS = [plain_large, plain_small, generator, recursion, exceptions, callback, native]


def work(seconds, spent):
    while time.thread_time() < seconds:
        for part in PARTS:
            before = time.thread_time()
            part()
            spent[part.__name__] = spent.get(part.__name__, 0) + time.thread_time() - before


def nap(seconds):
    time.sleep(seconds)


def sleeper(seconds, event):
    for _ in range(10):
        nap(seconds / 20)
    event.wait(seconds / 2)


def main():
    seconds, spent = float(sys.argv[1]), {}
    thread = threading.Thread(target=sleeper, args=(seconds, threading.Event()), name="sleeper")
    thread.start()
    work(seconds, spent)
    thread.join()
    print(json.dumps(spent))


main()
