/* Call frame information: .eh_frame as the LSB, .debug_frame as the DWARF standard (version 5, §6.4) describes it.
 *
 * Works on bytes alone, allocates nothing, and is signal-safe: a section may be a copy, addresses are kept beside it.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_CFI_H
#define OFFBEAT_UNWIND_CFI_H

#include "base/cursor.h"
#include "base/slice.h"
#include "unwind/chosen_machine.h"

/* Rules for registers from CFI_REGISTERS on are skipped. */
enum { CFI_REMEMBERED_MAX = 8 };

struct cfi_section {
    struct slice bytes;    /* .eh_frame or .debug_frame */
    uint64_t address;      /* address of bytes.data[0], in the address space of the results */
    uint64_t data_address; /* base of DW_EH_PE_datarel: .eh_frame_hdr; 0 if there is none */
    bool is_debug_frame;
    uint64_t bias; /* value to add to absolute addresses in .debug_frame, which no loader relocates */
};

struct cfi_cie {
    size_t offset; /* offset in the section, which identifies the CIE */
    uint64_t code_alignment;
    int64_t data_alignment;
    uint32_t return_register;
    uint8_t pointer_encoding;
    bool has_augmentation_data;
    bool is_signal_frame;
    struct slice instructions;
};

struct cfi_fde {
    struct cfi_cie cie;
    uint64_t start, end; /* addresses of the code */
    struct slice instructions;
};

enum cfi_rule_kind {
    CFI_SAME_VALUE = 0, /* the rule of a register without a rule, too */
    CFI_UNDEFINED,
    CFI_OFFSET,       /* saved at CFA + value */
    CFI_VALUE_OFFSET, /* is CFA + value */
    CFI_REGISTER,     /* is in register number value */
    CFI_EXPRESSION,   /* saved at the address that the expression gives */
    CFI_VALUE_EXPRESSION,
};

struct cfi_rule {
    uint8_t kind;
    uint16_t expression_size;
    int32_t value; /* offset or register, or the offset of the expression in the section */
};

struct cfi_row {
    bool cfa_is_expression;
    uint16_t cfa_register;
    uint16_t cfa_expression_size;
    int32_t cfa_offset;
    /* Offset in the section. An expression leaves register and offset as they are: hand-written code names one of the
     * two after an expression and relies on the other one, as libgcc takes it. */
    int32_t cfa_expression;
    struct cfi_rule registers[CFI_REGISTERS];
    uint64_t registers_version; /* number that is equal in rows of one machine only if the register rules are */
};

/* Working memory of cfi_run: over 1 KB, so the caller provides it. {0} before the first FDE of a section. */
struct cfi_machine {
    struct cfi_row row, initial;
    const uint8_t *initial_of; /* instructions of the CIE of INITIAL */
    uint64_t versions;         /* last version of a row */
    struct cfi_row remembered[CFI_REMEMBERED_MAX];
};

/* Reads a pointer encoded as DW_EH_PE ENCODING; relative ones are relative to the section's addresses. */
uint64_t cfi_encoded_pointer(struct cursor *cursor, const struct cfi_section *section, uint8_t encoding);

/* Reads the FDE at OFFSET. Returns false if there is a CIE, the terminator, or a broken entry. RET_FDE->cie may hold
 * the CIE of an earlier call: it is not read again if it is the same. RET_NEXT (may be NULL) is set to the offset of
 * the next entry, or to SIZE_MAX at the end, in either case. */
bool cfi_read_fde(const struct cfi_section *section, size_t offset, struct cfi_fde *ret_fde, size_t *ret_next);

/* Called for [START, END), rows in rising order without gaps. Returning false stops. */
typedef bool (*cfi_row_callback)(void *context, uint64_t start, uint64_t end, const struct cfi_row *row);

/* Runs FDE's instructions. Returns false if they are broken, after the rows that precede. */
bool cfi_run(const struct cfi_section *section, const struct cfi_fde *fde, struct cfi_machine *machine,
             cfi_row_callback callback, void *context);

#endif
