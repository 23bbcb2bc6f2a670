/* Parses a command line by a table of options, and prints the table as help.  SPDX-License-Identifier: MIT */
#include "cli/options.h"

#include "base/percent.h"

#include "cli/foreign_words.h"
#include "cli/message.h"
#include "cli/option_sources.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPTIONS_MAX = 64,     /* in one table */
    NAME_LENGTH_MAX = 63, /* length of names that are compared for likeness */
    HELP_COLUMN = 28,     /* where the help of an option begins */
    NANOSECONDS_DIGITS = 9
};

/* --- Slips of the finger -------------------------------------------------------------------------------------------
 */

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Returns the number of letters that must be put in, left out, changed or exchanged with the next one to turn A into
 * B. */
static unsigned edit_distance(const char *a, const char *b)
{
    unsigned rows[3][NAME_LENGTH_MAX + 1]; /* rows for letters of A: the current one and the two before */
    size_t length = strlen(b);
    if (length > NAME_LENGTH_MAX) return UINT32_MAX;
    for (unsigned j = 0; j <= length; j++) rows[0][j] = j;
    unsigned i = 0;
    for (; a[i]; i++) {
        const unsigned *before = rows[i % 3], *two_before = rows[(i + 2) % 3];
        unsigned *row = rows[(i + 1) % 3];
        row[0] = i + 1;
        for (unsigned j = 0; j < length; j++) {
            row[j + 1] = smaller(before[j] + (a[i] != b[j]), smaller(before[j + 1], row[j]) + 1);
            bool is_exchange = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
            if (is_exchange) row[j + 1] = smaller(row[j + 1], two_before[j - 1] + 1);
        }
    }
    return rows[i % 3][length];
}

const char *nearest_name(const char *wrong, const char *const *names, size_t count)
{
    const char *nearest = NULL;
    unsigned nearest_distance = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        if (!names[i]) continue;
        unsigned distance = edit_distance(wrong, names[i]);
        if (distance < nearest_distance) {
            nearest = names[i];
            nearest_distance = distance;
        }
    }
    /* A slip of two letters in a word of four is another word. */
    enum { SLIPS_MAX = 2, LETTERS_OF_A_SLIP = 3 };
    bool is_slip = nearest_distance <= SLIPS_MAX && nearest_distance * LETTERS_OF_A_SLIP <= strlen(wrong) + 1;
    return nearest && is_slip ? nearest : NULL;
}

/* --- Help ----------------------------------------------------------------------------------------------------------
 */

static bool takes_argument(const struct option *option)
{
    return option->kind != OPTION_SWITCH;
}

static void print_option(const struct option *option)
{
    char names[128];
    char letter[8] = "    ";
    if (option->letter) (void)snprintf(letter, sizeof(letter), "-%c, ", option->letter);
    int width = snprintf(names, sizeof(names), "  %s--%s%s%s", letter, option->name, takes_argument(option) ? " " : "",
                         takes_argument(option) ? option->argument : "");
    if (width < HELP_COLUMN) {
        printf("%-*s%s\n", HELP_COLUMN, names, option->help);
    } else {
        printf("%s\n%*s%s\n", names, HELP_COLUMN, "", option->help);
    }
}

static void print_help(const struct command_syntax *syntax)
{
    printf("Example: %s\n\nUsage: offbeat %s %s\n\n%s\n\nOptions:\n", syntax->example, syntax->name, syntax->usage,
           syntax->about);
    for (const struct option *option = syntax->options; option->name; option++) print_option(option);
    printf("%-*s%s\n", HELP_COLUMN, "  -h, --help", "this text");
}

/* --- Values: each gives false after it has said what is wrong. -----------------------------------------------------
 */

static const char *origin_of(const struct option *option)
{
    return option->origin ? option->origin : "--";
}

static bool set_number(const struct option *option, const char *text)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    bool is_number = text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
    if (!is_number || number < option->minimum || number > option->maximum) {
        message("%s%s must be a number from %" PRIu64 " to %" PRIu64 ", not \"%s\"", origin_of(option), option->name,
                option->minimum, option->maximum, text);
        return false;
    }
    *(uint64_t *)option->value = number;
    return true;
}

/* Converts decimal digits into nanoseconds, exactly; digits after the ninth are dropped. */
static bool parse_seconds(const char *text, uint64_t *ret_nanoseconds)
{
    uint64_t nanoseconds = 0;
    bool has_digits = false, has_point = false;
    unsigned decimals = 0;
    for (; *text; text++) {
        if (*text == '.' && !has_point) {
            has_point = true;
            continue;
        }
        if (*text < '0' || *text > '9') return false;
        has_digits = true;
        if (decimals == NANOSECONDS_DIGITS) continue;
        decimals += has_point;
        if (__builtin_mul_overflow(nanoseconds, 10, &nanoseconds) ||
            __builtin_add_overflow(nanoseconds, (uint64_t)(*text - '0'), &nanoseconds)) {
            return false;
        }
    }
    for (; decimals < NANOSECONDS_DIGITS; decimals++) {
        if (__builtin_mul_overflow(nanoseconds, 10, &nanoseconds)) return false;
    }
    *ret_nanoseconds = nanoseconds;
    return has_digits;
}

