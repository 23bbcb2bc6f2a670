/* Percentages as people write them: "1", "0.5", "12.5%".  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_PERCENT_H
#define OFFBEAT_BASE_PERCENT_H

#include <stdbool.h>
#include <stdint.h>

enum { PERCENT_PPM = 10000 };

/* Reads TEXT in parts of a million, rounded down. False if TEXT is no such number or is over 100. Calls no function: it
 * is used before libc is ready. */
static inline bool percent_parse(const char *text, uint32_t *ret_ppm)
{
    uint32_t ppm = 0, unit = PERCENT_PPM;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && ppm <= 100 * PERCENT_PPM; at++)
        ppm = ppm * 10 + (uint32_t)(*at - '0') * PERCENT_PPM;
    if (at == text) return false;
    if (*at == '.') at++;
    for (; *at >= '0' && *at <= '9'; at++) ppm += (uint32_t)(*at - '0') * (unit /= 10);
    if (*at == '%') at++;
    *ret_ppm = ppm;
    return *at == '\0' && ppm <= 100 * PERCENT_PPM;
}

#endif
