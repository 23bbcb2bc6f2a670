/* A push of Pyroscope's clients as JSON.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_PUSH_JSON_H
#define OFFBEAT_SERVE_PUSH_JSON_H

#include "base/buffer.h"
#include "base/status.h"

/* Fields of push.proto. */
enum {
    PUSH_SERIES = 1,
    SERIES_LABELS = 1,
    SERIES_SAMPLES = 2,
    LABEL_NAME = 1,
    LABEL_VALUE = 2,
    SAMPLE_PROFILE = 1,
    SAMPLE_ID = 2
};

/* Appends the message that JSON, protobuf's mapping of a PushRequest, stands for to MESSAGE. */
enum status push_json_read(struct slice json, struct buffer *message, struct error *error);

#endif
