/* SPDX-License-Identifier: MIT */
#include "cli/foreign_words.h"

#include <stddef.h>
#include <string.h>

struct foreign_word {
    const char *foreign, *own; /* NULL at the end of a list */
};

/* clang-format off */
static const struct foreign_word commands[] = {
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
    {NULL, NULL},
};

#define THREAD "records all threads of a process: --pid PID; offbeat top --thread REGEX shows one"
#define ATTACH "records a process that runs already by --pid PID"
#define SYSTEM "records all processes by --all"
#define STACKS "always records complete stacks"
#define EVENTS "records time; --mode cpu records time on a processor"

static const struct {
    const char *command, *option, *advice;
} advices[] = {
    {"record", "t", THREAD},
    {"record", "tid", THREAD},
    {"record", "attach", ATTACH},
    {"record", "all-cpus", SYSTEM},
    {"record", "g", STACKS},
    {"record", "call-graph", STACKS},
    {"record", "e", EVENTS},
    {"record", "event", EVENTS},
};

static const struct foreign_word options[] = {
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
    {NULL, NULL},
};
/* clang-format on */

static const char *own_word(const struct foreign_word *words, const char *foreign)
{
    while (words->foreign && strcmp(words->foreign, foreign) != 0) words++;
    return words->own;
}

const char *command_of_foreign_word(const char *word)
{
    return own_word(commands, word);
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
    return own_word(options, option);
}
