/* SPDX-License-Identifier: MIT */
#include "cli/pprof_flags.h"

#include "cli/message.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct flag {
    const char *name;
    /* TEXT is the value after the flag; NULL for a switch, and only a switch that is on is passed. False after a line
     * on standard error. */
    bool (*take)(struct pprof_flags *flags, const struct flag *flag, const char *text);
    void *value;
    unsigned number;
    const char *text;
    bool is_switch;
};

/* --- Switches ----------------------------------------------------------------------------------------------------- */

/* TEXT of the flag: the ending of the file, of a page for a browser. */
static bool take_report(struct pprof_flags *flags, const struct flag *flag, const char *text)
{
    flags->request.kind = (enum report_kind)flag->number;
    flags->report_count++;
    if (!flag->is_switch) flags->request.peek = text;
    if (!flag->text) return true;
    flags->request.output.is_html = true;
    flags->request.output.new_file = flag->text;
    return true;
}

static bool take_picture(struct pprof_flags *flags, const struct flag *flag, const char *text)
{
    (void)text;
    flags->request.kind = REPORT_DOT;
    flags->request.output.picture = flags->request.output.new_file = flag->text;
    flags->report_count++;
    return true;
}

static bool take_order(struct pprof_flags *flags, const struct flag *flag, const char *text)
{
    (void)text;
    flags->request.trim.by_cumulative = flag->number != 0;
    flags->order_count++;
    return true;
}

static bool take_granularity(struct pprof_flags *flags, const struct flag *flag, const char *text)
{
    (void)text;
    flags->request.frames.granularity = flag->number;
    flags->granularity_count++;
    return true;
}

/* NUMBER: whether it is a mean. */
static bool take_value_type(struct pprof_flags *flags, const struct flag *flag, const char *text)
{
    (void)text;
    flags->request.values.value_type = flag->text;
    flags->request.values.mean |= flag->number != 0;
    return true;
}

static bool take_help(struct pprof_flags *flags, const struct flag *flag, const char *text)
{
    (void)flag, (void)text;
    flags->wants_help = true;
    return true;
}

static bool take_nothing(struct pprof_flags *flags, const struct flag *flag, const char *text)
{
    (void)flags, (void)flag, (void)text;
    return true;
}

static bool reject_flag(struct pprof_flags *flags, const struct flag *flag, const char *text)
{
    (void)flags, (void)text;
    message("offbeat pprof has no -%s yet; %s", flag->name, flag->text);
    return false;
}

/* --- Values ------------------------------------------------------------------------------------------------------- */

static bool reject_value(const struct flag *flag, const char *text)
{
    message("invalid value \"%s\" for flag -%s", text, flag->name);
    return false;
}

static bool take_text(struct pprof_flags *flags, const struct flag *flag, const char *text)
{
    (void)flags;
    *(const char **)flag->value = text;
    return true;
}

static bool take_texts(struct pprof_flags *flags, const struct flag *flag, const char *text)
{
    (void)flags;
    struct option_texts *texts = flag->value;
    if (text[0] == '\0') return true;
    if (texts->count == OPTION_TEXTS_MAX) return reject_value(flag, text);
    texts->items[texts->count++] = text;
    return true;
}

/* Negative: what suits the report. */
static bool take_node_count(struct pprof_flags *flags, const struct flag *flag, const char *text)
{
    char *end;
    errno = 0;
    long long count = strtoll(text, &end, 10);
    if (text[0] == '\0' || *end != '\0' || errno != 0 || count > INT_MAX) return reject_value(flag, text);
    flags->request.trim.node_count = count < 0 ? UINT64_MAX : (uint64_t)count;
    return true;
}

static bool take_seconds(struct pprof_flags *flags, const struct flag *flag, const char *text)
{
    char *end;
    errno = 0;
    long seconds = strtol(text, &end, 10);
    if (text[0] == '\0' || *end != '\0' || errno != 0 || seconds < 0 || seconds > INT_MAX)
        return reject_value(flag, text);
    *(uint64_t *)flag->value = (uint64_t)seconds;
    return true;
}

static bool take_decimal(struct pprof_flags *flags, const struct flag *flag, const char *text)
{
    (void)flags;
    return parse_decimal(text, flag->value) || reject_value(flag, text);
}

