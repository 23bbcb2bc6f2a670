/* A client uploads a debug file, the server has it read, and names addresses with the answer. All that the server reads
 * of that may be any bytes. An input has four parts, separated by "\n====\n": the bytes of a chunk; what the process
 * that reads debug files answers; the Content-Type and, after a line end, a form of chunks; the JSON that asks for
 * files. In the last two, "$0" is the SHA-1 of the chunk, "$1" its bytes, "$2" the SHA-1 of its bytes twice.
 * SPDX-License-Identifier: MIT */
#include "base/json_reader.h"
#include "serve/debug_uploads.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PARTS = 4, FOLDERS_OPEN_MAX = 8, FILES_MAX = 64, INPUTS_OF_A_STORE = 1000, ASSEMBLE_ROUNDS_MAX = 200 };
enum { FORM_BYTES_MAX = 4 << 20, LOCATIONS = 3, WAIT_US = 100 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Instead of the process: what the linker calls for symbol_reader_ask. */
enum status __wrap_symbol_reader_ask(const struct symbol_reader *reader, struct slice request, struct buffer *answer,
                                     struct error *error);

static char folder[PATH_MAX];
static struct server server;
static atomic_bool is_ending;
static struct slice reader_answer;

static void demand(bool holds)
{
    if (!holds) __builtin_trap();
}

enum status __wrap_symbol_reader_ask(const struct symbol_reader *reader, struct slice request, struct buffer *answer,
                                     struct error *error)
{
    (void)reader;
    (void)request;
    buffer_append(answer, reader_answer.data, reader_answer.size);
    return answer->failed ? error_set(error, STATUS_NO_MEMORY, 0, "no memory") : STATUS_OK;
}

/* --- The store ------------------------------------------------------------------------------------------------------
 */

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    return remove(path);
}

static void close_store(void)
{
    symbols_free(server.symbols);
    store_close(server.store);
    server.store = NULL;
    (void)nftw(folder, remove_one, FOLDERS_OPEN_MAX, FTW_DEPTH | FTW_PHYS);
}

/* A new one from time to time: chunks that nobody asks for wait in it. */
static void open_store(void)
{
    static unsigned inputs;
    const char *parent = getenv("TMPDIR");
    if (inputs++ % INPUTS_OF_A_STORE) return;
    if (server.store)
        close_store();
    else
        (void)atexit(close_store);
    (void)snprintf(folder, sizeof(folder), "%s/fuzz_debug_uploads.XXXXXX", parent ? parent : "/tmp");
    demand(mkdtemp(folder) != NULL);
    demand(store_open(folder, NULL, NULL, &server.store, NULL) == STATUS_OK);
    server.symbols = symbols_new(server.store, "", &is_ending, NULL, NULL);
    demand(server.symbols != NULL);
}

struct found {
    struct store_debug_file items[FILES_MAX];
    size_t count;
};

static bool note_file(void *context, const struct store_debug_file *file)
{
    struct found *found = context;
    found->items[found->count++] = *file;
    return found->count < FILES_MAX;
}

/* --- The input ------------------------------------------------------------------------------------------------------
 */

static struct slice take_part(struct slice *left)
{
    static const char separator[] = "\n====\n";
    const size_t size = sizeof(separator) - 1;
    const uint8_t *end = left->size ? memmem(left->data, left->size, separator, size) : NULL;
    struct slice part = slice_of(left->data, end ? (size_t)(end - left->data) : left->size);
    *left = end ? slice_of(end + size, left->size - part.size - size) : slice_of(NULL, 0);
    return part;
}

static void expand(struct slice text, struct slice chunk, struct buffer *out)
{
    char sums[3][SHA1_TEXT_SIZE] = {"", "", ""};
    struct sha1 twice;
    sha1_of(chunk, sums[0]);
    sha1_init(&twice);
    sha1_add(&twice, chunk);
    sha1_add(&twice, chunk);
    sha1_finish(&twice, sums[2]);
    buffer_init(out, FORM_BYTES_MAX);
    for (size_t i = 0; i < text.size; i++) {
        uint8_t next = i + 1 < text.size ? text.data[i + 1] : 0;
        bool is_mark = text.data[i] == '$' && next >= '0' && next <= '2';
        if (!is_mark)
            buffer_append_byte(out, text.data[i]);
        else if (next == '1')
            buffer_append(out, chunk.data, chunk.size);
        else
            buffer_append_text(out, sums[next - '0']);
        i += is_mark;
    }
}

