/* Parts of a profile as JSON.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_REPORT_LABELS_JSON_H
#define OFFBEAT_REPORT_LABELS_JSON_H

#include "base/json_writer.h"
#include "profile/sample_labels.h"

/* Writes [{"key": …, "text": …}, {"key": …, "number": …, "unit": …}] in the order of pprof, into which LABELS are
 * sorted. */
void labels_write_json(struct json_writer *json, struct sample_labels *labels);

/* Writes the member KEY: {"type": …, "unit": …}. */
void value_type_write_json(struct json_writer *json, const struct profile *profile, const char *key,
                           const struct value_type *type);

/* Writes the member KEY: the string TEXT of PROFILE. */
void string_write_json(struct json_writer *json, const struct profile *profile, const char *key, struct string_id text);

#endif
