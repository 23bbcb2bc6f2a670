/* Capstone, loaded when it is first needed (doc/decisions/capstone.md).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_CAPSTONE_LIBRARY_H
#define OFFBEAT_SYMBOLIZE_CAPSTONE_LIBRARY_H

#include "base/status.h"

#include <capstone/capstone.h>

/* Its functions by their names without "cs_". */
#define CAPSTONE_FUNCTIONS(FUNCTION)                                                                                   \
    FUNCTION(open)                                                                                                     \
    FUNCTION(close)                                                                                                    \
    FUNCTION(option)                                                                                                   \
    FUNCTION(malloc)                                                                                                   \
    FUNCTION(free)                                                                                                     \
    FUNCTION(disasm_iter)                                                                                              \
    FUNCTION(strerror)

struct capstone_library {
#define CAPSTONE_MEMBER(name) __typeof__(cs_##name) *name;
    CAPSTONE_FUNCTIONS(CAPSTONE_MEMBER)
#undef CAPSTONE_MEMBER
};

/* The same for every caller, from any thread; loaded by the first one and never unloaded. NULL, at every later call
 * too, if the version of Capstone that offbeat was built with is not installed. */
const struct capstone_library *capstone_library_get(struct error *error);

#endif
