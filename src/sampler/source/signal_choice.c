/* Reasons against a signal to a thread:
 * - The thread blocks it: the signal would stay with it, and surprise it in sigwait or signalfd.
 * - The program handles it: standard signals are not queued, so while ours is on its way the program's own is dropped.
 * - The thread has confined itself: a filter can kill for a system call that the handler makes.
 * - Its stack may have no room for the signal's frame (signal_stacks.h).
 * All of this can change at any time, so the sampler reads it right before it sends a signal.
 * SPDX-License-Identifier: MIT */
#include "sampler/source/signal_choice.h"

#include "base/kernel.h"
#include "base/plain_text.h"
#include "base/seccomp_filter.h"
#include "sampler/source/signal_stacks.h"

#include <string.h>

enum { STATUS_SIZE = 4096, SECCOMP_NONE = 0, SECCOMP_BY_FILTER = 2 };

static char status_text[STATUS_SIZE]; /* the sampler thread's alone */
static uint64_t inherited_filters;

void signal_choice_start(void)
{
    inherited_filters = 0;
    if (!filter_is_there()) return;
    if (read_small_file("/proc/thread-self/status", status_text, sizeof(status_text)) <= 0) return;
    inherited_filters = status_number(status_text, "Seccomp_filters", 10);
}

/* Returns true if the process has a controlling terminal, which sends SIGNAL_SUBSTITUTE to its processes: our handler
 * would interrupt calls that sleep. The terminal is the fifth word after the name (proc(5)). */
static bool has_terminal(void)
{
    enum { WORDS_TO_TERMINAL = 5 };
    char text[512];
    const char *at = read_small_file("/proc/self/stat", text, sizeof(text)) > 0 ? strrchr(text, ')') : NULL;
    for (unsigned i = 0; at && i < WORDS_TO_TERMINAL; i++) {
        at = strchr(at, ' ');
        if (at) at++;
    }
    return !at || plain_parse(&at, 10) != 0;
}

static bool is_open(uint64_t blocked, int number)
{
    return !(blocked >> (number - 1) & 1) && signal_handler_user(number) != SIGNAL_OF_PROGRAM;
}

/* Returns true if the thread has added a filter of its own. A kernel before 5.9 does not show how many filters there
 * are; then all count as its own. */
static bool is_confined_since(const char *status, uint64_t seccomp)
{
    if (seccomp == SECCOMP_NONE) return false;
    if (seccomp != SECCOMP_BY_FILTER) return true;
    return status_number(status, "Seccomp_filters", 10) != inherited_filters;
}

struct signal_choice signal_choose(struct thread_files *files)
{
    struct signal_choice choice = {0};
    if (!thread_read_status(files, status_text, sizeof(status_text))) return choice;
    const char *state = status_line(status_text, "State");
    uint64_t seccomp = status_number(status_text, "Seccomp", 10);
    uint64_t blocked = status_line(status_text, "SigBlk") ? status_number(status_text, "SigBlk", 16) : UINT64_MAX;
    choice.is_asleep = state && *state != 'R';
    choice.sleep_count = status_number(status_text, "voluntary_ctxt_switches", 10);
    choice.reading = seccomp == SECCOMP_NONE || filter_allows(FILTER_MEMORY) ? READ_BY_COPY : READ_BY_PROBE;
    if (is_confined_since(status_text, seccomp) || !signal_stacks_have_room(files->tid)) return choice;
    if (is_open(blocked, SIGNAL_USUAL))
        choice.number = SIGNAL_USUAL;
    else if (!has_terminal() && is_open(blocked, SIGNAL_SUBSTITUTE))
        choice.number = SIGNAL_SUBSTITUTE;
    return choice;
}
