/* The command line: what is understood and what is rejected.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "cli/options.h"

#include <unistd.h>

static struct {
    bool json;
    const char *name;
    struct option_texts outputs;
    uint64_t frequency, duration_ns, cpu_ppm;
    unsigned mode;
} given;

static const struct option options[] = {
    {"json", 'j', OPTION_SWITCH, &given.json, .help = "."},
    {"name", 0, OPTION_TEXT, &given.name, .argument = "NAME", .help = "."},
    {"output", 'o', OPTION_TEXTS, &given.outputs, .argument = "FILE", .help = "."},
    {"frequency", 'F', OPTION_NUMBER, &given.frequency, .argument = "HZ", .help = ".", .minimum = 1, .maximum = 1000},
    {"duration", 'd', OPTION_SECONDS, &given.duration_ns, .argument = "S", .help = ".", .maximum = 10000000000},
    {"cpu", 0, OPTION_PERCENT, &given.cpu_ppm, .argument = "P", .help = ".", .minimum = 1000, .maximum = 1000000},
    {"mode", 0, OPTION_CHOICE, &given.mode, .argument = "wall|cpu", .help = "."},
    {0},
};

static struct operands operands;
static enum exit_status status;

/* Parses LINE, cut at spaces. The standard streams are not checked here. */
static bool parse(const char *line, bool stops_at_operand)
{
    static char copy[256];
    static char *words[32];
    int count = 0;
    char *rest = copy;
    (void)snprintf(copy, sizeof(copy), "%s", line);
    for (char *word = strsep(&rest, " "); word; word = strsep(&rest, " ")) words[count++] = word;
    words[count] = NULL;
    memset(&given, 0, sizeof(given));
    struct command_syntax syntax = {.name = words[0],
                                    .usage = "",
                                    .example = "",
                                    .about = "",
                                    .options = options,
                                    .operands_max = 4,
                                    .stops_at_operand = stops_at_operand};
    int saved = dup(STDERR_FILENO);
    CHECK(freopen("/dev/null", "w", stderr));
    bool is_parsed = options_parse(&syntax, count, words, &operands, &status);
    (void)fflush(stderr);
    (void)dup2(saved, STDERR_FILENO);
    (void)close(saved);
    return is_parsed;
}

TEST(options_are_before_and_after_operands_in_every_spelling)
{
    CHECK(parse("top a --json -o x --output y --output=z b -F99 --name=", false));
    CHECK(given.json);
    CHECK_UINT(given.outputs.count, 3);
    CHECK_TEXT(given.outputs.items[0], "x");
    CHECK_TEXT(given.outputs.items[2], "z");
    CHECK_UINT(given.frequency, 99);
    CHECK_TEXT(given.name, "");
    CHECK_UINT(operands.count, 2);
    CHECK_TEXT(operands.items[0], "a");
    CHECK_TEXT(operands.items[1], "b");
    CHECK(operands.items[2] == NULL);
}

TEST(percentages_are_read_exactly)
{
    static const struct {
        const char *line;
        uint64_t ppm; /* 0: rejected */
    } cases[] = {{"top --cpu 1%", 10000},
                 {"top --cpu 0.5", 5000},
                 {"top --cpu 12.34567%", 123456},
                 {"top --cpu 100%", 1000000},
                 {"top --cpu 0.1%", 1000},
                 {"top --cpu 0.09%", 0},
                 {"top --cpu 100.1%", 0},
                 {"top --cpu 99999999999999", 0},
                 {"top --cpu 4294968", 0},
                 {"top --cpu %", 0},
                 {"top --cpu -1", 0},
                 {"top --cpu 1%%", 0},
                 {"top --cpu .5", 0},
                 {"top --cpu 1e2", 0},
                 {"top --cpu=", 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_INT(parse(cases[i].line, false), cases[i].ppm != 0);
        if (cases[i].ppm) CHECK_UINT(given.cpu_ppm, cases[i].ppm);
    }
}

TEST(letters_can_share_a_word)
{
    CHECK(parse("top -jF 7 -", false));
    CHECK(given.json);
    CHECK_UINT(given.frequency, 7);
    CHECK_UINT(operands.count, 1);
    CHECK_TEXT(operands.items[0], "-");
}

TEST(nothing_after_two_dashes_is_an_option)
{
    CHECK(parse("top --json -- --name -j", false));
    CHECK(given.json);
    CHECK_UINT(operands.count, 2);
    CHECK_TEXT(operands.items[0], "--name");
}

TEST(the_options_of_a_command_that_is_run_are_its_own)
{
    CHECK(parse("record -F 5 xz -9 --json", true));
    CHECK(!given.json);
    CHECK_UINT(operands.count, 3);
    CHECK_TEXT(operands.items[1], "-9");
    CHECK(parse("record -- --json", true));
    CHECK(!given.json);
    CHECK_TEXT(operands.items[0], "--json");
}

TEST(values_outside_of_their_range_are_rejected)
{
    CHECK(parse("top -F 1000", false));
    CHECK(!parse("top -F 1001", false));
    CHECK_UINT(status, EXIT_WRONG_USE);
    CHECK(!parse("top -F 0", false));
    CHECK(!parse("top -F -1", false));
    CHECK(!parse("top -F 1x", false));
    CHECK(!parse("top -F 99999999999999999999999", false));
    CHECK(!parse("top -F=", false));
    CHECK(!parse("top --mode tick", false));
    CHECK(!parse("top --mode wal", false));
    CHECK(parse("top --mode cpu", false));
    CHECK_UINT(given.mode, 1);
}

TEST(seconds_are_read_to_the_nanosecond)
{
    CHECK(parse("top -d 1.5", false));
    CHECK_UINT(given.duration_ns, 1500000000);
    CHECK(parse("top -d 0.0000000019", false));
    CHECK_UINT(given.duration_ns, 1);
    CHECK(parse("top -d 10", false));
    CHECK(!parse("top -d 10.1", false));
    CHECK(!parse("top -d .", false));
    CHECK(!parse("top -d 1e3", false));
    CHECK(!parse("top -d 99999999999999999999", false));
}

TEST(what_is_not_an_option_is_rejected)
{
    CHECK(!parse("top --jsno", false));
    CHECK_UINT(status, EXIT_WRONG_USE);
    CHECK(!parse("top -x", false));
    CHECK(!parse("top --json=yes", false));
    CHECK(!parse("top --name", false));
    CHECK(!parse("top a b c d e", false));
}

TEST(distinguishes_a_typing_error_from_another_word)
{
    static const char *const names[] = {"top", "info", "convert", NULL};
    CHECK_TEXT(nearest_name("covnert", names, 4), "convert");
    CHECK_TEXT(nearest_name("ifno", names, 4), "info");
    CHECK_TEXT(nearest_name("tp", names, 4), "top");
    CHECK_TEXT(nearest_name("tpo", names, 4), "top");
    CHECK(nearest_name("zebra", names, 4) == NULL);
    CHECK(nearest_name("", names, 4) == NULL);
}

TEST_MAIN()
