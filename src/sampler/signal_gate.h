/* Signals are sent, and our handler is installed, only through this gate: none while the program changes what one would
 * meet, and what is on its way then arrives first. interpose/ reports such changes (sampler.h).
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SIGNAL_GATE_H
#define OFFBEAT_SAMPLER_SIGNAL_GATE_H

#include "sampler/sample_requests.h"

/* sample_request_send and sample_request_arm, with our handler installed; false also if the gate is closed, or if the
 * program has a handler for signal NUMBER. On the sampler thread. */
bool signal_gate_send(struct sample_request *request, int number);
bool signal_gate_arm(struct sample_request *request, int number, struct request_timing timing);

/* In the child: nothing is on its way. */
void signal_gate_after_fork(void);

#endif
