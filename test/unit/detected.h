/* The format of bytes, compressed or not.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TEST_DETECTED_H
#define OFFBEAT_TEST_DETECTED_H

#include "base/buffer.h"
#include "format/format.h"

/* NULL: of none. */
static inline const struct format *detected_format(struct slice bytes)
{
    struct buffer copy;
    const struct format *format = NULL;
    buffer_init(&copy, 1 << 30);
    buffer_append(&copy, bytes.data, bytes.size);
    enum status status = format_open(&copy, &format, NULL, NULL);
    buffer_fini(&copy);
    return status == STATUS_OK ? format : NULL;
}

#endif
