/* SPDX-License-Identifier: MIT */
#include "recorder/engines.h"

#include "base/environment.h"

#include <stdio.h>
#include <string.h>

const struct engine_ops *engines_at(size_t index)
{
    static const struct engine_ops *const all[] = {&engine_bpf, &engine_perf, &engine_proc};
    return index < sizeof(all) / sizeof(all[0]) ? all[index] : NULL;
}

bool engines_probe(const struct engine_ops *engine, struct engine_denial *ret_denial)
{
    const char *denied = environment_get(ENGINES_DENIED);
    *ret_denial = (struct engine_denial){0};
    if (!denied || !strstr(denied, engine->name)) return engine->probe(ret_denial);
    (void)snprintf(ret_denial->reason, sizeof(ret_denial->reason), "denied by %s", ENGINES_DENIED);
    (void)snprintf(ret_denial->remedy, sizeof(ret_denial->remedy), "unset %s", ENGINES_DENIED);
    return false;
}