/* [HOST]:[PORT] of a page that only this machine can reach. */
static bool take_address(struct pprof_flags *flags, const struct flag *flag, const char *text)
{
    static const char *const hosts[] = {"", "localhost", "127.0.0.1"};
    char *end;
    const char *colon = strrchr(text, ':');
    size_t host_size = colon ? (size_t)(colon - text) : 0;
    bool is_local = false;
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
        is_local |= strlen(hosts[i]) == host_size && strncmp(text, hosts[i], host_size) == 0;
    unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 0;
    if (!colon || *end != '\0' || port > UINT16_MAX) {
        message("-%s needs [HOST]:[PORT], as localhost:8080 or :0, not \"%s\"", flag->name, text);
        return false;
    }
    if (!is_local) {
        message("-%s: only this machine can reach the page: -http=localhost:%lu; offbeat serve is for others",
                flag->name, port);
        return false;
    }
    flags->request.kind = REPORT_VIEW;
    flags->request.browser.port = (uint16_t)port;
    flags->report_count++;
    return true;
}

static bool take_symbolize(struct pprof_flags *flags, const struct flag *flag, const char *text)
{
    (void)flags, (void)flag;
    bool no_demangle = strcmp(text, "demangle=none") == 0 || strcmp(text, "none:demangle=none") == 0;
    open_settings.no_demangle |= no_demangle;
    if (no_demangle || strcmp(text, "none") == 0) return true;
    message("-symbolize=%s: offbeat pprof shows the names that the profile has; offbeat symbolize adds names", text);
    return false;
}

/* --- Words -------------------------------------------------------------------------------------------------------- */

static bool parse_switch(const char *text, bool *ret_value)
{
    static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True"};
    static const char *const no[] = {"0", "f", "F", "false", "FALSE", "False"};
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        *ret_value = strcmp(text, yes[i]) == 0;
        if (*ret_value || strcmp(text, no[i]) == 0) return true;
    }
    return false;
}

/* NUMBER: the switch turns something off. */
static bool take_switch(struct pprof_flags *flags, const struct flag *flag, const char *text)
{
    bool is_on = true;
    if (text && !parse_switch(text, &is_on)) {
        message("invalid boolean value \"%s\" for flag -%s", text, flag->name);
        return false;
    }
    if (flag->value) *(bool *)flag->value = is_on != (flag->number != 0);
    return !is_on || !flag->take || flag->take(flags, flag, NULL);
}

static bool reject_unknown(const struct flag *table, const char *name)
{
    const char *names[128];
    size_t count = 0;
    for (; table[count].name && count < sizeof(names) / sizeof(names[0]); count++) names[count] = table[count].name;
    const char *nearest = nearest_name(name, names, count);
    if (nearest)
        message("pprof has no flag -%s; did you mean -%s?", name, nearest);
    else
        message("pprof has no flag -%s; see offbeat pprof --help", name);
    return false;
}

static bool take_flag(struct pprof_flags *flags, const struct flag *table, int argc, char **argv, int *place)
{
    char name[64];
    const char *word = argv[(*place)++];
    word += word[1] == '-' ? 2 : 1;
    size_t length = strcspn(word, "=");
    (void)snprintf(name, sizeof(name), "%.*s", (int)(length < sizeof(name) ? length : sizeof(name) - 1), word);
    const char *text = word[length] ? word + length + 1 : NULL;
    const struct flag *flag = table;
    while (flag->name && strcmp(flag->name, name) != 0) flag++;
    if (!flag->name) return reject_unknown(table, name);
    if (flag->is_switch) return take_switch(flags, flag, text);
    if (!text && *place == argc) {
        message("-%s needs a value", name);
        return false;
    }
    return flag->take(flags, flag, text ? text : argv[(*place)++]);
}

enum { FLAGS_MAX = 128 };

