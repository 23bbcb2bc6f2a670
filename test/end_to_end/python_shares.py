"""A Python program with known shares, which test/end_to_end/interpreters.py records: it measures the CPU time of its parts
itself and prints it as JSON. Argument: seconds of CPU time. The parts are made of functions, threads, generators, coroutines, recursion,
exceptions, a native extension, callbacks from one, text that is executed, and a process of multiprocessing. Runs on Python 3.8 and later.
SPDX-License-Identifier: MIT"""
import asyncio
import json
import multiprocessing
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


async def awaits(depth):
    if depth == 0:
        await asyncio.sleep(0)
        return spin(1500)
    return await awaits(depth - 1)


async def tasks():
    return await asyncio.gather(*[awaits(4) for _ in range(8)])


LOOP = asyncio.new_event_loop()


def coroutines():
    LOOP.run_until_complete(tasks())


TEXT = """
def inside(count):
    total = 0
    for number in range(count):
        total += number * number
    return total
inside(14000)
"""


def executed():
    exec(compile(TEXT, "<text>", "exec"), {})


PARTS = [plain_large, plain_small, generator, recursion, exceptions, callback, native, coroutines, executed]


def work(seconds, spent, helpers):
    while time.thread_time() < seconds:
        for pipe in helpers:
            pipe.send(True)
        for part in PARTS:
            before = time.thread_time()
            part()
            spent[part.__name__] = spent.get(part.__name__, 0) + time.thread_time() - before


def threaded(pipe):
    begin = time.thread_time()
    while pipe.recv():
        spin(24000)
    pipe.send(time.thread_time() - begin)


def forked(pipe, parents_end):
    parents_end.close()  # so that it ends if the parent is killed
    begin = time.thread_time()
    while pipe.recv():
        spin(24000)
    pipe.send(time.thread_time() - begin)


def nap(seconds):
    time.sleep(seconds)


def sleeper(seconds, event):
    for _ in range(10):
        nap(seconds / 20)
    event.wait(seconds / 2)


def main():
    seconds, spent = float(sys.argv[1]), {}
    to_thread, of_thread = multiprocessing.Pipe()
    to_process, of_process = multiprocessing.Pipe()
    helpers = [multiprocessing.get_context("fork").Process(target=forked, args=(of_process, to_process)),
               threading.Thread(target=threaded, args=(of_thread,)),
               threading.Thread(target=sleeper, args=(seconds, threading.Event()), name="sleeper")]
    for helper in helpers:
        helper.start()
    work(seconds, spent, (to_thread, to_process))
    for name, pipe in (("threaded", to_thread), ("forked", to_process)):
        pipe.send(False)
        spent[name] = pipe.recv()
    for helper in helpers:
        helper.join()
    print(json.dumps(spent))


main()
