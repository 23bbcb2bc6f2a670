/* Walks down the tree of entries and along the table of lines.
 *
 * The ranges of an inlined function are clipped to the ranges of its caller, and the ranges of a function to code: the
 * linker sets the addresses of what it drops to 0 or to another address outside of code.
 * SPDX-License-Identifier: MIT */
#include "symbolize/dwarf_unit.h"

#include <dwarf.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/partition_point.h"
#include "symbolize/place.h"

enum { CLIPS_MAX = 1 << 20 };

struct dwarf_origin {
    const void *entry;
    uint32_t function;
};

/* A part of the code, [start, end) from the base. */
struct clip {
    uint32_t start, end;
};

/* Some of walk.clips. */
struct clips {
    size_t first, count;
};

struct walk {
    struct dwarf_reader *reader;
    struct dwarf_names *names;
    Dwarf_Files *files; /* files of the unit */
    size_t file_count;
    uint32_t *file_texts;        /* text number of each file + 1; 0 = not looked up */
    const char *directory;       /* folder in which the unit was compiled; may be NULL */
    uint32_t order;              /* order of the next range: an inner one hides those around it */
    ARRAY_OF(struct clip) clips; /* a stack: each function puts its own ones on top */
    struct clips code;
};

static bool take_step(struct walk *walk)
{
    if (walk->reader->steps_left == 0 || walk->reader->failed) return false;
    walk->reader->steps_left--;
    return true;
}

/* --- Texts -------------------------------------------------------------------------------------------------------- */

/* libdw gives out texts without looking whether they end before their section does: those among the entries may not. */
static bool has_end(const struct dwarf_reader *reader, const char *text)
{
    for (size_t i = 0; i < reader->section_count; i++) {
        uintptr_t offset = (uintptr_t)text - (uintptr_t)reader->sections[i].data;
        if (offset < reader->sections[i].size) return memchr(text, '\0', reader->sections[i].size - offset) != NULL;
    }
    return false;
}

static const char *text_of(const struct walk *walk, Dwarf_Die *entry, unsigned attribute)
{
    Dwarf_Attribute place;
    const char *text = dwarf_formstring(dwarf_attr_integrate(entry, attribute, &place));
    return text && has_end(walk->reader, text) ? text : NULL;
}

/* The text number of a file; relative names begin where the unit was compiled. */
static uint32_t file_text(struct walk *walk, const char *file)
{
    if (!file || file[0] == '/' || !walk->directory) return text_table_add(&walk->names->texts, file);
    struct buffer *path = &walk->reader->scratch;
    buffer_clear(path);
    buffer_append_format(path, "%s/%s", walk->directory, file);
    return path->failed ? 0 : text_table_add(&walk->names->texts, (const char *)path->data);
}

static uint32_t file_text_of_index(struct walk *walk, size_t file)
{
    if (!walk->file_texts || file >= walk->file_count) return 0;
    if (walk->file_texts[file] == 0)
        walk->file_texts[file] = file_text(walk, dwarf_filesrc(walk->files, file, NULL, NULL)) + 1;
    return walk->file_texts[file] - 1;
}

/* --- Functions ---------------------------------------------------------------------------------------------------- */

/* The symbol that begins at ENTRY_ADDRESS; 0 = there is none. */
static uint32_t exported_name(const struct walk *walk, uint64_t entry_address)
{
    const struct elf_symbols *symbols = walk->reader->symbols;
    const struct elf_symbol *symbol = entry_address ? elf_symbols_find(symbols, entry_address) : NULL;
    if (!symbol || symbol->address != entry_address) return 0;
    return text_table_add(&walk->names->texts, elf_symbol_name(symbols, symbol));
}

