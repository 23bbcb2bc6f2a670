/* sigaction and signal: the timers of threads' CPU clocks (sampler/source/sample_requests.h) end before the program
 * handles their signal, or its handler would receive signals of the sampler.  SPDX-License-Identifier: MIT */
#include "interpose/interpose_private.h"

#include "sampler/sampler.h"

int sigaction(int number, const struct sigaction *action, struct sigaction *old);
signal_function signal(int number, signal_function handler);

INTERPOSED int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    bool is_ours = action && sampler_expect_handler(number);
    int result = next_functions()->sigaction(number, action, old);
    if (is_ours) sampler_note_handler();
    return result;
}

INTERPOSED signal_function signal(int number, signal_function handler)
{
    bool is_ours = sampler_expect_handler(number);
    signal_function before = next_functions()->signal(number, handler);
    if (is_ours) sampler_note_handler();
    return before;
}
