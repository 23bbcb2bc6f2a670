/* A program with raised privileges that sends: raised DSN HELPER.  SPDX-License-Identifier: MIT */
#include <offbeat.h>

#include <stdio.h>
#include <sys/auxv.h>

int main(int argc, char **argv)
{
    bool is_on = offbeat_init(&(struct offbeat_options){.size = sizeof(struct offbeat_options),
                                                        .dsn = argc > 1 ? argv[1] : NULL,
                                                        .helper = argc > 2 ? argv[2] : NULL,
                                                        .traces_sample_rate = 1,
                                                        .spool_directory = ""});
    offbeat_span_finish(offbeat_transaction_start("a", "b"));
    (void)offbeat_flush(10000);
    fprintf(stderr, "init %d AT_SECURE %lu\n", is_on, getauxval(AT_SECURE));
    return 0;
}
