/* Seconds become nanoseconds in whole numbers: a double of today's seconds holds quarters of a microsecond only.
 * SPDX-License-Identifier: MIT */
#include "base/json_time.h"

#include "base/rfc3339.h"

enum { DECIMALS_OF_NS = 9, EXPONENT_MAX = 20 };

/* DIGITS × 10^EXPONENT, rounded down; UINT64_MAX where that does not fit. */
static uint64_t scale(uint64_t digits, int64_t exponent)
{
    if (digits == 0 || exponent < -EXPONENT_MAX) return 0;
    if (exponent > EXPONENT_MAX) return UINT64_MAX;
    for (; exponent < 0; exponent++) digits /= 10;
    for (; exponent > 0; exponent--) {
        if (__builtin_mul_overflow(digits, 10, &digits)) return UINT64_MAX;
    }
    return digits;
}

static uint64_t number_to_ns(const struct json_number *number)
{
    if (number->is_negative) return 0;
    if (number->is_exact) return scale(number->digits, number->exponent + DECIMALS_OF_NS);
    double ns = json_number_to_double(number) * 1e9;
    return ns < 0x1p64 ? (uint64_t)ns : UINT64_MAX;
}

uint64_t json_time_ns(struct json_reader *reader)
{
    uint64_t time_ns = 0;
    enum json_kind kind = json_peek(reader);
    if (kind == JSON_NUMBER) {
        struct json_number number = json_number(reader);
        return number_to_ns(&number);
    }
    if (kind != JSON_STRING) {
        json_skip(reader);
        return 0;
    }
    return rfc3339_parse(json_string(reader), &time_ns) ? time_ns : 0;
}
