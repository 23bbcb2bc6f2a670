"""./dev bench: speed and memory, side by side with the peers that are installed, in one run on one machine.

Arguments: the build folder, then the parts to run (all by default), each with its size if another than the default is
wanted. A part is a function in a file of that name, which prints a table; its size is that function's second argument. The
words after `truth` and `attached` are names of their programs; these end with status 1 if a row is wrong.
SPDX-License-Identifier: MIT"""
import inspect
import os
import pathlib
import platform
import sys

sys.dont_write_bytecode = True
from analyze import analyze  # noqa: E402
from attached import attached  # noqa: E402
from blocked import blocked  # noqa: E402
from cluster import cluster  # noqa: E402
from crowd import crowd  # noqa: E402
from fleet import fleet  # noqa: E402
from formats import formats  # noqa: E402
from interruptions import interruptions  # noqa: E402
from latency import latency  # noqa: E402
from many_services import many_services  # noqa: E402
from memory import memory  # noqa: E402
from outside import outside  # noqa: E402
from page_speed import page  # noqa: E402
from perf_file import perf_file  # noqa: E402
from recording_size import recording_size  # noqa: E402
from sdk import sdk  # noqa: E402
from serving import server  # noqa: E402
from sleepers import sleepers  # noqa: E402
from slowdown import slowdown  # noqa: E402
from startup import startup  # noqa: E402
from symbolize import symbolize  # noqa: E402
from truth import truth  # noqa: E402
from unwinders import unwinders  # noqa: E402

PARTS = {part.__name__: part for part in (slowdown, memory, unwinders, interruptions, blocked, sleepers, startup, recording_size,
                                         symbolize, perf_file, formats, analyze, sdk, server, fleet, many_services, cluster, crowd, page, attached, outside, latency, truth)}
WITH_NAMES = (truth.__name__, attached.__name__)


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def print_machine():
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{cpu_name()}, {os.cpu_count()} CPUs; Linux {platform.release()}; load {load}")


def split_names(words):
    """The parts, and the names that follow one which takes names."""
    for i, word in enumerate(words):
        if word.partition("=")[0] in WITH_NAMES:
            return words[:i + 1], words[i + 1:]
    return words, []


def size_name(part):
    """What the size of a part is; "" if it has none."""
    arguments = inspect.getfullargspec(PARTS[part]).args[1:]
    return arguments[0].upper() if arguments else ""


def is_possible(part, size):
    return part in PARTS and (not size or (size.isdecimal() and size_name(part) != ""))


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    chosen, names = split_names(sys.argv[2:] or list(PARTS))
    parts = [part.partition("=")[::2] for part in chosen]
    for name, size in parts:
        if not is_possible(name, size):
            words = (f"{part}[={size_name(part)}]" if size_name(part) else part for part in PARTS)
            sys.exit(f"bench: no part {name}{size and '=' + size}: there are {', '.join(words)}")
    sys.stdout.reconfigure(line_buffering=True)
    print_machine()
    is_right = True
    for name, size in parts:
        print()
        more = {"names": names} if name in WITH_NAMES else {}
        is_right &= PARTS[name](build, *([int(size)] if size else []), **more) is not False
    sys.exit(0 if is_right else 1)


main()
