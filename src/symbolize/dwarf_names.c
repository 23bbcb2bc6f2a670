/* Asking libdw for the scopes of one address makes it walk through a whole compilation unit, every time. Here all
 * addresses are known beforehand and sorted: each unit that holds some is walked once, and an entry takes its part of
 * them (a "span") down to its children. Entries that hold none are not entered.
 *
 * SPDX-License-Identifier: MIT */
#include "symbolize/dwarf_names.h"

#include <dwarf.h>
#include <stdlib.h>

#include "base/array.h"

/* Part of the addresses asked for: [first, limit). */
struct span {
    size_t first, limit;
};

struct walk {
    struct dwarf_names *names;
    const uint64_t *addresses;
    Dwarf_Files *files;      /* of the unit */
    const char *directory;   /* of the unit; may be NULL */
    bool into_all_functions; /* also into those that hold no address themselves: a nested function may */
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
    unsigned count;
};

static bool next_range(struct ranges *ranges)
{
    if (ranges->count >= DWARF_ENTRY_RANGES_MAX) return false;
    ranges->position = dwarf_ranges(ranges->entry, ranges->position, &ranges->base, &ranges->start, &ranges->end);
    if (ranges->position <= 0) return false;
    ranges->count++;
    return true;
}

/* --- What an entry says ------------------------------------------------------------------------------------------- */

static int number_of(Dwarf_Die *entry, unsigned attribute)
{
    Dwarf_Attribute place;
    Dwarf_Word value = 0;
    if (!dwarf_attr(entry, attribute, &place) || dwarf_formudata(&place, &value) != 0) return 0;
    return value > INT32_MAX ? 0 : (int)value;
}

static const char *text_of(Dwarf_Die *entry, unsigned attribute)
{
    Dwarf_Attribute place;
    return dwarf_formstring(dwarf_attr_integrate(entry, attribute, &place));
}

