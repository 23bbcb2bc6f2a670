/* The protocol of `sentry-cli debug-files upload`: the client asks which chunks of its files are missing, sends them,
 * and asks until each file is there (sentry-cli, src/utils/chunks). All names in it are only labels: files are found
 * by their checksum and their build id.  SPDX-License-Identifier: MIT */
#include "serve/debug_uploads.h"

#include "base/compression.h"
#include "base/hex.h"
#include "base/json_reader.h"
#include "query/image_place.h"
#include "serve/ingest.h"
#include "serve/multipart.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 40 hex digits, in any case. */
static bool parse_checksum(struct slice text, char ret_checksum[SHA1_TEXT_SIZE])
{
    if (text.size != SHA1_TEXT_SIZE - 1) return false;
    for (size_t i = 0; i < text.size; i++) {
        if (hex_digit(text.data[i]) < 0) return false;
        ret_checksum[i] = (char)(text.data[i] | 0x20); /* in lower case */
    }
    ret_checksum[text.size] = '\0';
    return true;
}

/* --- What the client learns first --------------------------------------------------------------------------------- */

void debug_show_version(struct request *request)
{
    buffer_append_text(&request->answer, "{\"version\":\"0\",\"auth\":null,\"user\":null}\n");
    answer_finish(request, "application/json");
}

static void write_list(struct json_writer *json, const char *key, const char *entry)
{
    json_begin_array_member(json, key);
    json_write_text(json, entry);
    json_end_array(json);
}

/* The URL is where the client asked; it is relative, because the server does not know its own name. */
void debug_show_options(struct request *request)
{
    struct json_writer json = json_writer_of(&request->answer);
    json_begin_object(&json);
    json_member_text(&json, "url", request->path);
    json_member_u64(&json, "chunkSize", STORE_DEBUG_CHUNK_BYTES_MAX);
    json_member_u64(&json, "chunksPerRequest", DEBUG_CHUNKS_PER_REQUEST);
    json_member_u64(&json, "maxFileSize", DEBUG_FILE_BYTES_MAX);
    json_member_u64(&json, "maxRequestSize", DEBUG_REQUEST_BYTES_MAX);
    json_member_u64(&json, "concurrency", DEBUG_CONCURRENCY);
    json_member_text(&json, "hashAlgorithm", "sha1");
    write_list(&json, "compression", "gzip");
    write_list(&json, "accept", "debug_files");
    json_end_object(&json);
    answer_finish(request, "application/json");
}

/* --- Chunks ------------------------------------------------------------------------------------------------------- */

static enum status take_chunk(struct request *request, const struct multipart_part *part, struct error *error)
{
    char named[SHA1_TEXT_SIZE], found[SHA1_TEXT_SIZE];
    struct buffer decompressed;
    struct slice bytes = part->bytes;
    enum status status = STATUS_OK;
    if (!parse_checksum(part->file_name, named))
        return error_set(error, STATUS_MALFORMED, 0, "the file name of a chunk is not its SHA-1");
    buffer_init(&decompressed, STORE_DEBUG_CHUNK_BYTES_MAX);
    if (slice_equals_text(part->name, "file_gzip")) {
        status = decompress(COMPRESSION_GZIP, part->bytes, &decompressed, error);
        bytes = buffer_slice(&decompressed);
    }
    if (status == STATUS_OK && bytes.size > STORE_DEBUG_CHUNK_BYTES_MAX)
        status = error_set(error, STATUS_TOO_LARGE, 0, "a chunk is larger than %d bytes", STORE_DEBUG_CHUNK_BYTES_MAX);
    if (status == STATUS_OK) sha1_of(bytes, found);
    if (status == STATUS_OK && strcmp(found, named) != 0)
        status = error_set(error, STATUS_MALFORMED, 0, "the chunk %s has the SHA-1 %s", named, found);
    if (status == STATUS_OK)
        status = store_debug_add_chunk(request->server->store, request->upload_scope, named, bytes, error);
    buffer_fini(&decompressed);
    return status;
}

