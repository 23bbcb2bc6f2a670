/* /proc/kallsyms: "ffffffff81000000 T _stext" and, for modules, "\t[name]" after it. It has the start of each function,
 * not the end: a function reaches to the next symbol. The kernel may hide the addresses from ordinary users
 * (kptr_restrict); a vmlinux with its build id has the same symbols.  SPDX-License-Identifier: MIT */
#include "symbolize/kernel_names.h"

#include "base/array.h"
#include "base/cursor.h"
#include "base/environment.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/partition_point.h"
#include "binary/elf_symbols.h"
#include "symbolize/debug_file.h"

#include <elf.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

enum {
    NOTES_BYTES_MAX = 1 << 20,
    BUILD_ID_BYTES_MAX = (KERNEL_BUILD_ID_SIZE - 1) / 2,
    SYMBOLS_MAX = 16 << 20,
    MODULE_GAP = 1 << 20
};

struct symbol {
    uint64_t address;
    struct slice name;
    char type;
};

struct kernel_symbols {
    char *build_id;
    bool trusts_it; /* the kernel of this machine counts if there is no build id */
    pthread_t thread;
    bool has_thread; /* thread is not joined yet */
    bool has_memory; /* false: what is here is not all */
    struct buffer text;
    ARRAY_OF(struct symbol) symbols; /* symbols by address, the best of each */
    uint64_t text_start;             /* address of _text; 0: not known */
    struct elf_symbols of_vmlinux;   /* memory of names that are not in TEXT */
};

/* --- The kernel of this machine ----------------------------------------------------------------------------------- */

/* The build id among the notes of /sys/kernel/notes, in hex. */
static bool find_build_id(struct slice notes, char *ret_hex)
{
    struct cursor cursor = cursor_of(notes);
    while (!cursor_at_end(&cursor)) {
        uint32_t name_size = cursor_u32(&cursor), size = cursor_u32(&cursor), type = cursor_u32(&cursor);
        struct slice name = cursor_take(&cursor, (name_size + UINT64_C(3)) & ~UINT64_C(3));
        struct slice value = cursor_take(&cursor, (size + UINT64_C(3)) & ~UINT64_C(3));
        bool is_id = !cursor.failed && type == NT_GNU_BUILD_ID && name.size >= 4 && memcmp(name.data, "GNU", 4) == 0;
        if (!is_id || size > BUILD_ID_BYTES_MAX) continue;
        (void)hex_write(ret_hex, slice_of(value.data, size));
        return true;
    }
    return false;
}

bool kernel_build_id(char ret_hex[KERNEL_BUILD_ID_SIZE])
{
    struct buffer notes;
    buffer_init(&notes, NOTES_BYTES_MAX);
    bool is_found =
        file_read("/sys/kernel/notes", &notes, NULL) == STATUS_OK && find_build_id(buffer_slice(&notes), ret_hex);
    buffer_fini(&notes);
    return is_found;
}

static bool is_running(const char *build_id)
{
    char hex[KERNEL_BUILD_ID_SIZE];
    return kernel_build_id(hex) && strcmp(hex, build_id) == 0;
}

static bool read_symbols_of(const char *build_id, bool trusts_it, struct buffer *text)
{
    char path[PATH_MAX];
    const char *home = environment_get("HOME");
    if (strchr(build_id, '/')) return false;
    if (build_id[0] == '\0') return trusts_it && file_read("/proc/kallsyms", text, NULL) == STATUS_OK;
    if (is_running(build_id)) return file_read("/proc/kallsyms", text, NULL) == STATUS_OK;
    int length = snprintf(path, sizeof(path), "%s/.debug/[kernel.kallsyms]/%s/kallsyms", home ? home : "", build_id);
    return home && length > 0 && length < (int)sizeof(path) && file_read(path, text, NULL) == STATUS_OK;
}

/* --- Symbols ------------------------------------------------------------------------------------------------------ */

static bool is_code(char type)
{
    return type == 'T' || type == 't' || type == 'W' || type == 'w';
}

/* "ffffffff81000000 T name\t[module]" */
static bool parse_line(struct slice line, struct symbol *ret_symbol)
{
    enum { ADDRESS_DIGITS = 16, NAME_PLACE = ADDRESS_DIGITS + 3 };
    uint64_t address = 0;
    if (line.size <= NAME_PLACE || line.data[ADDRESS_DIGITS] != ' ' || line.data[NAME_PLACE - 1] != ' ') return false;
    if (!hex_parse(slice_of(line.data, ADDRESS_DIGITS), &address)) return false;
    struct slice name = slice_of(line.data + NAME_PLACE, line.size - NAME_PLACE);
    const uint8_t *tab = memchr(name.data, '\t', name.size);
    if (tab) name.size = (size_t)(tab - name.data);
    *ret_symbol = (struct symbol){.address = address, .name = name, .type = (char)line.data[ADDRESS_DIGITS + 1]};
    return address != 0;
}

