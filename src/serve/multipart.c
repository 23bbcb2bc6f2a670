/* SPDX-License-Identifier: MIT */
#include "serve/multipart.h"

#include <stdio.h>
#include <strings.h>

enum { BOUNDARY_BYTES_MAX = 70 };

static const char form_type[] = "multipart/form-data";

bool multipart_is_form(const char *type)
{
    return type && strncasecmp(type, form_type, strlen(form_type)) == 0;
}

/* Returns the end of the value at FROM: a token, or a text in quotes in which a backslash escapes the next character.
 */
static size_t value_end(struct slice header, size_t from, bool is_quoted)
{
    size_t end = from;
    while (end < header.size) {
        char c = (char)header.data[end];
        if (is_quoted ? c == '"' : c == ';' || c == ' ' || c == '\t') break;
        end += is_quoted && c == '\\' && end + 1 < header.size ? 2 : 1;
    }
    return end;
}

/* Returns the value of the parameter NAME in HEADER, without its quotes; empty if it is not there. What is inside of
 * another parameter's quotes is none. */
static struct slice parameter_of(struct slice header, const char *name)
{
    size_t size = strlen(name);
    const char *text = (const char *)header.data;
    const char *semicolon = header.size ? memchr(text, ';', header.size) : NULL;
    size_t i = semicolon ? (size_t)(semicolon - text) : header.size;
    while (i < header.size) {
        while (i < header.size && (text[i] == ';' || text[i] == ' ' || text[i] == '\t')) i++;
        size_t key = i;
        while (i < header.size && text[i] != '=' && text[i] != ';') i++;
        bool is_name = i - key == size && strncasecmp(text + key, name, size) == 0;
        if (i == header.size || text[i] == ';') continue;
        i++;
        bool is_quoted = i < header.size && text[i] == '"';
        size_t start = i + is_quoted;
        i = value_end(header, start, is_quoted);
        if (is_name) return slice_of(text + start, i - start);
        while (i < header.size && text[i] != ';') i++;
    }
    return slice_of(NULL, 0);
}

/* Reads the names in the Content-Disposition of HEADER, the lines of a part. */
static void read_names(struct slice header, struct multipart_part *part)
{
    static const char key[] = "content-disposition:";
    while (header.size > 0) {
        const uint8_t *line_end = memchr(header.data, '\n', header.size);
        size_t size = line_end ? (size_t)(line_end - header.data) : header.size;
        struct slice line = slice_of(header.data, size > 0 && header.data[size - 1] == '\r' ? size - 1 : size);
        if (line.size >= sizeof(key) - 1 && strncasecmp((const char *)line.data, key, sizeof(key) - 1) == 0) {
            part->name = parameter_of(line, "name");
            part->file_name = parameter_of(line, "filename");
            return;
        }
        header = slice_of(header.data + size + (line_end != NULL), header.size - size - (line_end != NULL));
    }
}

static const uint8_t *find(const uint8_t *from, const uint8_t *end, const char *text, size_t size)
{
    return memmem(from, (size_t)(end - from), text, size);
}

static void leave(struct multipart *form, const uint8_t *position)
{
    form->left = slice_of(position, (size_t)(form->left.data + form->left.size - position));
}

bool multipart_open(struct multipart *form, struct slice body, const char *type)
{
    *form = (struct multipart){.left = body};
    if (body.size == 0 || !multipart_is_form(type)) return false;
    struct slice boundary = parameter_of(slice_of_text(type), "boundary");
    if (boundary.size == 0 || boundary.size > BOUNDARY_BYTES_MAX) return false;
    (void)snprintf(form->delimiter, sizeof(form->delimiter), "\r\n--%.*s", SLICE_ARGUMENTS(boundary));
    size_t size = form->delimiter_size = strlen(form->delimiter);
    const uint8_t *end = body.data + body.size, *position = body.data;
    /* The first delimiter has no line before it, if nothing is before it. */
    bool is_first = body.size >= size - 2 && memcmp(position, form->delimiter + 2, size - 2) == 0;
    position = is_first ? position + size - 2 : find(position, end, form->delimiter, size);
    if (!position) return false;
    leave(form, is_first ? position : position + size);
    return true;
}

bool multipart_next(struct multipart *form, struct multipart_part *ret_part)
{
    struct multipart_part part = {0};
    const uint8_t *position = form->left.data, *end = position + form->left.size;
    if (form->part_count++ == MULTIPART_PARTS_MAX || form->left.size == 0) return false;
    const uint8_t *limit =
        (size_t)(end - position) > MULTIPART_HEADER_BYTES_MAX ? position + MULTIPART_HEADER_BYTES_MAX : end;
    const uint8_t *header_end = find(position, limit, "\r\n\r\n", 4);
    if (!header_end) return false; /* "--": the end */
    const uint8_t *part_end = find(header_end + 2, end, form->delimiter, form->delimiter_size);
    if (!part_end) return false;
    read_names(slice_of(position, (size_t)(header_end - position)), &part);
    const uint8_t *start = header_end + 4;
    part.bytes = slice_of(start, part_end > start ? (size_t)(part_end - start) : 0);
    leave(form, part_end + form->delimiter_size);
    *ret_part = part;
    return true;
}

bool multipart_find(struct slice body, const char *type, const char *name, struct slice *ret_part)
{
    struct multipart form;
    struct multipart_part part;
    if (!multipart_open(&form, body, type)) return false;
    while (multipart_next(&form, &part)) {
        if (!slice_equals_text(part.name, name)) continue;
        *ret_part = part.bytes;
        return true;
    }
    return false;
}
