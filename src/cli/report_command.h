/* The common part of the commands that print reports as pprof does: their options, and the way from files to a report.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_REPORT_COMMAND_H
#define OFFBEAT_CLI_REPORT_COMMAND_H

#include "analyze/filter.h"
#include "analyze/grouping.h"
#include "cli/open_profile.h"
#include "cli/options.h"

struct browser_page;
struct buffer;

enum report_kind {
    REPORT_TOP,  /* as offbeat top has it; TABLE is that of pprof */
    REPORT_DIFF, /* comparison of DIFF_BASE and one file */
    REPORT_TABLE,
    REPORT_TREE,
    REPORT_PEEK,
    REPORT_TRACES,
    REPORT_TAGS,
    REPORT_COMMENTS,
    REPORT_RAW,
    REPORT_DOT,
    REPORT_CALLGRIND,
    REPORT_FLAME,    /* SVG, text, or the page in one file */
    REPORT_VIEW,     /* the page, in a browser */
    REPORT_LIST,     /* source lines */
    REPORT_DISASM,   /* instructions */
    REPORT_TOPPROTO, /* the table as a pprof profile */
    REPORT_PROTO,    /* the filtered profile */
};

enum flame_form { FLAME_FORM_SVG, FLAME_FORM_TEXT, FLAME_FORM_HTML, FLAME_FORM_AUTO };

struct report_request {
    enum report_kind kind;
    const char *peek;           /* REPORT_PEEK, REPORT_LIST and REPORT_DISASM: an expression for names */
    const char *output;         /* NULL: standard output */
    const char *picture;        /* REPORT_DOT: the format that Graphviz draws; NULL: the DOT itself */
    const char *new_file;       /* ending of a new file, without OUTPUT on a terminal; NULL: none */
    bool json;                  /* JSON, for programs */
    bool is_html;               /* REPORT_LIST: a page for a browser, instead of text */
    bool by_thread, by_process; /* REPORT_TOP */
    bool keeps_names;           /* names, frames and idle samples stay as the file has them */
    /* Names, headers and nodes as pprof has them: functions of one name are one, a frame without a name is called by
     * its mapping. Else as in `offbeat top`. */
    bool is_pprof;

    struct filter_options filter;
    const char *span, *span_file; /* NULL: the profile is not cut to a span; the span is in one of the files */
    bool all_frames, short_names, exact_names, relative;
    bool compares;       /* several profiles are shown or subtracted: names must be the same in each */
    const char *comment; /* comment to add; may be NULL */
    struct option_texts base, diff_base;
    bool normalize;
    uint64_t fail_over; /* REPORT_DIFF: millionths; UINT64_MAX: never */

    const char *value_type;
    bool running; /* shows CPU time, whatever VALUE_TYPE is */
    bool mean;
    const char *unit;
    double divide_by;

    unsigned granularity; /* enum granularity */
    bool no_inlines, columns;
    bool inverted;   /* REPORT_FLAME: the leaf of each stack is outermost */
    bool time_order; /* REPORT_FLAME: of one thread, from left to right in time */
    bool no_browser; /* REPORT_VIEW: the URL is only printed */
    uint16_t port;   /* REPORT_VIEW: 0: a free one */
    /* REPORT_VIEW: a page that is open already; NULL: a new one. It is shown until Ctrl-C and then closed, unless this
     * is an update while a command runs. */
    struct browser_page *page;
    bool is_update;
    struct buffer *page_data; /* REPORT_VIEW: only the data of the page is wanted, and appended here */
    unsigned flame_form;      /* REPORT_FLAME: enum flame_form */
    unsigned colour_by;       /* REPORT_FLAME: enum flame_colours */
    bool by_cumulative, call_tree, drop_negative;
    bool no_trim, compact;
    uint64_t node_count; /* UINT64_MAX: what suits the report */
    double node_fraction, edge_fraction;

    const char *source_path, *trim_path; /* REPORT_LIST, REPORT_DISASM: folders, separated by ":"; NULL */
    struct option_texts debug_folders;   /* REPORT_DISASM */
    bool trusts_paths, intel_syntax;     /* REPORT_DISASM */
};

#define REPORT_REQUEST_INIT                                                                                            \
    .value_type = "", .unit = "minimum", .divide_by = 1, .node_count = UINT64_MAX, .node_fraction = 0.005,             \
    .edge_fraction = 0.001

