/* Asking libdw for the scopes of one address makes it walk through a whole compilation unit, every time. Here all
 * addresses are known beforehand and sorted: each unit that holds some is walked once, and an entry takes its part of
 * them (a "span") down to its children. Entries that hold none are not entered.
 *
 * SPDX-License-Identifier: MIT */
#include "symbolize/dwarf_names.h"

#include <dwarf.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/slice.h"

/* Part of the addresses asked for: [first, limit). */
struct span {
    size_t first, limit;
};

struct walk {
    struct dwarf_names *names;
    const uint64_t *addresses;
    Dwarf_Files *files;                        /* of the unit */
    const char *directory;                     /* of the unit; may be NULL */
    uint32_t earlier_scopes;                   /* how many were found in the units before this one */
    struct slice sections[DWARF_SECTIONS_MAX]; /* that texts can lie in */
    size_t section_count;
    size_t ranges_left, parts_left; /* at 0 the walk ends */
    bool failed;
};

static size_t first_not_below(const uint64_t *addresses, struct span span, uint64_t address)
{
    while (span.first < span.limit) {
        size_t middle = span.first + (span.limit - span.first) / 2;
        if (addresses[middle] < address)
            span.first = middle + 1;
        else
            span.limit = middle;
    }
    return span.first;
}

static struct span span_within(const uint64_t *addresses, struct span span, uint64_t start, uint64_t end)
{
    /* A linker that drops a function sets its addresses to 0, and nothing else lies there. */
    if (start == 0 || start >= end) return (struct span){0};
    span.first = first_not_below(addresses, span, start);
    span.limit = first_not_below(addresses, span, end);
    return span;
}

/* The ranges of an entry, one by one. */
struct ranges {
    Dwarf_Die *entry;
    ptrdiff_t position;
    Dwarf_Addr base, start, end;
};

static bool next_range(struct walk *walk, struct ranges *ranges)
{
    if (walk->ranges_left == 0 || walk->parts_left == 0) return false;
    walk->ranges_left--;
    ranges->position = dwarf_ranges(ranges->entry, ranges->position, &ranges->base, &ranges->start, &ranges->end);
    return ranges->position > 0;
}

/* The addresses of SPAN in the next range that holds some; false if there is none. */
static bool next_part(struct walk *walk, struct ranges *ranges, struct span span, struct span *ret_part)
{
    while (next_range(walk, ranges)) {
        *ret_part = span_within(walk->addresses, span, ranges->start, ranges->end);
        if (ret_part->first >= ret_part->limit) continue;
        walk->parts_left--;
        return true;
    }
    return false;
}

/* --- What an entry says ------------------------------------------------------------------------------------------- */

static int number_of(Dwarf_Die *entry, unsigned attribute)
{
    Dwarf_Attribute place;
    Dwarf_Word value = 0;
    if (!dwarf_attr(entry, attribute, &place) || dwarf_formudata(&place, &value) != 0) return 0;
    return value > INT32_MAX ? 0 : (int)value;
}

/* libdw gives out texts without looking whether they end before their section does: those among the entries may not. */
static bool has_end(const struct walk *walk, const char *text)
{
    for (size_t i = 0; i < walk->section_count; i++) {
        uintptr_t offset = (uintptr_t)text - (uintptr_t)walk->sections[i].data;
        if (offset < walk->sections[i].size) return memchr(text, '\0', walk->sections[i].size - offset) != NULL;
    }
    return false;
}

static const char *text_of(const struct walk *walk, Dwarf_Die *entry, unsigned attribute)
{
    Dwarf_Attribute place;
    const char *text = dwarf_formstring(dwarf_attr_integrate(entry, attribute, &place));
    return text && has_end(walk, text) ? text : NULL;
}

static const char *linkage_name(const struct walk *walk, Dwarf_Die *entry)
{
    const char *name = text_of(walk, entry, DW_AT_linkage_name);
    return name ? name : text_of(walk, entry, DW_AT_MIPS_linkage_name);
}

static void set_file(const struct walk *walk, struct dwarf_place *place, const char *file)
{
    place->file = file;
    place->directory = file && file[0] != '/' ? walk->directory : NULL;
}

static struct dwarf_place place_of_call(const struct walk *walk, Dwarf_Die *entry)
{
    struct dwarf_place place = {
        .line = number_of(entry, DW_AT_call_line),
        .column = number_of(entry, DW_AT_call_column),
    };
    size_t file = (size_t)number_of(entry, DW_AT_call_file);
    if (walk->files && dwarf_hasattr(entry, DW_AT_call_file))
        set_file(walk, &place, dwarf_filesrc(walk->files, file, NULL, NULL));
    return place;
}

static struct dwarf_scope read_scope(const struct walk *walk, Dwarf_Die *entry, uint32_t caller)
{
    struct dwarf_scope scope = {
        .caller = caller,
        .name = text_of(walk, entry, DW_AT_name),
        .linkage_name = linkage_name(walk, entry),
    };
    set_file(walk, &scope.declaration, dwarf_decl_file(entry));
    if (dwarf_decl_line(entry, &scope.declaration.line) != 0) scope.declaration.line = 0;
    Dwarf_Addr first_instruction;
    if (caller != 0)
        scope.call = place_of_call(walk, entry);
    else if (dwarf_entrypc(entry, &first_instruction) == 0)
        scope.entry = first_instruction;
    return scope;
}

