/* libiberty's demanglers behind a memory, and a bound on what they may print.  SPDX-License-Identifier: MIT */
#include "symbolize/demangler.h"

#include <libiberty/demangle.h>
#include <setjmp.h>

#include "base/array.h"
#include "base/hash.h"

enum { DEMANGLE_OPTIONS = DMGL_PARAMS | DMGL_ANSI };

struct demangled_name {
    const char *mangled;
    char *text; /* NULL: MANGLED is as good as it gets */
};

struct printer {
    struct buffer text;
    jmp_buf too_long;
};

/* The demanglers cannot be told to stop, so a name that grows past the bound jumps out of them. They print from their
 * own stack frames and hold nothing that would have to be released, save a Rust identifier in Punycode. */
static void take_text(const char *text, size_t size, void *context)
{
    struct printer *printer = context;
    buffer_append(&printer->text, text, size);
    if (printer->text.failed) longjmp(printer->too_long, 1);
}

static bool print(struct printer *printer, const char *mangled)
{
    if (setjmp(printer->too_long) != 0) return false;
    if (rust_demangle_callback(mangled, DEMANGLE_OPTIONS, take_text, printer)) return true;
    buffer_clear(&printer->text);
    return cplus_demangle_v3_callback(mangled, DEMANGLE_OPTIONS, take_text, printer);
}

static char *demangle_anew(const char *mangled)
{
    if (mangled[0] != '_') return NULL; /* so do all mangled names that we know begin */
    struct printer printer;
    buffer_init(&printer.text, DEMANGLED_BYTES_MAX);
    if (print(&printer, mangled)) {
        buffer_append_byte(&printer.text, '\0');
        if (!printer.text.failed) return (char *)printer.text.data; /* freed by demangler_fini */
    }
    buffer_fini(&printer.text);
    return NULL;
}

static bool is_name(const void *context, uint32_t index, const void *key)
{
    const struct demangler *demangler = context;
    return strcmp(demangler->names[index].mangled, key) == 0;
}

const char *demangle(struct demangler *demangler, const char *mangled)
{
    uint64_t hash = hash_bytes(mangled, strlen(mangled));
    uint32_t known = index_table_find(&demangler->index, hash, is_name, demangler, mangled);
    if (known != INDEX_NONE) return demangler->names[known].text ? demangler->names[known].text : mangled;
    if (!array_reserve(&demangler->names, &demangler->capacity, demangler->count + 1, sizeof(*demangler->names),
                       DEMANGLER_NAMES_MAX) ||
        !index_table_add(&demangler->index, hash, (uint32_t)demangler->count))
        return mangled;
    struct demangled_name *name = &demangler->names[demangler->count++];
    *name = (struct demangled_name){.mangled = mangled, .text = demangle_anew(mangled)};
    return name->text ? name->text : mangled;
}

void demangler_fini(struct demangler *demangler)
{
    for (size_t i = 0; i < demangler->count; i++) free(demangler->names[i].text);
    free(demangler->names);
    index_table_fini(&demangler->index);
    *demangler = (struct demangler){0};
}
