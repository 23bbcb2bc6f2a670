/* Errors by value: status, place and a sentence.  SPDX-License-Identifier: MIT */
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum status(error_set)(struct error *error, enum status status, uint64_t offset, const char *format, ...)
{
    if (!error) return status;
    error->status = status;
    error->errno_value = 0;
    error->offset = offset;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(error->message, sizeof(error->message), format, arguments);
    va_end(arguments);
    return status;
}

enum status(error_set_errno)(struct error *error, const char *format, ...)
{
    int errno_value = errno;
    enum status status = errno_value == ENOENT ? STATUS_NOT_FOUND : STATUS_IO;
    if (!error) return status;
    error->status = status;
    error->errno_value = errno_value;
    error->offset = 0;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(error->message, sizeof(error->message), format, arguments);
    va_end(arguments);
    if (length >= 0 && (size_t)length < sizeof(error->message)) {
        (void)snprintf(error->message + length, sizeof(error->message) - (size_t)length, ": %s", strerror(errno_value));
    }
    return status;
}
