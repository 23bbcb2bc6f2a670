/* OTLP in JSON and in protobuf, converted into each other.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_OTLP_OTLP_JSON_H
#define OFFBEAT_FORMAT_OTLP_OTLP_JSON_H

#include "base/json_reader.h"
#include "base/json_writer.h"

/* Takes one object, a ProfilesData, and appends it to OUT in protobuf. Unknown members are passed over; a broken one
 * makes READER fail. */
void otlp_json_take(struct json_reader *reader, struct buffer *out);

/* Writes MESSAGE, a ProfilesData that otlp_encode() wrote. */
void otlp_json_write(struct json_writer *writer, struct slice message);

#endif
