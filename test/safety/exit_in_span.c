/* exit in a signal handler that interrupts a function of the library, which may hold a lock then.
 * SPDX-License-Identifier: MIT */
#include <offbeat.h>

#include <signal.h>
#include <stdlib.h>

static void end(int number)
{
    exit(0);
}

int main(void)
{
    offbeat_init(&(struct offbeat_options){.size = sizeof(struct offbeat_options),
                                           .traces_sample_rate = 1,
                                           .profile_session_sample_rate = 1,
                                           .spool_directory = ""});
    offbeat_start_profiler();
    signal(SIGTERM, end);
    for (;;) {
        struct offbeat_span *root = offbeat_transaction_start("GET /", "http.server");
        offbeat_span_set_text(root, "key", "value");
        offbeat_span_finish(offbeat_span_start_child(root, "db", "q"));
        offbeat_span_finish(root);
    }
}
