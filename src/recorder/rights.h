/* The capabilities of this process.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_RIGHTS_H
#define OFFBEAT_RECORDER_RIGHTS_H

#include <stdbool.h>

/* Returns true if CAPABILITY, a number of <linux/capability.h>, is effective. */
bool rights_have(unsigned capability);

#endif
