/* SPDX-License-Identifier: MIT */
#include "base/maps.h"

#include "base/kernel.h"
#include "base/plain_text.h"

#include <string.h>
#include <sys/sysmacros.h>

/* " MAJOR:MINOR INODE", in hexadecimal and decimal. */
static void take_device(const char **line, struct maps_entry *entry)
{
    if (**line == ' ') ++*line;
    uint64_t major = plain_parse(line, 16);
    if (**line == ':') ++*line;
    uint64_t minor = plain_parse(line, 16);
    if (**line == ' ') ++*line;
    entry->device = makedev((unsigned)major, (unsigned)minor);
    entry->inode = plain_parse(line, 10);
}

/* "START-END PERMISSIONS OFFSET DEVICE INODE   PATH" (proc(5)). */
static bool parse(char *line, struct maps_entry *entry)
{
    enum { PERMISSIONS_SIZE = 4 };
    const char *at = line;
    entry->start = plain_parse(&at, 16);
    if (*at != '-') return false;
    at++;
    entry->end = plain_parse(&at, 16);
    if (*at != ' ' || strlen(at) < PERMISSIONS_SIZE + 2) return false;
    entry->is_executable = at[3] == 'x';
    at += PERMISSIONS_SIZE + 2;
    entry->file_offset = plain_parse(&at, 16);
    take_device(&at, entry);
    while (*at == ' ') at++;
    char *path = line + (at - line);
    plain_path(path);
    entry->path = path;
    return true;
}

/* The next line, without its end; NULL at the end of the file. */
static char *next_line(struct maps_reader *reader)
{
    for (;;) {
        char *line = reader->buffer + reader->taken;
        char *end = memchr(line, '\n', reader->filled - reader->taken);
        if (end) {
            *end = '\0';
            reader->taken = (size_t)(end + 1 - reader->buffer);
            return line;
        }
        reader->filled -= reader->taken;
        memmove(reader->buffer, line, reader->filled);
        reader->taken = 0;
        ssize_t got = kernel_read(reader->descriptor, reader->buffer + reader->filled, reader->size - reader->filled);
        if (got <= 0) return NULL;
        reader->filled += (size_t)got;
    }
}

bool maps_next(struct maps_reader *reader, struct maps_entry *ret_entry)
{
    for (char *line; (line = next_line(reader));) {
        if (parse(line, ret_entry)) return true;
    }
    return false;
}
