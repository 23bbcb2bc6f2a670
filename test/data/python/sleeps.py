# Sleeps in a stack of every kind: test/unit/keep_interpreted.c keeps the memory of it.
import threading
import time


def réveil():
    time.sleep(60)


class Clock:
    def tick(self):
        for _ in ticks():
            pass


def ticks():
    réveil()
    yield 1


def key(number):
    if number == 0:
        Clock().tick()
    return number


def descend(depth):
    return sorted([1, 0], key=key) if depth == 0 else descend(depth - 1)


threading.Thread(target=lambda: time.sleep(60), daemon=True).start()
descend(
    3
)
