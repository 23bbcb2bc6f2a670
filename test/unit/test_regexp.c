/* RE2's syntax (PPF-9), as drop_frames and keep_frames have it.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "base/regexp.h"

static bool matches(const char *pattern, const char *text, bool (*match)(struct regexp *, struct slice))
{
    struct regexp regexp;
    struct error error = {0};
    if (regexp_compile(&regexp, slice_of_text(pattern), &error) != STATUS_OK)
        TEST_FAIL("%s: %s", pattern, error.message);
    bool is_match = match(&regexp, slice_of_text(text));
    regexp_fini(&regexp);
    return is_match;
}

static void check_whole(const char *pattern, const char *text, bool expected)
{
    if (matches(pattern, text, regexp_matches_whole) != expected)
        TEST_FAIL("/%s/ and all of \"%s\": %s", pattern, text, expected ? "no match" : "a match");
}

TEST(the_entire_text_must_match_PPF_9)
{
    check_whole("malloc", "malloc", true);
    check_whole("malloc", "malloc2", false);
    check_whole("malloc", "mymalloc", false);
    check_whole("a|bc|", "bc", true);
    check_whole("a|bc|", "", true);
    check_whole("a|bc", "b", false);
    check_whole("^a$|^$", "", true);
    check_whole("a^b", "ab", false);
    check_whole("", "", true);
}

TEST(repetitions_are_counted)
{
    static const struct {
        const char *pattern;
        unsigned minimum, maximum;
    } cases[] = {{"a*", 0, 9},     {"a+", 1, 9},     {"a?", 0, 1},       {"a{3}", 3, 3},          {"a{2,}", 2, 9},
                 {"a{2,4}", 2, 4}, {"a{0,2}", 0, 2}, {"a{0}", 0, 0},     {"a{0,}", 0, 9},         {"a*?", 0, 9},
                 {"(a*)*", 0, 9},  {"(a|b)+", 1, 9}, {"(aa?){2}", 2, 4}, {"(?:a{1,2}){2}", 2, 4}, {"(a?){0,3}", 0, 3}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (unsigned length = 0; length <= 9; length++)
            check_whole(cases[i].pattern, "aaaaaaaaa" + 9 - length,
                        length >= cases[i].minimum && length <= cases[i].maximum);
    }
    check_whole("x{1,y", "x{1,y", true);
}

TEST(classes_escapes_and_flags_agree_with_RE2)
{
    check_whole("[a-c]+[^0-9-]", "abcx", true);
    check_whole("[a-c]+[^0-9-]", "abc-", false);
    check_whole("[]a]+", "]a]", true);
    check_whole("[[:alpha:]_]+", "ab_", true);
    check_whole("[[:^alpha:]]+", "12", true);
    check_whole("[\\w.-]+", "a_1.-", true);
    check_whole("\\141\\0\\60(?U:a+)", "a\1", false);
    check_whole("\\141\\060\\12(?U:a+)", "a0\naa", true);
    check_whole("\\d\\D\\s\\S\\w\\W", "1a b_-", true);
    check_whole("\\x41\\x{e9}\\.\\t", "A\xc3\xa9.\t", true);
    check_whole("\\Qa.b\\E+", "a.bbb", true);
    check_whole("\\Qa.b\\E+", "a.ba.b", false);
    check_whole("(?i)MalLoc", "mALloC", true);
    check_whole("(?i:a)b", "Ab", true);
    check_whole("(?i:a)b", "AB", false);
    check_whole("a.b", "a\nb", false);
    check_whole("(?s)a.b", "a\nb", true);
    check_whole("(?P<name>a)(?:b)", "ab", true);
    check_whole(".", "\xc3\xa9", true);
    check_whole("operator new(\\[\\])?", "operator new[]", true);
    check_whole("runtime\\..*", "runtime.mallocgc", true);
    check_whole("runtime\\..*", "runtimeXmallocgc", false);
}

TEST(a_match_within_a_text_is_found)
{
    CHECK(matches("b+", "abba", regexp_matches_within));
    CHECK(!matches("^b", "abba", regexp_matches_within));
    CHECK(matches("a$", "abba", regexp_matches_within));
    CHECK(matches("\\bnew\\b", "operator new[]", regexp_matches_within));
    CHECK(!matches("\\bnew\\b", "operator newer", regexp_matches_within));
    CHECK(matches("", "", regexp_matches_within));
}

TEST(what_is_broken_or_not_known_is_rejected)
{
    static const struct {
        const char *pattern;
        enum status status;
    } cases[] = {
        {"(a", STATUS_MALFORMED},          {"a)", STATUS_MALFORMED},
        {"[a", STATUS_MALFORMED},          {"*a", STATUS_MALFORMED},
        {"a**", STATUS_MALFORMED},         {"a{2,1}", STATUS_MALFORMED},
        {"a{1001}", STATUS_MALFORMED},     {"[b-a]", STATUS_MALFORMED},
        {"\\x{110000}", STATUS_MALFORMED}, {"a\\", STATUS_MALFORMED},
        {"\\pL", STATUS_UNSUPPORTED},      {"[\\P{Greek}]", STATUS_UNSUPPORTED},
        {"\\1", STATUS_UNSUPPORTED},       {"(?m)a", STATUS_UNSUPPORTED},
        {"[[:none:]]", STATUS_MALFORMED},  {"((a{100}){100}){100}", STATUS_TOO_LARGE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct regexp regexp;
        struct error error = {0};
        enum status status = regexp_compile(&regexp, slice_of_text(cases[i].pattern), &error);
        regexp_fini(&regexp);
        if (status != cases[i].status) TEST_FAIL("/%s/: %d, %s", cases[i].pattern, status, error.message);
    }
    char deep[401];
    memset(deep, '(', 200);
    memset(deep + 200, ')', 200);
    deep[400] = '\0';
    struct regexp regexp;
    CHECK_UINT(regexp_compile(&regexp, slice_of_text(deep), NULL), STATUS_TOO_LARGE);
}

TEST(no_expression_takes_more_than_linear_time)
{
    char *text = malloc(20001);
    memset(text, 'a', 20000);
    text[20000] = '\0';
    check_whole("(a*)*(a*)*(a|a|aa)*b", text, false);
    check_whole("(a?){500}(a*)*", text, true);
    free(text);
}

/* Ranges of a class are sorted and joined, and then searched. */
TEST(a_class_of_many_ranges_matches_just_its_characters)
{
    char pattern[4096] = "[";
    bool is_in[128] = {false};
    for (unsigned i = 0; i < 300; i++) {
        unsigned low = 'A' + i * 37 % 50, high = low + i % 3;
        (void)snprintf(pattern + strlen(pattern), 5, "\\x%02x", low);
        (void)snprintf(pattern + strlen(pattern), 6, "-\\x%02x", high);
        for (unsigned c = low; c <= high; c++) is_in[c] = true;
    }
    (void)snprintf(pattern + strlen(pattern), 2, "]");
    for (int negated = 0; negated < 2; negated++) {
        for (unsigned c = 1; c < 128; c++) {
            char text[2] = {(char)c, '\0'};
            check_whole(pattern, text, is_in[c] != (negated == 1));
        }
        memmove(pattern + 2, pattern + 1, strlen(pattern));
        pattern[1] = '^';
    }
}

