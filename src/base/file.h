/* Whole files: read with a maximum, written so that a reader never sees half of one.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_FILE_H
#define OFFBEAT_BASE_FILE_H

#include "base/buffer.h"
#include "base/status.h"

/* Appends the content of PATH ("-" is standard input; pipes and devices are read to their end) to OUT, up to OUT's
 * maximum. What is left in OUT after a failure is of no use. STATUS_NOT_FOUND, STATUS_IO, STATUS_TOO_LARGE or
 * STATUS_NO_MEMORY; the message does not repeat PATH. */
enum status file_read(const char *path, struct buffer *out, struct error *error);

/* Makes BYTES the content of PATH ("-" is standard output). A regular file is written beside its place and renamed, so
 * that a failure, or a signal that ends the process, leaves what was there and nothing else; symbolic links are
 * followed, and rejected where they lead nowhere; permissions of a file that is replaced are kept, and where they do
 * not let it be written it stays. Pipes and devices are written in place. The message does not repeat PATH. Not durable
 * against a power cut (no fsync). */
enum status file_write(const char *path, struct slice bytes, struct error *error);

/* Writes all of BYTES to DESCRIPTOR. STATUS_IO with errno_value. */
enum status file_write_descriptor(int descriptor, struct slice bytes, struct error *error);

/* Makes the folders above the last part of PATH, whose first FROM bytes are there, for this user alone. PATH is changed
 * meanwhile. */
void file_make_folders_above(char *path, size_t from);
/* Makes PATH as well, and all folders above it. */
void file_make_folders(char *path);

#endif
