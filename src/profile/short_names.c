/* One pass from left to right: what is not an argument list is copied. A demangler puts an argument list directly
 * after a name, or after a blank after an operator that ends in an angle bracket.  SPDX-License-Identifier: MIT */
#include "profile/short_names.h"

#include <ctype.h>

/* In a name: for each bracket, the rest of the name is searched. */
enum { OPEN_BRACKETS_MAX = 16 };

static uint8_t byte_at(struct slice name, size_t place)
{
    return place < name.size ? name.data[place] : '\0';
}

static bool is_word(uint8_t byte)
{
    return isalnum(byte) || byte == '_' || byte >= 0x80;
}

static bool begins_with(struct slice name, size_t place, const char *text)
{
    return place <= name.size && text_begins_with(text_from(name, place), text);
}

/* --- Operators ---------------------------------------------------------------------------------------------------- */

/* Returns whether the name of an operator ends at PLACE. It may be followed by arguments, template arguments, an ABI
 * tag, a suffix of the compiler. */
static bool ends_operator(struct slice name, size_t place)
{
    return place == name.size || strchr("(<[.@,)>", byte_at(name, place)) != NULL || begins_with(name, place, " <");
}

/* The size of an operator of angle brackets, "operator<<" for instance, at PLACE; 0: there is none. "operator<<int>" is
 * operator< with an argument. */
static size_t operator_size(struct slice name, size_t place)
{
    static const char *const symbols[] = {"<<=", ">>=", "<=>", "->*", "<<", ">>", "<=", ">=", "->", "<", ">"};
    static const char word[] = "operator";
    size_t word_size = sizeof(word) - 1;
    if (!begins_with(name, place, word) || (place > 0 && is_word(byte_at(name, place - 1)))) return 0;
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        size_t size = word_size + strlen(symbols[i]);
        if (begins_with(name, place + word_size, symbols[i]) && ends_operator(name, place + size)) return size;
    }
    return 0;
}

/* --- Argument lists ----------------------------------------------------------------------------------------------- */

/* Past the counterpart of the bracket OPEN at PLACE; 0: there is none. Inside of parentheses and braces, angle brackets
 * may be comparisons: only brackets of the same kind count. */
static size_t end_of_bracket(struct slice name, size_t place, uint8_t open, uint8_t close)
{
    size_t depth = 0;
    for (; place < name.size; place++) {
        if (name.data[place] == open) depth++;
        if (name.data[place] == close && --depth == 0) return place + 1;
    }
    return 0;
}

/* Past the argument list that begins at PLACE with "<"; 0: it has no end. */
static size_t end_of_arguments(struct slice name, size_t place)
{
    size_t depth = 0;
    while (place < name.size) {
        size_t next = place + 1, operator= operator_size(name, place);
        uint8_t byte = name.data[place];
        if (operator> 0)
            next = place + operator;
        else if (byte == '(')
            next = end_of_bracket(name, place, '(', ')');
        else if (byte == '{')
            next = end_of_bracket(name, place, '{', '}');
        else if (byte == '<')
            depth++;
        else if (byte == '>' && name.data[place - 1] != '-' && --depth == 0)
            return next;
        if (next == 0) return 0;
        place = next;
    }
    return 0;
}

/* Rust writes f::<T>. In C++, a name in angle brackets can follow "::", as <lambda(int)> and <unnamed struct> do. */
static bool is_turbofish(struct slice name, size_t place)
{
    static const char *const names[] = {"<lambda", "<unnamed", "<anonymous", "<impl ", "<init>", "<clinit>"};
    if (place < 3 || memcmp(name.data + place - 2, "::", 2) != 0 || !is_word(name.data[place - 3])) return false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (begins_with(name, place, names[i])) return false;
    }
    return true;
}

/* Whether the "<" at PLACE begins arguments of the name before it. */
static bool begins_arguments(struct slice name, size_t place)
{
    uint8_t before = place > 0 ? name.data[place - 1] : '\0';
    return is_word(before) || before == ')' || before == ']' || before == '}';
}

/* --- Names -------------------------------------------------------------------------------------------------------- */

/* Does the same as end_of_arguments, but for a name with many brackets that have no end. */
static size_t skip_arguments(struct slice name, size_t place, unsigned *open_brackets)
{
    size_t end = *open_brackets < OPEN_BRACKETS_MAX ? end_of_arguments(name, place) : 0;
    *open_brackets += end == 0;
    return end;
}

/* Copies an operator, and passes over its arguments, with the blank before them. Returns the place after. */
static size_t append_operator(struct slice name, size_t place, size_t size, unsigned *open_brackets, struct buffer *out)
{
    buffer_append(out, name.data + place, size);
    place += size;
    size_t arguments = place + (byte_at(name, place) == ' ');
    size_t end = byte_at(name, arguments) == '<' ? skip_arguments(name, arguments, open_brackets) : 0;
    return end > 0 ? end : place;
}

void short_name_append(struct slice name, struct buffer *out)
{
    unsigned open_brackets = 0;
    for (size_t place = 0; place < name.size;) {
        size_t operator= operator_size(name, place), end = 0;
        if (operator> 0) {
            place = append_operator(name, place, operator, & open_brackets, out);
            continue;
        }
        bool is_generic = name.data[place] == '<' && is_turbofish(name, place);
        if (name.data[place] == '<' && (is_generic || begins_arguments(name, place)))
            end = skip_arguments(name, place, &open_brackets);
        if (end == 0) buffer_append_byte(out, name.data[place++]);
        if (end > 0 && is_generic && !out->failed) out->size -= strlen("::");
        if (end > 0) place = end;
    }
}

void profile_give_short_names(struct profile *profile)
{
    struct buffer text;
    buffer_init(&text, PROFILE_STRING_BYTES_MAX);
    for (size_t i = 1; i < profile->functions.count; i++) {
        struct function *function = &profile->functions.items[i];
        struct string_id known = function->name.index ? function->name : function->system_name;
        struct slice name = profile_slice(profile, known);
        if (name.size == 0 || !memchr(name.data, '<', name.size)) continue;
        buffer_clear(&text);
        short_name_append(name, &text);
        if (!text.failed) function->name = profile_string(profile, buffer_slice(&text));
    }
    buffer_fini(&text);
}