static size_t leading_underscores(struct slice name)
{
    size_t count = 0;
    while (count < name.size && name.data[count] == '_') count++;
    return count;
}

/* Compares by address. Of several names for one address, as in `perf report`: not weak, global, with the fewest leading
 * underscores, the longest. The best comes first. */
static int compare_symbols(const void *left, const void *right)
{
    const struct symbol *a = left, *b = right;
    if (a->address != b->address) return a->address < b->address ? -1 : 1;
    bool a_weak = a->type == 'W' || a->type == 'w', b_weak = b->type == 'W' || b->type == 'w';
    if (a_weak != b_weak) return a_weak - b_weak;
    if (a->type != b->type) return a->type == 'T' ? -1 : 1;
    size_t a_underscores = leading_underscores(a->name), b_underscores = leading_underscores(b->name);
    if (a_underscores != b_underscores) return a_underscores < b_underscores ? -1 : 1;
    if (a->name.size != b->name.size) return a->name.size > b->name.size ? -1 : 1;
    return memcmp(a->name.data, b->name.data, a->name.size);
}

static void keep_best(struct kernel_symbols *kernel)
{
    size_t kept = 0;
    for (size_t i = 0; i < kernel->symbols.count; i++) {
        struct symbol symbol = kernel->symbols.items[i];
        if (kept > 0 && kernel->symbols.items[kept - 1].address == symbol.address) continue;
        kernel->symbols.items[kept++] = symbol;
    }
    kernel->symbols.count = kept;
}

/* False without memory. */
static bool parse_symbols(struct kernel_symbols *kernel)
{
    struct slice left = buffer_slice(&kernel->text);
    while (left.size > 0) {
        const uint8_t *newline = memchr(left.data, '\n', left.size);
        size_t size = newline ? (size_t)(newline - left.data) : left.size;
        struct symbol symbol;
        if (parse_line(slice_of(left.data, size), &symbol)) {
            if (slice_equals_text(symbol.name, "_text")) kernel->text_start = symbol.address;
            if (is_code(symbol.type) && !ARRAY_PUSH(&kernel->symbols, SYMBOLS_MAX, symbol)) return false;
        }
        left = slice_of(left.data + size + (newline != NULL), left.size - size - (newline != NULL));
    }
    if (kernel->symbols.count > 0)
        qsort(kernel->symbols.items, kernel->symbols.count, sizeof(*kernel->symbols.items), compare_symbols);
    keep_best(kernel);
    return true;
}

