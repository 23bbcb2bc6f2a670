/* Profiles of any format into the store.  SPDX-License-Identifier: MIT */
#include "demangle/demangled_names.h"
#include "format/format.h"
#include "profile/profile_extent.h"
#include "query/selection.h"
#include "serve/ingest.h"

#include <stdio.h>
#include <stdlib.h>

static struct slice either(struct slice given, struct slice other)
{
    return ingest_cut_name(given.size ? given : other);
}

static void label_chunk(struct ingest_file *file, const struct request *request, const struct sent_profile *sent)
{
    struct store_chunk *chunk = &file->described.chunk;
    struct slice service = chunk->service;
    chunk->release = either(sent->release, chunk->release);
    if (sent->release.size) service = ingest_service_of_release(chunk->release);
    chunk->service = either(sent->service, service);
    chunk->environment = either(sent->environment, chunk->environment);
    chunk->host = either(sent->host, chunk->host);
    chunk->platform = either(sent->platform, chunk->platform);
    (void)snprintf(file->series, sizeof(file->series), "%.*s", (int)sent->series.size, (const char *)sent->series.data);
    chunk->series = slice_of_text(file->series); /* a push stores its files when their descriptions are gone */
    if (sent->start_ns) {
        chunk->start_ns = sent->start_ns;
        chunk->end_ns = sent->end_ns > sent->start_ns ? sent->end_ns : sent->start_ns;
    }
    bool is_uptime = file->profile.has_times && !sent->start_ns && chunk->start_ns < CHUNK_UPTIMES_END_NS;
    if (chunk->start_ns == 0 || is_uptime) {
        uint64_t length_ns = chunk->end_ns - chunk->start_ns;
        chunk->end_ns = request->received_ns;
        chunk->start_ns = chunk->end_ns - (length_ns < chunk->end_ns ? length_ns : 0);
    }
    if (uuid_parse(sent->id, file->id) || (chunk->chunk_id.size == 0 && uuid_new(file->id)))
        chunk->chunk_id = slice_of_text(file->id);
}

enum status ingest_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    enum status status = format_decode(bytes, profile, NULL, error);
    if (status != STATUS_OK || profile->omissions.count == 0) return status;
    return error_set(error, STATUS_MALFORMED, 0, "%s", profile_c_string(profile, profile->omissions.items[0]));
}

/* Lists FILE as rejected if its time is too far ahead or too old. */
static enum status reject_misdated(struct ingest_file *file, struct request *request, struct error *error)
{
    struct misdating misdating;
    if (!ingest_is_misdated(request, &file->described.chunk, &misdating)) return STATUS_OK;
    const struct store_rejected rejected = {.received_ns = request->received_ns,
                                            .type = slice_of_text("profile_file"),
                                            .reason = slice_of_text(misdating.reason),
                                            .place = slice_of_text("time"),
                                            .found = slice_of_text(misdating.found),
                                            .expected = slice_of_text(misdating.expected),
                                            .payload = file->described.chunk.payload};
    const struct store_outcome outcome = {.outcome = slice_of_text("invalid"),
                                          .category = slice_of_text("profile_file"),
                                          .reason = slice_of_text(misdating.reason),
                                          .quantity = 1};
    const struct store_batch batch = {.project = request->project,
                                      .received_ns = request->received_ns,
                                      .rejected = &rejected,
                                      .rejected_count = 1,
                                      .outcomes = &outcome,
                                      .outcome_count = 1};
    if (!ingest_store(request, &batch)) return error_set(error, STATUS_IO, 0, "cannot store");
    file->is_misdated = true;
    return error_set(error, STATUS_UNSUPPORTED, 0, "the profile's time is %s, which is not stored: times %s are",
                     misdating.found, misdating.expected);
}

enum status ingest_file_init(struct ingest_file *file, struct request *request, const struct sent_profile *sent,
                             struct error *error)
{
    struct buffer storage;
    struct slice raw;
    *file = (struct ingest_file){0};
    profile_init(&file->profile);
    enum status status = body_open_file(request, sent->payload, &storage, &raw, error);
    if (status == STATUS_OK) status = ingest_decode(raw, &file->profile, error);
    buffer_fini(&storage);
    if (status == STATUS_OK) status = profile_check_inlined(&file->profile, file->profile.source_bytes, error);
    if (status != STATUS_OK || file->profile.samples.count == 0) return status;
    profile_demangle(&file->profile);
    const struct chunk_source source = {.kind = STORE_FILE, .payload = sent->payload, .hints = sent->hints};
    ingest_describe(request, &file->profile, &source, &file->described);
    label_chunk(file, request, sent);
    ingest_add_up(&file->described, &file->profile);
    return reject_misdated(file, request, error);
}

void ingest_file_fini(struct ingest_file *file)
{
    profile_fini(&file->profile);
    described_chunk_fini(&file->described);
}

bool ingest_files_store(struct request *request, const struct ingest_file *files, size_t count)
{
    const struct store_outcome outcome = {
        .outcome = slice_of_text("accepted"), .category = slice_of_text("profile_file"), .quantity = count};
    struct store_chunk *chunks = malloc((count ? count : 1) * sizeof(*chunks));
    if (!chunks) {
        answer_error(request, 503, "not enough memory");
        return false;
    }
    for (size_t i = 0; i < count; i++) chunks[i] = files[i].described.chunk;
    const struct store_batch batch = {.project = request->project,
                                      .received_ns = request->received_ns,
                                      .chunks = chunks,
                                      .chunk_count = count,
                                      .outcomes = &outcome,
                                      .outcome_count = 1};
    bool is_stored = count == 0 || ingest_store(request, &batch);
    free(chunks);
    return is_stored;
}

/* --- POST /api/N/profiles ----------------------------------------------------------------------------------------- */

static void take_file(struct request *request, struct slice bytes)
{
    struct error error = {0};
    struct ingest_file file;
    const struct kind_hints hints = {.name = ingest_cut_name(request_slice(request, "kind"))};
    const struct sent_profile sent = {.payload = bytes,
                                      .hints = &hints,
                                      .service = request_slice(request, "service"),
                                      .environment = request_slice(request, "environment"),
                                      .release = request_slice(request, "release"),
                                      .host = request_slice(request, "host"),
                                      .platform = request_slice(request, "platform"),
                                      .id = request_slice(request, "id")};
    enum status status = ingest_file_init(&file, request, &sent, &error);
    if (status != STATUS_OK)
        answer_failure(request, &error);
    else if (file.profile.samples.count == 0)
        answer_error(request, 400, "the profile has no samples");
    else if (ingest_files_store(request, &file, 1))
        ingest_answer_id(request, file.described.chunk.chunk_id);
    ingest_file_fini(&file);
}

void ingest_profile(struct request *request)
{
    struct buffer bytes;
    if (!body_decompress(request, SERVE_FILE_BYTES_MAX, &bytes)) return;
    if (bytes.size == 0)
        answer_error(request, 400, "empty profile");
    else
        take_file(request, buffer_slice(&bytes));
    buffer_fini(&bytes);
}
