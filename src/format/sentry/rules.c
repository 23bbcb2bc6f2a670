/* Verdicts: what every judge has in common. The rules themselves stand in rules_chunk.c and rules_profile.c.
 * SPDX-License-Identifier: MIT */
#include "format/sentry/rules.h"

#include <stdarg.h>
#include <stdio.h>

const char *rules_name(enum rules rules)
{
    return rules == RULES_SPEC ? "spec" : "relay";
}

bool rules_allow_size(struct slice payload, enum rules rules, struct verdict *verdict)
{
    char found[VERDICT_TEXT_SIZE], expected[VERDICT_TEXT_SIZE];
    size_t maximum = rules == RULES_SPEC ? RULES_SPEC_BYTES_MAX : RULES_RELAY_BYTES_MAX;
    if (payload.size <= maximum) return true;
    (void)snprintf(expected, sizeof(expected), "at most %zu bytes", maximum);
    (void)snprintf(found, sizeof(found), "%zu bytes", payload.size);
    return verdict_refuse(verdict, "profiling_exceed_size_limit", expected, found, "%s", "");
}

void verdict_init(struct verdict *verdict)
{
    *verdict = (struct verdict){.accepted = true, .reason = ""};
}

bool verdict_refuse(struct verdict *verdict, const char *reason, const char *expected, const char *found,
                    const char *place, ...)
{
    va_list arguments;
    verdict->accepted = false;
    verdict->reason = reason;
    (void)snprintf(verdict->expected, sizeof(verdict->expected), "%s", expected);
    (void)snprintf(verdict->found, sizeof(verdict->found), "%s", found);
    va_start(arguments, place);
    (void)vsnprintf(verdict->place, sizeof(verdict->place), place, arguments);
    va_end(arguments);
    return false;
}

void verdict_repair(struct verdict *verdict, const char *what, uint64_t count)
{
    if (count == 0 || verdict->repairs.count == VERDICT_REPAIRS_MAX) return;
    verdict->repairs.items[verdict->repairs.count++] = (struct repair){.what = what, .count = count};
}

void verdict_print(const struct verdict *verdict, char *ret_text, size_t size)
{
    if (verdict->accepted) {
        (void)snprintf(ret_text, size, "accepted");
        return;
    }
    (void)snprintf(ret_text, size, "%s: %s%sexpected %s, found %s", verdict->reason, verdict->place,
                   verdict->place[0] ? ": " : "", verdict->expected, verdict->found);
}
