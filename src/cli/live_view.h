/* A command's profile in the browser while the command runs.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_LIVE_VIEW_H
#define OFFBEAT_CLI_LIVE_VIEW_H

#include "cli/record.h"
#include "cli/report_command.h"

/* Records COMMAND as offbeat record does, and shows its growing profile as REQUEST says. The page shows the final
 * profile until Ctrl-C. Ends the process as COMMAND ended, or returns the exit status. */
int live_view_run(struct report_request *request, const struct record_request *recording, char **command);

#endif
