/* Reads CIEs and FDEs and runs their instructions, one row at a time.  SPDX-License-Identifier: MIT */
#include "unwind/cfi.h"

enum {
    POINTER_ABSOLUTE = 0x00,
    POINTER_ULEB128 = 0x01,
    POINTER_U16 = 0x02,
    POINTER_U32 = 0x03,
    POINTER_U64 = 0x04,
    POINTER_SLEB128 = 0x09,
    POINTER_S16 = 0x0a,
    POINTER_S32 = 0x0b,
    POINTER_S64 = 0x0c,
    POINTER_RELATIVE_TO_ITSELF = 0x10,
    POINTER_RELATIVE_TO_DATA = 0x30,
    POINTER_OMITTED = 0xff,
};

static uint64_t read_value(struct cursor *cursor, uint8_t encoding)
{
    switch (encoding & 0x0f) {
    case POINTER_ABSOLUTE:
    case POINTER_U64:
    case POINTER_S64:
        return cursor_u64(cursor);
    case POINTER_ULEB128:
        return cursor_uleb128(cursor);
    case POINTER_SLEB128:
        return (uint64_t)cursor_sleb128(cursor);
    case POINTER_U16:
        return cursor_u16(cursor);
    case POINTER_S16:
        return (uint64_t)(int64_t)(int16_t)cursor_u16(cursor);
    case POINTER_U32:
        return cursor_u32(cursor);
    case POINTER_S32:
        return (uint64_t)(int64_t)(int32_t)cursor_u32(cursor);
    default:
        cursor->failed = true;
        return 0;
    }
}

uint64_t cfi_encoded_pointer(struct cursor *cursor, const struct cfi_section *section, uint8_t encoding)
{
    if (encoding == POINTER_OMITTED) return 0;
    uint64_t place = section->address + (uint64_t)(cursor->position - section->bytes.data);
    uint64_t value = read_value(cursor, encoding);
    switch (encoding & 0x70) {
    case POINTER_ABSOLUTE:
        return value + section->bias;
    case POINTER_RELATIVE_TO_ITSELF:
        return place + value;
    case POINTER_RELATIVE_TO_DATA:
        return section->data_address + value;
    default:
        cursor->failed = true;
        return 0;
    }
}

struct entry {
    struct cursor cursor; /* position after the field that distinguishes a CIE from an FDE */
    bool is_cie;
    size_t cie_offset; /* offset of an FDE's CIE */
    size_t next;       /* offset of the next entry; SIZE_MAX: there is none */
};

/* Reads the fields that CIEs and FDEs have in common. Returns false also at the terminator. */
static bool read_entry(const struct cfi_section *section, size_t offset, struct entry *ret_entry)
{
    ret_entry->next = SIZE_MAX;
    struct cursor cursor = cursor_of(section->bytes);
    cursor_skip(&cursor, offset);
    uint64_t length = cursor_u32(&cursor);
    bool is_long = length == 0xffffffff;
    if (is_long) length = cursor_u64(&cursor);
    struct slice entry = cursor_take(&cursor, length);
    if (cursor.failed || length == 0) return false;
    if (!cursor_at_end(&cursor)) ret_entry->next = cursor_offset(&cursor);

    struct cursor *content = &ret_entry->cursor;
    *content = cursor_of(entry);
    if (section->is_debug_frame) {
        uint64_t id = is_long ? cursor_u64(content) : cursor_u32(content);
        ret_entry->is_cie = id == (is_long ? UINT64_MAX : UINT32_MAX);
        ret_entry->cie_offset = id;
        return !content->failed;
    }
    size_t place = (size_t)(content->position - section->bytes.data);
    uint32_t distance = cursor_u32(content);
    ret_entry->is_cie = distance == 0;
    ret_entry->cie_offset = place - distance;
    return !content->failed && distance <= place;
}

