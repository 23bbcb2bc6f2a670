/* SPDX-License-Identifier: MIT */
#include "report/short_function_name.h"

#include <ctype.h>

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool is_word_or_dollar(char c)
{
    return is_word(c) || c == '$';
}

static bool is_capital(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_small(char c)
{
    return c >= 'a' && c <= 'z';
}

static const char *skip(const char *at, bool (*belongs)(char))
{
    while (belongs(*at)) at++;
    return at;
}

/* --- Go: "github.com/x/y/v2.(*T).f" ------------------------------------------------------------------------------- */

/* Finds "/v2" or a higher version of a module, before a dot or slash; NULL if there is none. */
static const char *find_version(const char *name, const char **ret_end)
{
    for (const char *at = strstr(name, "/v"); at; at = strstr(at + 1, "/v")) {
        const char *end = at + 2;
        while (isdigit((unsigned char)*end)) end++;
        size_t digits = (size_t)(end - at) - 2;
        bool is_version = digits == 1 ? at[2] >= '2' : digits > 1 && at[2] != '0';
        if (!is_version || (*end != '.' && *end != '/')) continue;
        *ret_end = end;
        return at;
    }
    return NULL;
}

static bool is_path_character(char c)
{
    return is_word(c) || c == '-' || c == '.';
}

/* Returns NAME after the last slash of its import path, if a package and a function follow; else NULL. */
static const char *go_function(const char *name)
{
    const char *found = NULL;
    for (const char *at = name;;) {
        const char *end = skip(at, is_path_character);
        if (end == at || *end != '/') return found;
        at = end + 1;
        const char *dot = strchr(at, '.');
        if (dot && dot > at && dot[1] != '\0') found = at;
    }
}

/* --- Java: "java.util.Map.get(Object)" ---------------------------------------------------------------------------- */

static const char *java_method(const char *name, const char **ret_end)
{
    const char *at = name;
    while (is_small(*at)) {
        const char *end = skip(at, is_word);
        if (*end != '.') return NULL;
        at = end + 1;
    }
    if (!is_capital(*at)) return NULL;
    const char *dot = skip(at, is_word_or_dollar);
    if (*dot != '.') return NULL;
    const char *end = dot + 1;
    if (strncmp(end, "<init>", strlen("<init>")) == 0)
        end += strlen("<init>");
    else if (is_small(*end))
        end = skip(end, is_word_or_dollar);
    else
        return NULL;
    if (*end != '(' && *end != '\0') return NULL;
    *ret_end = end;
    return at;
}

/* --- C++: "a::b::Class::method<int>" ------------------------------------------------------------------------------ */

static bool is_class(const char *name)
{
    while (*name == '_') name++;
    return is_capital(*name);
}

/* Finds the last class with a member and a namespace in front of it; NULL: there is none. */
static const char *cpp_member(const char *name, const char **ret_end)
{
    const char *found = NULL;
    for (const char *at = name; isalpha((unsigned char)*at) || *at == '_';) {
        const char *end = skip(at, is_word);
        if (strncmp(end, "::", 2) != 0) return found;
        const char *next = end + 2, *member = *next == '~' ? next + 1 : next;
        bool is_member = isalpha((unsigned char)*member) || *member == '_';
        if (at > name && is_class(at) && is_member) {
            found = at;
            *ret_end = skip(member, is_word);
        }
        at = next;
    }
    return found;
}

/* Template arguments belong to the name. */
static const char *after_template(const char *end)
{
    const char *last = *end == '<' ? strrchr(end, '>') : NULL;
    return last ? last + 1 : end;
}

/* ------------------------------------------------------------------------------------------------------------------ */

static void append_short(struct buffer *out, const char *name)
{
    const char *end = NULL, *found = go_function(name);
    if (found) {
        buffer_append_text(out, found);
    } else if ((found = java_method(name, &end))) {
        buffer_append(out, found, (size_t)(end - found));
    } else if ((found = cpp_member(name, &end))) {
        buffer_append(out, found, (size_t)(after_template(end) - found));
    } else {
        buffer_append_text(out, name);
    }
}

void short_function_name_append(struct buffer *out, const char *name)
{
    static const char anonymous[] = "(anonymous namespace)::";
    const char *end;
    if (strncmp(name, anonymous, strlen(anonymous)) == 0) name += strlen(anonymous);
    const char *version = find_version(name, &end);
    if (!version) {
        append_short(out, name);
        return;
    }
    struct buffer unversioned = {.maximum = SIZE_MAX};
    buffer_append(&unversioned, name, (size_t)(version - name));
    buffer_append(&unversioned, end, strlen(end) + 1);
    if (unversioned.failed)
        out->failed = true;
    else
        append_short(out, (const char *)unversioned.data);
    buffer_fini(&unversioned);
}