static bool set_seconds(const struct option *option, const char *text)
{
    uint64_t nanoseconds;
    if (!parse_seconds(text, &nanoseconds) || nanoseconds < option->minimum || nanoseconds > option->maximum) {
        message("%s%s must be seconds from %.12g to %.12g, not \"%s\"", origin_of(option), option->name,
                (double)option->minimum / 1e9, (double)option->maximum / 1e9, text);
        return false;
    }
    *(uint64_t *)option->value = nanoseconds;
    return true;
}

static bool set_percent(const struct option *option, const char *text)
{
    uint32_t ppm;
    if (!percent_parse(text, &ppm) || ppm < option->minimum || ppm > option->maximum) {
        message("%s%s must be from %.12g%% to %.12g%%, not \"%s\"", origin_of(option), option->name,
                (double)option->minimum / PERCENT_PPM, (double)option->maximum / PERCENT_PPM, text);
        return false;
    }
    *(uint64_t *)option->value = ppm;
    return true;
}

bool parse_decimal(const char *text, double *ret_value)
{
    char *end;
    bool has_digits_only = text[0] != '\0' && text[strspn(text, "0123456789.eE+-")] == '\0';
    double value = has_digits_only ? strtod(text, &end) : 0;
    if (!has_digits_only || *end != '\0' || !(value > -HUGE_VAL && value < HUGE_VAL)) return false;
    *ret_value = value;
    return true;
}

static bool set_decimal(const struct option *option, const char *text)
{
    double value;
    if (!parse_decimal(text, &value) || value < (double)option->minimum || value > (double)option->maximum) {
        message("%s%s must be a number from %" PRIu64 " to %" PRIu64 ", as 0.5, not \"%s\"", origin_of(option),
                option->name, option->minimum, option->maximum, text);
        return false;
    }
    *(double *)option->value = value;
    return true;
}

static bool set_choice(const struct option *option, const char *text)
{
    const char *word = option->argument;
    for (unsigned place = 0;; place++) {
        size_t length = strcspn(word, "|");
        if (strlen(text) == length && strncmp(word, text, length) == 0) {
            *(unsigned *)option->value = place;
            return true;
        }
        if (word[length] == '\0') break;
        word += length + 1;
    }
    message("%s%s must be one of %s, not \"%s\"", origin_of(option), option->name, option->argument, text);
    return false;
}

static bool add_text(const struct option *option, const char *text)
{
    struct option_texts *texts = option->value;
    if (texts->count == OPTION_TEXTS_MAX) {
        message("%s%s was given more than %d times", origin_of(option), option->name, OPTION_TEXTS_MAX);
        return false;
    }
    texts->items[texts->count++] = text;
    return true;
}

/* Sets an output once: one of two would silently not be written. */
static bool set_output(const struct option *option, const char *text)
{
    const char **path = option->value;
    if (*path) {
        message("%s%s was given twice, and one file is written: %s or %s?", origin_of(option), option->name,
                message_name(*path, true), message_name(text, true));
        return false;
    }
    *path = text;
    return true;
}

/* Sets the switch that TEXT, from a file or a variable, says. */
static bool set_switch(const struct option *option, const char *text)
{
    bool is_on = strcmp(text, "yes") == 0 || strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    bool is_off = strcmp(text, "no") == 0 || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
    if (is_on || is_off)
        *(bool *)option->value = is_on;
    else
        message("%s%s must be yes or no, not \"%s\"", origin_of(option), option->name, text);
    return is_on || is_off;
}

bool option_set(const struct option *option, const char *text)
{
    switch (option->kind) {
    case OPTION_SWITCH:
        return set_switch(option, text);
    case OPTION_TEXT:
        *(const char **)option->value = text;
        return true;
    case OPTION_OUTPUT:
        return set_output(option, text);
    case OPTION_TEXTS:
        return add_text(option, text);
    case OPTION_NUMBER:
        return set_number(option, text);
    case OPTION_SECONDS:
        return set_seconds(option, text);
    case OPTION_PERCENT:
        return set_percent(option, text);
    case OPTION_DECIMAL:
        return set_decimal(option, text);
    case OPTION_CHOICE:
        return set_choice(option, text);
    }
    return false;
}

/* --- Parsing -------------------------------------------------------------------------------------------------------
 */

struct parse {
    const struct command_syntax *syntax;
    char **argv;
    int argc, position;
    uint64_t given; /* bit set of the options' places */
};

static const struct option *find_option(const struct command_syntax *syntax, const char *name)
{
    for (const struct option *option = syntax->options; name && option->name; option++) {
        if (strcmp(option->name, name) == 0) return option;
    }
    return NULL;
}

/* Answers the word NAME of another tool; DASHES are those that it was given with. False if it is none. */
static bool answer_foreign(const struct parse *parse, const char *dashes, const char *name)
{
    const char *command = parse->syntax->name, *advice = advice_of_foreign_option(command, name);
    const struct option *own = find_option(parse->syntax, option_of_foreign_option(name));
    if (advice)
        message("%s has no option %s%s: it %s", command, dashes, name, advice);
    else if (own)
        message("%s has no option %s%s, but --%s%s%s: %s", command, dashes, name, own->name,
                takes_argument(own) ? " " : "", takes_argument(own) ? own->argument : "", own->help);
    return advice || own;
}