/* --- The walk ----------------------------------------------------------------------------------------------------- */

static void walk_children(struct walk *walk, Dwarf_Die *parent, struct span span, uint32_t caller, unsigned depth);

/* Where the linker keeps one copy of what several units define (inline functions of C++), all of these units claim its
 * addresses. The first one has them. */
static bool is_taken(const struct walk *walk, size_t address)
{
    uint32_t scope = walk->names->addresses[address].scope;
    return scope != 0 && scope <= walk->earlier_scopes;
}

/* Index + 1 of a new scope that the addresses of PART lie in; 0 if there is no room for it or no need. */
static uint32_t add_scope(struct walk *walk, Dwarf_Die *entry, struct span part, uint32_t caller)
{
    struct dwarf_names *names = walk->names;
    while (part.first < part.limit && is_taken(walk, part.first)) part.first++;
    if (part.first == part.limit) return 0;
    if (!array_reserve(&names->scopes, &names->scope_capacity, names->scope_count + 1, sizeof(*names->scopes),
                       UINT32_MAX - 1)) {
        walk->failed = true;
        walk->parts_left = 0;
        return 0;
    }
    names->scopes[names->scope_count++] = read_scope(walk, entry, caller);
    uint32_t scope = (uint32_t)names->scope_count;
    for (size_t i = part.first; i < part.limit; i++)
        if (!is_taken(walk, i)) names->addresses[i].scope = scope;
    return scope;
}

/* A function whose code lies in several ranges is walked through once a range that holds addresses. */
static void visit_function(struct walk *walk, Dwarf_Die *entry, struct span span, uint32_t caller, unsigned depth)
{
    struct ranges ranges = {.entry = entry};
    for (struct span part; next_part(walk, &ranges, span, &part);) {
        uint32_t scope = add_scope(walk, entry, part, caller);
        if (scope != 0) walk_children(walk, entry, part, scope, depth + 1);
    }
}

static void visit_block(struct walk *walk, Dwarf_Die *entry, struct span span, uint32_t caller, unsigned depth)
{
    struct ranges ranges = {.entry = entry};
    for (struct span part; next_part(walk, &ranges, span, &part);) walk_children(walk, entry, part, caller, depth + 1);
    bool has_range = dwarf_hasattr(entry, DW_AT_low_pc) || dwarf_hasattr(entry, DW_AT_ranges);
    if (!has_range) walk_children(walk, entry, span, caller, depth + 1);
}

