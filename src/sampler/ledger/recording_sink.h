/* Writes what ledgers write to a recording. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_RECORDING_SINK_H
#define OFFBEAT_SAMPLER_RECORDING_SINK_H

#include "sampler/ledger/ledger.h"
#include "sampler/record/recording_writer.h"

/* Returns a sink that writes to WRITER. SINK_DATA of each ledger must be the struct recording_stack of its thread. */
struct ledger_sink recording_sink_of(struct recording_writer *writer);

#endif
