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

struct report_output {
    const char *path;     /* NULL: standard output */
    const char *picture;  /* REPORT_DOT: the format that Graphviz draws; NULL: the DOT itself */
    const char *new_file; /* ending of a new file, without PATH on a terminal; NULL: none */
    bool json;            /* JSON, for programs */
    bool is_html;         /* REPORT_LIST: a page for a browser, instead of text */
};

/* The profiles beside the files of the command, and what is made of them. */
struct report_inputs {
    struct option_texts base, diff_base;
    bool normalize;
    const char *span, *span_file; /* NULL: the profile is not cut to a span; the span is in one of the files */
    const char *comment;          /* comment to add; may be NULL */
};

struct report_names {
    bool keeps_names; /* names, frames and idle samples stay as the file has them */
    bool all_frames, short_names, exact_names;
    bool compares; /* several profiles are shown or subtracted: names must be the same in each */
};

struct report_values {
    const char *value_type;
    bool running; /* shows CPU time, whatever VALUE_TYPE is */
    bool mean;
    const char *unit;
    double divide_by;
};

struct report_frames {
    unsigned granularity; /* enum granularity */
    bool no_inlines, columns;
};

struct report_trim {
    bool by_cumulative, call_tree, drop_negative, no_trim, compact, relative;
    uint64_t node_count; /* UINT64_MAX: what suits the report */
    double node_fraction, edge_fraction;
};

struct report_flame_choice {
    bool inverted;      /* the leaf of each stack is outermost */
    bool time_order;    /* one thread, from left to right in time */
    unsigned form;      /* enum flame_form */
    unsigned colour_by; /* enum flame_colours */
};

struct report_browser {
    bool no_browser; /* the URL is only printed */
    uint16_t port;   /* TCP port of the page; 0: a free one */
    /* A page that is open already; NULL: a new one. It is shown until Ctrl-C and then closed, unless this is an update
     * while a command runs. */
    struct browser_page *page;
    bool is_update;
    struct buffer *page_data; /* buffer that gets the data of the page instead of a browser; NULL: none */
};

struct report_code {
    const char *source_path, *trim_path; /* folders, separated by ":"; NULL */
    struct option_texts debug_folders;   /* REPORT_DISASM */
    bool trusts_paths, intel_syntax;     /* REPORT_DISASM */
};

struct report_request {
    enum report_kind kind;
    const char *peek;           /* REPORT_PEEK, REPORT_LIST and REPORT_DISASM: an expression for names */
    bool by_thread, by_process; /* REPORT_TOP */
    uint64_t fail_over;         /* REPORT_DIFF: millionths; UINT64_MAX: never */
    /* Names, headers and nodes as pprof has them: functions of one name are one, a frame without a name is called by
     * its mapping. Else as in `offbeat top`. */
    bool is_pprof;

    struct report_output output;
    struct report_inputs inputs;
    struct report_names names;
    struct filter_options filter;
    struct report_values values;
    struct report_frames frames;
    struct report_trim trim;
    struct report_flame_choice flame; /* REPORT_FLAME */
    struct report_browser browser;    /* REPORT_VIEW */
    struct report_code code;          /* REPORT_LIST, REPORT_DISASM */
};

#define REPORT_REQUEST_INIT                                                                                            \
    .values = {.value_type = "", .unit = "minimum", .divide_by = 1},                                                   \
    .trim = {.node_count = UINT64_MAX, .node_fraction = 0.005, .edge_fraction = 0.001}

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
    {"span", 0, OPTION_TEXT, &(r).inputs.span, .argument = "ID", .help = "only the thread and time of this span, or \"transaction\", of the envelope"}, \
    {"span-file", 0, OPTION_TEXT, &(r).inputs.span_file, .argument = "FILE", .help = "the envelope that has the span, if FILE has not"}

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
    {"output", 'o', OPTION_OUTPUT, &(r).output.path, .argument = "OUT", .help = "the file to write; standard output if not given"}

#define REPORT_OPTION_RUNNING(r) {"running", 0, OPTION_SWITCH, &(r).values.running, .help = "CPU time only, without waiting: --sample-index cpu"}

#define REPORT_OPTION_SAMPLE_INDEX(r, verb)                                                                            \
    {"sample-index", 0, OPTION_TEXT, &(r).values.value_type, .argument = "NAME", .help = "the value to " verb ", one of those that info lists, or its number from 0"}

