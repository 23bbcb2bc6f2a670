/* libiberty's demanglers with a bound on what they may print.  SPDX-License-Identifier: MIT */
#include "symbolize/demangler.h"

#include <libiberty/demangle.h>
#include <setjmp.h>

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

bool demangle(const char *mangled, struct buffer *into)
{
    buffer_clear(into);
    if (mangled[0] != '_') return false; /* all mangled names that we know begin with it */
    struct printer printer = {.text = into};
    if (!print_name(&printer, mangled)) return false;
    buffer_append_byte(into, '\0');
    return !into->failed;
}