static void reject_unknown(const struct parse *parse, const char *name)
{
    if (answer_foreign(parse, "--", name)) return;
    const char *names[OPTIONS_MAX];
    size_t count = 0;
    for (const struct option *option = parse->syntax->options; option->name && count < OPTIONS_MAX; option++) {
        names[count++] = option->name;
    }
    const char *nearest = nearest_name(name, names, count);
    if (nearest) {
        message("%s has no option --%s; did you mean --%s?", parse->syntax->name, name, nearest);
    } else {
        message("%s has no option --%s; see offbeat %s --help", parse->syntax->name, name, parse->syntax->name);
    }
}

/* Takes OPTION. ATTACHED is the value in the same word, or NULL: then it is the next word. */
static bool take_option(struct parse *parse, const struct option *option, const char *attached)
{
    size_t place = (size_t)(option - parse->syntax->options);
    if (place < OPTIONS_MAX) parse->given |= (uint64_t)1 << place;
    if (!takes_argument(option)) {
        if (!attached) return option_set(option, "yes");
        message("--%s takes no value", option->name);
        return false;
    }
    if (attached) return option_set(option, attached);
    if (parse->position == parse->argc) {
        message("--%s needs a value: %s", option->name, option->argument);
        return false;
    }
    return option_set(option, parse->argv[parse->position++]);
}

/* Takes WORD, "name" or "name=value". */
static bool take_long(struct parse *parse, const char *word)
{
    char name[NAME_LENGTH_MAX + 1];
    size_t length = strcspn(word, "=");
    (void)snprintf(name, sizeof(name), "%.*s", (int)(length < NAME_LENGTH_MAX ? length : NAME_LENGTH_MAX), word);
    const struct option *option = find_option(parse->syntax, name);
    if (option) return take_option(parse, option, word[length] ? word + length + 1 : NULL);
    reject_unknown(parse, name);
    return false;
}

/* Takes WORD, one letter or several, "ab" as "a", "b", the last one with its value in the same word or in the next. */
static bool take_short(struct parse *parse, const char *word)
{
    for (; *word; word++) {
        const struct option *option = parse->syntax->options;
        while (option->name && option->letter != *word) option++;
        if (!option->name) {
            if (answer_foreign(parse, "-", (char[]){*word, '\0'})) return false;
            message("%s has no option -%c; see offbeat %s --help", parse->syntax->name, *word, parse->syntax->name);
            return false;
        }
        if (takes_argument(option)) return take_option(parse, option, word[1] ? word + 1 : NULL);
        if (!take_option(parse, option, NULL)) return false;
    }
    return true;
}

/* Takes one word that is an option, or the start of one. */
static bool take_word(struct parse *parse, const char *word)
{
    return word[1] == '-' ? take_long(parse, word + 2) : take_short(parse, word + 1);
}

static bool check_operands(const struct command_syntax *syntax, unsigned count)
{
    if (count < syntax->operands_min) {
        message("usage: offbeat %s %s; offbeat %s --help lists the options", syntax->name, syntax->usage, syntax->name);
        return false;
    }
    if (count > syntax->operands_max && syntax->operands_max == 0) {
        message("%s takes no operands; see offbeat %s --help", syntax->name, syntax->name);
        return false;
    }
    if (count > syntax->operands_max) {
        message("%s takes at most %u operand%s; see offbeat %s --help", syntax->name, syntax->operands_max,
                syntax->operands_max == 1 ? "" : "s", syntax->name);
        return false;
    }
    return true;
}

bool options_parse(const struct command_syntax *syntax, int argc, char **argv, struct operands *ret_operands,
                   enum exit_status *ret_status)
{
    struct parse parse = {.syntax = syntax, .argv = argv, .argc = argc, .position = 1};
    unsigned operand_count = 0; /* kept at argv[1…], over what was read already */
    unsigned before_dashes = UINT_MAX;
    bool is_ended = false;
    *ret_status = EXIT_WRONG_USE;
    while (parse.position < argc) {
        char *word = argv[parse.position++];
        if (is_ended || word[0] != '-' || word[1] == '\0') {
            argv[1 + operand_count++] = word;
            if (syntax->stops_at_operand) is_ended = true;
        } else if (strcmp(word, "--") == 0) {
            is_ended = true;
            before_dashes = operand_count;
        } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            print_help(syntax);
            *ret_status = EXIT_DONE;
            return false;
        } else if (!take_word(&parse, word)) {
            return false;
        }
    }
    if (!check_operands(syntax, operand_count) || !option_sources_read(syntax, parse.given)) return false;
    argv[1 + operand_count] = NULL; /* the end of ARGV, or a word that was read */
    *ret_operands = (struct operands){.items = argv + 1, .count = operand_count};
    ret_operands->before_dashes = before_dashes < operand_count ? before_dashes : operand_count;
    return true;
}
