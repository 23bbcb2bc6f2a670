/* A table of marks: bytes at a fixed place, a line that begins with a text, or a text anywhere at the front. Marks that
 * distinguish better come first. Kinds that offbeat reads are not here.  SPDX-License-Identifier: MIT */
#include "format/foreign_formats.h"

#include "format/common/json_kind.h"

enum place {
    AT_START,
    AT_LINE, /* at the beginning of any line */
    WITHIN,
    WITHIN_JSON, /* in an object that a reader of JSON may take for its own: a key, or a key and what follows it */
};

struct mark {
    enum place place;
    const char *text;
    uint8_t size;      /* 0: up to the NUL */
    uint16_t offset;   /* place of TEXT for AT_START */
    const char *other; /* NULL, or what must be WITHIN, too */
    bool is_certain;   /* although a reader of text may take such a file for its own */
    const char *hint;
};

#define PICKLE "a pickle of Python, which only Python opens; it may hold a program"
#define BYTES(bytes) .text = (bytes), .size = sizeof(bytes) - 1

static const struct mark marks[] = {
    /* Compressed files and archives. */
    {AT_START, BYTES("\xfd\x37zXZ"), .hint = "xz data; decompress them first: xz -dc FILE | offbeat top -"},
    {AT_START, BYTES("BZh"), .hint = "bzip2 data; decompress them first: bzip2 -dc FILE | offbeat top -"},
    {AT_START, BYTES("\x04\x22\x4d\x18"), .hint = "lz4 data; decompress them first: lz4 -dc FILE | offbeat top -"},
    {AT_START, BYTES("\x1f\x9d"), .hint = "data of compress; decompress them first: gzip -dc FILE | offbeat top -"},
    {AT_START, BYTES("LZIP"), .hint = "lzip data; decompress them first: lzip -dc FILE | offbeat top -"},
    {AT_START, BYTES("\x89LZO\0\r\n\x1a\n"), .hint = "lzop data; decompress them first: lzop -dc FILE | offbeat top -"},
    {AT_START, BYTES("\xff\x06\0\0sNaPpY"),
     .hint = "snappy data; decompress them first: snzip -dc FILE | offbeat top -"},
    {AT_START, BYTES("PK\x03\x04"), .hint = "a zip archive; unpack it first"},
    {AT_START, BYTES("7z\xbc\xaf\x27\x1c"), .hint = "a 7z archive; unpack it first"},
    {AT_START, BYTES("Rar!\x1a\x07"), .hint = "a rar archive; unpack it first"},
    {AT_START, BYTES("ustar"), .offset = 257, .hint = "a tar archive; unpack it first"},
    {AT_START, BYTES("!<arch>\n"), .hint = "an archive of ar or a Debian package, not a profile"},
    /* Programs and their memory. */
    {AT_START, BYTES("\x04\0"), .offset = 16, .other = "\x7f\x45LF", .hint = "a core file, not a profile"},
    {AT_START, BYTES("\x7f\x45LF"), .hint = "an ELF file, not a profile"},
    {AT_START, BYTES("MZ"), .hint = "a program for Windows, not a profile"},
    {AT_START, BYTES("\xcf\xfa\xed\xfe"), .hint = "a program for macOS, not a profile"},
    {AT_START, BYTES("\xca\xfe\xba\xbe"), .hint = "a Java class, or a program for macOS; not a profile"},
    {AT_START, BYTES("\0asm"), .hint = "a WebAssembly module, not a profile"},
    {AT_START, BYTES("JAVA PROFILE 1.0."), .hint = "a heap dump of Java; Eclipse Memory Analyzer or VisualVM opens it"},
    {AT_START, BYTES("MDMP"), .hint = "a minidump, which holds no profile; minidump-stackwalk prints its stacks"},
    /* Java. */
    {AT_START, BYTES("FLR\0"), .hint = "a Java Flight Recording of JDK 8 or before; open it in JDK Mission Control"},
    {AT_LINE, .text = "Full thread dump",
     .hint = "a thread dump of Java: one stack of each thread, which is no profile"},
    /* Linux. */
    {AT_START, BYTES("2ELIFREP"),
     .hint = "a file of perf record from a big-endian machine; there, type: perf script | offbeat top -"},
    {AT_START, BYTES("PERFFILE"),
     .hint =
         "a file of perf record from before 2009; type: perf script -i FILE | offbeat top -, with a perf of that time"},
    {AT_START, BYTES("DTiJ"), .hint = "a perf jitdump: names of JIT code; give them to perf with: perf inject --jit"},
    {AT_START, BYTES("\x17\x08\x44tracing"),
     .hint = "a file of trace-cmd; trace-cmd report prints it, and its profile plugin sums it up"},
    {AT_LINE,
     .text = "# tracer: ", .hint = "text of the kernel's ftrace; trace-cmd and perf ftrace record such events"},
    {AT_START, BYTES("\xc1\x1f\xfc\xc1"), .hint = "a trace in the Common Trace Format (LTTng); babeltrace2 prints it"},
    {AT_START, BYTES("\x57\x1d\xd1\x75"),
     .hint = "metadata of a trace in the Common Trace Format (LTTng); babeltrace2 prints the folder that has it"},
    {AT_START, BYTES("/* CTF 1."),
     .hint = "metadata of a trace in the Common Trace Format (LTTng); babeltrace2 prints the folder that has it"},
    {AT_START, BYTES("\x5e\x97\xca\xfd"), .hint = "a capture of sysprof; open it in sysprof"},
    {AT_START, BYTES("gmon"), .hint = "a gmon.out of gcc -pg, which has no stacks; type: gprof PROGRAM FILE"},
    {AT_START, BYTES("Flat profile:"), .hint = "a report of gprof; use its gmon.out, or record again: offbeat record"},
    {AT_START, BYTES("adcg"), .hint = "coverage data of gcov, not a profile of time; type: gcov FILE"},
    {AT_START, BYTES("oncg"), .hint = "notes of gcov, not a profile of time"},
    {AT_START, BYTES("\x81iforpl\xff"), .hint = "a profile of LLVM's instrumentation; type: llvm-profdata show FILE"},
    {AT_START, BYTES("\x81rforpl\xff"),
     .hint = "a raw profile of LLVM's instrumentation; type: llvm-profdata merge FILE -o x.profdata"},
    {AT_LINE, .text = "Samples: ", .is_certain = true, .other = "Event count (approx.)",
     .hint = "a report of perf; use its perf.data: offbeat top perf.data"},
    {AT_LINE, .text = "# Samples: ", .other = "Event count (approx.)",
     .hint = "a report of perf; use its perf.data: offbeat top perf.data"},
    {AT_LINE, .text = "CPU: ", .other = "samples  %", .hint = "a report of OProfile, which has no stacks"},
    {AT_LINE, .text = "    -                ",
     .hint = "stacks of bcc's profile, offcputime, …; with -f these print what offbeat reads"},
    {AT_LINE, .text = " Performance counter stats for",
     .hint = "a table of perf stat, which has no stacks; record some: perf record -g, or offbeat record"},
    {AT_START, BYTES("% time     seconds"),
     .hint = "a table of strace -c, which has no stacks; record some: offbeat record"},
    {AT_START, BYTES("v 1"), .is_certain = true, .other = "\nX ",
     .hint = "data of heaptrack; type: heaptrack_print -f FILE -F x.folded, and open x.folded"},
    {AT_START, BYTES("heap_v2/"),
     .hint = "a heap profile of jemalloc; type: jeprof --collapsed PROGRAM FILE | offbeat top -"},
    {WITHIN, .text = "== Memcheck, a memory error detector",
     .hint = "text of valgrind's memcheck; for a profile type: valgrind --tool=callgrind PROGRAM"},
    {AT_LINE, .text = "#0  ", .is_certain = true, .other = "\n#1  ",
     .hint = "stacks of a debugger: one of each thread, which is no profile"},
    /* Browsers and JavaScript. */
    {WITHIN_JSON, .text = "\"snapshot\":{\"meta\"",
     .hint = "a heap snapshot of V8; open it in the Memory panel of Chrome"},
    {AT_LINE, .text = "v8-version,",
     .hint = "a log of node --prof; type: node --prof-process --preprocess FILE | offbeat top -"},
    {AT_LINE, .text = "shared-library,",
     .hint = "a log of node --prof; type: node --prof-process --preprocess FILE | offbeat top -"},
    {WITHIN_JSON, .text = "\"creator\"", .other = "{\"log\"",
     .hint = "a HAR file: requests of a browser, not a profile; record one in its Performance panel"},
    {WITHIN_JSON, .text = "\"logEventTypes\"", .hint = "a net log of Chrome; open it at netlog-viewer.appspot.com"},
    {WITHIN_JSON, .text = "\"allocations\"", .other = "\"ticks\"",
     .hint = "a recording of Firefox's performance panel before version 98; open it in speedscope"},
    {WITHIN_JSON, .text = "\"instrumentTypes\"", .hint = "a recording of Safari's Web Inspector; open it there"},
    /* Python, Ruby, PHP, Go, Rust, Erlang, .NET. */
    {AT_START, BYTES("memray"), .hint = "a file of memray; type: memray transform csv FILE, or memray flamegraph FILE"},
    {AT_START, BYTES("MOJ"), .hint = "a file of austin in its binary form (MOJO); type: mojo2austin FILE x.austin"},
    {WITHIN_JSON, .text = "\"frame_records\"",
     .hint = "a session of pyinstrument; type: pyinstrument --load=FILE -r speedscope -o x.speedscope.json"},
    {AT_START, BYTES("\x80\2c"), .hint = PICKLE},
    {AT_START, BYTES("\x80\3c"), .hint = PICKLE},
    {AT_START, BYTES("\x80\x04\x95"), .hint = PICKLE},
    {AT_START, BYTES("\x80\x05\x95"), .hint = PICKLE},
    {AT_START, BYTES("Timer unit: "),
     .hint = "a table of line_profiler, which has no stacks; record some: offbeat record"},
    {AT_START, BYTES("NYTProf "), .is_certain = true,
     .hint = "data of Perl's Devel::NYTProf; type: nytprofcalls FILE | offbeat top -"},
    {AT_LINE, .text = "  -- ", .other = "%  ",
     .hint = "a table of LuaJIT's profiler; luajit -jp=G prints stacks, which offbeat reads"},
    {WITHIN, .text = "(most recent call first)",
     .hint = "stacks of Python's faulthandler: one of each thread; for a profile type: py-spy record"},
    {AT_START, BYTES("rbspy0"),
     .hint = "raw data of rbspy; type: rbspy report -f speedscope -i FILE -o x.speedscope.json"},
    {WITHIN_JSON, .text = "\"main()==>", .other = "\"wt\"",
     .hint = "a profile of xhprof: pairs of callers and callees without stacks; its own page shows it"},
    {AT_START, BYTES("\x04\x08{"),
     .hint = "a dump of stackprof or another Ruby program; type: stackprof --json FILE | offbeat top -"},
    {AT_START, BYTES("go 1."), .other = " trace\0",
     .hint = "an execution trace of Go; type: go tool trace -pprof=sched FILE >x.pb.gz"},
    {AT_LINE, .text = "goroutine ", .other = "]:\n", .is_certain = true,
     .hint = "stacks of a Go program, as text; its profile of them is at /debug/pprof/goroutine"},
    {AT_START, BYTES("Nettrace"), .hint = "a trace of .NET; type: dotnet-trace convert FILE --format Speedscope"},
    {WITHIN, BYTES(".\0e\0t\0l\0"),
     .hint = "an event trace of Windows; open it in PerfView and save it as a file of speedscope"},
    {WITHIN, .text = "Time and Allocation Profiling Report",
     .hint = "a profile of GHC; run the program with +RTS -P, and type: ghc-prof-flamegraph FILE"},
    {WITHIN_JSON, .text = "\"cost_centres\"", .hint = "a profile of GHC in JSON; open it in speedscope"},
    {AT_START, BYTES("hdrb"), .hint = "an event log of GHC; type: hs-speedscope FILE"},
    {AT_START, BYTES("JOB \""), .hint = "a heap profile of GHC, which has no stacks; type: hp2ps -c FILE"},
    {WITHIN, .text = "sample.interval=", .hint = "a profile of R; there, type: summaryRprof(FILE)"},
    {AT_START, BYTES("MMPD"),
     .hint = "a file of measureme (rustc -Z self-profile); type: crox FILE, and open it in Chrome"},
    /* macOS, Windows, others. */
    {AT_START, BYTES("bplist00"),
     .hint = "a property list of macOS; export a trace as: xctrace export --input X.trace"},
    {WITHIN, .text = "<trace-query-result",
     .hint = "an export of Instruments; type: samply import, or open it in speedscope"},
    {WITHIN, .text = "Symbol Name", .other = "\tSelf",
     .hint = "a call tree that was copied from Instruments; open it in speedscope"},
    {WITHIN, .text = "Symbol Name", .other = "Bytes Used\tCount",
     .hint = "a call tree that was copied from Instruments; open it in speedscope"},
    {WITHIN_JSON, .text = "\"bug_type\"", .other = "\"app_name\"",
     .hint = "a crash report of macOS: one stack of each thread, which is no profile"},
    {AT_START, BYTES("tr\xfdP"), .hint = "a trace of Tracy; type: tracy-csvexport FILE"},
    {AT_START, BYTES("tlZ"), .hint = "a trace of Tracy; type: tracy-csvexport FILE"},
    {AT_START, BYTES("tracy"), .hint = "a trace of Tracy; type: tracy-csvexport FILE"},
    {AT_START, BYTES("\x0d\xf0\xad\x0b\0\0\0\0"), .hint = "a trace of Spall; open it there"},
    {AT_START, BYTES("\n"), .other = "\x0clinux.ftrace",
     .hint = "a trace of Perfetto; type: traceconv profile --perf FILE, or open it at ui.perfetto.dev"},
    {AT_START, BYTES("SIMPLEPERF"),
     .hint = "a report of Android's simpleperf; give offbeat its perf.data, or type: stackcollapse.py -i perf.data"},
    {WITHIN_JSON, .text = "\"resourceSpans\"", .hint = "spans of OpenTelemetry without a profile"},
    {AT_START, BYTES("# HELP "), .is_certain = true,
     .hint = "metrics of Prometheus; a Go program has its profile at /debug/pprof/profile"},
    {AT_START, BYTES("SQLite format 3"),
     .hint = "a database of SQLite, as Nsight Systems and VTune export; not a profile"},
    /* Documents that are given by mistake. */
    {WITHIN, .text = "<svg", .hint = "a picture (SVG); give the profile that it was drawn from"},
    {WITHIN, .text = "<html", .hint = "a web page; a server may have answered with an error"},
    {WITHIN, .text = "<!DOCTYPE html", .hint = "a web page; a server may have answered with an error"},
    {AT_START, BYTES("\x89PNG"), .hint = "a picture (PNG); give the profile that it was drawn from"},
    {AT_START, BYTES("\xff\xd8\xff"), .hint = "a picture (JPEG); give the profile that it was drawn from"},
    {AT_START, BYTES("GIF8"), .hint = "a picture (GIF); give the profile that it was drawn from"},
    {AT_START, BYTES("%PDF"), .hint = "a PDF document; give the profile that it was drawn from"},
    {WITHIN, .text = "digraph ", .hint = "a graph for Graphviz; give the profile that it was made from"},
    {AT_START, BYTES("version https://git-lfs"),
     .hint = "a pointer of Git LFS instead of the file; type: git lfs pull"},
    {AT_START, BYTES("\xff\xfe"), .hint = "text in UTF-16; save it as UTF-8"},
    {AT_START, BYTES("\xfe\xff"), .hint = "text in UTF-16; save it as UTF-8"},
};

