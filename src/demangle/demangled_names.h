/* Readable names for functions whose source has the linker's names.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_DEMANGLE_DEMANGLED_NAMES_H
#define OFFBEAT_DEMANGLE_DEMANGLED_NAMES_H

#include "profile/profile.h"

/* Demangles the name of each function; the mangled one becomes its system name if it has none. Cuts hashes of Rust.
 * Only looks at the first and last bytes of names that are not mangled. Fails as profile_failed does. */
void profile_demangle(struct profile *profile);

/* Gives each function whose system name is mangled, or ends with a hash of Rust, that name, too. */
void profile_mangle(struct profile *profile);

#endif