TEST(a_match_stops_when_its_steps_are_used_up)
{
    struct regexp regexp;
    CHECK_UINT(regexp_compile(&regexp, slice_of_text("a*b"), NULL), STATUS_OK);
    CHECK(regexp_matches_whole(&regexp, slice_of_text("aaaab")));
    regexp.steps_left = 30;
    CHECK(regexp_matches_whole(&regexp, slice_of_text("aaaab")));
    CHECK(!regexp.is_exhausted);
    CHECK(!regexp_matches_whole(&regexp, slice_of_text("aaaab")));
    CHECK(regexp.is_exhausted);
    CHECK(!regexp_matches_whole(&regexp, slice_of_text("b")));
    regexp_fini(&regexp);
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* A random expression of LENGTH parts, most of which compile. */
static void append_random(char *text, size_t size, uint32_t *state)
{
    static const char *const parts[] = {"a",        "b",           "c", ".",   "[ab]", "[^a]",  "(a|b)", "(?:ab|c)",
                                        "\\b",      "\\B",         "^", "$",   "\\w",  "\\W",   "(b*)",  " ",
                                        "\xc3\xa9", "[a\xc3\xa9]", "|", "\\A", "\\z",  "(?i)A", "a{2}",  "_"};
    static const char *const repetitions[] = {"", "", "", "*", "+", "?", "{2,3}"};
    text[0] = '\0';
    for (uint32_t count = next_random(state) % 7; count > 0; count--) {
        strncat(text, parts[next_random(state) % (sizeof(parts) / sizeof(parts[0]))], size - strlen(text) - 1);
        strncat(text, repetitions[next_random(state) % 7], size - strlen(text) - 1);
    }
}

/* The automaton finds a match within a text where the program matches the entire text with anything around. */
TEST(a_search_agrees_with_a_full_match_with_anything_around)
{
    static const char *const letters[] = {"a", "b", "c", " ", "_", "A", "\n", "\xc3\xa9", "\xff"};
    uint32_t state = 20260101, compared = 0, matched = 0;
    for (int i = 0; i < 30000; i++) {
        char pattern[128], around[160], text[64] = "";
        struct regexp within, whole;
        append_random(pattern, sizeof(pattern), &state);
        (void)snprintf(around, sizeof(around), "(?s:.*)(?:%s)(?s:.*)", pattern);
        if (regexp_compile(&within, slice_of_text(pattern), NULL) != STATUS_OK) continue;
        CHECK_UINT(regexp_compile(&whole, slice_of_text(around), NULL), STATUS_OK);
        for (int k = 0; k < 8; k++) {
            text[0] = '\0';
            for (uint32_t count = next_random(&state) % 9; count > 0; count--)
                strcat(text, letters[next_random(&state) % (sizeof(letters) / sizeof(letters[0]))]);
            bool expected = regexp_matches_whole(&whole, slice_of_text(text));
            if (regexp_matches_within(&within, slice_of_text(text)) != expected)
                TEST_FAIL("/%s/ in \"%s\": %s", pattern, text, expected ? "no match" : "a match");
            compared++;
            matched += expected;
        }
        regexp_fini(&within);
        regexp_fini(&whole);
    }
    printf("# %u texts compared, %u matched\n", compared, matched);
    CHECK(matched > compared / 10 && matched < compared * 9 / 10);
}

TEST(hostile_expressions_take_steps_in_proportion_to_the_text)
{
    static const char *const patterns[] = {"(a+)+b",
                                           "(x+x+)+y|(a|aa)+c",
                                           "(a?){40}a{40}b",
                                           "(.*)(.*)(.*)(.*)(.*)b",
                                           "[ab]{1,200}[ac]{1,200}d",
                                           "(a*)*(a*)*b",
                                           "a.{12}b|(?i)(a|aa|aaa){1,30}z"};
    enum { LENGTH = 200000 };
    char *text = malloc(LENGTH + 1);
    memset(text, 'a', LENGTH);
    text[LENGTH] = '\0';
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        struct regexp regexp;
        CHECK_UINT(regexp_compile(&regexp, slice_of_text(patterns[i]), NULL), STATUS_OK);
        regexp.steps_left = 10 * (uint64_t)LENGTH;
        CHECK(!regexp_matches_within(&regexp, slice_of_text(text)));
        if (regexp.is_exhausted) TEST_FAIL("/%s/ took more than ten steps a byte", patterns[i]);
        regexp_fini(&regexp);
    }
    free(text);
}

