/* offbeat serve --profile-self.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_SERVE_SELF_H
#define OFFBEAT_CLI_SERVE_SELF_H

#include "serve/serve.h"

/* Profiles this process with liboffbeat, which sends to a project of STORE that SERVER receives for, and logs as SERVE
 * says. False, with a message, if that cannot be. */
bool serve_self_start(struct store *store, struct server *server, const struct serve_options *serve);
/* Sends what was sampled, for at most two seconds; SERVER must still answer. Does nothing if nothing was started. */
void serve_self_stop(void);

#endif
