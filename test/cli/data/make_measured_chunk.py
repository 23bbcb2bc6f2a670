"""Writes a Sample Format V2 chunk with measurements and without an environment.  SPDX-License-Identifier: MIT"""
import json

START = 1700000000


def measured(unit, *values):
    return {"unit": unit, "values": [{"timestamp": START + i / 10, "value": value} for i, value in enumerate(values)]}


print(json.dumps({
    "version": "2", "profiler_id": "71bba98d90b545c39f2ae73f702d7ef4", "chunk_id": "3e11a5c9831f4e49939c0a81944ea2cb",
    "platform": "python", "release": "test@1", "client_sdk": {"name": "test", "version": "1"},
    "measurements": {"slow_frame_renders": measured("nanosecond", 2e7, "3e7"), "frozen_frame_renders": measured("nanosecond", 8e8),
                     "cpu_0": measured("percent", 12.5, 25, 75)},
    "profile": {"samples": [{"timestamp": START + i / 100, "stack_id": 0, "thread_id": "7"} for i in range(3)],
                "stacks": [[0]], "frames": [{"function": "work"}], "thread_metadata": {"7": {"name": "worker"}}}}))