/* --- What a client does ---------------------------------------------------------------------------------------------
 */

static void check_answer(const struct request *request)
{
    struct json_reader reader;
    demand(request->status >= 200 && request->status < STATUS_CODES_MAX);
    if (!request->content_type || strcmp(request->content_type, "application/json") != 0) return;
    json_reader_init(&reader, buffer_slice(&request->answer));
    json_skip(&reader);
    demand(json_reader_finish(&reader, NULL) == STATUS_OK);
    json_reader_fini(&reader);
}

/* Whether the answer has a file that is neither there nor rejected. */
static bool run(void (*route)(struct request *request), struct slice body, char *type)
{
    struct request *request = calloc(1, sizeof(*request));
    demand(request != NULL);
    *request = (struct request){.server = &server, .socket = -1, .content = type, .status = 200, .project = 1};
    buffer_init(&request->body, SERVE_BODY_BYTES_MAX);
    buffer_init(&request->answer, ANSWER_BYTES_MAX);
    buffer_append(&request->body, body.data, body.size);
    route(request);
    check_answer(request);
    struct slice answer = buffer_slice(&request->answer);
    bool waits = answer.data && (memmem(answer.data, answer.size, "\"created\"", 9) ||
                                 memmem(answer.data, answer.size, "\"assembling\"", 12));
    buffer_fini(&request->body);
    buffer_fini(&request->answer);
    free(request);
    return waits;
}

static void send_chunks(struct slice form)
{
    const uint8_t *line_end = form.size ? memchr(form.data, '\n', form.size) : NULL;
    size_t size = line_end ? (size_t)(line_end - form.data) : form.size, taken = size + (line_end != NULL);
    char *type = strndup(form.size ? (const char *)form.data : "", size);
    demand(type != NULL);
    (void)run(debug_take_chunks, slice_of(form.data + taken, form.size - taken), type);
    free(type);
}

static void ask_for_files(struct slice json)
{
    server.assembler = assembler_start(server.store, server.symbols);
    demand(server.assembler != NULL);
    for (int i = 0; i < ASSEMBLE_ROUNDS_MAX && run(debug_assemble, json, NULL); i++) (void)usleep(WAIT_US);
    assembler_stop(server.assembler);
    server.assembler = NULL;
}

/* The names that the answer gives to three addresses; only those that it has. */
static void name_addresses(const struct store_debug_file *file)
{
    struct profile profile;
    profile_init(&profile);
    const struct mapping mapping = {.file_name = profile_text(&profile, "program"),
                                    .build_id = profile_text(&profile, file->build_id)};
    struct location location = {.mapping = profile_add_mapping(&profile, &mapping)};
    for (location.address = 1; location.address <= LOCATIONS; location.address++)
        (void)profile_add_location(&profile, &location, NULL, 0);
    demand(symbols_name(server.symbols, file->project, &profile, NULL, NULL) == STATUS_OK);
    for (uint32_t i = 0; i < profile.locations.count; i++) {
        const struct location *named = profile_location(&profile, (struct location_id){i});
        const struct line *lines = profile_lines(&profile, named);
        for (uint32_t k = 0; k < named->line_count; k++) demand(lines[k].function.index < profile.functions.count);
    }
    profile_fini(&profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct found found;
    struct slice left = slice_of(data, size), parts[PARTS];
    struct buffer form, json;
    for (size_t i = 0; i < PARTS; i++) parts[i] = take_part(&left);
    open_store();
    reader_answer = parts[1];
    expand(parts[2], parts[0], &form);
    expand(parts[3], parts[0], &json);
    send_chunks(buffer_slice(&form));
    ask_for_files(buffer_slice(&json));
    (void)run(debug_list, slice_of(NULL, 0), NULL);
    found.count = 0;
    demand(store_each_debug_file(server.store, 1, note_file, &found, NULL) == STATUS_OK);
    for (size_t i = 0; i < found.count; i++) {
        name_addresses(&found.items[i]);
        store_debug_remove(server.store, &found.items[i]);
    }
    buffer_fini(&form);
    buffer_fini(&json);
    return 0;
}
