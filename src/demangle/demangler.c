/* libiberty's demanglers with a bound on what they may print.  SPDX-License-Identifier: MIT */
#include "demangle/demangler.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>

enum { DEMANGLE_OPTIONS = DMGL_PARAMS | DMGL_ANSI };

struct printer {
    struct buffer *text;
    jmp_buf too_long;
};

/* The demanglers have no way to stop, so a name that grows past the bound jumps out of them. They print from their
 * own stack frames and hold nothing that would have to be released, save a Rust identifier in Punycode. */
static void take_text(const char *text, size_t size, void *context)
{
    struct printer *printer = context;
    if (printer->text->size + size > DEMANGLED_BYTES_MAX) printer->text->failed = true;
    buffer_append(printer->text, text, size);
    if (printer->text->failed) longjmp(printer->too_long, 1);
}

static bool print_name(struct printer *printer, const char *mangled)
{
    if (setjmp(printer->too_long) != 0) return false;
    if (rust_demangle_callback(mangled, DEMANGLE_OPTIONS, take_text, printer)) return true;
    buffer_clear(printer->text);
    return cplus_demangle_v3_callback(mangled, DEMANGLE_OPTIONS, take_text, printer);
}

/* D's demangler has no callback and does not limit its recursion or its output: both are limited by the name. Each "Q"
 * may repeat all that stands before it. */
static bool print_d_name(struct buffer *text, const char *mangled)
{
    enum { MANGLED_BYTES_MAX = 1024, WORST_BYTES_MAX = 4 << 20 };
    size_t size = strlen(mangled), worst_size = size;
    if (size > MANGLED_BYTES_MAX) return false;
    for (size_t i = 0; i < size && worst_size <= WORST_BYTES_MAX; i++) worst_size <<= mangled[i] == 'Q';
    if (worst_size > WORST_BYTES_MAX) return false;
    char *name = dlang_demangle(mangled, DEMANGLE_OPTIONS);
    bool is_short = name && strlen(name) <= DEMANGLED_BYTES_MAX;
    if (is_short) buffer_append_text(text, name);
    free(name);
    return is_short && !text->failed;
}

static bool print_any_name(struct buffer *text, const char *mangled)
{
    struct printer printer = {.text = text};
    buffer_clear(text);
    if (mangled[1] == 'D') return print_d_name(text, mangled);
    return print_name(&printer, mangled);
}

bool demangle(const char *mangled, struct buffer *into)
{
    enum { VERSIONED_BYTES_MAX = 4096 };
    buffer_clear(into);
    if (mangled[0] != '_') return false; /* all mangled names that we know begin with it */
    if (mangled[1] == '_' && (mangled[2] == 'Z' || mangled[2] == 'R')) mangled++; /* macOS puts one more in front */
    bool is_demangled = print_any_name(into, mangled);
    const char *suffix = is_demangled ? NULL : strpbrk(mangled, "@+ ");
    if (suffix && suffix - mangled <= VERSIONED_BYTES_MAX) {
        char *name = strndup(mangled, (size_t)(suffix - mangled));
        is_demangled = name && print_any_name(into, name);
        if (is_demangled) buffer_append_text(into, suffix);
        free(name);
    }
    if (!is_demangled) return false;
    buffer_append_byte(into, '\0');
    return !into->failed;
}

/* --- Names that were demangled as C++ ------------------------------------------------------------------------------
 */

/* "::h" and 16 digits. */
enum { HASH_BYTES = 19, HASHED_BYTES_MAX = 4096 };

bool name_has_hash(struct slice name)
{
    if (name.size <= HASH_BYTES) return false;
    const uint8_t *hash = name.data + name.size - HASH_BYTES;
    if (memcmp(hash, "::h", 3) != 0) return false;
    for (size_t i = 3; i < HASH_BYTES; i++) {
        bool is_digit = (hash[i] >= '0' && hash[i] <= '9') || (hash[i] >= 'a' && hash[i] <= 'f');
        if (!is_digit) return false;
    }
    return true;
}

/* Writes NAME, parts with "::" between them, as the linker has it. False if a part is empty, or too large. */
static bool mangle_parts(struct slice name, struct buffer *out)
{
    buffer_append_text(out, "_ZN");
    while (name.size > 0) {
        const uint8_t *end = memmem(name.data, name.size, "::", 2);
        size_t size = end ? (size_t)(end - name.data) : name.size;
        if (size == 0) return false;
        buffer_append_format(out, "%zu", size);
        buffer_append(out, name.data, size);
        size_t taken = size + (end ? 2 : 0);
        name = slice_of(name.data + taken, name.size - taken);
    }
    buffer_append(out, "E", sizeof("E"));
    return !out->failed;
}

bool demangle_hashed(struct slice name, struct buffer *into)
{
    struct buffer mangled;
    if (!name_has_hash(name)) return false;
    buffer_init(&mangled, HASHED_BYTES_MAX);
    bool is_escaped = memchr(name.data, '$', name.size) != NULL;
    if (!is_escaped || !mangle_parts(name, &mangled) || !demangle((const char *)mangled.data, into)) {
        buffer_clear(into);
        buffer_append(into, name.data, name.size - HASH_BYTES);
        buffer_append_byte(into, '\0');
    }
    buffer_fini(&mangled);
    return !into->failed;
}