/* Index + 1; 0 if it has no name, or there is no room. ENTRY_ADDRESS: of a real function, the first instruction. */
static uint32_t add_function(struct walk *walk, Dwarf_Die *entry, uint64_t entry_address)
{
    struct dwarf_names *names = walk->names;
    const char *linkage_name = text_of(walk, entry, DW_AT_linkage_name);
    if (!linkage_name) linkage_name = text_of(walk, entry, DW_AT_MIPS_linkage_name);
    struct dwarf_function function = {
        .linkage_name = text_table_add(&names->texts, linkage_name),
        .exported_name = exported_name(walk, entry_address),
        .name = text_table_add(&names->texts, text_of(walk, entry, DW_AT_name)),
    };
    if (function.linkage_name == 0 && function.exported_name == 0 && function.name == 0) return 0;
    int line = 0;
    uint32_t file = file_text(walk, dwarf_decl_file(entry));
    if (dwarf_decl_line(entry, &line) != 0) line = 0;
    function.declaration = place_of(file, line, 0);
    if (ARRAY_PUSH(&names->functions, DWARF_SCOPES_MAX, function)) return (uint32_t)names->functions.count;
    walk->reader->failed = true;
    return 0;
}

static bool is_origin(const void *context, uint32_t index, const void *key)
{
    const struct dwarf_reader *reader = context;
    return reader->origins.items[index].entry == key;
}

/* The function whose copy ENTRY is; ORIGIN is where it is declared. */
static uint32_t function_of_origin(struct walk *walk, Dwarf_Die *origin)
{
    struct dwarf_reader *reader = walk->reader;
    uint64_t hash = hash_mix(0, (uintptr_t)origin->addr);
    uint32_t known = index_table_find(&reader->origins.index, hash, is_origin, reader, origin->addr);
    if (known != INDEX_NONE) return reader->origins.items[known].function;
    uint32_t function = add_function(walk, origin, 0);
    struct dwarf_origin added = {.entry = origin->addr, .function = function};
    if (INDEXED_ARRAY_PUSH(&reader->origins, DWARF_SCOPES_MAX, hash, added)) return function;
    reader->failed = true;
    return 0;
}

/* --- Ranges ------------------------------------------------------------------------------------------------------- */

static bool add_clip(struct walk *walk, uint64_t start, uint64_t end)
{
    const struct clip added = {.start = (uint32_t)start, .end = (uint32_t)end};
    return start >= end || ARRAY_PUSH(&walk->clips, CLIPS_MAX, added);
}

static struct clips clip_code(struct walk *walk)
{
    const struct dwarf_code *code = walk->reader->code;
    for (size_t i = 0; i < code->segment_count; i++) {
        const struct elf_segment *segment = &code->segments[i];
        if (!segment->is_executable || segment->address < code->base) continue;
        uint64_t start = segment->address - code->base, end;
        if (start >= UINT32_MAX) continue;
        if (__builtin_add_overflow(start, segment->memory_size, &end) || end > UINT32_MAX) end = UINT32_MAX;
        (void)add_clip(walk, start, end);
    }
    return (struct clips){.first = 0, .count = walk->clips.count};
}

/* Puts the ranges of ENTRY, as far as they are in OUTER, on top of the stack, which is to be cut to FIRST afterwards.
 */
static struct clips clip_entry(struct walk *walk, Dwarf_Die *entry, struct clips outer)
{
    struct clips own = {.first = walk->clips.count};
    ptrdiff_t position = 0;
    Dwarf_Addr base, start, end;
    uint64_t first = walk->reader->code->base;
    while (outer.count > 0 && take_step(walk) && (position = dwarf_ranges(entry, position, &base, &start, &end)) > 0) {
        if (start == 0 || start < first || end < start) continue;
        for (size_t i = outer.first; i < outer.first + outer.count && take_step(walk); i++) {
            struct clip clip = walk->clips.items[i];
            uint64_t from = start - first, to = end - first;
            if (!add_clip(walk, from > clip.start ? from : clip.start, to < clip.end ? to : clip.end)) break;
        }
    }
    own.count = walk->clips.count - own.first;
    return own;
}

/* --- Scopes ------------------------------------------------------------------------------------------------------- */

struct copy {
    size_t file;
    int line, column;
    Dwarf_Die origin;
    bool has_file, has_origin;
};

static int number_of(Dwarf_Attribute *attribute)
{
    Dwarf_Word value = 0;
    return dwarf_formudata(attribute, &value) != 0 || value > INT32_MAX ? 0 : (int)value;
}

