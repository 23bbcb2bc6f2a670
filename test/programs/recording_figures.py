"""Computes figures of recordings from `offbeat info --json` and from the samples.
SPDX-License-Identifier: MIT"""
import dataclasses
import gzip
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))
from recording import pprof_fields  # noqa: E402

INCOMPLETE = ("stacks_too_deep", "stacks_no_table", "stacks_bad_memory", "stacks_bad_frame", "stacks_unknown_register")
LOST = ("lost_late", "lost_unanswered", "lost_in_kernel", "lost_no_table", "lost_before_first_stack")


@dataclasses.dataclass
class Figures:
    """Sums over the processes of one run."""
    root: int = 0               # stacks that reach the root
    incomplete: dict = dataclasses.field(default_factory=dict)
    lost_ticks: int = 0
    user_and_system: float = 0  # seconds; 0: not measured
    in_profile: float = 0
    by_program: dict = dataclasses.field(default_factory=dict)

    @property
    def stacks(self):
        return self.root + sum(self.incomplete.values())

    @property
    def complete(self):
        return 100 * self.root / max(self.stacks, 1)

    @property
    def lost(self):
        return 100 * self.lost_ticks / max(self.stacks + self.lost_ticks, 1)

    @property
    def cpu(self):
        return 100 * self.in_profile / max(self.user_and_system, 1e-9)

    def causes(self):
        causes = ", ".join(f"{name} {count}" for name, count in self.incomplete.items() if count)
        worst = sorted(self.by_program.items(), key=lambda item: -item[1][1])[:3]
        return f"{causes or 'none incomplete'}; lost {self.lost_ticks}; " + ", ".join(f"{name}: {bad} of {every}" for name, (every, bad) in worst)


def add_figures(infos):
    figures = Figures(incomplete=dict.fromkeys(INCOMPLETE, 0))
    for info in infos:
        recorder = info["recorder"]
        bad = sum(recorder[name] for name in INCOMPLETE)
        figures.root += recorder["stacks_root"]
        figures.lost_ticks += sum(recorder[name] for name in LOST)
        for name in INCOMPLETE:
            figures.incomplete[name] += recorder[name]
        every, worse = figures.by_program.get(recorder["process"], (0, 0))
        figures.by_program[recorder["process"]] = (every + recorder["stacks_root"] + bad, worse + bad)
    return figures


def add_up(every):
    """The stacks of several runs."""
    total = Figures(incomplete=dict.fromkeys(INCOMPLETE, 0))
    for figures in every:
        total.root += figures.root
        total.lost_ticks += figures.lost_ticks
        for name, count in figures.incomplete.items():
            total.incomplete[name] += count
        for name, (every_stack, bad) in figures.by_program.items():
            before = total.by_program.get(name, (0, 0))
            total.by_program[name] = (before[0] + every_stack, before[1] + bad)
    return total


def last_number(packed):
    """The last value of a packed repeated field."""
    place = len(packed) - 1
    while place > 0 and packed[place - 1] & 0x80:
        place -= 1
    return sum((byte & 0x7F) << 7 * i for i, byte in enumerate(packed[place:]))


def cpu_seconds(recording):
    """The sum of all samples of RECORDING, a pprof file of CPU mode."""
    return sum(last_number(value) for number, sample in pprof_fields(gzip.decompress(recording.read_bytes())) if number == 2
               for field, value in pprof_fields(sample) if field == 2) / 1e9
