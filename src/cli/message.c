/* One line for each thing that a person must know.  SPDX-License-Identifier: MIT */
#include "cli/message.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void message(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)fputs("offbeat: ", stderr);
    (void)vfprintf(stderr, format, arguments);
    (void)fputc('\n', stderr);
    va_end(arguments);
}

const char *message_name(const char *path, bool is_output)
{
    if (path[0] == '\0') return "\"\""; /* of a variable of the shell's that is not set */
    if (strcmp(path, "-") != 0) return path;
    return is_output ? "standard output" : "standard input";
}

void message_error(const char *path, const struct error *error, bool is_output)
{
    const char *name = message_name(path, is_output);
    if (error->offset > 0) {
        message("%s: %s (offset %" PRIu64 ")", name, error->message, error->offset);
    } else {
        message("%s: %s", name, error->message);
    }
}
