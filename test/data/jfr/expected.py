"""Prints what `jfr print --json --stack-depth 64` says of the events that are samples, a line each. Argument: the JSON.
SPDX-License-Identifier: MIT"""
import calendar
import json
import re
import sys
import time


def nanoseconds(text):
    seconds, fraction = re.fullmatch(r"(.*?)(?:\.(\d+))?Z", text).groups()
    return calendar.timegm(time.strptime(seconds, "%Y-%m-%dT%H:%M:%S")) * 10**9 + int((fraction or "").ljust(9, "0"))


def duration(text):
    return round(float(re.fullmatch(r"PT([\d.]+)S", text)[1]) * 1e9)


for event in json.load(open(sys.argv[1]))["recording"]["events"]:
    values = event["values"]
    thread = values.get("sampledThread") or values["eventThread"] or {"osThreadId": 0, "javaName": "-"}
    amount = values.get("weight", values.get("tlabSize", 0))
    if "duration" in values:
        amount = duration(values["duration"])
    frames = [f"{frame['method']['type']['name'].replace('/', '.')}.{frame['method']['name']}:{frame['lineNumber']}"
              for frame in (values["stackTrace"] or {"frames": []})["frames"]]
    print(event["type"], nanoseconds(values["startTime"]), thread["osThreadId"], (thread["javaName"] or thread["osName"]).replace(" ", "_"), amount,
          ";".join(frames))
