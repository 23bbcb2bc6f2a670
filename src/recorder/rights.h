/* The rights of this process, and settings of the kernel that limit them.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_RIGHTS_H
#define OFFBEAT_RECORDER_RIGHTS_H

#include <stdbool.h>

/* Returns true if CAPABILITY, a number of <linux/capability.h>, is effective. */
bool rights_have(unsigned capability);

/* Returns the number in /proc/sys/kernel/NAME; -1 if the kernel has no such setting. */
int rights_kernel_setting(const char *name);

#endif
