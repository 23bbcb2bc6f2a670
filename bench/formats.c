/* Reads a profile of any format as every command does, and does nothing with it: formats FILE. Measured by formats.py.
 * SPDX-License-Identifier: MIT */
#include "base/file.h"
#include "format/format.h"

#include <malloc.h>
#include <stdio.h>

enum { LARGE_BLOCK_BYTES = 1 << 20 };

int main(int argc, char **argv)
{
    struct profile profile;
    struct buffer bytes;
    struct error error = {0};
    if (argc != 2) return 2;
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES); /* as the program offbeat does */
    profile_init(&profile);
    buffer_init(&bytes, FORMAT_BYTES_MAX);
    enum status status = file_read(argv[1], &bytes, &error);
    const struct format *format = NULL;
    bool is_cut;
    if (status == STATUS_OK) status = format_open(&bytes, &format, &is_cut, &error);
    if (status == STATUS_OK) status = format_decode_opened(format, &bytes, &profile, &error);
    printf("%zu samples %s\n", profile.samples.count, error.message);
    buffer_fini(&bytes);
    profile_fini(&profile);
    return status != STATUS_OK;
}