#define REPORT_OPTIONS_VALUES_OF(r, default_unit)                                                                      \
    REPORT_OPTION_RUNNING(r),                                                                                          \
    REPORT_OPTION_SAMPLE_INDEX(r, "show"),                                                                             \
    {"mean", 0, OPTION_SWITCH, &(r).values.mean, .help = "divide by the first value: the mean of an event"},                                           \
    {"divide-by", 0, OPTION_DECIMAL, &(r).values.divide_by, .argument = "N", .help = "divide all values by N", .maximum = 1000000000000},             \
    {"unit", 0, OPTION_TEXT, &(r).values.unit, .argument = "UNIT", .help = "ms, MB, …; auto: each value in its own (default: " default_unit ")"}
#define REPORT_OPTIONS_VALUES(r) REPORT_OPTIONS_VALUES_OF(r, "one for all")
/* For reports whose numbers each have their own unit. */
#define REPORT_OPTIONS_VALUES_APART(r) REPORT_OPTIONS_VALUES_OF(r, "auto")

#define REPORT_OPTIONS_NAMES(r)                                                                                        \
    {"all-frames", 0, OPTION_SWITCH, &(r).names.all_frames, .help = "also those that the profile asks to drop"},                                      \
    {"short-names", 0, OPTION_SWITCH, &(r).names.short_names, .help = "names without their modules, packages and template arguments"}, \
    OPEN_OPTION_NO_DEMANGLE, OPTION_TOKEN_FILE,                                                                                           \
    {"exact-names", 0, OPTION_SWITCH, &(r).names.exact_names, .help = "of several profiles: keep addresses and run numbers in names"}

#define REPORT_OPTIONS_SOURCES(r)                                                                                      \
    {"base", 0, OPTION_TEXTS, &(r).inputs.base, .argument = "FILE", .help = "subtract this profile; can be given several times"},                      \
    {"diff-base", 0, OPTION_TEXTS, &(r).inputs.diff_base, .argument = "FILE", .help = "the same, and percentages are of this profile"},                \
    {"normalize", 0, OPTION_SWITCH, &(r).inputs.normalize, .help = "scale FILE to the sum of the base first"},                                         \
    REPORT_OPTIONS_NAMES(r),                                                                                           \
    {"relative-percentages", 0, OPTION_SWITCH, &(r).trim.relative, .help = "percentages of what the filters left"}

#define REPORT_OPTIONS_FRAME_NAMES(r)                                                                                  \
    {"granularity", 0, OPTION_CHOICE, &(r).frames.granularity, .argument = "functions|filefunctions|files|lines|addresses", .help = "what is one row (default: functions)"}, \
    {"no-inlines", 0, OPTION_SWITCH, &(r).frames.no_inlines, .help = "inlined functions count for their callers"},                                     \
    {"columns", 0, OPTION_SWITCH, &(r).frames.columns, .help = "with lines: also their columns"}

#define REPORT_OPTIONS_NODES(r)                                                                                        \
    {"cum", 0, OPTION_SWITCH, &(r).trim.by_cumulative, .help = "order by time in the function and what it calls"},                                   \
    {"drop-negative", 0, OPTION_SWITCH, &(r).trim.drop_negative, .help = "leave out what is less than in the base"}

#define REPORT_OPTIONS_TRIM(r)                                                                                         \
    {"nodecount", 'n', OPTION_NUMBER, &(r).trim.node_count, .argument = "N", .help = "so many functions, 0 for all (default: 80)", .maximum = INT_MAX}, \
    {"nodefraction", 0, OPTION_DECIMAL, &(r).trim.node_fraction, .argument = "F", .help = "leave out functions below this part of all (default: 0.005)", .maximum = 1}, \
    {"edgefraction", 0, OPTION_DECIMAL, &(r).trim.edge_fraction, .argument = "F", .help = "leave out calls below this part of all (default: 0.001)", .maximum = 1}, \
    {"no-trim", 0, OPTION_SWITCH, &(r).trim.no_trim, .help = "leave out nothing"}

#define REPORT_OPTIONS_CODE(r)                                                                                         \
    {"source-path", 0, OPTION_TEXT, &(r).code.source_path, .argument = "DIR", .help = "where source files are; several with : between them"}, \
    {"trim-path", 0, OPTION_TEXT, &(r).code.trim_path, .argument = "DIR", .help = "remove this start from the paths of source files"}
/* clang-format on */

/* Returns the grouping of reports that name each place of the code. */
static inline struct grouping_options report_grouping(const struct report_request *request)
{
    return (struct grouping_options){.granularity = (enum granularity)request->frames.granularity,
                                     .no_inlines = request->frames.no_inlines,
                                     .has_columns = request->frames.columns,
                                     .names_unsymbolized = true};
}

/* Reads FILES, merged, and writes the report. */
enum exit_status report_run(struct report_request *request, char *const *files, size_t count);

/* Writes the report of PROFILE, which report_open has read, and changes PROFILE. FILE is the first one. */
struct profile;
enum exit_status report_run_opened(struct report_request *request, const char *file, struct profile *profile);

#endif
