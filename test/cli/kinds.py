"""What info says of kinds of files that offbeat does not read: one line that names the kind and what helps. Each hint of
src/format/foreign_formats.c has a row here. Arguments: the program, foreign_formats.c. SPDX-License-Identifier: MIT"""
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import case, check, check_equal, main  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve()
SOURCE = pathlib.Path(sys.argv[2])

ELF = b"\x7fELF\x02\x01\x01" + bytes(9)
UTF16 = "C:\\kernel.etl\0".encode("utf-16-le")
# The name of the file, what it begins with, what the line says.
KINDS = [
    ("x.json.xz", b"\xfd7zXZ\0\0\x04", "xz -dc FILE"),
    ("x.bz2", b"BZh91AY&SY", "bzip2 -dc FILE"),
    ("x.jfr.lz4", b"\x04\x22\x4d\x18\x64\x40", "lz4 -dc FILE"),
    ("x.Z", b"\x1f\x9d\x90", "gzip -dc FILE"),
    ("x.lz", b"LZIP\x01\x0c", "lzip -dc FILE"),
    ("x.lzo", b"\x89LZO\0\r\n\x1a\n", "lzop -dc FILE"),
    ("x.sz", b"\xff\x06\0\0sNaPpY", "snzip -dc FILE"),
    ("x.zip", b"PK\x03\x04\x14\0", "a zip archive"),
    ("x.7z", b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    ("x.rar", b"Rar!\x1a\x07", "a rar archive"),
    ("x.tar", b"perf.data".ljust(257, b"\0") + b"ustar\0" + b"00", "a tar archive"),
    ("libx.a", b"!<arch>\n", "an archive of ar"),
    ("core", ELF + struct.pack("<HH", 4, 62), "a core file"),
    ("a.out", ELF + struct.pack("<HH", 3, 62), "an ELF file"),
    ("x.exe", b"MZ\x90\0\x03\0\0\0", "a program for Windows"),
    ("x.dylib", b"\xcf\xfa\xed\xfe\x07\0\0\x01", "a program for macOS"),
    ("X.class", b"\xca\xfe\xba\xbe\0\0\0\x3d", "a Java class"),
    ("x.wasm", b"\0asm\x01\0\0\0", "a WebAssembly module"),
    ("x.hprof", b"JAVA PROFILE 1.0.2\0\0\0\0\x08", "Eclipse Memory Analyzer"),
    ("x.dmp", b"MDMP\x93\xa7", "minidump-stackwalk"),
    ("jdk8.jfr", b"FLR\0\0\0\0\x09", "JDK Mission Control"),
    ("jstack.txt", b"2026-01-01 10:00:00\nFull thread dump OpenJDK 64-Bit Server VM (17):\n", "a thread dump of Java"),
    ("big-endian.data", b"2ELIFREP" + bytes(8), "perf script | offbeat top -"),
    ("old.data", b"PERFFILE" + bytes(8), "perf script -i FILE"),
    ("jit-1.dump", b"DTiJ\x01\0\0\0", "perf inject --jit"),
    ("trace.dat", b"\x17\x08\x44tracing6\0", "trace-cmd report"),
    ("ftrace.txt", b"# tracer: function_graph\n#\n 0)   1.2 us  |  f();\n", "the kernel's ftrace"),
    ("ctf", b"\xc1\x1f\xfc\xc1" + bytes(16), "babeltrace2"),
    ("metadata", b"/* CTF 1.8 */\n\ntypealias integer { size = 8; } := uint8_t;\n", "babeltrace2"),
    ("metadata.packet", b"\x57\x1d\xd1\x75" + bytes(16), "babeltrace2"),
    ("x.syscap", b"\x5e\x97\xca\xfd", "sysprof"),
    ("gmon.out", b"gmon\x01\0\0\0" + bytes(12), "gprof PROGRAM FILE"),
    ("gprof.txt", b"Flat profile:\n\nEach sample counts as 0.01 seconds.\n", "a report of gprof"),
    ("x.gcda", b"adcg*21B", "gcov FILE"),
    ("x.gcno", b"oncg*21B", "notes of gcov"),
    ("x.profdata", b"\xfflprofi\x81"[::-1], "llvm-profdata show FILE"),
    ("x.profraw", b"\xfflprofr\x81"[::-1], "llvm-profdata merge FILE"),
    ("report.txt", b"Samples: 4K of event 'cycles', Event count (approx.): 1234\nOverhead  Command\n", "a report of perf"),
    ("report.stdio", b"# To display the perf.data header info\n#\n# Samples: 4K of event 'cycles'\n# Event count (approx.): 12\n",
     "a report of perf"),
    ("stat.txt", b"\n Performance counter stats for './x':\n\n  1.23 msec task-clock\n", "perf record -g"),
    ("opreport.txt", b"CPU: Core 2, speed 2000 MHz (estimated)\nsamples  %        symbol name\n", "a report of OProfile"),
    ("strace.txt", b"% time     seconds  usecs/call     calls    errors syscall\n", "strace -c"),
    ("heaptrack.app.1", b"v 10500 3\nX ./app\nI 1000 5e298f\ns 5 ./app\n", "heaptrack_print"),
    ("memcheck.txt", b"==12== Memcheck, a memory error detector\n==12== Copyright\n", "valgrind --tool=callgrind"),
    ("gdb.txt", b"Thread 1 (Thread 0x7f):\n#0  0x0000 in read () from libc.so.6\n#1  0x0001 in main ()\n", "stacks of a debugger"),
    ("x.heapsnapshot", b'{"snapshot":{"meta":{"node_fields":["type"]}}}', "the Memory panel of Chrome"),
    ("isolate.log", b"v8-version,11,3,244,8,0\n", "node --prof-process"),
    ("isolate-2.log", b"shared-library,/usr/bin/node,0x1,0x2,0\n", "node --prof-process"),
    ("trace.json", b'{"traceEvents":[{"ph":"i","name":"x","pid":1,"tid":1,"ts":1}]}', "holds no CPU profile"),
    ("recording.json", b'{"version":1,"recording":{"instrumentTypes"\n : []}}',
     "Safari's Web Inspector"),
    ("recording.json", b'{"label":"","duration":1.5,"markers":[],"frames":[],"memory":[],"ticks":[1],"allocations":{"sites":[]},"profile":{}}',
     "Firefox's performance panel"),
    ("x.har", b'{"log":{"version":"1.2","creator":{"name":"Firefox","version":"128"},"pages":[]}}', "a HAR file"),
    ("netlog.json", b'{"constants":{"activeFieldTrialGroups":[],"logEventTypes":{"X":1}},\n"events":[]}', "netlog-viewer"),
    ("x.bin", b"memray\0\x0a", "memray transform csv FILE"),
    ("x.mojo", b"MOJ\x03", "mojo2austin FILE"),
    ("x.pyisession", b'{"session":{"frame_records":[[["main"],0.1]]}}', "pyinstrument --load=FILE"),
    ("x.pickle", b"\x80\x04\x95\x10\0\0\0\0\0\0\0", "a pickle of Python"),
    ("faulthandler.txt", b"Current thread 0x00007f (most recent call first):\n  File \"x.py\", line 1 in f\n", "py-spy record"),
    ("x.ystat", b"\x80\x02cyappi\nYFuncStats\n", "a pickle of Python"),
    ("x.lprof", b"\x80\x05\x95\x8f\0\0\0\0\0\0\0\x8c\x1cline_profiler", "a pickle of Python"),
    ("lines.txt", b"Timer unit: 1e-09 s\n\nTotal time: 0.008 s\nFile: x.py\nFunction: f at line 2\n", "line_profiler"),
    ("nytprof.out", b"NYTProf 5 0\n#Perl profile database\n:basetime=1764356400\n", "nytprofcalls"),
    ("jp.txt", b"100%  a\n  -- 100%  l.lua:1\n", "-jp=G"),
    ("x.raw.rbspy", b"rbspy02\n", "rbspy report"),
    ("stackprof.dump", b"\x04\x08{\x0e:\x0cversion", "stackprof --json FILE"),
    ("x.xhprof", b'{"main()==>f":{"ct":1,"wt":10},"main()":{"ct":1,"wt":12}}', "xhprof"),
    ("trace.out", b"go 1.22 trace\0\0\0", "go tool trace -pprof=sched FILE"),
    ("goroutines2.txt", b"goroutine 1 [running]:\nmain.main()\n\t/x.go:1 +0x1\n", "/debug/pprof/goroutine"),
    ("bcc.txt", b"    read\n    main\n    -                prog (1234)\n        12\n", "with -f"),
    ("goroutines.txt", b"panic: x\n\ngoroutine 1 [running]:\nmain.main()\n\t/x.go:1 +0x1\n", "/debug/pprof/goroutine"),
    ("x.nettrace", b"Nettrace\x14\0\0\0!FastSerialization.1", "dotnet-trace convert FILE"),
    ("x.etl", b"\0\0\x01\0" + bytes(100) + UTF16, "PerfView"),
    ("x.mm_profdata", b"MMPD\x09\0\0\0", "crox FILE"),
    ("ghc.prof", b"\tMon Jan 1 10:00 2026 Time and Allocation Profiling Report  (Final)\n", "ghc-prof-flamegraph FILE"),
    ("ghc.json", b'{"program": "x","end_time": "1","cost_centres": [],"profile": {}}', "a profile of GHC in JSON"),
    ("instruments.txt", b"Weight\tSelf Weight\t\tSymbol Name\n1.00 s 100.0%\t0 s\t \tmain\n", "copied from Instruments"),
    ("instruments.txt", b"Bytes Used\tCount\t\tSymbol Name\n1.00 MB 100.0%\t3\t \tmain\n", "copied from Instruments"),
    ("x.eventlog", b"hdrb" + b"hetb", "hs-speedscope FILE"),
    ("ghc.hp", b'JOB "x +RTS -h"\nDATE "Mon"\n', "hp2ps"),
    ("Rprof.out", b'sample.interval=20000\n"f" "g" \n', "summaryRprof"),
    ("x.plist", b"bplist00\xd4", "xctrace export"),
    ("x.xml", b'<?xml version="1.0"?>\n<trace-query-result>\n', "samply import"),
    ("x.ips", b'{"app_name":"x","timestamp":"2026","platform":1,"bug_type":"309"}\n{}\n', "a crash report of macOS"),
    ("x.tracy", b"tlZ\x04\0\0", "tracy-csvexport"),
    ("old.tracy", b"tracy\0\x08", "tracy-csvexport"),
    ("new.tracy", b"tr\xfdP\x01", "tracy-csvexport"),
    ("x.spall", b"\x0d\xf0\xad\x0b\0\0\0\0\x01", "a trace of Spall"),
    ("x.perfetto-trace", b"\n\x20\x9a\x02\x1d\n\x1b\n\x0clinux.ftrace" + bytes(14), "traceconv profile --perf FILE"),
    ("report_sample.trace", b"SIMPLEPERF\x01\0", "stackcollapse.py"),
    ("x.sqlite", b"SQLite format 3\0", "Nsight Systems"),
    ("jemalloc.heap", b"heap_v2/524288\n  t*: 1: 2 [0: 0]\n", "jeprof --collapsed PROGRAM FILE"),
    ("spans.json", b'{"resourceSpans":[{"resource":{},"scopeSpans":[]}]}', "spans of OpenTelemetry"),
    ("metrics.txt", b"# HELP go_goroutines Number\n# TYPE go_goroutines gauge\ngo_goroutines 7\n", "/debug/pprof/profile"),
    ("x.svg", b'<?xml version="1.0"?>\n<svg width="1200">\n', "a picture (SVG)"),
    ("x.html", b"<html><body>x</body></html>", "a web page"),
    ("y.html", b"<!DOCTYPE html>\n<title>x</title>", "a web page"),
    ("x.png", b"\x89PNG\r\n\x1a\n", "a picture (PNG)"),
    ("x.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF", "a picture (JPEG)"),
    ("x.gif", b"GIF89a", "a picture (GIF)"),
    ("x.pdf", b"%PDF-1.7\n", "a PDF document"),
    ("x.dot", b'digraph "x" {\nnode [style=filled]\n', "a graph for Graphviz"),
    ("lfs.pb.gz", b"version https://git-lfs.github.com/spec/v1\noid sha256:12\n", "git lfs pull"),
    ("utf16le.txt", "main;f 1\n".encode("utf-16"), "save it as UTF-8"),
    ("utf16be.txt", b"\xfe\xff" + "main;f 1\n".encode("utf-16-be"), "save it as UTF-8"),
]

said = []


def check_kind(name, front, words, folder):
    path = pathlib.Path(folder) / name
    path.write_bytes(front)
    shown = subprocess.run([OFFBEAT, "info", path], capture_output=True, text=True, timeout=60)
    check_equal(shown.stdout, "", f"{name}: what is printed")
    check(shown.returncode not in (0, -6, -11), f"{name}: status {shown.returncode}")
    check_equal(shown.stderr.count("\n"), 1, f"{name}: lines of the message: {shown.stderr}")
    answer = shown.stderr.replace(str(path), "FILE")
    check(words in answer, f"{name}: {answer.strip()}")
    said.append(answer)


for row in KINDS:
    def one(row=row):
        with tempfile.TemporaryDirectory() as folder:
            check_kind(*row, folder)
    one.__name__ = "info_explains_" + row[0]
    case(one)


@case
def each_hint_has_a_row():
    source = SOURCE.read_text(encoding="utf-8")
    hints = ["".join(re.findall(r'"([^"]*)"', group)) for group in re.findall(r'\.hint\s*=\s*((?:"[^"]*"\s*)+)', source)]
    check(len(hints) > 80, f"only {len(hints)} hints were found in {SOURCE}")
    everything = "\n".join(said)
    for hint in hints:
        check(hint in everything, f"no row of the table is answered with: {hint}")


@case
def a_chunk_may_have_any_key():
    chunk = json.loads((pathlib.Path(__file__).resolve().parent.parent / "data/sentry-v2-chunk.json").read_text())
    chunk["tags"] = {"instrumentTypes": 1, "bug_type": "a", "app_name": "b"}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "chunk.json"
        path.write_text(json.dumps(chunk))
        shown = subprocess.run([OFFBEAT, "info", path], capture_output=True, text=True, timeout=60)
        check("sentry-v2" in shown.stdout, f"a chunk with other keys: {shown.stdout} {shown.stderr}")


@case
def other_files_have_one_line_too():
    with tempfile.TemporaryDirectory() as folder:
        for name, front, words in (("empty", b"", "empty"), ("noise", bytes(range(256)), "not a profile of any format")):
            check_kind(name, front, words, folder)
        bundle = pathlib.Path(folder) / "x.trace"
        bundle.mkdir()
        shown = subprocess.run([OFFBEAT, "info", bundle], capture_output=True, text=True, timeout=60)
        check_equal(shown.stderr.count("\n"), 1, f"a folder: {shown.stderr}")
        check("directory" in shown.stderr or "folder" in shown.stderr, f"a folder: {shown.stderr}")


main()
