/* X-Sentry-Rate-Limits: "60:transaction;profile:organization:reason, 2.5::project".  SPDX-License-Identifier: MIT */
#include "spool/rate_limits.h"

#include "base/clocks.h"

#include <stdio.h>
#include <time.h>

enum { LIMIT_SECONDS_MAX = 24 * 60 * 60, LIMIT_SECONDS_DEFAULT = 60, LIMITS_MAX = 64 /* in one header */ };

/* Takes up to the next SEPARATOR, which is passed over, and cuts spaces off at both ends. */
static struct slice take_part(struct slice *rest, char separator)
{
    const uint8_t *end = rest->size ? memchr(rest->data, separator, rest->size) : NULL;
    struct slice part = slice_of(rest->data, end ? (size_t)(end - rest->data) : rest->size);
    size_t taken = part.size + (end != NULL);
    *rest = slice_of(rest->data + taken, rest->size - taken);
    while (part.size && (part.data[0] == ' ' || part.data[0] == '\t')) part = slice_of(part.data + 1, part.size - 1);
    while (part.size && strchr(" \t\r\n", part.data[part.size - 1])) part.size--;
    return part;
}

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

/* "12" or "2.5"; a longer time than the maximum is the maximum. */
static bool parse_seconds(struct slice text, uint64_t *ret_ns)
{
    uint64_t seconds = 0, fraction_ns = 0, digit_ns = SECOND_NS / 10;
    size_t i = 0;
    for (; i < text.size && is_digit(text.data[i]); i++) {
        seconds = seconds * 10 + (uint64_t)(text.data[i] - '0');
        if (seconds > LIMIT_SECONDS_MAX) seconds = LIMIT_SECONDS_MAX;
    }
    if (i == 0) return false;
    if (i < text.size && text.data[i] == '.') {
        for (i++; i < text.size && is_digit(text.data[i]); i++, digit_ns /= 10)
            fraction_ns += digit_ns * (uint64_t)(text.data[i] - '0');
    }
    if (i != text.size) return false;
    *ret_ns = seconds == LIMIT_SECONDS_MAX ? seconds * SECOND_NS : seconds * SECOND_NS + fraction_ns;
    return true;
}

/* "Wed, 21 Oct 2026 07:28:00 GMT", whatever the locale. */
static bool parse_date(struct slice text, uint64_t time_ns, uint64_t *ret_ns)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm date = {0};
    char line[40], month[4];
    if (text.size >= sizeof(line)) return false;
    memcpy(line, text.data, text.size);
    line[text.size] = 0;
    if (sscanf(line, "%*3s, %2d %3s %4d %2d:%2d:%2d GMT", &date.tm_mday, month, &date.tm_year, &date.tm_hour,
               &date.tm_min, &date.tm_sec) != 6)
        return false;
    const char *found = strstr(months, month);
    if (!found || (found - months) % 3 != 0) return false;
    date.tm_mon = (int)(found - months) / 3;
    date.tm_year -= 1900;
    time_t when = timegm(&date), now = (time_t)(time_ns / SECOND_NS);
    uint64_t seconds = when > now ? (uint64_t)(when - now) : 0;
    *ret_ns = (seconds < LIMIT_SECONDS_MAX ? seconds : LIMIT_SECONDS_MAX) * SECOND_NS;
    return true;
}

static void limit(uint64_t *until_ns, uint64_t new_until_ns)
{
    if (*until_ns < new_until_ns) *until_ns = new_until_ns;
}

static void read_limit(struct rate_limits *limits, uint64_t now_ns, struct slice text)
{
    uint64_t duration_ns = LIMIT_SECONDS_DEFAULT * SECOND_NS;
    struct slice seconds = take_part(&text, ':'), categories = take_part(&text, ':');
    (void)parse_seconds(seconds, &duration_ns);
    if (categories.size == 0) limit(&limits->all_until_ns, now_ns + duration_ns);
    while (categories.size) {
        enum category category;
        if (category_of_name(take_part(&categories, ';'), &category))
            limit(&limits->until_ns[category], now_ns + duration_ns);
    }
}

void rate_limits_update(struct rate_limits *limits, uint64_t now_ns, const struct rate_limit_answer *answer)
{
    struct slice rest = answer->rate_limits, retry_after = answer->retry_after;
    bool has_limits = false;
    for (unsigned i = 0; i < LIMITS_MAX && rest.size; i++) {
        struct slice text = take_part(&rest, ',');
        if (text.size == 0) continue;
        read_limit(limits, now_ns, text);
        has_limits = true;
    }
    if (has_limits || answer->status != 429) return;
    uint64_t duration_ns = LIMIT_SECONDS_DEFAULT * SECOND_NS;
    struct slice text = take_part(&retry_after, '\n');
    if (!parse_seconds(text, &duration_ns)) (void)parse_date(text, answer->time_ns, &duration_ns);
    limit(&limits->all_until_ns, now_ns + duration_ns);
}

uint64_t rate_limits_until(const struct rate_limits *limits, uint64_t now_ns, enum category category)
{
    uint64_t until_ns = limits->all_until_ns;
    if (category == CATEGORY_INTERNAL) return 0;
    limit(&until_ns, limits->until_ns[category]);
    if (category == CATEGORY_PROFILE_CHUNK) limit(&until_ns, limits->until_ns[CATEGORY_PROFILE_DURATION]);
    if (category == CATEGORY_PROFILE_CHUNK_UI) limit(&until_ns, limits->until_ns[CATEGORY_PROFILE_DURATION_UI]);
    return until_ns > now_ns ? until_ns : 0;
}
