/* Points in time as text. The calendar is not libc's: gmtime_r takes the lock of the time zone, and reads the zone with
 * malloc.  SPDX-License-Identifier: MIT */
#include "base/rfc3339.h"

#include "base/timespec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DECIMALS = 9 };

enum { DAYS_OF_ERA = 146097, YEARS_OF_ERA = 400, EPOCH_DAY = 719468 /* 1970-01-01, of days since 0000-03-01 */ };

struct date {
    int year, month, day; /* 2023, 11, 14 */
    int hour, minute, second;
};

/* --- The calendar: years begin in March, so that a leap day is the last day of one -------------------------------- */

/* Returns the days before month number MONTH (0: March). */
static int64_t days_before(int64_t month)
{
    return (153 * month + 2) / 5;
}

/* Returns days since 1970. */
static int64_t day_of(const struct date *date)
{
    int64_t year = date->year - (date->month <= 2) + YEARS_OF_ERA; /* not negative, as the first year is 0 */
    int64_t in_era = year % YEARS_OF_ERA, month = (date->month + 9) % 12;
    int64_t day = 365 * in_era + in_era / 4 - in_era / 100 + days_before(month) + date->day - 1;
    return (year / YEARS_OF_ERA - 1) * DAYS_OF_ERA + day - EPOCH_DAY;
}

/* Sets the day of RET_DATE, from days since 1970. */
static void set_day(struct date *ret_date, int64_t days)
{
    int64_t day = (days + EPOCH_DAY) % DAYS_OF_ERA;
    int64_t year = (day - day / 1460 + day / 36524 - day / (DAYS_OF_ERA - 1)) / 365;
    day -= 365 * year + year / 4 - year / 100;
    int64_t month = (5 * day + 2) / 153;
    ret_date->day = (int)(day - days_before(month) + 1);
    ret_date->month = (int)((month + 2) % 12 + 1);
    ret_date->year = (int)((days + EPOCH_DAY) / DAYS_OF_ERA * YEARS_OF_ERA + year + (ret_date->month <= 2));
}

/* False for the 31st of February. */
static bool is_day(const struct date *date)
{
    struct date same = {0};
    if (date->month < 1 || date->month > 12 || date->day < 1) return false;
    int64_t days = day_of(date);
    if (days < 0) return date->day <= 31; /* before 1970, which the caller refuses */
    set_day(&same, days);
    return same.month == date->month && same.day == date->day;
}

/* --- Text --------------------------------------------------------------------------------------------------------- */

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

static bool take_date(struct slice *text, struct date *ret_date)
{
    struct date date;
    bool is_date = take_number(text, 4, &date.year) && take_one(text, "-", NULL) && take_number(text, 2, &date.month) &&
                   take_one(text, "-", NULL) && take_number(text, 2, &date.day) && take_one(text, "Tt ", NULL) &&
                   take_number(text, 2, &date.hour) && take_one(text, ":", NULL) &&
                   take_number(text, 2, &date.minute) && take_one(text, ":", NULL) &&
                   take_number(text, 2, &date.second);
    if (!is_date || date.hour > 23 || date.minute > 59 || date.second > 60 || !is_day(&date)) return false;
    *ret_date = date;
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
    struct date date;
    int64_t fraction_ns, zone_seconds;
    uint64_t ns;
    if (!take_date(&text, &date) || !take_fraction(&text, &fraction_ns) || !take_zone(&text, &zone_seconds) ||
        text.size > 0)
        return false;
    int64_t seconds = ((day_of(&date) * 24 + date.hour) * 60 + date.minute) * 60 + date.second - zone_seconds;
    if (seconds < 0 || __builtin_mul_overflow((uint64_t)seconds, SECOND_NS, &ns) ||
        __builtin_add_overflow(ns, (uint64_t)fraction_ns, &ns))
        return false;
    *ret_time_ns = ns;
    return true;
}

void rfc3339_format(uint64_t time_ns, char ret_text[RFC3339_TEXT_SIZE])
{
    enum { SECONDS_OF_DAY = 24 * 60 * 60 };
    uint64_t seconds = time_ns / SECOND_NS, fraction_ns = time_ns % SECOND_NS;
    unsigned of_day = (unsigned)(seconds % SECONDS_OF_DAY);
    struct date utc;
    set_day(&utc, (int64_t)(seconds / SECONDS_OF_DAY));
    bool needs_ns = fraction_ns % 1000 != 0;
    /* 64 bits of nanoseconds end in 2554: the year has four digits. */
    (void)snprintf(ret_text, RFC3339_TEXT_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%0*uZ", (unsigned)utc.year % 10000,
                   (unsigned)utc.month % 100, (unsigned)utc.day % 100, of_day / 3600, of_day / 60 % 60, of_day % 60,
                   needs_ns ? 9 : 6, (unsigned)(needs_ns ? fraction_ns : fraction_ns / 1000));
}

bool time_parse(const char *text, uint64_t *ret_time_ns)
{
    char *end;
    double seconds = strtod(text, &end);
    bool is_number = *text && *end == '\0' && isfinite(seconds) && seconds >= 0 && seconds < 9e9;
    if (!is_number) return rfc3339_parse(slice_of_text(text), ret_time_ns);
    *ret_time_ns = (uint64_t)seconds * 1000000000 + (uint64_t)((seconds - (double)(uint64_t)seconds) * 1e9);
    return true;
}

bool time_before_parse(const char *text, uint64_t now_ns, uint64_t *ret_time_ns)
{
    static const struct {
        char unit;
        uint64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    if (strncmp(text, "now", 3) != 0) return false;
    text += 3;
    if (text[0] == '\0') {
        *ret_time_ns = now_ns;
        return true;
    }
    size_t digits = text[0] == '-' ? strspn(text + 1, "0123456789") : 0;
    if (digits == 0 || digits > 9 || text[digits + 1] == '\0' || text[digits + 2] != '\0') return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        uint64_t ago = strtoull(text + 1, NULL, 10) * units[i].seconds; /* in nanoseconds it may have over 64 bits */
        if (text[digits + 1] != units[i].unit || ago > now_ns / SECOND_NS) continue;
        *ret_time_ns = now_ns - ago * SECOND_NS;
        return true;
    }
    return false;
}
