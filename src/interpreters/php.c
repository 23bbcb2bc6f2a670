/* Finds PHP in a process, and names its functions. SPDX-License-Identifier: MIT */
#include "interpreters/php_private.h"

#include "interpreters/block_view.h"
#include "interpreters/cut_text.h"
#include "interpreters/dynamic_symbols.h"

#include <string.h>

/* --- The interpreter ---------------------------------------------------------------------------------------------- */

/* Reads the number that follows *AT, and a point after it. */
static uint32_t next_number(const char **at)
{
    uint32_t number = 0;
    while (**at >= '0' && **at <= '9' && number < 1000) number = number * 10 + (uint32_t)(*(*at)++ - '0');
    *at += **at == '.';
    return number;
}

enum { MODULE_IS_DEBUG = 8, MODULE_IS_THREAD_SAFE = 9, MODULE_NAME = 32, MODULE_VERSION = 88, MODULE_BYTES = 96 };

/* Copies the description of the module that is the language itself to BYTES. Returns false if REGISTRY, the table of
 * modules, does not have it yet. */
static bool find_core(uint64_t registry, const struct process_memory *memory, struct memory_pieces *pieces,
                      uint8_t bytes[MODULE_BYTES])
{
    enum { TABLE_ENTRIES = 16, TABLE_COUNT = 24, ENTRY_BYTES = 32, MODULES_MAX = 256 };
    uint64_t entries = 0, module = 0;
    uint32_t count = 0;
    char name[sizeof("Core")];
    if (!process_memory_read(memory, pieces, registry + TABLE_ENTRIES, &entries, sizeof(entries)) ||
        !process_memory_read(memory, pieces, registry + TABLE_COUNT, &count, sizeof(count)))
        return false;
    for (uint32_t i = 0; i < count && i < MODULES_MAX; i++) {
        if (process_memory_read(memory, pieces, entries + i * ENTRY_BYTES, &module, sizeof(module)) &&
            process_memory_read(memory, pieces, module, bytes, MODULE_BYTES) &&
            process_memory_read(memory, pieces, word_at(bytes, MODULE_NAME), name, sizeof(name)) &&
            memcmp(name, "Core", sizeof(name)) == 0)
            return true;
    }
    return false;
}

/* Takes the version of the language. Until it has started, its core has the number of the engine: 4.2.36 is PHP 8.2.36.
 */
static bool read_version(uint64_t registry, const struct process_memory *memory, struct memory_pieces *pieces,
                         struct interpreter_state *state, bool *ret_is_known)
{
    enum { ENGINE_IS_LESS = 4, ENGINES_END = 7 };
    uint8_t module[MODULE_BYTES];
    char version[16];
    if (!find_core(registry, memory, pieces, module) ||
        !process_memory_read(memory, pieces, word_at(module, MODULE_VERSION), version, sizeof(version)))
        return false;
    const char *at = version;
    version[sizeof(version) - 1] = '\0';
    state->major = next_number(&at);
    if (state->major < ENGINES_END) state->major += ENGINE_IS_LESS;
    state->minor = next_number(&at);
    state->patch = next_number(&at);
    bool is_plain = module[MODULE_IS_DEBUG] == 0 && module[MODULE_IS_THREAD_SAFE] == 0;
    *ret_is_known = is_plain && state->major == 8 && state->minor == 2;
    return true;
}

static enum interpreter_attached attach(const struct interpreter_image *image, const struct process_memory *memory,
                                        struct interpreted_work *work, struct interpreter_state *ret_state)
{
    struct dynamic_symbols symbols;
    struct memory_range globals, registry, execute;
    struct memory_pieces *pieces = &work->pieces;
    bool is_known = false;
    if (!dynamic_symbols_open(image, memory, pieces, &symbols) ||
        !dynamic_symbols_find(&symbols, memory, pieces, "executor_globals", &globals) ||
        !dynamic_symbols_find(&symbols, memory, pieces, "module_registry", &registry) ||
        !dynamic_symbols_find(&symbols, memory, pieces, "execute_ex", &execute))
        return INTERPRETER_ABSENT;
    *ret_state = (struct interpreter_state){
        .interpreter = &php, .image = *image, .root = globals.address, .evaluation = execute};
    if (!read_version(registry.address, memory, pieces, ret_state, &is_known)) return INTERPRETER_LATER;
    return is_known && globals.size >= PHP_CURRENT_FRAME + sizeof(uint64_t) ? INTERPRETER_ATTACHED
                                                                            : INTERPRETER_UNKNOWN;
}