static int take_copy_attribute(Dwarf_Attribute *attribute, void *context)
{
    struct copy *copy = context;
    switch (dwarf_whatattr(attribute)) {
    case DW_AT_call_file:
        copy->file = (size_t)number_of(attribute);
        copy->has_file = true;
        break;
    case DW_AT_call_line:
        copy->line = number_of(attribute);
        break;
    case DW_AT_call_column:
        copy->column = number_of(attribute);
        break;
    case DW_AT_abstract_origin:
        copy->has_origin = dwarf_formref_die(attribute, &copy->origin) != NULL;
        break;
    default:
        break;
    }
    return DWARF_CB_OK;
}

static struct dwarf_scope read_copy(struct walk *walk, Dwarf_Die *entry, uint32_t caller)
{
    struct copy copy = {0};
    (void)dwarf_getattrs(entry, take_copy_attribute, &copy, 0);
    uint32_t file = copy.has_file ? file_text_of_index(walk, copy.file) : 0;
    return (struct dwarf_scope){
        .caller = caller,
        .function = copy.has_origin ? function_of_origin(walk, &copy.origin) : add_function(walk, entry, 0),
        .call = place_of(file, copy.line, copy.column),
    };
}

/* Index + 1 of the new scope. A real function without a name hides nothing. */
static uint32_t add_scope(struct walk *walk, struct dwarf_scope scope, struct clips where)
{
    struct dwarf_names *names = walk->names;
    uint32_t index = (uint32_t)names->scopes.count;
    if (!ARRAY_PUSH(&names->scopes, DWARF_SCOPES_MAX, scope)) {
        walk->reader->failed = true;
        return 0;
    }
    bool is_seen = scope.caller != 0 || scope.function != 0;
    for (size_t i = 0; is_seen && i < where.count; i++) {
        struct clip clip = walk->clips.items[where.first + i];
        struct address_range range = {.start = clip.start, .end = clip.end, .value = index, .layer = walk->order};
        if (!address_ranges_add(&names->scope_ranges, range)) walk->reader->failed = true;
    }
    walk->order++;
    return index + 1;
}

/* --- The walk ----------------------------------------------------------------------------------------------------- */

static void walk_children(struct walk *walk, Dwarf_Die *parent, struct clips outer, uint32_t caller, unsigned depth);

/* Visits a function, even if it has no code: functions that have code may be described inside of it (lambdas, nested
 * functions). */
static void visit_function(struct walk *walk, Dwarf_Die *entry, unsigned depth)
{
    struct clips own = clip_entry(walk, entry, walk->code);
    uint32_t scope = 0;
    if (own.count > 0) {
        Dwarf_Addr first_instruction;
        if (dwarf_entrypc(entry, &first_instruction) != 0) first_instruction = 0;
        struct dwarf_scope function = {.function = add_function(walk, entry, first_instruction)};
        scope = add_scope(walk, function, own);
    }
    if (dwarf_haschildren(entry) == 1) walk_children(walk, entry, own, scope, depth + 1);
    walk->clips.count = own.first;
}

static void visit_copy(struct walk *walk, Dwarf_Die *entry, struct clips outer, uint32_t caller, unsigned depth)
{
    struct clips own = clip_entry(walk, entry, outer);
    if (own.count > 0) {
        uint32_t scope = add_scope(walk, read_copy(walk, entry, caller), own);
        if (dwarf_haschildren(entry) == 1) walk_children(walk, entry, own, scope, depth + 1);
    }
    walk->clips.count = own.first;
}

static void visit_block(struct walk *walk, Dwarf_Die *entry, struct clips outer, uint32_t caller, unsigned depth)
{
    struct clips own = clip_entry(walk, entry, outer);
    bool has_range = own.count > 0 || dwarf_hasattr(entry, DW_AT_low_pc) || dwarf_hasattr(entry, DW_AT_ranges);
    walk_children(walk, entry, has_range ? own : outer, caller, depth + 1);
    walk->clips.count = own.first;
}