static const char *linkage_name(Dwarf_Die *entry)
{
    const char *name = text_of(entry, DW_AT_linkage_name);
    return name ? name : text_of(entry, DW_AT_MIPS_linkage_name);
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
        .name = text_of(entry, DW_AT_name),
        .linkage_name = linkage_name(entry),
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

/* Index + 1 of a new scope that the addresses of SPAN lie in; 0 if there is no room for it. */
static uint32_t add_scope(struct walk *walk, Dwarf_Die *entry, struct span span, uint32_t caller)
{
    struct dwarf_names *names = walk->names;
    if (!array_reserve(&names->scopes, &names->scope_capacity, names->scope_count + 1, sizeof(*names->scopes),
                       DWARF_SCOPES_MAX)) {
        walk->failed = true;
        return 0;
    }
    names->scopes[names->scope_count++] = read_scope(walk, entry, caller);
    uint32_t scope = (uint32_t)names->scope_count;
    for (size_t i = span.first; i < span.limit; i++) names->addresses[i].scope = scope;
    return scope;
}

/* A function whose code lies in several ranges is walked through once a range that holds addresses. */
static void visit_function(struct walk *walk, Dwarf_Die *entry, struct span span, uint32_t caller, unsigned depth)
{
    struct ranges ranges = {.entry = entry};
    bool holds_some = false;
    while (!walk->failed && next_range(&ranges)) {
        struct span part = span_within(walk->addresses, span, ranges.start, ranges.end);
        if (part.first >= part.limit) continue;
        holds_some = true;
        uint32_t scope = add_scope(walk, entry, part, caller);
        if (scope != 0) walk_children(walk, entry, part, scope, depth + 1);
    }
    if (walk->into_all_functions && !holds_some) walk_children(walk, entry, span, 0, depth + 1);
}

static void visit_block(struct walk *walk, Dwarf_Die *entry, struct span span, uint32_t caller, unsigned depth)
{
    struct ranges ranges = {.entry = entry};
    while (!walk->failed && next_range(&ranges)) {
        struct span part = span_within(walk->addresses, span, ranges.start, ranges.end);
        if (part.first < part.limit) walk_children(walk, entry, part, caller, depth + 1);
    }
    if (ranges.count == 0) walk_children(walk, entry, span, caller, depth + 1);
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

static void walk_children(struct walk *walk, Dwarf_Die *parent, struct span span, uint32_t caller, unsigned depth)
{
    Dwarf_Die child;
    if (depth > DWARF_DEPTH_MAX || dwarf_child(parent, &child) != 0) return;
    const void *previous;
    do {
        visit(walk, &child, span, caller, depth);
        previous = child.addr;
        /* A sibling that does not lie further on would let broken DWARF lead us round in a circle. */
    } while (!walk->failed && dwarf_siblingof(&child, &child) == 0 &&
             (const char *)child.addr > (const char *)previous);
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
        Dwarf_Line *line = dwarf_getsrc_die(unit, walk->addresses[i]);
        if (line) walk->names->addresses[i].place = place_of_line(walk, line);
    }
}

/* Finds the lines of all addresses in UNIT, and a span that holds them all. */
static struct span enter_unit(struct walk *walk, Dwarf_Die *unit, struct span all)
{
    struct span span = {.first = all.limit, .limit = 0};
    struct ranges ranges = {.entry = unit};
    while (next_range(&ranges)) {
        struct span part = span_within(walk->addresses, all, ranges.start, ranges.end);
        if (part.first >= part.limit) continue;
        find_lines(walk, unit, part);
        if (part.first < span.first) span.first = part.first;
        if (part.limit > span.limit) span.limit = part.limit;
    }
    return span;
}

/* Whether UNIT holds addresses that no function of it has claimed. */
static bool has_unclaimed(const struct walk *walk, Dwarf_Die *unit, struct span span)
{
    struct ranges ranges = {.entry = unit};
    while (next_range(&ranges)) {
        struct span part = span_within(walk->addresses, span, ranges.start, ranges.end);
        for (size_t i = part.first; i < part.limit; i++)
            if (walk->names->addresses[i].scope == 0) return true;
    }
    return false;
}

static void visit_unit(struct walk *walk, Dwarf_CU *handle, Dwarf_Die *unit, struct span all)
{
    walk->directory = text_of(unit, DW_AT_comp_dir);
    struct span span = enter_unit(walk, unit, all);
    if (span.first >= span.limit) return;
    Dwarf_Die split; /* -gsplit-dwarf: the entries are in a .dwo file, lines and ranges are here */
    bool is_split = dwarf_cu_info(handle, NULL, NULL, NULL, &split, NULL, NULL, NULL) == 0 &&
                    dwarf_tag(&split) == DW_TAG_compile_unit;
    Dwarf_Die *entries = is_split ? &split : unit;
    size_t file_count;
    if (dwarf_getsrcfiles(entries, &walk->files, &file_count) != 0) walk->files = NULL;
    walk->into_all_functions = false;
    walk_children(walk, entries, span, 0, 1);
    if (!has_unclaimed(walk, unit, span)) return;
    walk->into_all_functions = true;
    walk_children(walk, entries, span, 0, 1);
}

bool dwarf_names_find(struct dwarf_names *names, Dwarf *dwarf, const uint64_t *addresses, size_t count)
{
    *names = (struct dwarf_names){.addresses = calloc(count ? count : 1, sizeof(*names->addresses))};
    if (!names->addresses) return false;
    struct walk walk = {.names = names, .addresses = addresses};
    Dwarf_CU *handle = NULL;
    Dwarf_Die unit;
    uint8_t type;
    while (!walk.failed && dwarf_get_units(dwarf, handle, &handle, NULL, &type, &unit, NULL) == 0)
        if (type == DW_UT_compile || type == DW_UT_skeleton)
            visit_unit(&walk, handle, &unit, (struct span){.first = 0, .limit = count});
    return !walk.failed;
}

void dwarf_names_fini(struct dwarf_names *names)
{
    free(names->addresses);
    free(names->scopes);
    *names = (struct dwarf_names){0};
}