static bool read_cie(const struct cfi_section *section, size_t offset, struct cfi_cie *ret_cie)
{
    struct entry entry;
    if (!read_entry(section, offset, &entry) || !entry.is_cie) return false;
    struct cursor cursor = entry.cursor;
    uint8_t version = cursor_u8(&cursor);
    if (version != 1 && version != 3 && version != 4) return false;
    struct slice augmentation = slice_of(cursor.position, 0); /* up to NUL; signal handlers call nothing of libc */
    while (cursor_u8(&cursor) != 0) augmentation.size++;
    if (version == 4) {
        cursor_skip(&cursor, 1);                   /* address size */
        if (cursor_u8(&cursor) != 0) return false; /* segment selectors */
    }
    struct cfi_cie cie = {.offset = offset, .pointer_encoding = POINTER_ABSOLUTE};
    cie.code_alignment = cursor_uleb128(&cursor);
    cie.data_alignment = cursor_sleb128(&cursor);
    cie.return_register = version == 1 ? cursor_u8(&cursor) : (uint32_t)cursor_uleb128(&cursor);
    for (size_t i = 0; i < augmentation.size && !cursor.failed; i++) {
        switch (augmentation.data[i]) {
        case 'z':
            cie.has_augmentation_data = true;
            (void)cursor_uleb128(&cursor);
            break;
        case 'R':
            cie.pointer_encoding = cursor_u8(&cursor);
            break;
        case 'P': {
            uint8_t encoding = cursor_u8(&cursor);
            (void)cfi_encoded_pointer(&cursor, section, encoding & 0x7f); /* 0x80: indirect, not followed */
            break;
        }
        case 'L':
            cursor_skip(&cursor, 1);
            break;
        case 'S':
            cie.is_signal_frame = true;
            break;
        default:
            break; /* 'B' (arm64) and unknown: nothing that we could use comes after them */
        }
    }
    if (cursor.failed || cie.return_register >= CFI_REGISTERS) return false;
    cie.instructions = slice_of(cursor.position, cursor_left(&cursor));
    *ret_cie = cie;
    return true;
}

bool cfi_read_fde(const struct cfi_section *section, size_t offset, struct cfi_fde *ret_fde, size_t *ret_next)
{
    struct entry entry;
    bool is_fde = read_entry(section, offset, &entry) && !entry.is_cie;
    if (ret_next) *ret_next = entry.next;
    if (!is_fde) return false;
    struct cursor cursor = entry.cursor;
    if (ret_fde->cie.instructions.data == NULL || ret_fde->cie.offset != entry.cie_offset) {
        if (!read_cie(section, entry.cie_offset, &ret_fde->cie)) return false;
    }
    uint8_t encoding = ret_fde->cie.pointer_encoding;
    ret_fde->start = cfi_encoded_pointer(&cursor, section, encoding);
    uint64_t size = read_value(&cursor, encoding);
    ret_fde->end = ret_fde->start + size;
    if (ret_fde->cie.has_augmentation_data) cursor_skip(&cursor, cursor_uleb128(&cursor));
    ret_fde->instructions = slice_of(cursor.position, cursor_left(&cursor));
    return !cursor.failed && size > 0 && ret_fde->end > ret_fde->start;
}

enum {
    CFA_NOP = 0x00,
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE_LOC1 = 0x02,
    CFA_ADVANCE_LOC2 = 0x03,
    CFA_ADVANCE_LOC4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER_STATE = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEF_CFA = 0x0c,
    CFA_DEF_CFA_REGISTER = 0x0d,
    CFA_DEF_CFA_OFFSET = 0x0e,
    CFA_DEF_CFA_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_CFA_SF = 0x12,
    CFA_DEF_CFA_OFFSET_SF = 0x13,
    CFA_VAL_OFFSET = 0x14,
    CFA_VAL_OFFSET_SF = 0x15,
    CFA_VAL_EXPRESSION = 0x16,
    CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
    CFA_AARCH64_NEGATE_RA_STATE = 0x2d,
    CFA_GNU_ARGS_SIZE = 0x2e,
    CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
    CFA_ADVANCE_LOC = 0x40, /* with the delta in the lower six bits */
    CFA_OFFSET = 0x80,      /* with the register there */
    CFA_RESTORE = 0xc0,
};

struct run {
    const struct cfi_section *section;
    const struct cfi_fde *fde;
    struct cfi_machine *machine;
    cfi_row_callback callback;
    void *context;
    uint64_t location;
    unsigned remembered_count;
    bool in_cie;
    bool stopped; /* true if the callback has stopped it */
};

/* Returns an offset that an instruction has in units of the data alignment. Wraps on nonsense. */
static int64_t scaled(const struct run *run, uint64_t factor)
{
    return (int64_t)(factor * (uint64_t)run->fde->cie.data_alignment);
}

static struct cfi_rule *change_register(struct run *run, uint64_t number)
{
    run->machine->row.registers_version = ++run->machine->versions;
    return &run->machine->row.registers[number];
}

