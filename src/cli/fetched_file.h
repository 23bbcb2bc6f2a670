/* Copies of fetched profiles, as pprof keeps them.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_FETCHED_FILE_H
#define OFFBEAT_CLI_FETCHED_FILE_H

#include "base/buffer.h"

/* Writes BYTES to a new file in $PPROF_TMPDIR, or else ~/pprof, and says where. A failure is one line and no more: the
 * profile is there. */
void fetched_file_keep(const struct buffer *bytes);

#endif
