/* The rules for a chunk of sample format V2.  SPDX-License-Identifier: MIT */
#include "format/rules.h"

#include "format/sentry_v2.h"

enum status rules_judge_chunk(struct slice payload, const struct rules_context *context, enum rules rules,
                              struct verdict *ret_verdict, struct error *error)
{
    struct profile profile;
    struct error failure;
    (void)context;
    (void)rules;
    profile_init(&profile);
    verdict_init(ret_verdict);
    enum status status = sentry_v2_decode(payload, &profile, &failure);
    profile_fini(&profile);
    if (status == STATUS_NO_MEMORY) return error_set(error, status, 0, "%s", failure.message);
    if (status != STATUS_OK) verdict_refuse(ret_verdict, "profiling_invalid_json", "a chunk", failure.message, "%s", "");
    return STATUS_OK;
}
