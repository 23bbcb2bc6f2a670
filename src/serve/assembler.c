/* SPDX-License-Identifier: MIT */
#include "serve/debug_uploads.h"
#include "query/image_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
    struct assembly assembly;
    enum assembly_state state;
    char detail[240];
};

struct assembler {
    struct store *store;
    struct symbols *symbols;
    pthread_t thread;
    pthread_mutex_t lock; /* lock of the jobs */
    pthread_cond_t has_jobs;
    struct job *jobs[DEBUG_JOBS_MAX]; /* jobs in the order of their arrival */
    size_t count;
    bool is_stopping;
};

/* --- The jobs ----------------------------------------------------------------------------------------------------- */

static size_t find_job(const struct assembler *assembler, uint64_t project, const char *checksum)
{
    size_t i = 0;
    for (; i < assembler->count; i++) {
        const struct store_debug_file *file = &assembler->jobs[i]->assembly.file;
        if (file->project == project && strcmp(file->checksum, checksum) == 0) break;
    }
    return i;
}

static void remove_job(struct assembler *assembler, size_t place)
{
    free(assembler->jobs[place]);
    assembler->count--;
    for (size_t i = place; i < assembler->count; i++) assembler->jobs[i] = assembler->jobs[i + 1];
}

enum assembly_state assembler_find(struct assembler *assembler, uint64_t project, const char *checksum,
                                   char *ret_detail, size_t detail_size)
{
    enum assembly_state state = ASSEMBLY_UNKNOWN;
    (void)pthread_mutex_lock(&assembler->lock);
    size_t place = find_job(assembler, project, checksum);
    if (place < assembler->count) {
        state = assembler->jobs[place]->state;
        (void)snprintf(ret_detail, detail_size, "%s", assembler->jobs[place]->detail);
        if (state == ASSEMBLY_FAILED) remove_job(assembler, place);
    }
    (void)pthread_mutex_unlock(&assembler->lock);
    return state;
}

bool assembler_add(struct assembler *assembler, const struct assembly *assembly)
{
    struct job *job = malloc(sizeof(*job));
    if (!job) return false;
    *job = (struct job){.assembly = *assembly, .state = ASSEMBLY_WAITS};
    (void)pthread_mutex_lock(&assembler->lock);
    /* The oldest failure that nobody asked for makes room. */
    for (size_t i = 0; i < assembler->count && assembler->count == DEBUG_JOBS_MAX; i++)
        if (assembler->jobs[i]->state == ASSEMBLY_FAILED) remove_job(assembler, i);
    bool is_known = find_job(assembler, assembly->file.project, assembly->file.checksum) < assembler->count;
    bool is_added = !is_known && assembler->count < DEBUG_JOBS_MAX && !assembler->is_stopping;
    if (is_added) {
        assembler->jobs[assembler->count++] = job;
        (void)pthread_cond_signal(&assembler->has_jobs);
    }
    (void)pthread_mutex_unlock(&assembler->lock);
    if (!is_added) free(job);
    return is_added || is_known;
}

/* --- One file ----------------------------------------------------------------------------------------------------- */

static enum status describe_file(struct store_debug_file *file, const struct assembly *assembly,
                                 const struct symbol_file *read, uint64_t size, struct error *error)
{
    if (!image_id_of_build_id(slice_of_text(read->build_id), file->image))
        return error_set(error, STATUS_UNSUPPORTED, 0, "the file has no build id");
    if (assembly->wanted_image[0] && strcmp(assembly->wanted_image, file->image) != 0)
        return error_set(error, STATUS_MALFORMED, 0, "the file has the build id %.128s, which is not the debug id sent",
                         read->build_id);
    (void)memcpy(file->build_id, read->build_id, sizeof(file->build_id));
    file->machine = read->machine;
    file->contents = read->contents;
    file->size = size;
    file->added_ns = file->used_ns = clock_utc_ns();
    return STATUS_OK;
}

static enum status assemble(struct assembler *assembler, const struct assembly *assembly, struct error *error)
{
    const struct store_debug_parts parts = {.scope = assembly->scope,
                                            .checksums = assembly->chunks,
                                            .count = assembly->chunk_count,
                                            .bytes_max = DEBUG_FILE_BYTES_MAX};
    struct store_debug_file file = assembly->file;
    struct store_debug_joined joined;
    struct symbol_file read;
    char index[STORE_DEBUG_PATH_SIZE + 8];
    enum status status = store_debug_join(assembler->store, &parts, file.checksum, &joined, error);
    if (status != STATUS_OK) return status;
    (void)snprintf(index, sizeof(index), "%s.names", joined.path);
    status = symbols_check(assembler->symbols, joined.descriptor, index, &read, error);
    if (status == STATUS_OK) status = describe_file(&file, assembly, &read, joined.size, error);
    if (status == STATUS_OK) status = store_debug_add(assembler->store, &parts, &joined, index, &file, error);
    if (status != STATUS_OK) (void)unlink(index);
    store_debug_drop(&joined);
    return status;
}

static struct job *next_job(struct assembler *assembler)
{
    for (size_t i = 0; i < assembler->count; i++)
        if (assembler->jobs[i]->state == ASSEMBLY_WAITS) return assembler->jobs[i];
    return NULL;
}

static void *run_jobs(void *context)
{
    struct assembler *assembler = context;
    (void)pthread_mutex_lock(&assembler->lock);
    while (!assembler->is_stopping) {
        struct job *job = next_job(assembler);
        if (!job) {
            (void)pthread_cond_wait(&assembler->has_jobs, &assembler->lock);
            continue;
        }
        struct error error = {0};
        (void)pthread_mutex_unlock(&assembler->lock);
        enum status status = assemble(assembler, &job->assembly, &error);
        (void)pthread_mutex_lock(&assembler->lock);
        /* A chunk that is missing is no failure: its client is asked for it again. */
        if (status == STATUS_OK || status == STATUS_NOT_FOUND) {
            const struct store_debug_file *file = &job->assembly.file;
            remove_job(assembler, find_job(assembler, file->project, file->checksum));
        } else {
            (void)snprintf(job->detail, sizeof(job->detail), "%s", error.message);
            job->state = ASSEMBLY_FAILED;
        }
    }
    (void)pthread_mutex_unlock(&assembler->lock);
    return NULL;
}

/* --- Start and stop ----------------------------------------------------------------------------------------------- */

struct assembler *assembler_start(struct store *store, struct symbols *symbols)
{
    struct assembler *assembler = calloc(1, sizeof(*assembler));
    if (!assembler) return NULL;
    assembler->store = store;
    assembler->symbols = symbols;
    (void)pthread_mutex_init(&assembler->lock, NULL);
    (void)pthread_cond_init(&assembler->has_jobs, NULL);
    if (pthread_create(&assembler->thread, NULL, run_jobs, assembler) == 0) return assembler;
    free(assembler);
    return NULL;
}

void assembler_stop(struct assembler *assembler)
{
    if (!assembler) return;
    (void)pthread_mutex_lock(&assembler->lock);
    assembler->is_stopping = true;
    (void)pthread_cond_signal(&assembler->has_jobs);
    (void)pthread_mutex_unlock(&assembler->lock);
    (void)pthread_join(assembler->thread, NULL);
    while (assembler->count) remove_job(assembler, assembler->count - 1);
    (void)pthread_mutex_destroy(&assembler->lock);
    (void)pthread_cond_destroy(&assembler->has_jobs);
    free(assembler);
}
