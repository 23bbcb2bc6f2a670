/* Warnings of labels with several units.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_LABEL_UNIT_WARNINGS_H
#define OFFBEAT_CLI_LABEL_UNIT_WARNINGS_H

#include "profile/profile.h"

/* Warns of each label key that comes with several units, one line each on standard error. */
void warn_label_units(const struct profile *profile);

#endif
