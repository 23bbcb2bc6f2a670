/* The names in one unit of DWARF.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_DWARF_UNIT_H
#define OFFBEAT_SYMBOLIZE_DWARF_UNIT_H

#include <elfutils/libdw.h>

#include "base/slice.h"
#include "symbolize/dwarf_names.h"

/* State of a thread that lasts from one unit to the next. */
struct dwarf_reader {
    struct dwarf_names *names;
    const struct dwarf_code *code;
    const struct elf_symbols *symbols;
    struct slice sections[DWARF_SECTIONS_MAX]; /* sections that can contain texts */
    size_t section_count;
    INDEXED_ARRAY_OF(struct dwarf_origin) origins; /* inlined functions, by the declaring entry */
    struct buffer scratch;
    size_t line_count; /* rows of line tables that libdw keeps for us */
    size_t steps_left; /* steps until nothing more is read */
    bool failed;       /* memory is short */
};

/* Adds what UNIT, a compile unit or the skeleton of one, says. */
void dwarf_unit_read(struct dwarf_reader *reader, Dwarf_Die *unit, uint8_t unit_type, uint32_t layer);

/* Notes where texts of DWARF, which may be NULL, can be. */
void dwarf_reader_note_sections(struct dwarf_reader *reader, Dwarf *dwarf);

#endif
