/* Stands for the BPF engine in a program that is built without it.  SPDX-License-Identifier: MIT */
#include "recorder/engine.h"

#include <stdio.h>

static bool probe(struct engine_denial *ret_denial)
{
    (void)snprintf(ret_denial->reason, sizeof(ret_denial->reason), "this program was built without the BPF engine");
    ret_denial->remedy[0] = '\0';
    return false;
}

const struct engine_ops engine_bpf = {.name = "bpf", .probe = probe};
