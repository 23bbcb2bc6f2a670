#!/bin/sh
# Makes the files here again, with perf 6.1 and as root: recordings of perf record, and what perf script prints of each.
# Numbers in perf_data.py follow from them.  SPDX-License-Identifier: MIT
set -e
work='i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; ls -R /usr/share/doc >/dev/null; (exec -a other-name true)'
perf record -q -F 199 -g -o chains.data -- bash -c "$work"
perf record -q -F 199 -z -o compressed.data -- bash -c "$work"
perf record -q -F 199 -g -o - -- bash -c "$work" >pipe.data
perf record -q -F 199 -e task-clock:u,page-faults,context-switches --buildid-mmap -o events.data -- bash -c "$work"
perf record -q -F 199 -e task-clock --call-graph dwarf,512 -k mono -o copied.data -- bash -c "$work"
for file in *.data; do
    perf script -i "$file" --no-inline -F comm,tid,time,period,event,ip --ns | gzip -9n >"${file%.data}.script.gz"
done
