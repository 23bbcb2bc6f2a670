/* Files of perf record, which may be larger than memory: read piece by piece, and unwound with the call frame
 * information of the files on this machine.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_PERF_FILE_H
#define OFFBEAT_CLI_PERF_FILE_H

#include "base/buffer.h"
#include "base/status.h"
#include "profile/profile.h"
#include "symbolize/kernel_names.h"

/* True if PATH is a regular file of perf record, or a folder of perf record --threads. *RET_SIZE is its size. */
bool perf_file_detect(const char *path, uint64_t *ret_size);

/* Decodes BYTES or, where they are empty, the file at PATH. BYTES are empty afterwards. Files that the profile names
 * are used only if their build id is the profile's, or if they are the recorded ones (recorded_files.h). RET_KERNEL
 * (NULL: nobody needs it) gets the symbols of the kernel, which are being read, or NULL; the caller ends them in every
 * case. */
enum status perf_file_decode(const char *path, struct buffer *bytes, struct profile *profile,
                             struct kernel_symbols **ret_kernel, struct error *error);

#endif
