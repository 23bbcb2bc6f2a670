/* SPDX-License-Identifier: MIT */
#include "cli/foreign_words.h"

#include <stddef.h>
#include <string.h>

/* clang-format off */
static const struct {
    const char *word, *command;
} words[] = {
    {"annotate", "disasm"},
    {"buildid-list", "info"},
    {"callgrind", "graph"},
    {"dot", "graph"},
    {"dump", "raw"},
    {"evlist", "info"},
    {"export", "convert"},
    {"flamegraph", "flame"},
    {"header", "info"},
    {"http", "view"},
    {"import", "convert"},
    {"open", "view"},
    {"profile", "record"},
    {"proto", "convert"},
    {"report", "top"},
    {"run", "record"},
    {"script", "traces"},
    {"show", "view"},
    {"stats", "top"},
    {"svg", "graph"},
    {"text", "top"},
    {"upload", "send"},
    {"upload-dif", "upload-debug"},
    {"web", "view"},
    {"weblist", "list"},
};

#define ATTACH "cannot attach to a running process; perf can: perf record -g -p PID -- sleep 10; offbeat top perf.data"
#define SYSTEM "records one command and its children; perf records all: perf record -g -a -- sleep 10; offbeat top perf.data"
#define STACKS "always records complete stacks"
#define EVENTS "records time; --mode cpu records time on a processor"

static const struct {
    const char *command, *option, *advice;
} advices[] = {
    {"record", "t", ATTACH},
    {"record", "tid", ATTACH},
    {"record", "attach", ATTACH},
    {"record", "a", SYSTEM},
    {"record", "all-cpus", SYSTEM},
    {"record", "g", STACKS},
    {"record", "call-graph", STACKS},
    {"record", "e", EVENTS},
    {"record", "event", EVENTS},
};

static const struct {
    const char *foreign, *own;
} options[] = {
    {"c", "frequency"},
    {"children", "cum"},
    {"comm", "process"},
    {"count", "frequency"},
    {"e", "sample-index"},
    {"event", "sample-index"},
    {"format", "to"},
    {"freq", "frequency"},
    {"http", "port"},
    {"limit", "nodecount"},
    {"mode", "running"},
    {"nodes", "nodecount"},
    {"p", "process"},
    {"percent-limit", "nodecount"},
    {"pid", "process"},
    {"rate", "frequency"},
    {"sort", "granularity"},
    {"symbol", "focus"},
    {"symbols", "focus"},
    {"tid", "thread"},
};
/* clang-format on */

const char *command_of_foreign_word(const char *word)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i].word, word) == 0) return words[i].command;
    }
    return NULL;
}

const char *advice_of_foreign_option(const char *command, const char *option)
{
    for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++) {
        if (strcmp(advices[i].command, command) == 0 && strcmp(advices[i].option, option) == 0)
            return advices[i].advice;
    }
    return NULL;
}

const char *option_of_foreign_option(const char *option)
{
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (strcmp(options[i].foreign, option) == 0) return options[i].own;
    }
    return NULL;
}
