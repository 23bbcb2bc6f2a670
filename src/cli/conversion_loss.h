/* Refusals and warnings of what a format has no place for.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_CONVERSION_LOSS_H
#define OFFBEAT_CLI_CONVERSION_LOSS_H

#include "format/format.h"

/* Whether FORMAT can store the values of PROFILE, as the format's KEEPS_ANY_UNIT and KEEPS_NEGATIVES say. False after a
 * line on standard error. */
bool check_values(const struct profile *profile, const char *path, const struct format *format);

/* Names on standard error, in one line, what PROFILE has and FORMAT cannot store. */
void warn_conversion_loss(const struct profile *profile, const char *path, const struct format *format);

#endif