static bool has_at(struct slice bytes, size_t offset, const char *text, size_t size)
{
    return offset <= bytes.size && bytes.size - offset >= size && memcmp(bytes.data + offset, text, size) == 0;
}

static bool has_line(struct slice bytes, const char *text, size_t size)
{
    for (size_t offset = 0; offset < bytes.size;) {
        if (has_at(bytes, offset, text, size)) return true;
        const uint8_t *newline = memchr(bytes.data + offset, '\n', bytes.size - offset);
        if (!newline) return false;
        offset = (size_t)(newline + 1 - bytes.data);
    }
    return false;
}

static bool has_within(struct slice bytes, const char *text, size_t size)
{
    return bytes.size >= size && memmem(bytes.data, bytes.size, text, size) != NULL;
}

/* Whether TEXT is within DOCUMENT, and is followed by a colon if it is one word in quotes: a function may be called so.
 * A document of a format that is read may have any key behind what tells its format. */
static bool has_key(struct slice document, const char *text, size_t size)
{
    bool is_word = memchr(text + 1, '"', size - 1) == text + size - 1;
    struct slice left = document;
    for (const uint8_t *found; (found = memmem(left.data, left.size, text, size));) {
        left = text_from(left, (size_t)(found + size - left.data));
        size_t blanks = 0;
        while (blanks < left.size && memchr(" \t\r\n", left.data[blanks], 4)) blanks++;
        if (!is_word || (blanks < left.size && left.data[blanks] == ':'))
            return json_kind_of_profile(slice_of(document.data, (size_t)(found - document.data))) ==
                   JSON_PROFILE_UNKNOWN;
    }
    return false;
}

