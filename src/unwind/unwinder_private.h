/* The copies of this folder for each machine.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_UNWINDER_PRIVATE_H
#define OFFBEAT_UNWIND_UNWINDER_PRIVATE_H

#include "unwind/unwinder.h"

extern const struct unwinder unwinder_of_chosen_machine;       /* unwinder of the copy which includes this */
extern const struct unwinder other_unwinder_of_chosen_machine; /* unwinder of the second copy */

#endif