static void visit(struct walk *walk, Dwarf_Die *entry, struct clips outer, uint32_t caller, unsigned depth)
{
    switch (dwarf_tag(entry)) {
    case DW_TAG_subprogram:
    case DW_TAG_entry_point:
        visit_function(walk, entry, depth);
        break;
    case DW_TAG_inlined_subroutine:
        visit_copy(walk, entry, outer, caller, depth);
        break;
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_with_stmt:
        visit_block(walk, entry, outer, caller, depth);
        break;
    case DW_TAG_namespace: /* compilers differ in where they put the code of members */
    case DW_TAG_module:
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_interface_type:
        walk_children(walk, entry, outer, caller, depth + 1);
        break;
    default:
        break;
    }
}

/* CHILD is {0} before the first one. */
static bool next_child(Dwarf_Die *parent, Dwarf_Die *child)
{
    const char *previous = child->addr;
    if (!previous) return dwarf_child(parent, child) == 0;
    /* A sibling that is not further on would let broken DWARF lead us round in a circle. */
    return dwarf_siblingof(child, child) == 0 && (const char *)child->addr > previous;
}

static void walk_children(struct walk *walk, Dwarf_Die *parent, struct clips outer, uint32_t caller, unsigned depth)
{
    if (depth > DWARF_DEPTH_MAX) return;
    for (Dwarf_Die child = {0}; take_step(walk) && next_child(parent, &child);)
        visit(walk, &child, outer, caller, depth);
}

/* --- Lines -------------------------------------------------------------------------------------------------------- */

struct row {
    uint64_t address, place;
};

static struct row read_row(struct walk *walk, Dwarf_Lines *lines, size_t index)
{
    Dwarf_Line *line = dwarf_onesrcline(lines, index);
    Dwarf_Files *files;
    Dwarf_Addr address = 0;
    size_t file;
    int number = 0, column = 0;
    bool is_end = true;
    struct row row = {0};
    if (dwarf_lineaddr(line, &address) != 0) return row;
    row.address = address;
    if (dwarf_lineendsequence(line, &is_end) != 0 || is_end) return row;
    if (dwarf_line_file(line, &files, &file) != 0 || dwarf_lineno(line, &number) != 0) return row;
    if (dwarf_linecol(line, &column) != 0) column = 0;
    uint32_t text = file_text_of_index(walk, file);
    if (text != 0) row.place = place_of(text, number, column);
    return row;
}

static uint64_t address_of_row(Dwarf_Lines *lines, size_t index)
{
    Dwarf_Addr address = 0;
    return dwarf_lineaddr(dwarf_onesrcline(lines, index), &address) == 0 ? address : 0;
}

static void add_line(struct walk *walk, uint64_t place, uint64_t start, uint64_t end)
{
    struct dwarf_names *names = walk->names;
    if (place == 0 || start >= end) return;
    struct address_range *last =
        names->line_ranges.count ? &names->line_ranges.items[names->line_ranges.count - 1] : NULL;
    if (last && last->layer == walk->order && last->end == start && names->places.items[last->value] == place) {
        last->end = (uint32_t)end;
        return;
    }
    struct address_range range = {(uint32_t)start, (uint32_t)end, (uint32_t)names->places.count, walk->order};
    if (!ARRAY_RESERVE(&names->places, 1, ADDRESS_RANGES_MAX) || !address_ranges_add(&names->line_ranges, range)) {
        walk->reader->failed = true;
        return;
    }
    names->places.items[names->places.count++] = place;
}

/* The rows that describe CLIP: from the one before its start to the last one before its end. */
static void add_lines(struct walk *walk, Dwarf_Lines *lines, size_t count, struct clip clip)
{
    uint64_t base = walk->reader->code->base, start = clip.start;
    size_t index = PARTITION_POINT(count, i, address_of_row(lines, i) <= base + start); /* libdw has sorted the rows */
    struct row row = index > 0 ? read_row(walk, lines, index - 1) : (struct row){0};
    for (; index < count && take_step(walk); index++) {
        struct row next = read_row(walk, lines, index);
        if (next.address >= base + clip.end) break;
        add_line(walk, row.place, start, next.address - base);
        start = next.address - base;
        row = next;
    }
    add_line(walk, row.place, start, clip.end);
}

