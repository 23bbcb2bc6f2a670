/* SPDX-License-Identifier: MIT */
#include "cli/option_sources.h"

#include "base/environment.h"
#include "base/file.h"
#include "cli/message.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { FILE_BYTES_MAX = 1 << 20, VARIABLE_NAME_SIZE = 80 };

static uint64_t bit_of(const struct command_syntax *syntax, const struct option *option)
{
    return (uint64_t)1 << (option - syntax->options);
}

/* Writes the name of the variable of OPTION without its beginning: "LOG_JSON" for "log-json". */
static void variable_ending(const struct option *option, char name[VARIABLE_NAME_SIZE])
{
    size_t size = 0;
    for (const char *letter = option->name; *letter && size + 1 < VARIABLE_NAME_SIZE; letter++)
        name[size++] = (char)(*letter == '-' ? '_' : toupper((unsigned char)*letter));
    name[size] = '\0';
}

static bool read_variables(const struct command_syntax *syntax, uint64_t *given)
{
    for (const struct option *option = syntax->options; option->name; option++) {
        char ending[VARIABLE_NAME_SIZE], name[2 * VARIABLE_NAME_SIZE];
        variable_ending(option, ending);
        (void)snprintf(name, sizeof(name), "%s%s", syntax->variables, ending);
        const char *text = environment_get(name);
        if (!text || !text[0] || (*given & bit_of(syntax, option))) continue;
        struct option named = *option;
        named.name = name;
        named.origin = "";
        if (!option_set(&named, text)) return false;
        *given |= bit_of(syntax, option);
    }
    return true;
}

/* Ends TEXT before the blanks at its end, and returns its first letter that is none. */
static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t size = strlen(text);
    while (size > 0 && strchr(" \t\r", text[size - 1])) text[--size] = '\0';
    return text;
}

/* Sets the option of LINE, "name = value". WHERE: the file and the number of the line, for messages. */
static bool read_line(const struct command_syntax *syntax, uint64_t given, char *line, const char *where)
{
    char *name = trim(line), *value = strchr(name, '=');
    const struct option *option = syntax->options;
    if (name[0] == '\0' || name[0] == '#') return true;
    if (!value) {
        message("%s\"%.60s\" must be an option, = and its value", where, name);
        return false;
    }
    *value++ = '\0';
    name = trim(name);
    while (option->name && strcmp(option->name, name) != 0) option++;
    if (!option->name || option->value == syntax->file) {
        message("%s%s has no option %.60s; see offbeat %s --help", where, syntax->name, name, syntax->name);
        return false;
    }
    struct option named = *option;
    named.origin = where;
    return (given & bit_of(syntax, option)) || option_set(&named, trim(value));
}

static bool read_file(const struct command_syntax *syntax, const char *path, uint64_t given)
{
    static struct buffer text; /* the values of options point into it */
    struct error error;
    unsigned number = 0;
    buffer_init(&text, FILE_BYTES_MAX);
    if (file_read(path, &text, &error) != STATUS_OK) {
        message("%s: %s: %s", syntax->name, path, error.message);
        return false;
    }
    buffer_append(&text, "", 1);
    if (text.failed || memchr(text.data, '\0', text.size - 1)) {
        message("%s: %s is no file of options", syntax->name, path);
        return false;
    }
    for (char *line = (char *)text.data, *next; line; line = next) {
        char where[512];
        next = strchr(line, '\n');
        if (next) *next++ = '\0';
        (void)snprintf(where, sizeof(where), "%.480s:%u: ", path, ++number);
        if (!read_line(syntax, given, line, where)) return false;
    }
    return true;
}

bool option_sources_read(const struct command_syntax *syntax, uint64_t given)
{
    if (syntax->variables && !read_variables(syntax, &given)) return false;
    return !syntax->file || !*syntax->file || read_file(syntax, *syntax->file, given);
}
