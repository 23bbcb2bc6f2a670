/* SPDX-License-Identifier: MIT */
#include <offbeat.h>
#include <stdio.h>
#include <stdlib.h>
int main(int c, char **v)
{
    offbeat_init(&(struct offbeat_options){.size = sizeof(struct offbeat_options), .traces_sample_rate = 1});
    struct offbeat_span *t = offbeat_transaction_start("a", "b");
    if (c > 1) offbeat_span_set_status(t, (enum offbeat_status)atoi(v[1]));
    if (c > 2) offbeat_span_set_transaction_name(t, "x", (enum offbeat_source)atoi(v[2]));
    offbeat_span_finish(t);
    puts("finished");
    return 0;
}
