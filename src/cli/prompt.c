/* A line is a report (top10 -cum malloc), a setting (focus=main) or a command of the prompt itself.
 *
 * Reports and settings become flags of the command line. A report changes the profile, so it runs in a child process,
 * which has a copy of the profile's memory: the next report finds the profile as it was read.
 * SPDX-License-Identifier: MIT */
#include "cli/prompt.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/regexp.h"
#include "cli/line_editor.h"
#include "cli/message.h"
#include "cli/report_sources.h"
#include "cli/value_types.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MAX = 64, TOP_NODES = 10, LINES_MAX = 1 << 20 };

struct prompt {
    struct pprof_flags flags; /* the settings */
    struct profile *profile;
    const char *file;
    char **texts; /* strings that the settings point to */
    size_t text_count, text_capacity;
};

/* A copy of TEXT that lives as long as the prompt; NULL without memory. */
static char *keep(struct prompt *prompt, const char *text)
{
    if (!array_reserve(&prompt->texts, &prompt->text_capacity, prompt->text_count + 1, sizeof(*prompt->texts),
                       LINES_MAX))
        return NULL;
    char *copy = strdup(text);
    if (copy) prompt->texts[prompt->text_count++] = copy;
    return copy;
}

static char *strip(char *text)
{
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1])) text[--length] = '\0';
    while (isspace((unsigned char)*text)) text++;
    return text;
}

/* --- Settings ----------------------------------------------------------------------------------------------------- */

/* Flags that say what is read. */
static bool is_of_sources(const char *name)
{
    static const char *const names[] = {"base",    "diff_base", "normalize", "add_comment", "symbolize",
                                        "seconds", "timeout",   "buildid",   "http",        "help",
                                        "h",       "tools",     "tls_cert",  "tls_key",     "tls_ca"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], name) == 0) return true;
    }
    return false;
}

/* A mistake is reported now, and not by each report that follows. */
static bool check_expression(const char *name, const char *value)
{
    static const char *const names[] = {"focus",     "ignore",     "hide",    "show",
                                        "show_from", "prune_from", "tagshow", "taghide"};
    struct regexp regexp = {0};
    struct error error = {0};
    bool is_expression = false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) is_expression |= strcmp(names[i], name) == 0;
    bool is_right = !is_expression || !value || regexp_compile(&regexp, slice_of_text(value), &error) == STATUS_OK;
    if (!is_right) message("%s: %s", name, error.message);
    regexp_fini(&regexp);
    return is_right;
}

/* NAME=VALUE as a flag; VALUE NULL: of a switch. */
static void set(struct prompt *prompt, const char *name, const char *value)
{
    char word[512];
    int place = 0, length = snprintf(word, sizeof(word), "-%s%s%s", name, value ? "=" : "", value ? value : "");
    char *kept = length < (int)sizeof(word) ? keep(prompt, word) : NULL;
    struct pprof_flags flags = prompt->flags;
    if (!kept) {
        message("the value of %s is too long", name);
        return;
    }
    flags.order_count = flags.granularity_count = 0;
    if (!check_expression(name, value)) return;
    if (!pprof_flags_parse(&flags, 1, &kept, &place)) return;
    if (choose_value_type(prompt->profile, flags.request.values.value_type) < 0) return;
    prompt->flags = flags;
}

static void clear_filters(struct prompt *prompt)
{
    const char *unit = prompt->flags.request.filter.tag_unit;
    prompt->flags.request.filter = (struct filter_options){.tag_unit = unit};
}

/* "cpu", "total_cpu", "mean_cpu": the value types of the profile. */
static bool take_value_type(struct prompt *prompt, const char *word)
{
    static const char *const prefixes[] = {"total_", "mean_", ""};
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        size_t length = strlen(prefixes[i]);
        if (strncmp(word, prefixes[i], length) != 0 || word[length] == '\0') continue;
        if (profile_value_index(prompt->profile, word + length) < 0) continue;
        set(prompt, "sample_index", word + length);
        prompt->flags.request.values.mean = i == 1;
        return true;
    }
    return false;
}

