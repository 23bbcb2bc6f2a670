/* Linker names → names for people: C++ (Itanium ABI) and Rust (legacy and v0).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_DEMANGLER_H
#define OFFBEAT_SYMBOLIZE_DEMANGLER_H

#include "base/buffer.h"
#include "base/index_table.h"

/* A short mangled name can stand for gigabytes, since it may refer to its own parts again and again. */
enum { DEMANGLED_BYTES_MAX = 64 << 10, DEMANGLER_NAMES_MAX = 16 << 20 };

/* Remembers what it demangled. {0} is valid and empty. */
struct demangler {
    struct index_table index;
    struct demangled_name *names;
    size_t count, capacity;
};

/* The name for people, with parameters; MANGLED itself if it is not mangled, too long when demangled, or memory is
 * short. MANGLED must outlive DEMANGLER; the result is valid until demangler_fini. */
const char *demangle(struct demangler *demangler, const char *mangled);

void demangler_fini(struct demangler *demangler);

#endif
