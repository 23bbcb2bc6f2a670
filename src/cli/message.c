/* One line for each thing that a person must know.  SPDX-License-Identifier: MIT */
#include "cli/message.h"

#include "base/printable.h"
#include "cli/secrets.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_progress_shown;

void message_set_progress_shown(bool is_shown)
{
    is_progress_shown = is_shown;
}

void message(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int size = vasprintf(&text, format, arguments);
    va_end(arguments);
    (void)fputs(is_progress_shown ? "\r\033[Koffbeat: " : "offbeat: ", stderr);
    is_progress_shown = false;
    struct buffer printable;
    buffer_init(&printable, SIZE_MAX);
    if (size >= 0) printable_append(&printable, slice_of(text, secrets_hide(text)), "\n");
    if (printable.size > 0) (void)fwrite(printable.data, 1, printable.size, stderr);
    (void)fputc('\n', stderr);
    buffer_fini(&printable);
    if (size >= 0) free(text);
}

const char *message_name(const char *path, bool is_output)
{
    if (path[0] == '\0') return "\"\""; /* an empty word of an unset variable of the shell */
    if (strcmp(path, "-") != 0) return without_secrets(path);
    return is_output ? "standard output" : "standard input";
}

/* The command that MESSAGE proposes for FILE, with the file's name where a shell needs no quotes for it. To be freed;
 * NULL: it proposes none. */
static char *name_file(const char *message, const char *path)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+,=:@%-";
    const char *place = strstr(message, " FILE |");
    char *text = NULL;
    if (!place || path[0] == '\0' || path[0] == '-' || path[strspn(path, plain)] != '\0') return NULL;
    int size = asprintf(&text, "%.*s %s%s", (int)(place - message), message, path, place + strlen(" FILE"));
    return size >= 0 ? text : NULL;
}

void message_error(const char *path, const struct error *error, bool is_output)
{
    const char *name = message_name(path, is_output);
    if (error->offset > 0) {
        message("%s: %s (offset %" PRIu64 ")", name, error->message, error->offset);
    } else {
        char *named = name_file(error->message, path);
        message("%s: %s", name, named ? named : error->message);
        free(named);
    }
}
