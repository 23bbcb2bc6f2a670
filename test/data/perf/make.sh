#!/bin/sh
# Makes the files here again, with perf 6.1 and as root: recordings of perf record, and what perf script prints of each;
# of those with cgroups and namespaces also what perf report prints. Numbers in perf_data.py follow from them.  SPDX-License-Identifier: MIT
set -e
work='i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; ls -R /usr/share/doc >/dev/null; (exec -a other-name true)'
perf record -q -F 199 -g -o chains.data -- bash -c "$work"
perf record -q -F 199 -z -o compressed.data -- bash -c "$work"
perf record -q -F 199 -g -o - -- bash -c "$work" >pipe.data
perf record -q -F 199 -e task-clock:u,page-faults,context-switches --buildid-mmap -o events.data -- bash -c "$work"
perf record -q -F 199 -e task-clock --call-graph dwarf,512 -k mono -o copied.data -- bash -c "$work"
# Two cgroups, of which perf record sees the second one begin; two processes with other namespaces.
cgroups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
mkdir -p "$cgroups/shop.slice/web.service"
export cgroups work
perf record -q -F 199 -g --all-cgroups -o cgroups.data -- bash -c '
    bash -c "echo \$\$ >$cgroups/shop.slice/web.service/cgroup.procs; $work" &
    mkdir $cgroups/job
    bash -c "echo \$\$ >$cgroups/job/cgroup.procs; $work"
    wait'
perf record -q -F 199 -g --all-cgroups --namespaces -o - -- bash -c '
    unshare --mount --pid --uts --ipc --net --cgroup --fork bash -c "$work" &
    unshare --net bash -c "$work"
    wait' >namespaces.data
rmdir "$cgroups/shop.slice/web.service" "$cgroups/shop.slice" "$cgroups/job"
for file in cgroups namespaces; do
    perf report -i $file.data --stdio -q -g none --no-children -t , --sort cgroup,cgroup_id,pid \
        -F period,sample,cgroup,cgroup_id,pid | gzip -9n >$file.report.gz
done
for file in *.data; do
    perf script -i "$file" --no-inline -F comm,tid,time,period,event,ip --ns | gzip -9n >"${file%.data}.script.gz"
done
