/* The mappings at the end of pprof's legacy profiles, and the mapping of each address (requirement PPF-7).
 *
 * A line is one of /proc/PID/maps, or briefer: "start-end: file (@offset) build-id". "name=value" lines stand for what
 * "$name" is replaced by in those that follow. The heuristics are the reference tool's, step by step.
 * SPDX-License-Identifier: MIT */
#include "format/pprof/pprof_legacy_private.h"

#include "base/buffer.h"
#include "base/hex.h"

enum { PATH_BYTES_MAX = 1 << 16, LOOKUPS_MAX = 1 << 30 };

struct variable {
    struct slice name, value;
};

struct variables {
    struct variable items[PPROF_LEGACY_VARIABLES_MAX];
    size_t count;
};

/* --- A line ------------------------------------------------------------------------------------------------------- */

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

/* Removes the prefix that a logger puts in front of a line: "I0102 03:04:05 file.cc:67] ". */
static struct slice without_log_prefix(struct slice line)
{
    const uint8_t *bracket = line.size > 0 ? memchr(line.data, ']', line.size) : NULL;
    if (!bracket || memchr(line.data, '[', (size_t)(bracket - line.data))) return line;
    const uint8_t *digit = bracket;
    while (digit > line.data && is_digit(digit[-1])) digit--;
    size_t size = (size_t)(bracket + 1 - line.data);
    bool has_number = digit < bracket && digit > line.data + 1 && digit[-1] == ':';
    return has_number && size < line.size && (line.data[size] == ' ' || line.data[size] == '\t')
               ? slice_of(line.data + size + 1, line.size - size - 1)
               : line;
}

static const struct variable *find_variable(const struct variables *variables, struct slice text)
{
    for (size_t i = 0; i < variables->count; i++) {
        struct slice name = variables->items[i].name;
        if (name.size > 0 && text.size >= name.size && memcmp(text.data, name.data, name.size) == 0) {
            return &variables->items[i];
        }
    }
    return NULL;
}

/* Appends TEXT with the variables in it replaced. */
static void replace_variables(const struct variables *variables, struct slice text, struct buffer *out)
{
    for (size_t i = 0; i < text.size;) {
        const struct variable *variable = NULL;
        if (text.data[i] == '$') variable = find_variable(variables, slice_of(text.data + i + 1, text.size - i - 1));
        if (variable) {
            buffer_append(out, variable->value.data, variable->value.size);
            i += 1 + variable->name.size;
        } else {
            buffer_append_byte(out, text.data[i++]);
        }
    }
}

static void add_variable(struct variables *variables, struct slice line)
{
    if (variables->count == PPROF_LEGACY_VARIABLES_MAX) return;
    struct variable *added = &variables->items[variables->count];
    variables->count += legacy_split_attribute(line, &added->name, &added->value);
}

static void skip_0x(struct cursor *cursor)
{
    struct slice rest = legacy_rest(cursor);
    if (text_begins_with(rest, "0x")) cursor_skip(cursor, 2);
}

/* "start-end", and perhaps ":". */
static void read_range(struct cursor *cursor, struct legacy_mapping *mapping)
{
    legacy_skip_blanks(cursor);
    skip_0x(cursor);
    mapping->start = legacy_hex(cursor);
    uint8_t separator = cursor_u8(cursor);
    if (separator != '-' && separator != ' ' && separator != '\t') cursor->failed = true;
    legacy_skip_blanks(cursor);
    skip_0x(cursor);
    mapping->limit = legacy_hex(cursor);
    if (text_begins_with(legacy_rest(cursor), ":")) cursor_skip(cursor, 1);
}

static struct slice next_word(struct cursor *cursor)
{
    legacy_skip_blanks(cursor);
    return legacy_word(cursor);
}

static bool is_permissions(struct slice word)
{
    for (size_t i = 0; i < word.size; i++) {
        if (!memchr("-rwxps", word.data[i], 6)) return false;
    }
    return word.size > 0;
}

/* All of WORD as a hexadecimal number. */
static bool is_hex(struct slice word, uint64_t *ret_number)
{
    struct cursor cursor = cursor_of(word);
    uint64_t number = legacy_hex(&cursor);
    if (cursor.failed || !cursor_at_end(&cursor)) return false;
    *ret_number = number;
    return true;
}