static void set_rule(struct run *run, uint64_t number, enum cfi_rule_kind kind, int64_t value)
{
    if (number >= CFI_REGISTERS) return;
    if (value != (int32_t)value) {
        kind = CFI_UNDEFINED;
        value = 0;
    }
    *change_register(run, number) = (struct cfi_rule){.kind = (uint8_t)kind, .value = (int32_t)value};
}

static struct slice read_block(struct cursor *cursor)
{
    struct slice block = cursor_take(cursor, cursor_uleb128(cursor));
    if (block.size > UINT16_MAX) cursor->failed = true;
    return block;
}

static void set_expression(struct run *run, uint64_t number, enum cfi_rule_kind kind, struct cursor *cursor)
{
    struct slice block = read_block(cursor);
    if (cursor->failed || number >= CFI_REGISTERS) return;
    *change_register(run, number) = (struct cfi_rule){
        .kind = (uint8_t)kind,
        .expression_size = (uint16_t)block.size,
        .value = (int32_t)(block.data - run->section->bytes.data),
    };
}

static void set_cfa(struct run *run, uint64_t number, int64_t offset)
{
    run->machine->row.cfa_is_expression = false;
    run->machine->row.cfa_register =
        number < CFI_REGISTERS && offset == (int32_t)offset ? (uint16_t)number : UINT16_MAX;
    run->machine->row.cfa_offset = (int32_t)offset;
}

/* Passes the row that ends at TO to the callback. */
static void advance_to(struct run *run, uint64_t to, struct cursor *cursor)
{
    if (run->in_cie || to < run->location) {
        cursor->failed = true;
        return;
    }
    if (to > run->fde->end) to = run->fde->end;
    if (to > run->location && !run->callback(run->context, run->location, to, &run->machine->row)) run->stopped = true;
    run->location = to;
}

static void restore_initial(struct run *run, uint64_t number)
{
    if (number >= CFI_REGISTERS) return;
    *change_register(run, number) = run->in_cie ? (struct cfi_rule){0} : run->machine->initial.registers[number];
}

