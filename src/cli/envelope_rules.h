/* The rules of a server for the profiles in an envelope.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_ENVELOPE_RULES_H
#define OFFBEAT_CLI_ENVELOPE_RULES_H

#include "format/sentry/rules.h"

/* Receives RESULT for ITEM, as in "item 2, profile"; "" if the envelope is rejected with all its items. */
typedef void (*envelope_rules_sink)(void *context, const struct rules_result *result, const char *item);

/* Validates the profiles in the envelope BYTES by RULES, and gives RECEIVE each result. Returns the first failure, such
 * as STATUS_NO_MEMORY; items that fail have no result. RET_COUNT: the number of items that have rules. */
enum status envelope_rules_validate(struct slice bytes, enum rules rules, envelope_rules_sink receive, void *context,
                                    size_t *ret_count, struct error *error);

#endif