void debug_take_chunks(struct request *request)
{
    struct multipart form;
    struct multipart_part part;
    struct error error = {0};
    enum status status = STATUS_OK;
    size_t count = 0;
    if (!multipart_open(&form, buffer_slice(&request->body), request->content)) {
        answer_error(request, 400, "a form with the parts file or file_gzip is needed");
        return;
    }
    while (status == STATUS_OK && multipart_next(&form, &part)) {
        bool is_chunk = slice_equals_text(part.name, "file") || slice_equals_text(part.name, "file_gzip");
        if (!is_chunk) continue;
        if (++count > DEBUG_CHUNKS_PER_REQUEST)
            status = error_set(&error, STATUS_MALFORMED, 0, "more than %d chunks", DEBUG_CHUNKS_PER_REQUEST);
        else
            status = take_chunk(request, &part, &error);
    }
    buffer_append_text(&request->answer, "{}\n");
    answer_result(request, status, &error, "application/json");
}

/* --- Files -------------------------------------------------------------------------------------------------------- */

/* Writes FILE as Sentry describes a file; members of offbeat alone are last. */
static void write_file(struct json_writer *json, const struct store_debug_file *file)
{
    const char *arm64 = file->machine == EM_AARCH64 ? "arm64" : "unknown";
    const char *machine = file->machine == EM_X86_64 ? "x86_64" : arm64;
    char debug_id[DEBUG_ID_TEXT_SIZE] = "";
    (void)debug_id_from_build_id(slice_of_text(file->build_id), debug_id);
    json_begin_object(json);
    json_member_text(json, "debugId", debug_id);
    json_member_text(json, "codeId", file->build_id);
    json_member_text(json, "objectName", file->name);
    json_member_text(json, "cpuName", machine);
    json_member_text(json, "sha1", file->checksum);
    json_member_u64(json, "size", file->size);
    json_member_time(json, "dateCreated", file->added_ns);
    json_member_text(json, "symbolType", "elf");
    json_begin_object_member(json, "data");
    json_member_text(json, "type", file->contents & SYMBOL_FILE_CODE ? "exe" : "dbg");
    json_begin_array_member(json, "features");
    if (file->contents & SYMBOL_FILE_SYMBOLS) json_write_text(json, "symtab");
    if (file->contents & SYMBOL_FILE_DWARF) json_write_text(json, "debug");
    json_end_array(json);
    json_end_object(json);
    json_end_object(json);
}

static void write_state(struct json_writer *json, const char *state, const char *detail)
{
    json_member_text(json, "state", state);
    json_write_key(json, "detail");
    if (detail)
        json_write_text(json, detail);
    else
        json_write_null(json);
}

static bool has_all_chunks(struct store *store, const struct assembly *assembly)
{
    for (size_t i = 0; i < assembly->chunk_count; i++)
        if (!store_debug_has_chunk(store, assembly->scope, assembly->chunks[i])) return false;
    return assembly->chunk_count > 0;
}

/* {"state", "detail", "missingChunks", "dif"} */
static void answer_file(struct request *request, struct json_writer *json, const struct assembly *assembly)
{
    struct server *server = request->server;
    struct store_debug_file file;
    char detail[240];
    bool is_there = store_debug_find(server->store, assembly->file.project, assembly->file.checksum, &file);
    enum assembly_state state = is_there ? ASSEMBLY_UNKNOWN
                                         : assembler_find(server->assembler, assembly->file.project,
                                                          assembly->file.checksum, detail, sizeof(detail));
    bool is_whole = !is_there && state == ASSEMBLY_UNKNOWN && has_all_chunks(server->store, assembly);
    json_begin_object(json);
    if (is_there)
        write_state(json, "ok", NULL);
    else if (state == ASSEMBLY_WAITS)
        write_state(json, "assembling", NULL);
    else if (state == ASSEMBLY_FAILED)
        write_state(json, "error", detail);
    else if (!is_whole)
        write_state(json, "not_found", NULL);
    else if (assembler_add(server->assembler, assembly))
        write_state(json, "created", NULL);
    else
        write_state(json, "error", "too many debug files wait; try again");
    bool is_missing = !is_there && state == ASSEMBLY_UNKNOWN && !is_whole;
    json_begin_array_member(json, "missingChunks");
    for (size_t i = 0; i < assembly->chunk_count && is_missing; i++)
        if (!store_debug_has_chunk(server->store, assembly->scope, assembly->chunks[i]))
            json_write_text(json, assembly->chunks[i]);
    json_end_array(json);
    json_write_key(json, "dif");
    if (is_there)
        write_file(json, &file);
    else
        json_write_null(json);
    json_end_object(json);
}

