/* SPDX-License-Identifier: MIT */
#include "cli/interpreter_message.h"

#include "cli/message.h"

#include <stdlib.h>
#include <string.h>

static const struct other {
    const char *program; /* name of its file, without a version */
    const char *name, *help;
} others[] = {
    {"perl", "Perl", "Devel::NYTProf and its nytprofcg write a file that offbeat reads"},
    {"ruby", "Ruby", "stackprof writes a file that offbeat reads"},
    {"php", "PHP", "the profiler of Xdebug writes a file that offbeat reads"},
    {"node", "JavaScript", "node --cpu-prof writes a file that offbeat reads"},
    {"nodejs", "JavaScript", "node --cpu-prof writes a file that offbeat reads"},
    {"java", "Java", "java -XX:StartFlightRecording writes a file that offbeat reads"},
    {"lua", "Lua", NULL},
    {"tclsh", "Tcl", NULL},
    {"R", "R", NULL},
    {"pypy", "PyPy", NULL},
};

/* Returns the interpreter at PATH, whose name may end with its version; NULL: it is none of these. */
static const struct other *find_other(const char *path)
{
    const char *name = path_base_name_text(path);
    size_t size = strlen(name);
    while (size > 0 && ((name[size - 1] >= '0' && name[size - 1] <= '9') || name[size - 1] == '.')) size--;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (strlen(others[i].program) == size && memcmp(others[i].program, name, size) == 0) return &others[i];
    }
    return NULL;
}

void interpreter_message(const struct profile *profile)
{
    static bool has_said[sizeof(others) / sizeof(others[0])], has_said_unknown, has_said_running;
    const char *unknown = profile_metadata_text(profile, "interpreter_unknown");
    if (unknown[0] && !has_said_unknown) {
        has_said_unknown = true;
        message("%s of a build that offbeat does not know: stacks have native frames only", unknown);
    }
    bool lacks_running = !unknown[0] && profile_metadata_text(profile, "interpreter_seen_in")[0];
    if (lacks_running && !has_said_running) {
        has_said_running = true;
        message("threads that run have frames of %s instead of the program's functions, which take --engine bpf",
                profile_metadata_text(profile, "interpreter"));
    }
    const struct other *other = find_other(profile_metadata_text(profile, "executable"));
    bool is_read = profile_metadata_text(profile, "interpreter")[0];
    if (!other || is_read || has_said[other - others]) return;
    has_said[other - others] = true;
    message("the functions of the %s program are not in the stacks, only those of its interpreter%s%s", other->name,
            other->help ? "; " : "", other->help ? other->help : "");
}
