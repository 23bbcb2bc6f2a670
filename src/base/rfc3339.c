/* Points in time as text; the calendar is libc's.  SPDX-License-Identifier: MIT */
#include "base/rfc3339.h"

#include "base/timespec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { DECIMALS = 9 };

/* Takes COUNT digits from the front of TEXT. */
static bool take_number(struct slice *text, size_t count, int *ret_number)
{
    int number = 0;
    if (text->size < count) return false;
    for (size_t i = 0; i < count; i++) {
        if (text->data[i] < '0' || text->data[i] > '9') return false;
        number = number * 10 + (text->data[i] - '0');
    }
    *text = slice_of(text->data + count, text->size - count);
    *ret_number = number;
    return true;
}

/* Takes one byte that is among ALLOWED. */
static bool take_one(struct slice *text, const char *allowed, uint8_t *ret_byte)
{
    if (text->size == 0 || text->data[0] == 0 || !strchr(allowed, text->data[0])) return false;
    if (ret_byte) *ret_byte = text->data[0];
    *text = slice_of(text->data + 1, text->size - 1);
    return true;
}

static bool take_calendar(struct slice *text, struct tm *ret_time)
{
    struct tm time = {0};
    if (!take_number(text, 4, &time.tm_year) || !take_one(text, "-", NULL) || !take_number(text, 2, &time.tm_mon) ||
        !take_one(text, "-", NULL) || !take_number(text, 2, &time.tm_mday) || !take_one(text, "Tt ", NULL) ||
        !take_number(text, 2, &time.tm_hour) || !take_one(text, ":", NULL) || !take_number(text, 2, &time.tm_min) ||
        !take_one(text, ":", NULL) || !take_number(text, 2, &time.tm_sec))
        return false;
    if (time.tm_hour > 23 || time.tm_min > 59 || time.tm_sec > 60) return false;
    time.tm_year -= 1900;
    time.tm_mon -= 1;
    *ret_time = time;
    return true;
}

/* Nanoseconds of ".123"; none are 0. */
static bool take_fraction(struct slice *text, int64_t *ret_ns)
{
    int64_t ns = 0;
    unsigned digits = 0;
    int digit;
    *ret_ns = 0;
    if (!take_one(text, ".,", NULL)) return true;
    for (; take_number(text, 1, &digit); digits++) {
        if (digits < DECIMALS) ns = ns * 10 + digit;
    }
    for (unsigned i = digits; i < DECIMALS; i++) ns *= 10;
    *ret_ns = ns;
    return digits > 0;
}

/* Seconds that "+01:00" is ahead of UTC. */
static bool take_zone(struct slice *text, int64_t *ret_seconds)
{
    uint8_t sign;
    int hours, minutes;
    *ret_seconds = 0;
    if (text->size == 0 || take_one(text, "Zz", NULL)) return true;
    if (!take_one(text, "+-", &sign) || !take_number(text, 2, &hours)) return false;
    (void)take_one(text, ":", NULL);
    if (!take_number(text, 2, &minutes) || hours > 23 || minutes > 59) return false;
    int64_t seconds = (hours * 60 + minutes) * 60;
    *ret_seconds = sign == '-' ? -seconds : seconds;
    return true;
}

bool rfc3339_parse(struct slice text, uint64_t *ret_time_ns)
{
    struct tm time;
    int64_t fraction_ns, zone_seconds;
    uint64_t ns;
    if (!take_calendar(&text, &time) || !take_fraction(&text, &fraction_ns) || !take_zone(&text, &zone_seconds) ||
        text.size > 0)
        return false;
    struct tm day = {.tm_year = time.tm_year, .tm_mon = time.tm_mon, .tm_mday = time.tm_mday};
    struct tm normal = day;
    (void)timegm(&normal); /* makes the 31st of February a day in March */
    if (day.tm_year != normal.tm_year || day.tm_mon != normal.tm_mon || day.tm_mday != normal.tm_mday) return false;
    int64_t seconds = (int64_t)timegm(&time) - zone_seconds;
    if (seconds < 0 || __builtin_mul_overflow((uint64_t)seconds, SECOND_NS, &ns) ||
        __builtin_add_overflow(ns, (uint64_t)fraction_ns, &ns))
        return false;
    *ret_time_ns = ns;
    return true;
}

void rfc3339_format(uint64_t time_ns, char ret_text[RFC3339_TEXT_SIZE])
{
    time_t seconds = (time_t)(time_ns / SECOND_NS);
    struct tm utc = {0};
    (void)gmtime_r(&seconds, &utc);
    uint64_t fraction_ns = time_ns % SECOND_NS;
    bool needs_ns = fraction_ns % 1000 != 0;
    /* 64 bits of nanoseconds end in 2554: the year has four digits. */
    (void)snprintf(ret_text, RFC3339_TEXT_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%0*uZ",
                   (unsigned)(utc.tm_year + 1900) % 10000, (unsigned)(utc.tm_mon + 1) % 100,
                   (unsigned)utc.tm_mday % 100, (unsigned)utc.tm_hour % 100, (unsigned)utc.tm_min % 100,
                   (unsigned)utc.tm_sec % 100, needs_ns ? 9 : 6,
                   (unsigned)(needs_ns ? fraction_ns : fraction_ns / 1000));
}

bool time_parse(const char *text, uint64_t *ret_time_ns)
{
    char *end;
    double seconds = strtod(text, &end);
    bool is_number = *text && *end == '\0' && isfinite(seconds) && seconds >= 0 && seconds < 9e9;
    if (!is_number) return rfc3339_parse(slice_of_text(text), ret_time_ns);
    *ret_time_ns = (uint64_t)seconds * 1000000000 + (uint64_t)((seconds - floor(seconds)) * 1e9);
    return true;
}