static void read_chunks(struct json_reader *reader, struct assembly *assembly)
{
    assembly->chunk_count = 0;
    json_array_begin(reader);
    while (json_array_next(reader)) {
        struct slice text = json_string(reader);
        if (assembly->chunk_count == STORE_DEBUG_CHUNKS_MAX)
            json_reader_reject(reader, STATUS_TOO_LARGE, "a file has too many chunks");
        else if (!reader->failed && !parse_checksum(text, assembly->chunks[assembly->chunk_count++]))
            json_reader_reject(reader, STATUS_MALFORMED, "a chunk is not named by its SHA-1");
    }
}

/* {"name", "debug_id", "chunks"} */
static void read_file(struct json_reader *reader, struct assembly *assembly)
{
    struct slice key;
    json_object_begin(reader);
    while (json_object_next(reader, &key)) {
        if (slice_equals_text(key, "name")) {
            struct slice name = ingest_cut_name(json_string(reader));
            (void)snprintf(assembly->file.name, sizeof(assembly->file.name), "%.*s", SLICE_ARGUMENTS(name));
        } else if (slice_equals_text(key, "chunks")) {
            read_chunks(reader, assembly);
        } else if (slice_equals_text(key, "debug_id") && !json_null(reader)) {
            struct slice id = json_string(reader);
            if (id.size > 36) id.size = 36; /* an age follows, which ELF does not have */
            if (!reader->failed && !debug_id_to_build_id(id, assembly->wanted_image))
                json_reader_reject(reader, STATUS_MALFORMED, "a debug_id is not a UUID");
        } else if (!slice_equals_text(key, "debug_id")) {
            json_skip(reader);
        }
    }
}

/* The body is read twice: nothing is done before all of it is known to be right. */
static enum status each_file(struct request *request, struct json_writer *json, struct assembly *assembly,
                             struct error *error)
{
    struct json_reader reader;
    struct slice key;
    size_t count = 0;
    json_reader_init(&reader, buffer_slice(&request->body));
    json_object_begin(&reader);
    while (json_object_next(&reader, &key)) {
        struct store_debug_file *file = &assembly->file;
        *file = (struct store_debug_file){.project = request->project};
        assembly->scope = request->upload_scope;
        assembly->wanted_image[0] = '\0';
        assembly->chunk_count = 0;
        bool is_checksum = parse_checksum(key, file->checksum);
        read_file(&reader, assembly);
        if (!is_checksum) json_reader_reject(&reader, STATUS_MALFORMED, "a file is not named by its SHA-1");
        if (++count > DEBUG_ASSEMBLE_FILES_MAX) json_reader_reject(&reader, STATUS_TOO_LARGE, "too many files");
        if (!json || reader.failed) continue;
        json_write_key(json, file->checksum);
        answer_file(request, json, assembly);
    }
    enum status status = json_reader_finish(&reader, error);
    json_reader_fini(&reader);
    return status;
}

void debug_assemble(struct request *request)
{
    struct error error = {0};
    struct json_writer json = json_writer_of(&request->answer);
    struct assembly *assembly = calloc(1, sizeof(*assembly));
    enum status status = assembly ? STATUS_OK : error_set(&error, STATUS_NO_MEMORY, 0, "not enough memory");
    if (status == STATUS_OK && request->body.size > DEBUG_ASSEMBLE_BYTES_MAX)
        status = error_set(&error, STATUS_TOO_LARGE, 0, "too many files; ask for fewer at once");
    if (status == STATUS_OK) status = each_file(request, NULL, assembly, &error);
    if (status == STATUS_OK) {
        json_begin_object(&json);
        status = each_file(request, &json, assembly, &error);
        json_end_object(&json);
    }
    free(assembly);
    answer_result(request, status, &error, "application/json");
}

/* --- What is there ------------------------------------------------------------------------------------------------ */

struct listing {
    struct json_writer json;
    size_t count, limit;
};

static bool list_file(void *context, const struct store_debug_file *file)
{
    struct listing *listing = context;
    if (listing->count == listing->limit) return false;
    listing->count++;
    write_file(&listing->json, file);
    return true;
}

void debug_list(struct request *request)
{
    struct error error = {0};
    struct listing listing = {.json = json_writer_of(&request->answer), .limit = SERVE_LIST_MAX};
    json_begin_object(&listing.json);
    json_begin_array_member(&listing.json, "debug_files");
    enum status status = store_each_debug_file(request->server->store, request->project, list_file, &listing, &error);
    json_end_array(&listing.json);
    json_end_object(&listing.json);
    answer_result(request, status, &error, "application/json");
}
