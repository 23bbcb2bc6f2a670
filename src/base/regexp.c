/* Compiles to a small program (Thompson's construction), which regexp_match.c and regexp_dfa.c run.
 *
 * Jumps are relative, so that the program of a part can be moved and copied: that is how a repetition is built from
 * what is before it. SPDX-License-Identifier: MIT */
#include "base/regexp.h"

#include "base/array.h"
#include "base/hex.h"
#include "base/regexp_private.h"

#include <stdlib.h>
#include <string.h>

enum { UNLIMITED = -1 };

/* --- Compiling ---------------------------------------------------------------------------------------------------- */

struct compiler {
    struct regexp *regexp;
    struct slice pattern;
    size_t place;
    unsigned depth;
    bool ignores_case, dot_is_all;
    struct error *error;
    enum status status;
};

static void reject(struct compiler *compiler, enum status status, const char *what)
{
    if (compiler->status == STATUS_OK)
        compiler->status = error_set(compiler->error, status, compiler->place, "a regular expression with %s", what);
}

static bool at_end(const struct compiler *compiler)
{
    return compiler->status != STATUS_OK || compiler->place >= compiler->pattern.size;
}

/* 0 at the end. */
static uint8_t peek(const struct compiler *compiler)
{
    return at_end(compiler) ? 0 : compiler->pattern.data[compiler->place];
}

static bool take(struct compiler *compiler, const char *text)
{
    size_t size = strlen(text);
    if (at_end(compiler) || compiler->pattern.size - compiler->place < size ||
        memcmp(compiler->pattern.data + compiler->place, text, size) != 0) {
        return false;
    }
    compiler->place += size;
    return true;
}

static uint32_t take_character(struct compiler *compiler)
{
    if (at_end(compiler)) {
        reject(compiler, STATUS_MALFORMED, "something missing at its end");
        return 0;
    }
    const uint8_t *at = compiler->pattern.data + compiler->place;
    uint32_t character = regexp_character(&at, compiler->pattern.data + compiler->pattern.size);
    compiler->place = (size_t)(at - compiler->pattern.data);
    return character;
}

static bool reserve(struct compiler *compiler, size_t more)
{
    struct regexp *regexp = compiler->regexp;
    if (compiler->status != STATUS_OK) return false;
    if (array_reserve(&regexp->instructions, &regexp->capacity, regexp->count + more, sizeof(*regexp->instructions),
                      REGEXP_INSTRUCTIONS_MAX)) {
        return true;
    }
    reject(compiler, regexp->count + more > REGEXP_INSTRUCTIONS_MAX ? STATUS_TOO_LARGE : STATUS_NO_MEMORY,
           "too many parts");
    return false;
}

static void insert(struct compiler *compiler, size_t at, struct regexp_instruction instruction)
{
    if (!reserve(compiler, 1)) return;
    struct regexp_instruction *place = compiler->regexp->instructions + at;
    memmove(place + 1, place, (compiler->regexp->count - at) * sizeof(*place));
    *place = instruction;
    compiler->regexp->count++;
}

static void append(struct compiler *compiler, struct regexp_instruction instruction)
{
    insert(compiler, compiler->regexp->count, instruction);
}

static void append_operation(struct compiler *compiler, enum operation operation)
{
    append(compiler, (struct regexp_instruction){.operation = operation});
}

static void add_range(struct compiler *compiler, uint32_t low, uint32_t high)
{
    struct regexp *regexp = compiler->regexp;
    if (compiler->status != STATUS_OK) return;
    if (!array_reserve(&regexp->ranges, &regexp->range_capacity, regexp->range_count + 1, sizeof(*regexp->ranges),
                       REGEXP_RANGES_MAX)) {
        reject(compiler, STATUS_TOO_LARGE, "too many classes of characters");
        return;
    }
    regexp->ranges[regexp->range_count++] = (struct regexp_range){low, high};
}

/* The part of LOW to HIGH that is within FIRST to LAST, moved by DISTANCE. */
static void add_moved(struct compiler *compiler, uint32_t low, uint32_t high, uint32_t first, uint32_t last,
                      int distance)
{
    uint32_t from = low > first ? low : first, to = high < last ? high : last;
    if (from <= to) add_range(compiler, (uint32_t)((int)from + distance), (uint32_t)((int)to + distance));
}

