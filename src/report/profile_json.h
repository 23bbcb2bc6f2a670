/* Members of JSON objects that have strings, types and labels of a profile.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_REPORT_PROFILE_JSON_H
#define OFFBEAT_REPORT_PROFILE_JSON_H

#include "base/json_writer.h"
#include "profile/sample_labels.h"

/* Writes the member KEY with the string TEXT of PROFILE. */
void string_write_json(struct json_writer *json, const struct profile *profile, const char *key, struct string_id text);

/* Writes {"type": …, "unit": …}, as the member KEY where it is not NULL. */
void value_type_write_json(struct json_writer *json, const struct profile *profile, const char *key,
                           const struct value_type *type);

/* Writes the members "sample_types" and "comments" of PROFILE. */
void value_types_write_json(struct json_writer *json, const struct profile *profile);
void comments_write_json(struct json_writer *json, const struct profile *profile);

/* Writes the member "omissions", lines about what a source of PROFILE lacks or what could not be read; nothing if there
 * are none. */
void omissions_write_json(struct json_writer *json, const struct profile *profile);

/* Writes the member "labels": [{"key": …, "text": …}, {"key": …, "number": …, "unit": …}] in the order of pprof, into
 * which LABELS are sorted. */
void labels_write_json(struct json_writer *json, struct sample_labels *labels);

#endif
