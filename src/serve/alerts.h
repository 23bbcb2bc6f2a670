/* Rules about profiles that are checked from time to time, and the web hook that is told when one begins or ends to
 * hold.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_ALERTS_H
#define OFFBEAT_SERVE_ALERTS_H

#include "base/buffer.h"
#include "base/status.h"

struct server;
struct alerts;

/* Returns whether TEXT is a rule, as "name=slow service=shop function=parse share>20 minutes=10". */
enum status alert_rule_check(const char *text, struct error *error);

/* Starts the thread that checks the rules of SERVER's options. */
enum status alerts_start(struct server *server, struct alerts **ret_alerts, struct error *error);
/* Ends it; accepts NULL. The server must be ending, so that a query or a notification that runs gives up. */
void alerts_stop(struct alerts *alerts);
/* Appends a line of Prometheus text for each rule; accepts NULL. */
void alerts_write_metrics(struct alerts *alerts, struct buffer *out);

#endif
