/* The prompt of `offbeat pprof`.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_PROMPT_H
#define OFFBEAT_CLI_PROMPT_H

#include "cli/pprof_flags.h"

/* Reads FILES, merged, and then lines: reports, settings, "help", "quit". FLAGS are the settings at first. */
enum exit_status prompt_run(const struct pprof_flags *flags, char *const *files, size_t count);

#endif