/* Tables of options, to be put together. */
/* clang-format off */
#define REPORT_OPTIONS_FRAMES(r)                                                                                       \
    {"focus", 0, OPTION_TEXT, &(r).filter.focus, .argument = "REGEX", .help = "only samples with a frame that matches"},                        \
    {"ignore", 0, OPTION_TEXT, &(r).filter.ignore, .argument = "REGEX", .help = "no samples with a frame that matches"},                        \
    {"hide", 0, OPTION_TEXT, &(r).filter.hide, .argument = "REGEX", .help = "leave out frames that match"},                                     \
    {"show", 0, OPTION_TEXT, &(r).filter.show, .argument = "REGEX", .help = "leave out frames that do not match"},                              \
    {"show-from", 0, OPTION_TEXT, &(r).filter.show_from, .argument = "REGEX", .help = "leave out the callers of the outermost match"},          \
    {"prune-from", 0, OPTION_TEXT, &(r).filter.prune_from, .argument = "REGEX", .help = "leave out what the innermost match calls"}

#define REPORT_OPTIONS_THREADS(r)                                                                                      \
    {"thread", 0, OPTION_TEXT, &(r).filter.thread, .argument = "REGEX", .help = "only threads of such a name, number or PID/TID"},                      \
    {"process", 0, OPTION_TEXT, &(r).filter.process, .argument = "REGEX", .help = "only processes of such a name, or number"}

#define REPORT_OPTIONS_SAMPLES(r)                                                                                      \
    REPORT_OPTIONS_THREADS(r),                                                                                         \
    {"from", 0, OPTION_SECONDS, &(r).filter.from_ns, .argument = "SECONDS", .help = "only samples from then on, since the start", .maximum = INT64_MAX}, \
    {"to-time", 0, OPTION_SECONDS, &(r).filter.to_ns, .argument = "SECONDS", .help = "only samples before then", .minimum = 1, .maximum = INT64_MAX}

#define REPORT_OPTIONS_SPAN(r)                                                                                         \
    {"span", 0, OPTION_TEXT, &(r).span, .argument = "ID", .help = "only the thread and time of this span, or \"transaction\", of the envelope"}, \
    {"span-file", 0, OPTION_TEXT, &(r).span_file, .argument = "FILE", .help = "the envelope that has the span, if FILE has not"}

#define REPORT_OPTIONS_TAGS(r)                                                                                         \
    {"tag-focus", 0, OPTION_TEXT, &(r).filter.tag_focus, .argument = "[KEY=]VALUE", .help = "only samples with such a label: a REGEX, or numbers, 1kb:2mb"}, \
    {"tag-ignore", 0, OPTION_TEXT, &(r).filter.tag_ignore, .argument = "[KEY=]VALUE", .help = "no samples with such a label"},                  \
    {"tag-show", 0, OPTION_TEXT, &(r).filter.tag_show, .argument = "REGEX", .help = "only labels whose key matches"},                           \
    {"tag-hide", 0, OPTION_TEXT, &(r).filter.tag_hide, .argument = "REGEX", .help = "no labels whose key matches"},                           \
    {"tag-root", 0, OPTION_TEXT, &(r).filter.tag_root, .argument = "KEYS", .help = "labels, KEY,KEY, as frames outside of all others"},         \
    {"tag-leaf", 0, OPTION_TEXT, &(r).filter.tag_leaf, .argument = "KEYS", .help = "labels as frames inside of all others"}

#define REPORT_OPTIONS_FILTERS(r)                                                                                      \
    REPORT_OPTIONS_SAMPLES(r), REPORT_OPTIONS_SPAN(r), REPORT_OPTIONS_FRAMES(r), REPORT_OPTIONS_TAGS(r)

#define REPORT_OPTION_OUTPUT(r)                                                                                        \
    {"output", 'o', OPTION_OUTPUT, &(r).output, .argument = "OUT", .help = "the file to write; standard output if not given"}

#define REPORT_OPTION_RUNNING(r) {"running", 0, OPTION_SWITCH, &(r).running, .help = "CPU time only, without waiting: --sample-index cpu"}

#define REPORT_OPTION_SAMPLE_INDEX(r, verb)                                                                            \
    {"sample-index", 0, OPTION_TEXT, &(r).value_type, .argument = "NAME", .help = "the value to " verb ", one of those that info lists, or its number from 0"}

#define REPORT_OPTIONS_VALUES_OF(r, default_unit)                                                                      \
    REPORT_OPTION_RUNNING(r),                                                                                          \
    REPORT_OPTION_SAMPLE_INDEX(r, "show"),                                                                             \
    {"mean", 0, OPTION_SWITCH, &(r).mean, .help = "divide by the first value: the mean of an event"},                                           \
    {"divide-by", 0, OPTION_DECIMAL, &(r).divide_by, .argument = "N", .help = "divide all values by N", .maximum = 1000000000000},             \
    {"unit", 0, OPTION_TEXT, &(r).unit, .argument = "UNIT", .help = "ms, MB, …; auto: each value in its own (default: " default_unit ")"}
