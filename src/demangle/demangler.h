/* Linker names → names for people: C++ (Itanium ABI), Rust (legacy and v0) and D.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_DEMANGLE_DEMANGLER_H
#define OFFBEAT_DEMANGLE_DEMANGLER_H

#include "base/buffer.h"

/* A short mangled name can stand for gigabytes, since it may refer to its own parts again and again. */
enum { DEMANGLED_BYTES_MAX = 64 << 10 };

/* Writes the readable name, with parameters and without the hash of Rust, to INTO, with a NUL. A suffix from "@", "+"
 * or a blank on, such as "@plt" and "+0x1f", stays. False if MANGLED is not mangled, too long when demangled, or memory
 * is short. Several threads may call it, each with its own INTO. */
bool demangle(const char *mangled, struct buffer *into);

/* Whether NAME ends as legacy names of Rust do, in "::h" and 16 hexadecimal digits. */
bool name_has_hash(struct slice name);

/* Writes NAME without the hash of Rust to INTO, with a NUL: "mycrate::main" for "mycrate::main::h459eee3a05af1eb1". The
 * escapes of such a name ("_$u7b$") are decoded. False if NAME does not end with a hash, or memory is short. */
bool demangle_hashed(struct slice name, struct buffer *into);

#endif