static bool has_mark(struct slice bytes, const struct mark *mark)
{
    size_t size = mark->size ? mark->size : strlen(mark->text);
    if (mark->other && !has_within(bytes, mark->other, strlen(mark->other))) return false;
    switch (mark->place) {
    case AT_START:
        return has_at(bytes, mark->offset, mark->text, size);
    case AT_LINE:
        return has_line(bytes, mark->text, size);
    case WITHIN:
        return has_within(bytes, mark->text, size);
    case WITHIN_JSON:
        return has_at(bytes, 0, "{", 1) && has_key(bytes, mark->text, size);
    }
    return false;
}

static struct slice front_of(struct slice bytes)
{
    return slice_of(bytes.data, bytes.size < FOREIGN_FORMAT_BYTES_MAX ? bytes.size : FOREIGN_FORMAT_BYTES_MAX);
}

bool foreign_format_is_certain(struct slice bytes)
{
    bytes = front_of(bytes);
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        if ((marks[i].place == WITHIN_JSON || marks[i].is_certain) && has_mark(bytes, &marks[i])) return true;
    }
    return false;
}

const char *foreign_format_hint(struct slice bytes)
{
    bytes = front_of(bytes);
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        if (has_mark(bytes, &marks[i])) return marks[i].hint;
    }
    return NULL;
}