static void visit(struct walk *walk, Dwarf_Die *entry, struct span span, uint32_t caller, unsigned depth)
{
    switch (dwarf_tag(entry)) {
    case DW_TAG_subprogram:
    case DW_TAG_entry_point:
        visit_function(walk, entry, span, 0, depth);
        break;
    case DW_TAG_inlined_subroutine:
        visit_function(walk, entry, span, caller, depth);
        break;
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_with_stmt:
        visit_block(walk, entry, span, caller, depth);
        break;
    case DW_TAG_namespace: /* compilers differ in where they put the code of members */
    case DW_TAG_module:
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_interface_type:
        walk_children(walk, entry, span, caller, depth + 1);
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
    /* A sibling that does not lie further on would let broken DWARF lead us round in a circle. */
    return dwarf_siblingof(child, child) == 0 && (const char *)child->addr > previous;
}

static void walk_children(struct walk *walk, Dwarf_Die *parent, struct span span, uint32_t caller, unsigned depth)
{
    if (depth > DWARF_DEPTH_MAX) return;
    for (Dwarf_Die child = {0}; walk->parts_left > 0 && next_child(parent, &child);)
        visit(walk, &child, span, caller, depth);
}

/* Visits the functions that are described inside of other functions (lambdas, nested functions) although their code
 * lies elsewhere, so that the walk, which follows the code, did not come to them. */
static void walk_nested_functions(struct walk *walk, Dwarf_Die *parent, struct span span, bool is_in_function,
                                  unsigned depth)
{
    if (depth > DWARF_DEPTH_MAX) return;
    for (Dwarf_Die child = {0}; walk->parts_left > 0 && next_child(parent, &child);) {
        bool is_function = dwarf_tag(&child) == DW_TAG_subprogram;
        if (is_function && is_in_function) visit_function(walk, &child, span, 0, depth);
        if (dwarf_haschildren(&child) == 1)
            walk_nested_functions(walk, &child, span, is_in_function || is_function, depth + 1);
    }
}

/* --- Units -------------------------------------------------------------------------------------------------------- */

static struct dwarf_place place_of_line(const struct walk *walk, Dwarf_Line *line)
{
    struct dwarf_place place;
    set_file(walk, &place, dwarf_linesrc(line, NULL, NULL));
    if (dwarf_lineno(line, &place.line) != 0) place.line = 0;
    if (dwarf_linecol(line, &place.column) != 0) place.column = 0;
    return place;
}

static void find_lines(struct walk *walk, Dwarf_Die *unit, struct span span)
{
    for (size_t i = span.first; i < span.limit; i++) {
        struct dwarf_place *place = &walk->names->addresses[i].place;
        Dwarf_Line *line = place->file ? NULL : dwarf_getsrc_die(unit, walk->addresses[i]);
        if (line) *place = place_of_line(walk, line);
    }
}

/* Finds the lines of all addresses in UNIT, and a span that holds them all. */
static struct span enter_unit(struct walk *walk, Dwarf_Die *unit, struct span all)
{
    struct span span = {.first = all.limit, .limit = 0};
    struct ranges ranges = {.entry = unit};
    for (struct span part; next_part(walk, &ranges, all, &part);) {
        find_lines(walk, unit, part);
        if (part.first < span.first) span.first = part.first;
        if (part.limit > span.limit) span.limit = part.limit;
    }
    return span;
}

/* Whether UNIT holds addresses that no function of it has claimed. */
static bool has_unclaimed(struct walk *walk, Dwarf_Die *unit, struct span span)
{
    struct ranges ranges = {.entry = unit};
    for (struct span part; next_part(walk, &ranges, span, &part);)
        for (size_t i = part.first; i < part.limit; i++)
            if (walk->names->addresses[i].scope == 0) return true;
    return false;
}

/* Notes where texts of DWARF can lie; DWARF may be NULL. */
static void note_sections(struct walk *walk, Dwarf *dwarf)
{
    Elf *elf = dwarf ? dwarf_getelf(dwarf) : NULL;
    size_t names;
    if (!elf || elf_getshdrstrndx(elf, &names) != 0) return;
    for (Elf_Scn *section = NULL; walk->section_count < DWARF_SECTIONS_MAX && (section = elf_nextscn(elf, section));) {
        const Elf64_Shdr *header = elf64_getshdr(section);
        const char *name = header ? elf_strptr(elf, names, header->sh_name) : NULL;
        bool is_debug = name && (strncmp(name, ".debug_", 7) == 0 || strncmp(name, ".zdebug_", 8) == 0);
        const Elf_Data *data =
            is_debug ? elf_rawdata(section, NULL) : NULL; /* inflated by libdw if it was compressed */
        if (data && data->d_buf) walk->sections[walk->section_count++] = slice_of(data->d_buf, data->d_size);
    }
}

/* With -gsplit-dwarf the entries are in a .dwo file, while lines and ranges stay with the skeleton. */
static bool find_split_entries(Dwarf_CU *handle, uint8_t unit_type, Dwarf_Die *ret_entries)
{
    return unit_type == DW_UT_skeleton && dwarf_cu_info(handle, NULL, NULL, NULL, ret_entries, NULL, NULL, NULL) == 0 &&
           ret_entries->cu;
}

static void visit_unit(struct walk *walk, Dwarf_CU *handle, uint8_t unit_type, Dwarf_Die *unit, struct span all)
{
    walk->directory = text_of(walk, unit, DW_AT_comp_dir);
    struct span span = enter_unit(walk, unit, all);
    if (span.first >= span.limit) return;
    Dwarf_Die split;
    Dwarf_Die *entries = unit;
    size_t own_sections = walk->section_count;
    if (find_split_entries(handle, unit_type, &split)) {
        entries = &split;
        note_sections(walk, dwarf_cu_getdwarf(split.cu));
    }
    size_t file_count;
    if (dwarf_getsrcfiles(entries, &walk->files, &file_count) != 0) walk->files = NULL;
    walk->earlier_scopes = (uint32_t)walk->names->scope_count;
    walk_children(walk, entries, span, 0, 1);
    if (has_unclaimed(walk, unit, span)) walk_nested_functions(walk, entries, span, false, 1);
    walk->section_count = own_sections;
}

bool dwarf_names_find(struct dwarf_names *names, Dwarf *dwarf, const uint64_t *addresses, size_t count)
{
    *names = (struct dwarf_names){.addresses = calloc(count ? count : 1, sizeof(*names->addresses))};
    if (!names->addresses) return false;
    struct walk walk = {
        .names = names,
        .addresses = addresses,
        .ranges_left = DWARF_RANGES_MAX,
        .parts_left = (count + 1) * DWARF_PARTS_PER_ADDRESS,
    };
    note_sections(&walk, dwarf);
    note_sections(&walk, dwarf_getalt(dwarf));
    Dwarf_CU *handle = NULL;
    Dwarf_Die unit;
    uint8_t type;
    while (walk.parts_left > 0 && dwarf_get_units(dwarf, handle, &handle, NULL, &type, &unit, NULL) == 0)
        if (type == DW_UT_compile || type == DW_UT_skeleton)
            visit_unit(&walk, handle, type, &unit, (struct span){.first = 0, .limit = count});
    return !walk.failed;
}

void dwarf_names_fini(struct dwarf_names *names)
{
    free(names->addresses);
    free(names->scopes);
    *names = (struct dwarf_names){0};
}
