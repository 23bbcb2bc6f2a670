/* Transactions and spans of the program, sent when they are complete.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_SPANS_H
#define OFFBEAT_SDK_SPANS_H

#include "base/slice.h"
#include "sdk/settings.h"
#include "trace/trace.h"

struct tracer *spans_tracer_new(const struct settings *settings);

/* Sends a complete transaction with its V1 profile, or without (empty). Frees it. */
void spans_send(struct trace_transaction *transaction, struct slice profile);

#endif