/* A row without a name ends TABLE. */
static void make_table(struct pprof_flags *flags, struct flag table[FLAGS_MAX])
{
    struct report_request *r = &flags->request;
    /* clang-format off */
#define SWITCH(flag_name, ...) {.name = (flag_name), .is_switch = true, __VA_ARGS__}
#define VALUE(flag_name, ...) {.name = (flag_name), __VA_ARGS__}
    const struct flag rows[] = {
        SWITCH("text", .take = take_report, .number = REPORT_TABLE),
        SWITCH("top", .take = take_report, .number = REPORT_TABLE),
        SWITCH("tree", .take = take_report, .number = REPORT_TREE),
        VALUE("peek", .take = take_report, .number = REPORT_PEEK),
        VALUE("list", .take = take_report, .number = REPORT_LIST),
        VALUE("weblist", .take = take_report, .number = REPORT_LIST, .text = "html"),
        VALUE("disasm", .take = take_report, .number = REPORT_DISASM),
        SWITCH("traces", .take = take_report, .number = REPORT_TRACES),
        SWITCH("tags", .take = take_report, .number = REPORT_TAGS),
        SWITCH("raw", .take = take_report, .number = REPORT_RAW),
        SWITCH("comments", .take = take_report, .number = REPORT_COMMENTS),
        SWITCH("dot", .take = take_report, .number = REPORT_DOT),
        SWITCH("callgrind", .take = take_report, .number = REPORT_CALLGRIND),
        SWITCH("proto", .take = take_report, .number = REPORT_PROTO),
        SWITCH("topproto", .take = take_report, .number = REPORT_TOPPROTO),

        SWITCH("cum", .take = take_order, .number = true),
        SWITCH("flat", .take = take_order, .number = false),
        SWITCH("functions", .take = take_granularity, .number = GRANULARITY_FUNCTIONS),
        SWITCH("filefunctions", .take = take_granularity, .number = GRANULARITY_FILE_FUNCTIONS),
        SWITCH("files", .take = take_granularity, .number = GRANULARITY_FILES),
        SWITCH("lines", .take = take_granularity, .number = GRANULARITY_LINES),
        SWITCH("addresses", .take = take_granularity, .number = GRANULARITY_ADDRESSES),
        SWITCH("noinlines", .value = &r->frames.no_inlines),
        SWITCH("showcolumns", .value = &r->frames.columns),

        VALUE("focus", .take = take_text, .value = &r->filter.focus),
        VALUE("ignore", .take = take_text, .value = &r->filter.ignore),
        VALUE("hide", .take = take_text, .value = &r->filter.hide),
        VALUE("show", .take = take_text, .value = &r->filter.show),
        VALUE("show_from", .take = take_text, .value = &r->filter.show_from),
        VALUE("prune_from", .take = take_text, .value = &r->filter.prune_from),
        VALUE("tagfocus", .take = take_text, .value = &r->filter.tag_focus),
        VALUE("tagignore", .take = take_text, .value = &r->filter.tag_ignore),
        VALUE("tagshow", .take = take_text, .value = &r->filter.tag_show),
        VALUE("taghide", .take = take_text, .value = &r->filter.tag_hide),
        VALUE("tagroot", .take = take_text, .value = &r->filter.tag_root),
        VALUE("tagleaf", .take = take_text, .value = &r->filter.tag_leaf),

        VALUE("sample_index", .take = take_text, .value = &r->values.value_type),
        SWITCH("inuse_space", .take = take_value_type, .text = "inuse_space"),
        SWITCH("inuse_objects", .take = take_value_type, .text = "inuse_objects"),
        SWITCH("alloc_space", .take = take_value_type, .text = "alloc_space"),
        SWITCH("alloc_objects", .take = take_value_type, .text = "alloc_objects"),
        SWITCH("total_delay", .take = take_value_type, .text = "delay"),
        SWITCH("mean_delay", .take = take_value_type, .text = "delay", .number = true),
        SWITCH("contentions", .take = take_value_type, .text = "contentions"),
        SWITCH("mean", .value = &r->values.mean),
        VALUE("unit", .take = take_text, .value = &r->values.unit),
        VALUE("divide_by", .take = take_decimal, .value = &r->values.divide_by),

        VALUE("nodecount", .take = take_node_count),
        VALUE("nodefraction", .take = take_decimal, .value = &r->trim.node_fraction),
        VALUE("edgefraction", .take = take_decimal, .value = &r->trim.edge_fraction),
        SWITCH("trim", .value = &r->trim.no_trim, .number = true),
        SWITCH("call_tree", .value = &r->trim.call_tree),
        SWITCH("drop_negative", .value = &r->trim.drop_negative),
        SWITCH("relative_percentages", .value = &r->trim.relative),
        SWITCH("compact_labels", .value = &r->trim.compact),
        SWITCH("all_frames", .value = &r->names.all_frames),
        VALUE("add_comment", .take = take_text, .value = &r->inputs.comment),
        VALUE("output", .take = take_text, .value = &r->output.path),
        VALUE("base", .take = take_texts, .value = &r->inputs.base),
        VALUE("diff_base", .take = take_texts, .value = &r->inputs.diff_base),
        SWITCH("normalize", .value = &r->inputs.normalize),

        VALUE("source_path", .take = take_text, .value = &r->code.source_path),
        VALUE("trim_path", .take = take_text, .value = &r->code.trim_path),
        VALUE("symbolize", .take = take_symbolize),
        SWITCH("intel_syntax", .value = &r->code.intel_syntax),
        VALUE("http", .take = take_address),
        SWITCH("no_browser", .value = &r->browser.no_browser),
        SWITCH("h", .take = take_help),
        SWITCH("help", .take = take_help),

        SWITCH("svg", .take = take_picture, .text = "svg"),
        SWITCH("png", .take = take_picture, .text = "png"),
        SWITCH("gif", .take = take_picture, .text = "gif"),
        SWITCH("pdf", .take = take_picture, .text = "pdf"),
        SWITCH("ps", .take = take_picture, .text = "ps"),
        SWITCH("web", .take = take_picture, .text = "svg"),
        SWITCH("eog", .take = reject_flag, .text = "-svg writes a file for it"),
        SWITCH("evince", .take = reject_flag, .text = "-pdf writes a file for it"),
        SWITCH("gv", .take = reject_flag, .text = "-ps writes a file for it"),
        SWITCH("kcachegrind", .take = reject_flag, .text = "-callgrind -output=FILE writes a file for it"),
        VALUE("seconds", .take = take_seconds, .value = &flags->seconds),
        VALUE("timeout", .take = take_seconds, .value = &flags->fetch.timeout_seconds),
        VALUE("tls_cert", .take = take_text, .value = &flags->fetch.certificate),
        VALUE("tls_key", .take = take_text, .value = &flags->fetch.key),
        VALUE("tls_ca", .take = take_text, .value = &flags->fetch.authority),
        VALUE("buildid", .take = reject_flag, .text = "the profile's own build ids are used; offbeat symbolize --trust-paths uses files without one"),
        VALUE("tools", .take = take_nothing),
        {0},
    };
#undef SWITCH
#undef VALUE
    /* clang-format on */
    _Static_assert(sizeof(rows) <= FLAGS_MAX * sizeof(rows[0]), "the table has room for all flags");
    memcpy(table, rows, sizeof(rows));
}