/* Adds the characters from LOW to HIGH, and their other case if the expression ignores case. */
static void add_characters(struct compiler *compiler, uint32_t low, uint32_t high)
{
    add_range(compiler, low, high);
    if (!compiler->ignores_case) return;
    add_moved(compiler, low, high, 'a', 'z', 'A' - 'a');
    add_moved(compiler, low, high, 'A', 'Z', 'a' - 'A');
}

static int compare_ranges(const void *left, const void *right)
{
    const struct regexp_range *a = left, *b = right;
    return a->low < b->low ? -1 : a->low > b->low;
}

/* Puts the ranges from FIRST on in order and joins those that touch, so that a match can search them. */
static void join_ranges(struct regexp *regexp, size_t first)
{
    struct regexp_range *ranges = regexp->ranges + first;
    size_t count = regexp->range_count - first, kept = 0;
    if (count < 2) return;
    qsort(ranges, count, sizeof(*ranges), compare_ranges);
    for (size_t i = 1; i < count; i++) {
        if (ranges[i].low > ranges[kept].high + 1) {
            ranges[++kept] = ranges[i];
        } else if (ranges[i].high > ranges[kept].high) {
            ranges[kept].high = ranges[i].high;
        }
    }
    regexp->range_count = first + kept + 1;
}

/* One character out of the ranges from FIRST on. */
static void append_ranges(struct compiler *compiler, size_t first, bool is_negated)
{
    if (compiler->status == STATUS_OK) join_ranges(compiler->regexp, first);
    append(compiler, (struct regexp_instruction){.operation = RANGES,
                                                 .is_negated = is_negated,
                                                 .to = (int32_t)first,
                                                 .other = (int32_t)(compiler->regexp->range_count - first)});
}

/* Pairs of first and last. */
static void add_pairs(struct compiler *compiler, const char *pairs, bool is_negated)
{
    uint32_t next = 0;
    for (; pairs[0]; pairs += 2) {
        uint32_t low = (uint8_t)pairs[0], high = (uint8_t)pairs[1];
        if (!is_negated) add_range(compiler, low, high);
        if (is_negated && next < low) add_range(compiler, next, low - 1);
        next = high + 1;
    }
    if (is_negated) add_range(compiler, next, CHARACTER_MAX);
}

/* \d, \w, \s and their opposites. False if LETTER is no such class. */
static bool add_perl_class(struct compiler *compiler, uint8_t letter)
{
    switch (letter | 0x20) {
    case 'd':
        add_pairs(compiler, "09", letter == 'D');
        return true;
    case 'w':
        add_pairs(compiler, "09AZ__az", letter == 'W');
        return true;
    case 's':
        add_pairs(compiler, "\t\n\f\r  ", letter == 'S');
        return true;
    default:
        return false;
    }
}

/* [:alpha:] and the like, after "[:". */
static void add_named_class(struct compiler *compiler)
{
    static const struct {
        const char *name, *pairs;
    } classes[] = {
        {"alnum:]", "09AZaz"},   {"alpha:]", "AZaz"},   {"blank:]", "\t\t  "}, {"cntrl:]", "\001\037\177\177"},
        {"digit:]", "09"},       {"graph:]", "!~"},     {"lower:]", "az"},     {"print:]", " ~"},
        {"punct:]", "!/:@[`{~"}, {"space:]", "\t\r  "}, {"upper:]", "AZ"},     {"word:]", "09AZ__az"},
        {"xdigit:]", "09AFaf"},
    };
    bool is_negated = take(compiler, "^");
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (!take(compiler, classes[i].name)) continue;
        add_pairs(compiler, classes[i].pairs, is_negated);
        return;
    }
    reject(compiler, STATUS_MALFORMED, "a class of characters that nobody knows");
}

/* Reads the digits after "\x". */
static uint32_t take_hex(struct compiler *compiler)
{
    bool has_braces = take(compiler, "{");
    uint32_t character = 0;
    int digits = 0;
    while (digits < (has_braces ? 6 : 2) && hex_digit(peek(compiler)) >= 0 && !at_end(compiler)) {
        character = character << 4 | (uint32_t)hex_digit(peek(compiler));
        compiler->place++;
        digits++;
    }
    if (digits == 0 || (!has_braces && digits != 2) || (has_braces && !take(compiler, "}")) ||
        character > CHARACTER_MAX)
        reject(compiler, STATUS_MALFORMED, "a broken \\x");
    return character;
}