/* A build without thread safety has one thread. */
static size_t list_threads(const struct interpreter_state *state, const struct process_memory *memory,
                           struct interpreted_work *work, struct interpreted_thread *ret_threads, int *ret_tids,
                           size_t max)
{
    if (max == 0) return 0;
    ret_threads[0] = (struct interpreted_thread){.state = state->root + PHP_CURRENT_FRAME};
    ret_tids[0] = INTERPRETED_MAIN_THREAD;
    return 1;
}

/* --- Places ------------------------------------------------------------------------------------------------------- */

/* Appends the string at ADDRESS to TEXT; a longer one ends with "…". Bytes that are no UTF-8 become question marks. */
static bool append_string(uint64_t address, const struct process_memory *memory, struct interpreted_work *work,
                          char *text, size_t text_size)
{
    uint64_t length = 0;
    uint8_t *bytes = work->blocks[0].bytes;
    if (!process_memory_read(memory, &work->pieces, address + PHP_STRING_LENGTH, &length, sizeof(length))) return false;
    size_t kept = length < INTERPRETED_FILE_MAX ? (size_t)length : INTERPRETED_FILE_MAX;
    work->blocks[0].high = 0;
    if (kept > 0 && !process_memory_read(memory, &work->pieces, address + PHP_STRING_DATA, bytes, kept)) return false;
    text_append_cut(text, text_size, slice_of(bytes, kept), length);
    return true;
}

/* Writes "function" or "Class::function". The code of a file outside of all functions has no name. */
static bool name_function(const uint8_t *function, const struct process_memory *memory, struct interpreted_work *work,
                          struct interpreted_place *place)
{
    uint64_t name = word_at(function, PHP_FUNCTION_NAME), class = word_at(function, PHP_FUNCTION_CLASS), of_class = 0;
    place->function[0] = '\0';
    if (name == 0) {
        memcpy(place->function, function[PHP_FUNCTION_TYPE] == PHP_EVALUATED ? "{eval}" : "{main}", sizeof("{main}"));
        return true;
    }
    if (class != 0) {
        if (!process_memory_read(memory, &work->pieces, class + PHP_CLASS_NAME, &of_class, sizeof(of_class)) ||
            !append_string(of_class, memory, work, place->function, sizeof(place->function) / 2))
            return false;
        memcpy(place->function + strlen(place->function), "::", sizeof("::"));
    }
    return append_string(name, memory, work, place->function, sizeof(place->function));
}

static uint32_t line_of(const uint8_t *function, uint64_t instruction, const struct process_memory *memory,
                        struct interpreted_work *work)
{
    uint32_t line = 0;
    uint64_t operation = word_at(function, PHP_FUNCTION_OPERATIONS) + instruction - 1;
    if (instruction == 0 ||
        !process_memory_read(memory, &work->pieces, operation + PHP_OPERATION_LINE, &line, sizeof(line)))
        return 0;
    return line <= INT32_MAX ? line : 0;
}

static bool find_place(const struct interpreter_state *state, const struct interpreted_frame *frame,
                       const struct process_memory *memory, struct interpreted_work *work,
                       struct interpreted_place *ret_place)
{
    uint8_t function[PHP_FUNCTION_BYTES];
    struct interpreted_frame again = *frame;
    if (!process_memory_read(memory, &work->pieces, frame->code, function, sizeof(function))) return false;
    bool is_user = php_is_user(function[PHP_FUNCTION_TYPE]);
    uint32_t first_line = (uint32_t)word_at(function, PHP_FUNCTION_FIRST_LINE);
    ret_place->file[0] = '\0';
    ret_place->first_line = is_user && first_line <= INT32_MAX ? first_line : 0;
    ret_place->line = is_user ? line_of(function, frame->instruction, memory, work) : 0;
    if (is_user &&
        !append_string(word_at(function, PHP_FUNCTION_FILE), memory, work, ret_place->file, sizeof(ret_place->file)))
        return false;
    if (!name_function(function, memory, work, ret_place)) return false;
    return php_read_functions(memory, work, &again, 1) && again.key == frame->key;
}

const struct interpreter php = {
    .name = "PHP",
    .platform = "php",
    .links_first = true,
    .attach = attach,
    .threads = list_threads,
    .read = php_read,
    .chain = php_chain,
    .place = find_place,
};