enum pprof_word pprof_flags_word(const char *name)
{
    struct pprof_flags flags;
    struct flag table[FLAGS_MAX];
    const struct flag *flag = table;
    make_table(&flags, table);
    while (flag->name && strcmp(flag->name, name) != 0) flag++;
    if (!flag->name) return PPROF_UNKNOWN;
    if (flag->take == take_picture) return PPROF_REPORT;
    if (flag->take == take_report) return flag->is_switch ? PPROF_REPORT : PPROF_REPORT_WITH_TEXT;
    return flag->is_switch ? PPROF_SWITCH : PPROF_VALUE;
}

bool pprof_flags_name(size_t index, const char **ret_name)
{
    struct pprof_flags flags;
    struct flag table[FLAGS_MAX];
    size_t count = 0;
    make_table(&flags, table);
    while (table[count].name && count < index) count++;
    *ret_name = table[count].name;
    return *ret_name != NULL;
}

bool pprof_flags_parse(struct pprof_flags *flags, int argc, char **argv, int *place)
{
    struct flag table[FLAGS_MAX];
    make_table(flags, table);
    while (*place < argc && argv[*place][0] == '-' && argv[*place][1] != '\0') {
        if (strcmp(argv[*place], "--") == 0) {
            (*place)++;
            return true;
        }
        if (!take_flag(flags, table, argc, argv, place)) return false;
    }
    return true;
}