/* granularity=lines and sort=cum are the names that newer versions of pprof have for -lines and -cum. */
static void assign(struct prompt *prompt, const char *name, const char *value)
{
    bool is_choice = strcmp(name, "granularity") == 0 || strcmp(name, "sort") == 0;
    enum pprof_word kind = pprof_flags_word(is_choice ? value : name);
    if (is_choice && kind == PPROF_SWITCH)
        set(prompt, value, NULL);
    else if (is_choice || kind == PPROF_UNKNOWN || kind == PPROF_REPORT || kind == PPROF_REPORT_WITH_TEXT)
        message("%s=%s is no setting; o lists the settings", name, value);
    else if (is_of_sources(name))
        message("%s is a flag of the command line, not of the prompt", name);
    else
        set(prompt, name, value);
}

static void print_text(const char *name, const char *value)
{
    printf("  %-22s = %s\n", name, value ? value : "");
}

static void print_settings(const struct prompt *prompt)
{
    static const char *const granularities[] = {"functions", "filefunctions", "files", "lines", "addresses"};
    const struct report_request *request = &prompt->flags.request;
    const struct filter_options *filter = &request->filter;
    const struct {
        const char *name, *value;
    } texts[] = {{"focus", filter->focus},
                 {"ignore", filter->ignore},
                 {"hide", filter->hide},
                 {"show", filter->show},
                 {"show_from", filter->show_from},
                 {"prune_from", filter->prune_from},
                 {"tagfocus", filter->tag_focus},
                 {"tagignore", filter->tag_ignore},
                 {"tagshow", filter->tag_show},
                 {"taghide", filter->tag_hide},
                 {"tagroot", filter->tag_root},
                 {"tagleaf", filter->tag_leaf},
                 {"unit", request->values.unit},
                 {"granularity", granularities[request->frames.granularity]},
                 {"sort", request->trim.by_cumulative ? "cum" : "flat"},
                 {"output", request->output.path}};
    const struct {
        const char *name;
        bool value;
    } switches[] = {{"mean", request->values.mean},
                    {"trim", !request->trim.no_trim},
                    {"noinlines", request->frames.no_inlines},
                    {"showcolumns", request->frames.columns},
                    {"call_tree", request->trim.call_tree},
                    {"drop_negative", request->trim.drop_negative},
                    {"relative_percentages", request->trim.relative},
                    {"compact_labels", request->trim.compact}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) print_text(texts[i].name, texts[i].value);
    const struct profile *profile = prompt->profile;
    int chosen = choose_value_type(profile, prompt->flags.request.values.value_type);
    printf("  %-22s = %s (", "sample_index", profile_c_string(profile, profile->value_types[chosen].type));
    for (size_t i = 0; i < profile->value_type_count; i++)
        printf("%s%s", i > 0 ? ", " : "", profile_c_string(profile, profile->value_types[i].type));
    puts(")");
    for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++)
        print_text(switches[i].name, switches[i].value ? "true" : "false");
    printf("  %-22s = %g\n  %-22s = %g\n  %-22s = %g\n", "divide_by", request->values.divide_by, "nodefraction",
           request->trim.node_fraction, "edgefraction", request->trim.edge_fraction);
    if (request->trim.node_count == UINT64_MAX)
        print_text("nodecount", "-1");
    else
        printf("  %-22s = %llu\n", "nodecount", (unsigned long long)request->trim.node_count);
}

static void print_help(void)
{
    (void)fputs(
        "  top10 -cum main     a report, with the number of rows, -cum, expressions for focus, -expressions for\n"
        "                      ignore, and >FILE; all but the name can be left out\n"
        "  list REGEX, weblist REGEX, disasm REGEX, peek REGEX\n"
        "  tree, traces, tags, raw, comments, dot, callgrind, proto, topproto\n"
        "  svg, png, pdf, ps, gif\n"
        "  focus=REGEX         a setting, for all reports that follow; focus= ends it; o lists all settings\n"
        "  cpu, mean_cpu       another value of the profile\n"
        "  :                   ends all filters\n"
        "  quit                or Ctrl-D\n",
        stdout);
}

/* --- Reports ------------------------------------------------------------------------------------------------------ */