/* A build id is too long for a number. */
static bool is_hex_digits(struct slice word)
{
    for (size_t i = 0; i < word.size; i++) {
        if (hex_digit(word.data[i]) < 0) return false;
    }
    return true;
}

/* "00001000 08:01 1234   /path": what follows the permissions in /proc/PID/maps. False, with nothing done, if it is not
 * that. */
static bool read_kernel_fields(struct legacy *legacy, struct cursor *cursor, struct legacy_mapping *mapping)
{
    struct cursor attempt = *cursor;
    uint64_t offset = 0, number;
    struct slice word = next_word(&attempt);
    if (is_hex(word, &offset)) word = next_word(&attempt);
    struct cursor device = cursor_of(word);
    (void)legacy_hex(&device);
    legacy_expect(&device, ":");
    (void)legacy_hex(&device);
    struct slice inode = next_word(&attempt);
    if (device.failed || !is_hex(inode, &number)) return false;
    struct slice path = legacy_trim(legacy_rest(&attempt));
    if (text_ends_with(path, " (deleted)")) path.size -= strlen(" (deleted)");
    mapping->offset = offset;
    mapping->file = profile_string(legacy->profile, path);
    return true;
}

static void read_brief_fields(struct legacy *legacy, struct cursor *cursor, struct legacy_mapping *mapping)
{
    mapping->file = profile_string(legacy->profile, next_word(cursor));
    struct slice word = next_word(cursor);
    if (text_begins_with(word, "(@") && word.data[word.size - 1] == ')') {
        (void)is_hex(slice_of(word.data + 2, word.size - 3), &mapping->offset);
        word = next_word(cursor);
    }
    if (is_hex_digits(word)) mapping->build_id = profile_string(legacy->profile, word);
}

static void add_mapping(struct legacy *legacy, const struct legacy_mapping *mapping)
{
    if (LEGACY_MAKE_ROOM(legacy, &legacy->mappings, PPROF_LEGACY_MAPPINGS_MAX, "mappings"))
        legacy->mappings.items[legacy->mappings.count++] = *mapping;
}

/* False if LINE is no mapping. */
static bool read_mapping(struct legacy *legacy, struct slice line)
{
    struct legacy_mapping mapping = {0};
    struct cursor cursor = cursor_of(line);
    read_range(&cursor, &mapping);
    if (cursor.failed) return false;
    struct cursor permissions = cursor;
    struct slice word = next_word(&permissions);
    if (is_permissions(word)) {
        if (!memchr(word.data, 'x', word.size)) return true; /* no code */
        cursor = permissions;
    }
    if (!read_kernel_fields(legacy, &cursor, &mapping)) read_brief_fields(legacy, &cursor, &mapping);
    add_mapping(legacy, &mapping);
    return true;
}

static void read_lines(struct legacy *legacy, struct cursor *cursor)
{
    struct variables variables = {.count = 0};
    struct buffer replaced;
    struct slice line;
    buffer_init(&replaced, PATH_BYTES_MAX);
    while (legacy->status == STATUS_OK && legacy_next_line(cursor, &line)) {
        struct slice text = without_log_prefix(line);
        bool has_variable = text.size > 0 && variables.count > 0 && memchr(text.data, '$', text.size);
        if (has_variable) {
            buffer_clear(&replaced);
            replace_variables(&variables, text, &replaced);
            if (replaced.failed) continue; /* no path is that long */
        }
        if (!read_mapping(legacy, has_variable ? buffer_slice(&replaced) : text)) add_variable(&variables, text);
    }
    buffer_fini(&replaced);
}

/* --- What they mean ----------------------------------------------------------------------------------------------- */

static bool may_be_one(struct string_id a, struct string_id b)
{
    return a.index == 0 || b.index == 0 || a.index == b.index;
}

static bool is_continued_by(const struct legacy_mapping *mapping, const struct legacy_mapping *next)
{
    return may_be_one(mapping->file, next->file) && may_be_one(mapping->build_id, next->build_id) &&
           mapping->limit == next->start &&
           (mapping->offset == 0 || next->offset == 0 ||
            mapping->offset + (mapping->limit - mapping->start) == next->offset);
}

