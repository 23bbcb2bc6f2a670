/* All signals are sent, and our handler is installed, through this gate. It is closed while the program changes what a
 * signal would meet; signals that are on their way arrive before that. interpose/ reports such changes (sampler.h).
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SIGNAL_GATE_H
#define OFFBEAT_SAMPLER_SIGNAL_GATE_H

#include "sampler/source/sample_requests.h"

/* Call sample_request_send and sample_request_arm, with our handler installed. Return false also if the gate is closed,
 * or the program has a handler for signal NUMBER. On the sampler thread. */
bool signal_gate_send(struct sample_request *request, int number);
bool signal_gate_arm(struct sample_request *request, int number, struct request_timing timing);

/* Opens the gate in a forked child, in which no signal is on its way. */
void signal_gate_after_fork(void);

#endif
