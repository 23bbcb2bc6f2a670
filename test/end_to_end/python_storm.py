"""A storm of code objects, imports and threads, which test/end_to_end/interpreters.py records. Arguments: seconds; and `storm`, or `calls` for
an ordinary program, whose code and threads stay, and that sleeps now and then. Each function of unit N is in the file unit_N.py and is called by functions of unit N only, so that a
wrong name or stack contradicts itself. The units live for different times, and their texts and addresses are used again. Runs on Python 3.8 and
later. SPDX-License-Identifier: MIT"""
import importlib.abc
import importlib.machinery
import random
import sys
import threading
import time

UNITS_KEPT = 60
THREADS = 4
FIXED_WIDTH = 10**7  # numbers from here on have as many digits

# The functions of a unit by their first lines. same() has one name in all units: only its file and line are the unit's.
UNIT = """
def outer_{n}(count):
    return middle_{n}(count) + same(count) + Holder_{n}().method_{n}(count)
def middle_{n}(count):
    total = sum(yields_{n}(count)) + len(sorted(range(8), key=key_{n}))
    try:
        raises_{n}(count)
    except ValueError:
        total += leaf_{n}(count)
    return total
def yields_{n}(count):
    for i in range(count):
        yield leaf_{n}(i)
def key_{n}(value):
    return -leaf_{n}(value)
def raises_{n}(count):
    leaf_{n}(count)
    raise ValueError(count)
def leaf_{n}(value):
    total = 0
    for i in range(12):
        total += i * value
    return total
def same(count):
    return sum([same_again(i) for i in range(count)])
def same_again(value):
    return sum(map(abs, range(value))) + leaf_{n}(value)
def sleeps_{n}(count):
    return outer_{n}(count) + len(sorted(range(2), key=sleeps_key_{n}))
def sleeps_key_{n}(value):
    sleep(0.001)
    return value
class Holder_{n}:
    def __init__(self):
        self.value = leaf_{n}(3)
    def method_{n}(self, count):
        return same_again(count) + self.value
"""


def source(n):
    return "\n" * (n % 97) + UNIT.format(n=n)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports unit_N from memory."""

    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name.startswith("unit_") else None

    def exec_module(self, module):
        n = int(module.__name__[5:])
        exec(compile(source(n), f"unit_{n}.py", "exec"), module.__dict__)


class Storm:
    def __init__(self, end):
        self.end = end
        self.lock = threading.Lock()
        self.next = 0

    def number(self):
        with self.lock:
            self.next += 1
            return self.next

    def imported(self):
        n = self.number()
        name = f"unit_{n}"
        module = __import__(name)
        del sys.modules[name]
        return getattr(module, f"outer_{n}")

    def executed(self, n=None, function="outer"):
        n = n or self.number()
        names = {"sleep": time.sleep}
        exec(compile(source(n), f"unit_{n}.py", "exec"), names)
        return names[f"{function}_{n}"]

    def thread(self, rounds):
        kept = []
        while rounds and time.monotonic() < self.end:
            rounds -= 1
            outer = random.choice((self.imported, self.executed))()
            kept.append(outer)
            if len(kept) > UNITS_KEPT:
                kept.pop(random.randrange(len(kept)))
            for _ in range(random.choice((1, 4, 16))):
                random.choice(kept)(random.randrange(6, 30))

    def templates(self, rounds):
        """Code of one form after the other in the same memory, and in the same lines."""
        while rounds and time.monotonic() < self.end:
            rounds -= 1
            self.executed(97 * (FIXED_WIDTH + self.number()))(20)

    def calls(self, units):
        while time.monotonic() < self.end:
            random.choice(units)(random.randrange(6, 30))


def main():
    storm = Storm(time.monotonic() + float(sys.argv[1]))
    sys.meta_path.insert(0, Finder())
    units = [storm.executed(function="sleeps") for _ in range(20)] if sys.argv[2] == "calls" else None
    print("begun", flush=True)
    while time.monotonic() < storm.end:
        targets = [storm.thread] * THREADS + [storm.templates]
        threads = [threading.Thread(target=target, args=(random.choice((3, 30, 300)),)) for target in targets]
        if units:
            threads = [threading.Thread(target=storm.calls, args=(units,)) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main()