/* Opens a vmlinux with BUILD_ID, where distributions install one. */
static bool open_vmlinux(struct elf_file *file, const char *build_id)
{
    static const char *const places[] = {"/usr/lib/debug/boot/vmlinux-", "/boot/vmlinux-"};
    const char *directory = "/usr/lib/debug";
    const struct debug_sources sources = {.items = &directory, .count = 1};
    struct utsname system;
    char path[PATH_MAX];
    if (debug_file_open_by_build_id(file, build_id, &sources)) return true; /* Fedora has a link there */
    for (size_t i = 0; uname(&system) == 0 && i < sizeof(places) / sizeof(places[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s%s", places[i], system.release);
        if (elf_file_open(file, path, NULL) != STATUS_OK) continue;
        if (strcmp(file->build_id, build_id) == 0) return true;
        elf_file_close(file);
    }
    return false;
}

/* False without memory. */
static bool read_vmlinux(struct kernel_symbols *kernel)
{
    struct elf_file file;
    if (kernel->build_id[0] == '\0' || !open_vmlinux(&file, kernel->build_id)) return true;
    bool has_memory = elf_symbols_add(&kernel->of_vmlinux, &file);
    elf_symbols_finish(&kernel->of_vmlinux);
    for (size_t i = 0; i < file.segment_count && kernel->text_start == 0; i++)
        if (file.segments[i].is_executable) kernel->text_start = file.segments[i].address;
    for (size_t i = 0; has_memory && i < kernel->of_vmlinux.count; i++) {
        const struct elf_symbol *symbol = &kernel->of_vmlinux.items[i];
        struct slice name = slice_of_text(elf_symbol_name(&kernel->of_vmlinux, symbol));
        has_memory =
            ARRAY_PUSH(&kernel->symbols, SYMBOLS_MAX, (struct symbol){.address = symbol->address, .name = name});
    }
    elf_file_close(&file);
    return has_memory;
}

static const struct symbol *find_symbol(const struct kernel_symbols *kernel, uint64_t address)
{
    size_t after = PARTITION_POINT(kernel->symbols.count, i, kernel->symbols.items[i].address <= address);
    if (after == 0 || address - kernel->symbols.items[after - 1].address > MODULE_GAP) return NULL;
    return &kernel->symbols.items[after - 1];
}

/* --- Places ------------------------------------------------------------------------------------------------------- */

/* The mapping of the kernel itself, whose place is known; NULL if there is none. */
static const struct mapping *find_mapping(const struct profile *profile)
{
    for (size_t i = 1; i < profile->mappings.count; i++) {
        const struct mapping *mapping = &profile->mappings.items[i];
        bool is_kernel = strcmp(profile_c_string(profile, mapping->file_name), KERNEL_MAPPING) == 0;
        if (is_kernel && mapping->limit > mapping->start) return mapping;
    }
    return NULL;
}

static bool is_in_kernel(const struct profile *profile, const struct location *location, bool has_modules)
{
    enum { FIRST_KERNEL_BIT = 63 };
    const char *name = profile_c_string(profile, profile_mapping(profile, location->mapping)->file_name);
    if (strcmp(name, KERNEL_MAPPING) == 0) return true;
    return has_modules && location->mapping.index != 0 && location->address >> FIRST_KERNEL_BIT;
}

/* OFFSET: how much higher the kernel was when the profile was recorded. */
static void name_places(struct profile *profile, const struct kernel_symbols *kernel, uint64_t offset,
                        size_t *ret_named)
{
    for (uint32_t i = 1; i < profile->locations.count; i++) {
        const struct location *location = &profile->locations.items[i];
        if (location->line_count > 0 || !is_in_kernel(profile, location, offset == 0)) continue;
        const struct symbol *symbol = find_symbol(kernel, location->address - offset);
        if (!symbol) continue;
        struct function function = {.name = profile_string(profile, symbol->name)};
        function.system_name = function.name;
        struct line line = {.function = profile_add_function(profile, &function)};
        profile_set_lines(profile, (struct location_id){i}, &line, 1);
        ++*ret_named;
    }
}

/* --- All ---------------------------------------------------------------------------------------------------------- */

static void *read_symbols(void *argument)
{
    struct kernel_symbols *kernel = argument;
    kernel->has_memory = !read_symbols_of(kernel->build_id, kernel->trusts_it, &kernel->text) || parse_symbols(kernel);
    if (kernel->has_memory && kernel->symbols.count == 0) kernel->has_memory = read_vmlinux(kernel);
    return NULL;
}

static struct kernel_symbols *new_symbols(const char *build_id, bool trusts_it)
{
    struct kernel_symbols *kernel = calloc(1, sizeof(*kernel));
    if (!kernel) return NULL;
    buffer_init(&kernel->text, KERNEL_SYMBOLS_BYTES_MAX);
    elf_symbols_init(&kernel->of_vmlinux);
    kernel->trusts_it = trusts_it;
    kernel->build_id = strdup(build_id);
    if (kernel->build_id) return kernel;
    kernel_symbols_end(kernel);
    return NULL;
}

struct kernel_symbols *kernel_symbols_begin(const char *build_id)
{
    struct kernel_symbols *kernel = new_symbols(build_id, false);
    if (!kernel) return NULL;
    kernel->has_thread = pthread_create(&kernel->thread, NULL, read_symbols, kernel) == 0;
    if (kernel->has_thread) return kernel;
    kernel_symbols_end(kernel);
    return NULL;
}

static void join_reader(struct kernel_symbols *kernel)
{
    if (kernel->has_thread) (void)pthread_join(kernel->thread, NULL);
    kernel->has_thread = false;
}

void kernel_symbols_end(struct kernel_symbols *symbols)
{
    if (!symbols) return;
    join_reader(symbols);
    free(symbols->symbols.items);
    free(symbols->build_id);
    buffer_fini(&symbols->text);
    elf_symbols_fini(&symbols->of_vmlinux);
    free(symbols);
}

enum status kernel_names_give(struct profile *profile, struct kernel_symbols *begun, bool trusts_it, size_t *ret_named,
                              struct error *error)
{
    const struct mapping *mapping = find_mapping(profile);
    *ret_named = 0;
    if (!mapping) return STATUS_OK;
    const char *build_id = profile_c_string(profile, mapping->build_id);
    bool is_begun = begun && begun->trusts_it == trusts_it && strcmp(begun->build_id, build_id) == 0;
    struct kernel_symbols *kernel = is_begun ? begun : new_symbols(build_id, trusts_it);
    if (is_begun) join_reader(kernel);
    if (kernel && !is_begun) (void)read_symbols(kernel);
    bool has_memory = kernel && kernel->has_memory;
    /* perf notes the address of _text as the offset of the mapping. */
    if (has_memory) {
        uint64_t offset = kernel->text_start && mapping->file_offset ? mapping->file_offset - kernel->text_start : 0;
        name_places(profile, kernel, offset, ret_named);
    }
    if (!is_begun) kernel_symbols_end(kernel);
    return has_memory ? STATUS_OK : error_set(error, STATUS_NO_MEMORY, 0, "no memory for the names of the kernel");
}