static bool join(struct prompt *prompt, const char **expression, const char *more)
{
    char text[512];
    bool is_first = !*expression || (*expression)[0] == '\0';
    int length = snprintf(text, sizeof(text), "%s%s%s", is_first ? "" : *expression, is_first ? "" : "|", more);
    if (length >= (int)sizeof(text)) {
        message("the expressions are too long");
        return false;
    }
    *expression = keep(prompt, text);
    return *expression != NULL;
}

/* The words after a report's name: a number of rows, -cum, >FILE, expressions for focus, -expressions for ignore. */
static bool take_arguments(struct prompt *prompt, struct report_request *request, char **words, size_t count)
{
    const char *focus = NULL, *ignore = NULL;
    bool is_tags = request->kind == REPORT_TAGS;
    for (size_t i = 0; i < count; i++) {
        char *word = words[i], *end;
        unsigned long rows = strtoul(word, &end, 10);
        if (isdigit((unsigned char)word[0]) && *end == '\0') {
            request->trim.node_count = rows;
        } else if (word[0] == '>') {
            const char *file = word[1] ? word + 1 : i + 1 < count ? words[++i] : "";
            if (file[0] == '\0') {
                message("no file after >");
                return false;
            }
            request->output.path = keep(prompt, file);
        } else if (strcmp(word, "-cum") == 0 || strcmp(word, "--cum") == 0) {
            request->trim.by_cumulative = true;
        } else if (word[0] == '-' ? !join(prompt, &ignore, word + 1) : !join(prompt, &focus, word)) {
            return false;
        }
    }
    if (focus) *(is_tags ? &request->filter.tag_focus : &request->filter.focus) = focus;
    if (ignore) *(is_tags ? &request->filter.tag_ignore : &request->filter.ignore) = ignore;
    return true;
}

/* Ctrl-C ends the report, not the prompt. */
static void run_in_child(const struct prompt *prompt, struct report_request *request)
{
    int status;
    (void)fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        message("cannot start a process for the report: %s", strerror(errno));
    } else if (child == 0) {
        enum exit_status result = report_run_opened(request, prompt->file, prompt->profile);
        (void)fflush(NULL);
        _exit((int)result);
    } else {
        void (*before)(int) = signal(SIGINT, SIG_IGN);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
        (void)signal(SIGINT, before);
    }
}

static void report(struct prompt *prompt, enum pprof_word kind, char **words, size_t count)
{
    struct pprof_flags flags = prompt->flags;
    char flag[512];
    char *argument = flag;
    int place = 0, length;
    bool has_text = kind == PPROF_REPORT_WITH_TEXT;
    if (has_text && count < 2) {
        message("%s needs an expression: %s REGEX", words[0], words[0]);
        return;
    }
    length = snprintf(flag, sizeof(flag), "-%s%s%s", words[0], has_text ? "=" : "", has_text ? words[1] : "");
    if (length >= (int)sizeof(flag)) {
        message("the expression is too long");
        return;
    }
    if (!pprof_flags_parse(&flags, 1, &argument, &place)) return;
    if (!take_arguments(prompt, &flags.request, words + 1 + has_text, count - 1 - has_text)) return;
    if (flags.request.kind == REPORT_TABLE && flags.request.trim.node_count == UINT64_MAX)
        flags.request.trim.node_count = TOP_NODES;
    run_in_child(prompt, &flags.request);
}

/* --- Lines -------------------------------------------------------------------------------------------------------- */

/* "top10" becomes "top" and "10". */
static size_t split_words(char *line, char *words[WORDS_MAX], char number[16])
{
    size_t count = 0;
    for (char *rest = line, *word; count < WORDS_MAX - 1 && (word = strtok_r(rest, " \t", &rest)) != NULL;)
        words[count++] = word;
    if (count == 0 || pprof_flags_word(words[0]) != PPROF_UNKNOWN) return count;
    size_t length = strlen(words[0]), letters = strcspn(words[0], "0123456789");
    bool is_numbered = letters > 0 && letters < length && length - letters < 10 &&
                       words[0][letters + strspn(words[0] + letters, "0123456789")] == '\0';
    if (!is_numbered) return count;
    (void)snprintf(number, 16, "%s", words[0] + letters);
    words[0][letters] = '\0';
    memmove(words + 2, words + 1, (count - 1) * sizeof(*words));
    words[1] = number;
    return count + 1;
}

