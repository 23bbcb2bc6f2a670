/* The process that reads debug files for `offbeat serve`: hidden, started by the server for each request.
 *
 * A debug file is anybody's bytes, so the process restricts itself before it reads the first of them. The server gives
 * it descriptors: the request (0), the answer (1), the debug file, and its symbol index for reading and for writing.
 * SPDX-License-Identifier: MIT */
#include "base/leb128.h"
#include "binary/contents_id.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "sandbox/sandbox.h"
#include "serve/symbol_answer.h"
#include "serve/symbol_reader.h"
#include "symbolize/symbol_module.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct answer {
    struct symbol_module module;
    struct buffer bytes;
    uint32_t *numbers; /* number of each text in the answer's list, plus one, by its number in the symbol index */
    uint64_t number_count;
    uint32_t text_count;
};

/* --- Writing --------------------------------------------------------------------------------------------------------
 */

static void write_new_text(struct answer *answer, struct slice text)
{
    size_t size = text.size < SYMBOL_TEXT_BYTES_MAX ? text.size : SYMBOL_TEXT_BYTES_MAX;
    leb128_append(&answer->bytes, ++answer->text_count);
    leb128_append(&answer->bytes, size);
    buffer_append(&answer->bytes, text.data, size);
}

static void write_text(struct answer *answer, uint32_t number)
{
    if (number == 0 || number >= answer->number_count) {
        leb128_append(&answer->bytes, 0);
    } else if (answer->numbers[number]) {
        leb128_append(&answer->bytes, answer->numbers[number]);
    } else {
        write_new_text(answer, symbol_index_text(&answer->module.names, number));
        answer->numbers[number] = answer->text_count;
    }
}

static uint64_t positive(int64_t number)
{
    return number > 0 && number <= UINT32_MAX ? (uint64_t)number : 0;
}

static void write_frame(struct answer *answer, const struct name_frame *frame)
{
    write_text(answer, frame->name);
    write_text(answer, frame->system_name);
    write_text(answer, frame->file);
    leb128_append(&answer->bytes, positive(frame->line));
    leb128_append(&answer->bytes, positive(frame->column));
    leb128_append(&answer->bytes, positive(frame->start_line));
}

static bool find_address(const struct elf_file *file, uint64_t key, uint64_t *ret_address)
{
    uint64_t value = key >> 2, base = file->segment_count ? file->segments[0].address : 0;
    *ret_address = value;
    switch (key & 3) {
    case SYMBOL_KEY_ADDRESS:
        return true;
    case SYMBOL_KEY_FROM_BASE:
        return !__builtin_add_overflow(base, value, ret_address);
    case SYMBOL_KEY_FILE_OFFSET:
        return elf_file_address_of_offset(file, value, ret_address);
    default:
        return false;
    }
}

/* False if the kept index is damaged. A name by the start of a function alone is left out: only the unwind table knows
 * it. */
static bool write_places(struct answer *answer, const uint64_t *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct name_answer names = {.frame_count = 0};
        uint64_t address;
        if (find_address(&answer->module.binary, keys[i], &address) &&
            !symbol_index_find(&answer->module.names, address, &names))
            return false;
        if (names.source == NAME_BY_BOUNDARY) names.frame_count = 0;
        leb128_append(&answer->bytes, names.frame_count);
        for (uint32_t k = 0; k < names.frame_count; k++) write_frame(answer, &names.frames[k]);
    }
    return !answer->module.names.failed;
}

static bool has_section(const struct elf_file *file, const char *name)
{
    const struct elf_section *section = elf_file_section(file, name);
    return section && section->has_bytes;
}

static void write_file(struct answer *answer)
{
    const struct elf_file *file = &answer->module.binary;
    char of_code[BUILD_ID_START_SIZE];
    const char *build_id = file->build_id;
    uint64_t contents = 0;
    if (!build_id[0] && contents_id_of(file, of_code)) build_id = of_code;
    if (has_section(file, ".symtab")) contents |= SYMBOL_FILE_SYMBOLS;
    if (has_section(file, ".debug_info") || has_section(file, ".zdebug_info")) contents |= SYMBOL_FILE_DWARF;
    if (has_section(file, ".text")) contents |= SYMBOL_FILE_CODE;
    leb128_append(&answer->bytes, STATUS_OK);
    if (build_id[0])
        write_new_text(answer, slice_of_text(build_id));
    else
        leb128_append(&answer->bytes, 0);
    leb128_append(&answer->bytes, file->machine);
    leb128_append(&answer->bytes, contents);
}

