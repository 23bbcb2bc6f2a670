/* Transactions and spans of the program, sent when they are complete.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_SPANS_H
#define OFFBEAT_SDK_SPANS_H

#include "base/buffer.h"
#include "sdk/settings.h"
#include "trace/trace.h"

struct tracer *spans_tracer_new(const struct settings *settings);

/* Appends the envelope of a complete transaction to ENVELOPE. False if it must not be sent, which is counted. */
bool spans_write(struct trace_transaction *transaction, struct buffer *envelope);

#endif