/* "\012" or "\12", whose first digit is FIRST; "\1" alone would be a back reference. */
static uint32_t take_octal(struct compiler *compiler, uint32_t first)
{
    uint32_t character = first - '0';
    bool is_octal = first == '0' || (peek(compiler) >= '0' && peek(compiler) <= '7');
    if (!is_octal) reject(compiler, STATUS_UNSUPPORTED, "a back reference");
    for (int digits = 1; digits < 3 && peek(compiler) >= '0' && peek(compiler) <= '7'; digits++)
        character = character * 8 + (take_character(compiler) - '0');
    return character;
}

/* The character that is after a backslash. */
static uint32_t take_escaped(struct compiler *compiler)
{
    static const char letters[] = "tnrfva", characters[] = "\t\n\r\f\v\a";
    uint32_t character = take_character(compiler);
    if (character == 'x') return take_hex(compiler);
    if (character >= '0' && character <= '7') return take_octal(compiler, character);
    const char *letter = character > 0 && character < 0x80 ? strchr(letters, (int)character) : NULL;
    if (letter) return (uint8_t)characters[letter - letters];
    bool is_plain = character < 0x80 && !(character >= '0' && character <= '9') &&
                    !((character | 0x20) >= 'a' && (character | 0x20) <= 'z');
    if ((character | 0x20) == 'p')
        reject(compiler, STATUS_UNSUPPORTED,
               "\\p, a class of Unicode, which offbeat does not know: write a class like [a-z]");
    if (!is_plain) reject(compiler, STATUS_UNSUPPORTED, "an escape that is not known");
    return character;
}

/* One end of a range in a class. */
static uint32_t take_class_character(struct compiler *compiler)
{
    return take(compiler, "\\") ? take_escaped(compiler) : take_character(compiler);
}

static void compile_class_item(struct compiler *compiler)
{
    if (take(compiler, "[:")) {
        add_named_class(compiler);
        return;
    }
    if (peek(compiler) == '\\' && compiler->place + 1 < compiler->pattern.size &&
        add_perl_class(compiler, compiler->pattern.data[compiler->place + 1])) {
        compiler->place += 2;
        return;
    }
    uint32_t low = take_class_character(compiler), high = low;
    bool is_range = peek(compiler) == '-' && compiler->place + 1 < compiler->pattern.size &&
                    compiler->pattern.data[compiler->place + 1] != ']';
    if (is_range) {
        compiler->place++;
        high = take_class_character(compiler);
    }
    if (high < low) reject(compiler, STATUS_MALFORMED, "a range that ends before it begins");
    add_characters(compiler, low, high);
}

/* Compiles the class after "[". */
static void compile_class(struct compiler *compiler)
{
    size_t first = compiler->regexp->range_count;
    bool is_negated = take(compiler, "^");
    do {
        compile_class_item(compiler);
    } while (!at_end(compiler) && peek(compiler) != ']');
    if (!take(compiler, "]")) reject(compiler, STATUS_MALFORMED, "a [ that is not closed");
    append_ranges(compiler, first, is_negated);
}

static void compile_character(struct compiler *compiler, uint32_t character)
{
    size_t first = compiler->regexp->range_count;
    add_characters(compiler, character, character);
    append_ranges(compiler, first, false);
}

/* Compiles the literal after "\Q", up to "\E" or the end. All but the last character are already separate parts. */
static void compile_quoted(struct compiler *compiler, size_t *ret_last)
{
    while (!at_end(compiler) && !take(compiler, "\\E")) {
        *ret_last = compiler->regexp->count;
        compile_character(compiler, take_character(compiler));
    }
}

/* Compiles the escape after a backslash. */
static void compile_escape(struct compiler *compiler, size_t *ret_last)
{
    size_t first = compiler->regexp->range_count;
    if (take(compiler, "Q")) {
        compile_quoted(compiler, ret_last);
    } else if (take(compiler, "A")) {
        append_operation(compiler, BEGIN);
    } else if (take(compiler, "z")) {
        append_operation(compiler, END);
    } else if (take(compiler, "b")) {
        append_operation(compiler, WORD_EDGE);
    } else if (take(compiler, "B")) {
        append_operation(compiler, NO_WORD_EDGE);
    } else if (add_perl_class(compiler, peek(compiler))) {
        compiler->place++;
        append_ranges(compiler, first, false);
    } else {
        compile_character(compiler, take_escaped(compiler));
    }
}