/* --- All ------------------------------------------------------------------------------------------------------------
 */

static enum status answer_once(struct answer *answer, const uint64_t *keys, size_t count, bool *ret_is_damaged,
                               struct error *error)
{
    enum status status =
        symbol_module_read_names_by_descriptor(&answer->module, SYMBOL_READER_KEPT, SYMBOL_READER_INTO, error);
    if (status != STATUS_OK) return status;
    answer->text_count = 0;
    answer->number_count = answer->module.names.header.texts.count;
    answer->numbers = calloc((size_t)answer->number_count + 1, sizeof(*answer->numbers));
    if (!answer->numbers) return error_set(error, STATUS_NO_MEMORY, 0, "no memory for the names of a debug file");
    buffer_clear(&answer->bytes);
    write_file(answer);
    *ret_is_damaged = !write_places(answer, keys, count);
    free(answer->numbers);
    if (answer->bytes.failed) return error_set(error, STATUS_TOO_LARGE, 0, "the names of a debug file are too long");
    return STATUS_OK;
}

/* A kept index that is damaged is closed, so that the second time it is built again. */
static enum status answer_keys(struct answer *answer, const uint64_t *keys, size_t count, struct error *error)
{
    bool is_damaged = true;
    enum status status = STATUS_OK;
    for (int i = 0; i < 2 && status == STATUS_OK && is_damaged; i++) {
        symbol_index_close(&answer->module.names);
        status = answer_once(answer, keys, count, &is_damaged, error);
    }
    if (status == STATUS_OK && is_damaged)
        status = error_set(error, STATUS_MALFORMED, 0, "the symbol index of a debug file is damaged");
    return status;
}

static enum status read_request(struct buffer *request, struct error *error)
{
    for (;;) {
        uint8_t *room = buffer_reserve(request, 1 << 16);
        if (!room) return error_set(error, STATUS_NO_MEMORY, 0, "no memory for a request");
        ssize_t size = read(STDIN_FILENO, room, 1 << 16);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return error_set_errno(error, "cannot read the request");
        if (size == 0) return STATUS_OK;
        buffer_grow(request, (size_t)size);
    }
}

static enum status answer_request(struct answer *answer, struct error *error)
{
    static const struct sandbox_limits limits = {.memory_bytes = SYMBOL_READER_MEMORY_MAX,
                                                 .file_bytes = SYMBOL_READER_INDEX_MAX,
                                                 .cpu_seconds = SYMBOL_READER_CPU_SECONDS,
                                                 .descriptors = SYMBOL_READER_INTO + 1};
    struct buffer request;
    size_t count = 0;
    buffer_init(&request, SYMBOL_REQUEST_BYTES_MAX + (1 << 16));
    enum status status = sandbox_enter(&limits, error);
    if (status == STATUS_OK) status = read_request(&request, error);
    uint64_t *keys = status == STATUS_OK ? symbol_request_read(buffer_slice(&request), &count) : NULL;
    if (status == STATUS_OK && !keys) status = error_set(error, STATUS_MALFORMED, 0, "the request is damaged");
    if (status == STATUS_OK) status = symbol_module_open_descriptor(&answer->module, SYMBOL_READER_FILE, error);
    if (status == STATUS_OK) status = answer_keys(answer, keys, count, error);
    free(keys);
    buffer_fini(&request);
    return status;
}

static void write_failure(struct buffer *out, const struct error *error)
{
    buffer_clear(out);
    leb128_append(out, error->status);
    leb128_append(out, strlen(error->message));
    buffer_append_text(out, error->message);
}

static bool write_all(struct slice bytes)
{
    for (size_t done = 0; done < bytes.size;) {
        ssize_t size = write(STDOUT_FILENO, bytes.data + done, bytes.size - done);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return false;
        done += (size_t)size;
    }
    return true;
}

int command_read_symbols(void)
{
    struct answer answer = {.text_count = 0};
    struct error error = {0};
    buffer_init(&answer.bytes, SYMBOL_ANSWER_BYTES_MAX);
    if (answer_request(&answer, &error) != STATUS_OK) write_failure(&answer.bytes, &error);
    /* The end of the process frees the rest. */
    _exit(write_all(buffer_slice(&answer.bytes)) ? EXIT_DONE : EXIT_FAILED);
}