static void join_adjacent(struct legacy *legacy)
{
    struct legacy_mapping *items = legacy->mappings.items;
    size_t kept = 0;
    for (size_t i = 0; i < legacy->mappings.count; i++) {
        if (kept == 0 || !is_continued_by(&items[kept - 1], &items[i])) {
            items[kept++] = items[i];
            continue;
        }
        struct legacy_mapping *into = &items[kept - 1];
        into->limit = items[i].limit;
        if (items[i].file.index != 0) into->file = items[i].file;
        if (items[i].build_id.index != 0) into->build_id = items[i].build_id;
    }
    legacy->mappings.count = kept;
}

/* "x.so", "x.so.6", "x.so_1". */
static bool is_library(const char *path)
{
    for (const char *so = path; (so = strstr(so, ".so")); so += 3) {
        if (so[3] == '\0' || ((so[3] == '.' || so[3] == '_') && is_digit((uint8_t)so[4]))) return true;
    }
    return false;
}

/* The first file that is no library is the program, and the program is the first. */
static void put_program_first(struct legacy *legacy)
{
    struct legacy_mapping *items = legacy->mappings.items;
    for (size_t i = 0; i < legacy->mappings.count; i++) {
        const char *path = profile_c_string(legacy->profile, items[i].file);
        if (path[0] == '\0' || path[0] == '[' || is_library(path)) continue;
        struct legacy_mapping program = items[i];
        items[i] = items[0];
        items[0] = program;
        return;
    }
}

/* Repairs what handlers report wrongly for a program in huge pages, or for one that is known to begin at 0x400000. */
static void repair_program(struct legacy *legacy)
{
    struct legacy_mapping *items = legacy->mappings.items;
    if (legacy->mappings.count > 1 && items[0].limit == items[1].start &&
        text_begins_with(profile_slice(legacy->profile, items[0].file), "/anon_hugepage")) {
        memmove(items, items + 1, --legacy->mappings.count * sizeof(*items));
    }
    static const uint64_t usual_start = 0x400000;
    if (legacy->mappings.count > 0 && items[0].start - items[0].offset == usual_start) {
        items[0].start = usual_start;
        items[0].offset = 0;
    }
}

/* The place in mappings, plus one; 0 if none holds ADDRESS. */
static uint32_t mapping_of(struct legacy *legacy, uint64_t address)
{
    struct legacy_mapping *items = legacy->mappings.items;
    size_t count = legacy->mappings.count;
    for (size_t i = 0; i < count; i++) {
        if (items[i].start <= address && address < items[i].limit) return (uint32_t)i + 1;
    }
    /* Some handlers leave out the first part of a file's mappings. */
    for (size_t i = 0; i < count; i++) {
        struct legacy_mapping *mapping = &items[i];
        if (mapping->offset == 0 || mapping->start - mapping->offset > address || address >= mapping->start) continue;
        mapping->start -= mapping->offset;
        mapping->offset = 0;
        return (uint32_t)i + 1;
    }
    return 0;
}

/* Addresses without a mapping share one that covers everything: Go's profiles had no mappings. */
static void give_mappings(struct legacy *legacy)
{
    uint32_t everything = 0;
    if (legacy->places.count * legacy->mappings.count > LOOKUPS_MAX) {
        legacy->status = error_set(legacy->error, STATUS_TOO_LARGE, 0, "%zu addresses in %zu mappings",
                                   legacy->places.count, legacy->mappings.count);
    }
    for (size_t i = 0; i < legacy->places.count && legacy->status == STATUS_OK; i++) {
        struct legacy_place *place = &legacy->places.items[i];
        if (place->address == 0) continue;
        place->mapping = mapping_of(legacy, place->address);
        if (place->mapping != 0) continue;
        if (everything == 0) {
            add_mapping(legacy, &(struct legacy_mapping){.limit = UINT64_MAX});
            everything = (uint32_t)legacy->mappings.count;
        }
        place->mapping = everything;
    }
}

void legacy_read_mappings(struct legacy *legacy, struct cursor *cursor)
{
    read_lines(legacy, cursor);
    join_adjacent(legacy);
    put_program_first(legacy);
    repair_program(legacy);
    give_mappings(legacy);
}

void legacy_read_mappings_section(struct legacy *legacy, struct slice current, struct cursor *cursor)
{
    struct slice line = current;
    legacy_find_places(legacy);
    bool is_announced = legacy_announces_mappings(line);
    while (!is_announced && legacy_next_line(cursor, &line)) is_announced = legacy_announces_mappings(line);
    legacy_read_mappings(legacy, cursor);
}