static void compile_alternatives(struct compiler *compiler);

/* "i", "-s", …: up to ")" (true: they hold for the rest of the group around) or ":" (for this group). */
static bool take_flags(struct compiler *compiler)
{
    bool is_on = true;
    while (!at_end(compiler)) {
        uint32_t flag = take_character(compiler);
        if (flag == ')' || flag == ':') return flag == ')';
        if (flag == '-') {
            is_on = false;
        } else if (flag == 'i') {
            compiler->ignores_case = is_on;
        } else if (flag == 's') {
            compiler->dot_is_all = is_on;
        } else if (flag == 'U') {
            continue; /* greed does not change whether a text matches */
        } else {
            reject(compiler, STATUS_UNSUPPORTED, "a flag that is not known");
        }
    }
    reject(compiler, STATUS_MALFORMED, "a ( that is not closed");
    return true;
}

/* Compiles the group after "(". */
static void compile_group(struct compiler *compiler)
{
    bool ignores_case = compiler->ignores_case, dot_is_all = compiler->dot_is_all;
    if (compiler->depth == REGEXP_DEPTH_MAX) reject(compiler, STATUS_TOO_LARGE, "too many groups in groups");
    if (take(compiler, "?P<") || take(compiler, "?<")) {
        while (!at_end(compiler) && !take(compiler, ">")) compiler->place++; /* the name */
    } else if (take(compiler, "?") && take_flags(compiler)) {
        return;
    }
    compiler->depth++;
    compile_alternatives(compiler);
    compiler->depth--;
    if (!take(compiler, ")")) reject(compiler, STATUS_MALFORMED, "a ( that is not closed");
    compiler->ignores_case = ignores_case;
    compiler->dot_is_all = dot_is_all;
}

static void compile_atom(struct compiler *compiler, size_t *ret_last)
{
    *ret_last = compiler->regexp->count;
    uint32_t character = take_character(compiler);
    switch (character) {
    case '(':
        compile_group(compiler);
        break;
    case '[':
        compile_class(compiler);
        break;
    case '\\':
        compile_escape(compiler, ret_last);
        break;
    case '^':
        append_operation(compiler, BEGIN);
        break;
    case '$':
        append_operation(compiler, END);
        break;
    case '.': {
        size_t first = compiler->regexp->range_count;
        if (!compiler->dot_is_all) add_range(compiler, '\n', '\n');
        append_ranges(compiler, first, true);
        break;
    }
    case '*':
    case '+':
    case '?':
        reject(compiler, STATUS_MALFORMED, "nothing to repeat");
        break;
    default:
        compile_character(compiler, character);
    }
}

/* --- Repeating ---------------------------------------------------------------------------------------------------- */

/* The program from FIRST on, one more time at the end. */
static void append_copy(struct compiler *compiler, size_t first, size_t count)
{
    if (!reserve(compiler, count)) return;
    struct regexp_instruction *instructions = compiler->regexp->instructions;
    memcpy(instructions + compiler->regexp->count, instructions + first, count * sizeof(*instructions));
    compiler->regexp->count += count;
}

/* Repeats the part that begins at FIRST, MINIMUM to MAXIMUM times. */
static void repeat(struct compiler *compiler, size_t first, int minimum, int maximum)
{
    size_t size = compiler->regexp->count - first;
    if (maximum == 0 && compiler->status == STATUS_OK) compiler->regexp->count = first;
    size_t last = first; /* where the last copy begins */
    int copies = maximum == UNLIMITED ? (minimum > 1 ? minimum : 1) : maximum;
    for (int i = 1; i <= copies && compiler->status == STATUS_OK; i++) {
        if (i > 1) {
            last = compiler->regexp->count;
            append_copy(compiler, first + (size_t)(minimum == 0), size);
        }
        if (maximum == UNLIMITED && i == copies) { /* the operator + */
            int32_t size_of_last = (int32_t)(compiler->regexp->count - last);
            append(compiler, (struct regexp_instruction){.operation = SPLIT, .to = -size_of_last, .other = 1});
        }
        if (i > minimum) { /* the operator ? */
            int32_t size_of_last = (int32_t)(compiler->regexp->count - last);
            insert(compiler, last, (struct regexp_instruction){.operation = SPLIT, .to = 1, .other = size_of_last + 1});
        }
    }
}

