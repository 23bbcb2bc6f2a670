/* All engines, the best one first.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_ENGINES_H
#define OFFBEAT_RECORDER_ENGINES_H

#include "recorder/engine.h"

/* Environment variable with names of engines whose probes fail: a switch for tests. */
#define ENGINES_DENIED "OFFBEAT_DENIED_ENGINES"

/* Returns engine INDEX; NULL after the last one. */
const struct engine_ops *engines_at(size_t index);

/* Probes ENGINE. Returns false with *RET_DENIAL. */
bool engines_probe(const struct engine_ops *engine, struct engine_denial *ret_denial);

#endif
