#!/bin/sh
# Makes the files of this folder with OpenJDK 17: three recordings, and what jfr print says of them.
# SPDX-License-Identifier: MIT
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
cd "$work"
javac -d . "$folder/Program.java"
for file in g1:-XX:+UseG1GC serial:-XX:+UseSerialGC parallel:-XX:+UseParallelGC; do
    java "${file#*:}" -XX:StartFlightRecording:filename="${file%%:*}.jfr",settings="$folder/settings.jfc" Program
done
for name in g1 serial parallel; do
    jfr print --json --stack-depth 64 --events \
        ExecutionSample,NativeMethodSample,ObjectAllocationSample,ObjectAllocationInNewTLAB,ObjectAllocationOutsideTLAB,JavaMonitorEnter,ThreadPark \
        $name.jfr >$name.json
    python3 "$folder/expected.py" $name.json | gzip -9n >"$folder/$name.expected.gz"
    gzip -9n <$name.jfr >"$folder/$name.jfr.gz"
done
rm -r "$work"