/* A number below 10 000, or -1. */
static int take_count(struct compiler *compiler)
{
    int count = -1;
    while (peek(compiler) >= '0' && peek(compiler) <= '9' && count < 1000) {
        count = (count < 0 ? 0 : count * 10) + (peek(compiler) - '0');
        compiler->place++;
    }
    return count;
}

/* Takes "{n}", "{n,}" or "{n,m}". False takes nothing: "{" is a character then. */
static bool take_counts(struct compiler *compiler, int *ret_minimum, int *ret_maximum)
{
    size_t place = compiler->place;
    if (!take(compiler, "{")) return false;
    int minimum = take_count(compiler), maximum = minimum;
    if (minimum >= 0 && take(compiler, ",")) maximum = take_count(compiler);
    if (minimum < 0 || !take(compiler, "}")) {
        compiler->place = place;
        return false;
    }
    if (minimum > REGEXP_REPEAT_MAX || maximum > REGEXP_REPEAT_MAX || (maximum >= 0 && maximum < minimum))
        reject(compiler, STATUS_MALFORMED, "a repetition out of range");
    *ret_minimum = minimum;
    *ret_maximum = maximum;
    return true;
}

static bool take_repetition(struct compiler *compiler, int *ret_minimum, int *ret_maximum)
{
    *ret_minimum = 0;
    *ret_maximum = UNLIMITED;
    if (take(compiler, "*")) return true;
    if (take(compiler, "+")) {
        *ret_minimum = 1;
        return true;
    }
    if (take(compiler, "?")) {
        *ret_maximum = 1;
        return true;
    }
    return take_counts(compiler, ret_minimum, ret_maximum);
}

static void compile_part(struct compiler *compiler)
{
    size_t first;
    int minimum, maximum;
    compile_atom(compiler, &first);
    if (!take_repetition(compiler, &minimum, &maximum)) return;
    (void)take(compiler, "?"); /* greed does not change whether a text matches */
    repeat(compiler, first, minimum, maximum);
    if (take_repetition(compiler, &minimum, &maximum)) reject(compiler, STATUS_MALFORMED, "a repetition repeated");
}

/* "a|b|c": each but the last is a split that continues after it, and a jump to the end, which is known at the end. */
static void compile_alternatives(struct compiler *compiler)
{
    size_t jumps = 0; /* the latest, plus one; each holds the one before it */
    for (;;) {
        size_t first = compiler->regexp->count;
        while (!at_end(compiler) && peek(compiler) != '|' && peek(compiler) != ')') compile_part(compiler);
        if (!take(compiler, "|")) break;
        int32_t size = (int32_t)(compiler->regexp->count - first);
        insert(compiler, first, (struct regexp_instruction){.operation = SPLIT, .to = 1, .other = size + 2});
        append(compiler, (struct regexp_instruction){.operation = JUMP, .other = (int32_t)jumps});
        jumps = compiler->regexp->count;
    }
    while (jumps > 0 && compiler->status == STATUS_OK) {
        struct regexp_instruction *jump = &compiler->regexp->instructions[jumps - 1];
        jump->to = (int32_t)(compiler->regexp->count - (jumps - 1));
        jumps = (size_t)jump->other;
    }
}

enum status regexp_compile(struct regexp *regexp, struct slice pattern, struct error *error)
{
    *regexp = (struct regexp){0};
    struct compiler compiler = {.regexp = regexp, .pattern = pattern, .error = error};
    if (pattern.size > REGEXP_BYTES_MAX) reject(&compiler, STATUS_TOO_LARGE, "more than 65536 bytes");
    compile_alternatives(&compiler);
    if (!at_end(&compiler)) reject(&compiler, STATUS_MALFORMED, "a ) that nothing opens");
    append_operation(&compiler, MATCH);
    if (compiler.status == STATUS_OK) regexp->states = calloc(regexp->count * 5, sizeof(*regexp->states));
    regexp->steps_left = UINT64_MAX;
    if (compiler.status == STATUS_OK && !regexp->states) reject(&compiler, STATUS_NO_MEMORY, "too many parts");
    if (compiler.status != STATUS_OK) regexp_fini(regexp);
    return compiler.status;
}

void regexp_fini(struct regexp *regexp)
{
    free(regexp->instructions);
    free(regexp->ranges);
    free(regexp->states);
    regexp_dfa_free(regexp->dfa);
    *regexp = (struct regexp){0};
}
