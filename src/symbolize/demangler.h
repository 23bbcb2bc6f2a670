/* Linker names → names for people: C++ (Itanium ABI) and Rust (legacy and v0).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_DEMANGLER_H
#define OFFBEAT_SYMBOLIZE_DEMANGLER_H

#include "base/buffer.h"

/* A short mangled name can stand for gigabytes, since it may refer to its own parts again and again. */
enum { DEMANGLED_BYTES_MAX = 64 << 10 };

/* Writes the readable name, with parameters, to INTO, with a NUL. False if MANGLED is not mangled, too long when
 * demangled, or memory is short. Several threads may call it, each with its own INTO. */
bool demangle(const char *mangled, struct buffer *into);

#endif