static void run_extended(struct run *run, uint8_t code, struct cursor *cursor)
{
    uint64_t code_alignment = run->fde->cie.code_alignment;
    uint64_t number = 0;
    struct cfi_row *row = &run->machine->row;
    struct slice block;
    switch (code) {
    case CFA_NOP:
    case CFA_AARCH64_NEGATE_RA_STATE: /* whether a return address is signed: machine_code_address does not depend on it
                                       */
    case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
        break;
    case CFA_SET_LOC:
        advance_to(run, cfi_encoded_pointer(cursor, run->section, run->fde->cie.pointer_encoding), cursor);
        break;
    case CFA_ADVANCE_LOC1:
        advance_to(run, run->location + cursor_u8(cursor) * code_alignment, cursor);
        break;
    case CFA_ADVANCE_LOC2:
        advance_to(run, run->location + cursor_u16(cursor) * code_alignment, cursor);
        break;
    case CFA_ADVANCE_LOC4:
        advance_to(run, run->location + cursor_u32(cursor) * code_alignment, cursor);
        break;
    case CFA_OFFSET_EXTENDED:
        number = cursor_uleb128(cursor);
        set_rule(run, number, CFI_OFFSET, scaled(run, cursor_uleb128(cursor)));
        break;
    case CFA_OFFSET_EXTENDED_SF:
        number = cursor_uleb128(cursor);
        set_rule(run, number, CFI_OFFSET, scaled(run, (uint64_t)cursor_sleb128(cursor)));
        break;
    case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
        number = cursor_uleb128(cursor);
        set_rule(run, number, CFI_OFFSET, scaled(run, -cursor_uleb128(cursor)));
        break;
    case CFA_VAL_OFFSET:
        number = cursor_uleb128(cursor);
        set_rule(run, number, CFI_VALUE_OFFSET, scaled(run, cursor_uleb128(cursor)));
        break;
    case CFA_VAL_OFFSET_SF:
        number = cursor_uleb128(cursor);
        set_rule(run, number, CFI_VALUE_OFFSET, scaled(run, (uint64_t)cursor_sleb128(cursor)));
        break;
    case CFA_RESTORE_EXTENDED:
        restore_initial(run, cursor_uleb128(cursor));
        break;
    case CFA_UNDEFINED:
        set_rule(run, cursor_uleb128(cursor), CFI_UNDEFINED, 0);
        break;
    case CFA_SAME_VALUE:
        set_rule(run, cursor_uleb128(cursor), CFI_SAME_VALUE, 0);
        break;
    case CFA_REGISTER:
        number = cursor_uleb128(cursor);
        set_rule(run, number, CFI_REGISTER, (int64_t)cursor_uleb128(cursor));
        break;
    case CFA_REMEMBER_STATE:
        if (run->remembered_count == CFI_REMEMBERED_MAX)
            cursor->failed = true;
        else
            run->machine->remembered[run->remembered_count++] = *row;
        break;
    case CFA_RESTORE_STATE:
        if (run->remembered_count == 0)
            cursor->failed = true;
        else
            *row = run->machine->remembered[--run->remembered_count];
        break;
    case CFA_DEF_CFA:
        number = cursor_uleb128(cursor);
        set_cfa(run, number, (int64_t)cursor_uleb128(cursor));
        break;
    case CFA_DEF_CFA_SF:
        number = cursor_uleb128(cursor);
        set_cfa(run, number, scaled(run, (uint64_t)cursor_sleb128(cursor)));
        break;
    case CFA_DEF_CFA_REGISTER:
        set_cfa(run, cursor_uleb128(cursor), run->machine->row.cfa_offset);
        break;
    case CFA_DEF_CFA_OFFSET:
        set_cfa(run, run->machine->row.cfa_register, (int64_t)cursor_uleb128(cursor));
        break;
    case CFA_DEF_CFA_OFFSET_SF:
        set_cfa(run, run->machine->row.cfa_register, scaled(run, (uint64_t)cursor_sleb128(cursor)));
        break;
    case CFA_DEF_CFA_EXPRESSION:
        block = read_block(cursor);
        if (cursor->failed) break;
        row->cfa_is_expression = true;
        row->cfa_expression_size = (uint16_t)block.size;
        row->cfa_expression = (int32_t)(block.data - run->section->bytes.data);
        break;
    case CFA_EXPRESSION:
        set_expression(run, cursor_uleb128(cursor), CFI_EXPRESSION, cursor);
        break;
    case CFA_VAL_EXPRESSION:
        set_expression(run, cursor_uleb128(cursor), CFI_VALUE_EXPRESSION, cursor);
        break;
    case CFA_GNU_ARGS_SIZE:
        (void)cursor_uleb128(cursor);
        break;
    default:
        cursor->failed = true;
        break;
    }
}

static bool run_instructions(struct run *run, struct slice instructions)
{
    struct cursor cursor = cursor_of(instructions);
    while (!cursor_at_end(&cursor) && !run->stopped) {
        uint8_t code = cursor_u8(&cursor);
        uint8_t operand = code & 0x3f;
        switch (code & 0xc0) {
        case CFA_ADVANCE_LOC:
            advance_to(run, run->location + operand * run->fde->cie.code_alignment, &cursor);
            break;
        case CFA_OFFSET:
            set_rule(run, operand, CFI_OFFSET, scaled(run, cursor_uleb128(&cursor)));
            break;
        case CFA_RESTORE:
            restore_initial(run, operand);
            break;
        default:
            run_extended(run, code, &cursor);
            break;
        }
    }
    return !cursor.failed;
}

/* Runs the instructions of the CIE, or takes their result from the previous FDE, which has mostly the same CIE. */
static bool run_cie(struct run *run)
{
    struct cfi_machine *machine = run->machine;
    struct slice instructions = run->fde->cie.instructions;
    if (machine->initial_of != instructions.data) {
        machine->initial_of = NULL;
        machine->row = (struct cfi_row){.registers_version = ++machine->versions};
        run->in_cie = true;
        if (!run_instructions(run, instructions)) return false;
        run->in_cie = false;
        machine->initial = machine->row;
        machine->initial_of = instructions.data;
    }
    machine->row = machine->initial;
    return true;
}

bool cfi_run(const struct cfi_section *section, const struct cfi_fde *fde, struct cfi_machine *machine,
             cfi_row_callback callback, void *context)
{
    struct run run = {
        .section = section,
        .fde = fde,
        .machine = machine,
        .callback = callback,
        .context = context,
        .location = fde->start,
    };
    if (!run_cie(&run)) return false;
    if (!run_instructions(&run, fde->instructions)) return false;
    if (run.stopped) return true;
    struct cursor nothing = {0};
    advance_to(&run, fde->end, &nothing);
    return true;
}