/* 2^300 states: the automaton gives up, and the program continues, with as many steps as it has. */
TEST(an_expression_with_too_many_states_stays_right_and_limited)
{
    enum { LENGTH = 100000 };
    struct regexp regexp;
    uint32_t state = 1;
    char *text = malloc(LENGTH + 1);
    for (size_t i = 0; i < LENGTH; i++) text[i] = next_random(&state) >> 12 & 1 ? 'a' : 'b';
    CHECK_UINT(regexp_compile(&regexp, slice_of_text("a[ab]{300}c"), NULL), STATUS_OK);
    CHECK(!regexp_matches_within(&regexp, slice_of(text, LENGTH)));
    CHECK(!regexp.is_exhausted);
    text[LENGTH - 1] = 'c';
    text[LENGTH - 302] = 'a';
    CHECK(regexp_matches_within(&regexp, slice_of(text, LENGTH)));
    text[LENGTH - 302] = 'b';
    regexp.steps_left = 1000000;
    CHECK(!regexp_matches_within(&regexp, slice_of(text, LENGTH)));
    CHECK(regexp.is_exhausted);
    regexp_fini(&regexp);
    free(text);
}

/* Any bytes: compiled or rejected, and what was compiled matches or not. */
TEST(arbitrary_expressions_never_crash)
{
    static const char alphabet[] = "ab()[]{}|*+?\\^$.,-:?idwsxQEbz0129\xc3\xa9=P<>";
    uint64_t random = 88172645463325252u;
    unsigned compiled = 0;
    for (int round = 0; round < 20000; round++) {
        char pattern[24];
        size_t size = 0;
        for (random ^= random << 13, random ^= random >> 7, random ^= random << 17; size < random % 23; size++) {
            pattern[size] = alphabet[(random >> (size * 2 + 5)) % (sizeof(alphabet) - 1)];
        }
        struct regexp regexp;
        if (regexp_compile(&regexp, slice_of(pattern, size), NULL) != STATUS_OK) continue;
        compiled++;
        (void)regexp_matches_whole(&regexp, slice_of_text("ab0 ba\xc3\xa9"));
        (void)regexp_matches_within(&regexp, slice_of_text("ab0 ba\xc3\xa9"));
        regexp_fini(&regexp);
    }
    CHECK(compiled > 100);
}

TEST_MAIN()