static void reject_word(const char *word)
{
    static const char *const own[] = {"help", "quit", "options"};
    const char *names[160], *name;
    size_t count = 0;
    for (; count < 128 && pprof_flags_name(count, &name); count++) names[count] = name;
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) names[count++] = own[i];
    const char *nearest = nearest_name(word, names, count);
    if (nearest)
        message("there is no command %s; did you mean %s?", word, nearest);
    else
        message("there is no command %s; help lists them", word);
}

static void run_words(struct prompt *prompt, char **words, size_t count)
{
    enum pprof_word kind = pprof_flags_word(words[0]);
    if (kind == PPROF_REPORT || kind == PPROF_REPORT_WITH_TEXT)
        report(prompt, kind, words, count);
    else if (kind == PPROF_SWITCH && !is_of_sources(words[0]))
        set(prompt, words[0], NULL);
    else if (kind != PPROF_UNKNOWN)
        message("%s needs a value: %s=VALUE", words[0], words[0]);
    else
        reject_word(words[0]);
}

/* "focus = main # a comment". False: the line is not an assignment. */
static bool run_assignment(struct prompt *prompt, char *line)
{
    size_t length = strcspn(line, "= \t");
    char *equals = line + length + strspn(line + length, " \t");
    if (length == 0 || *equals != '=') return false;
    line[length] = '\0';
    assign(prompt, line, strip(equals + 1));
    return true;
}

/* False: the person wants to leave. */
static bool run_line(struct prompt *prompt, char *line)
{
    char *words[WORDS_MAX + 1], number[16];
    if (run_assignment(prompt, line)) return true;
    size_t count = split_words(line, words, number);
    if (count == 0) return true;
    const char *first = words[0];
    if (strcmp(first, "quit") == 0 || strcmp(first, "exit") == 0 || strcmp(first, "q") == 0) return false;
    if (strcmp(first, ":") == 0)
        clear_filters(prompt);
    else if (strcmp(first, "o") == 0 || strcmp(first, "options") == 0)
        print_settings(prompt);
    else if (strcmp(first, "help") == 0)
        print_help();
    else if (pprof_flags_word(first) != PPROF_UNKNOWN || !take_value_type(prompt, first))
        run_words(prompt, words, count);
    (void)fflush(stdout);
    return true;
}

/* Flags and commands at the start of a line, functions after it. */
static const char *complete(void *context, const char *word, bool is_first, size_t index)
{
    static const char *const own[] = {"help", "quit", "options"};
    const struct prompt *prompt = context;
    const char *name;
    size_t count = 0;
    (void)word;
    if (!is_first) {
        bool is_function = index + 1 < prompt->profile->functions.count;
        return is_function ? profile_c_string(prompt->profile, prompt->profile->functions.items[index + 1].name) : NULL;
    }
    if (pprof_flags_name(index, &name)) return name;
    while (pprof_flags_name(count, &name)) count++;
    return index - count < sizeof(own) / sizeof(own[0]) ? own[index - count] : NULL;
}

enum exit_status prompt_run(const struct pprof_flags *flags, char *const *files, size_t count)
{
    struct profile profile;
    struct prompt prompt = {.flags = *flags, .profile = &profile, .file = files[0]};
    profile_init(&profile);
    bool is_open = report_open(&prompt.flags.request, files, count, &profile);
    is_open = is_open && choose_value_type(&profile, prompt.flags.request.values.value_type) >= 0;
    if (is_open && isatty(STDIN_FILENO)) puts("help lists the commands, o the settings, quit ends.");
    while (is_open) {
        char *line = line_editor_read("(offbeat) ", complete, &prompt);
        bool continues = line && run_line(&prompt, strip(line));
        free(line);
        if (!continues) break;
    }
    for (size_t i = 0; i < prompt.text_count; i++) free(prompt.texts[i]);
    free(prompt.texts);
    profile_fini(&profile);
    return is_open ? EXIT_DONE : EXIT_FAILED;
}
