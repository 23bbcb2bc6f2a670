"""Work of two threads for Python's profilers: SECONDS.  SPDX-License-Identifier: MIT"""
import sys
import threading
import time


def leaf(n):
    return sum(i * i for i in range(n))


def middle(n):
    return [leaf(1000 + i) for i in range(n)]


def recurse(n):
    return leaf(500) if n == 0 else recurse(n - 1)


def work(end):
    while time.time() < end:
        middle(20)
        recurse(10)
        time.sleep(0.001)


END = time.time() + float(sys.argv[1])
second = threading.Thread(target=work, args=(END,), name="second")
second.start()
work(END)
second.join()