#define REPORT_OPTIONS_VALUES(r) REPORT_OPTIONS_VALUES_OF(r, "one for all")
/* For reports whose numbers each have their own unit. */
#define REPORT_OPTIONS_VALUES_APART(r) REPORT_OPTIONS_VALUES_OF(r, "auto")

#define REPORT_OPTIONS_NAMES(r)                                                                                        \
    {"all-frames", 0, OPTION_SWITCH, &(r).all_frames, .help = "also those that the profile asks to drop"},                                      \
    {"short-names", 0, OPTION_SWITCH, &(r).short_names, .help = "names without their modules, packages and template arguments"}, \
    OPEN_OPTION_NO_DEMANGLE, OPTION_TOKEN_FILE,                                                                                           \
    {"exact-names", 0, OPTION_SWITCH, &(r).exact_names, .help = "of several profiles: keep addresses and run numbers in names"}

#define REPORT_OPTIONS_SOURCES(r)                                                                                      \
    {"base", 0, OPTION_TEXTS, &(r).base, .argument = "FILE", .help = "subtract this profile; can be given several times"},                      \
    {"diff-base", 0, OPTION_TEXTS, &(r).diff_base, .argument = "FILE", .help = "the same, and percentages are of this profile"},                \
    {"normalize", 0, OPTION_SWITCH, &(r).normalize, .help = "scale FILE to the sum of the base first"},                                         \
    REPORT_OPTIONS_NAMES(r),                                                                                           \
    {"relative-percentages", 0, OPTION_SWITCH, &(r).relative, .help = "percentages of what the filters left"}

#define REPORT_OPTIONS_FRAME_NAMES(r)                                                                                  \
    {"granularity", 0, OPTION_CHOICE, &(r).granularity, .argument = "functions|filefunctions|files|lines|addresses", .help = "what is one row (default: functions)"}, \
    {"no-inlines", 0, OPTION_SWITCH, &(r).no_inlines, .help = "inlined functions count for their callers"},                                     \
    {"columns", 0, OPTION_SWITCH, &(r).columns, .help = "with lines: also their columns"}

#define REPORT_OPTIONS_NODES(r)                                                                                        \
    {"cum", 0, OPTION_SWITCH, &(r).by_cumulative, .help = "order by time in the function and what it calls"},                                   \
    {"drop-negative", 0, OPTION_SWITCH, &(r).drop_negative, .help = "leave out what is less than in the base"}

#define REPORT_OPTIONS_TRIM(r)                                                                                         \
    {"nodecount", 'n', OPTION_NUMBER, &(r).node_count, .argument = "N", .help = "so many functions, 0 for all (default: 80)", .maximum = INT_MAX}, \
    {"nodefraction", 0, OPTION_DECIMAL, &(r).node_fraction, .argument = "F", .help = "leave out functions below this part of all (default: 0.005)", .maximum = 1}, \
    {"edgefraction", 0, OPTION_DECIMAL, &(r).edge_fraction, .argument = "F", .help = "leave out calls below this part of all (default: 0.001)", .maximum = 1}, \
    {"no-trim", 0, OPTION_SWITCH, &(r).no_trim, .help = "leave out nothing"}

#define REPORT_OPTIONS_CODE(r)                                                                                         \
    {"source-path", 0, OPTION_TEXT, &(r).source_path, .argument = "DIR", .help = "where source files are; several with : between them"}, \
    {"trim-path", 0, OPTION_TEXT, &(r).trim_path, .argument = "DIR", .help = "remove this start from the paths of source files"}
/* clang-format on */

/* Returns the grouping of reports that name each place of the code. */
static inline struct grouping_options report_grouping(const struct report_request *request)
{
    return (struct grouping_options){.granularity = (enum granularity)request->granularity,
                                     .no_inlines = request->no_inlines,
                                     .has_columns = request->columns,
                                     .names_unsymbolized = true};
}

/* Reads FILES, merged, and writes the report. */
enum exit_status report_run(struct report_request *request, char *const *files, size_t count);

/* Writes the report of PROFILE, which report_open has read, and changes PROFILE. FILE is the first one. */
struct profile;
enum exit_status report_run_opened(struct report_request *request, const char *file, struct profile *profile);

#endif