static void read_lines(struct walk *walk, Dwarf_Die *unit)
{
    Dwarf_Lines *lines;
    size_t count;
    if (dwarf_getsrclines(unit, &lines, &count) != 0) return;
    walk->reader->line_count += count;
    struct clips own = clip_entry(walk, unit, walk->code);
    for (size_t i = own.first; i < own.first + own.count; i++) add_lines(walk, lines, count, walk->clips.items[i]);
    walk->clips.count = own.first;
}

/* --- Units -------------------------------------------------------------------------------------------------------- */

static void use_files(struct walk *walk, Dwarf_Die *unit)
{
    free(walk->file_texts);
    walk->file_texts = NULL;
    if (dwarf_getsrcfiles(unit, &walk->files, &walk->file_count) != 0) walk->file_count = 0;
    if (walk->file_count > 0) walk->file_texts = calloc(walk->file_count, sizeof(*walk->file_texts));
}

void dwarf_reader_note_sections(struct dwarf_reader *reader, Dwarf *dwarf)
{
    Elf *elf = dwarf ? dwarf_getelf(dwarf) : NULL;
    size_t names;
    if (!elf || elf_getshdrstrndx(elf, &names) != 0) return;
    for (Elf_Scn *section = NULL;
         reader->section_count < DWARF_SECTIONS_MAX && (section = elf_nextscn(elf, section));) {
        const Elf64_Shdr *header = elf64_getshdr(section);
        const char *name = header ? elf_strptr(elf, names, header->sh_name) : NULL;
        bool is_debug = name && (strncmp(name, ".debug_", 7) == 0 || strncmp(name, ".zdebug_", 8) == 0);
        const Elf_Data *data =
            is_debug ? elf_rawdata(section, NULL) : NULL; /* inflated by libdw if it was compressed */
        if (data && data->d_buf) reader->sections[reader->section_count++] = slice_of(data->d_buf, data->d_size);
    }
}

/* Finds the entries of a unit in its .dwo file: with -gsplit-dwarf, only lines and ranges are in the skeleton. */
static bool find_split_entries(Dwarf_Die *unit, uint8_t unit_type, Dwarf_Die *ret_entries)
{
    return unit_type == DW_UT_skeleton &&
           dwarf_cu_info(unit->cu, NULL, NULL, NULL, ret_entries, NULL, NULL, NULL) == 0 && ret_entries->cu;
}

/* Ranges were added with the order inside of the unit as their layer. */
static bool finish_ranges(struct address_ranges *ranges, size_t first, uint32_t layer)
{
    if (!address_ranges_flatten(ranges, first)) return false;
    for (size_t i = first; i < ranges->count; i++) ranges->items[i].layer = layer;
    return true;
}

void dwarf_unit_read(struct dwarf_reader *reader, Dwarf_Die *unit, uint8_t unit_type, uint32_t layer)
{
    struct dwarf_names *names = reader->names;
    struct walk walk = {.reader = reader, .names = names};
    size_t own_sections = reader->section_count;
    size_t first_scope_range = names->scope_ranges.count, first_line_range = names->line_ranges.count;
    walk.code = clip_code(&walk);
    walk.directory = text_of(&walk, unit, DW_AT_comp_dir);
    use_files(&walk, unit);
    read_lines(&walk, unit);
    Dwarf_Die split;
    Dwarf_Die *entries = unit;
    if (find_split_entries(unit, unit_type, &split)) {
        entries = &split;
        dwarf_reader_note_sections(reader, dwarf_cu_getdwarf(split.cu));
        use_files(&walk, entries);
    }
    walk_children(&walk, entries, walk.code, 0, 1);
    if (!finish_ranges(&names->scope_ranges, first_scope_range, layer) ||
        !finish_ranges(&names->line_ranges, first_line_range, layer))
        reader->failed = true;
    reader->section_count = own_sections;
    free(walk.file_texts);
    free(walk.clips.items);
}
