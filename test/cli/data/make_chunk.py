"""Writes a Sample Format V2 chunk whose samples lie at the seconds given as arguments, all on one stack.
SPDX-License-Identifier: MIT"""
import json
import sys

START = 1700000000
print(json.dumps({
    "version": "2", "profiler_id": "0123456789abcdef0123456789abcdef", "chunk_id": "fedcba9876543210fedcba9876543210",
    "platform": "native", "release": "test@1", "client_sdk": {"name": "test", "version": "1"},
    "debug_meta": {"images": []},
    "profile": {"samples": [{"timestamp": START + float(second), "stack_id": 0, "thread_id": "7"}
                            for second in sys.argv[1:]],
                "stacks": [[0, 1]], "frames": [{"function": "work"}, {"function": "main"}],
                "thread_metadata": {"7": {"name": "worker"}}}}))
