/* Names without what differs from run to run or from build to build.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_COMPARABLE_NAME_H
#define OFFBEAT_PROFILE_COMPARABLE_NAME_H

#include "base/buffer.h"
#include "profile/profile.h"

/* Appends the function name NAME without addresses, run numbers, optimization marks of V8, and hashes of Rust and LLVM.
 * Offsets such as "libx.so+0x1234" stay. doc/man/offbeat-diff.1 lists the rules. */
void comparable_name_append(struct slice name, struct buffer *out);

/* Appends the name of the module at PATH without folder and version: "libfoo.so" for /usr/lib/libfoo.so.1.2.3. */
void comparable_module_append(struct slice path, struct buffer *out);

/* Gives all functions comparable names. Nothing may be added to PROFILE afterwards. Fails as profile_failed does. */
void profile_give_comparable_names(struct profile *profile);

#endif
