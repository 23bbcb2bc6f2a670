/* A service of a project at a time: both stores list its chunks without payloads, and those that the target lacks are
 * read in windows of time, so that neither store has to send a service as a whole. A copy that was interrupted is
 * continued so, because what was copied is listed. SPDX-License-Identifier: MIT */
#include "serve/store_copy.h"

#include "base/array.h"
#include "base/clocks.h"
#include "base/hash.h"
#include "query/profile_rollup.h"
#include "query/selection.h"
#include "query/series.h"
#include "serve/ingest.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    COPIED_ITEMS_MAX = 1 << 26, /* chunks or spans of a service */
    WINDOW_CHUNKS_MAX = 256,
    WINDOW_BYTES_MAX = 64 << 20, /* bytes of the payloads of a window */
    FULL_PAUSE_MS = 100,
    WAIT_SECONDS_MAX = 60,    /* the target takes nothing for so long */
    COMPARE_SECONDS_MAX = 10, /* time in which replicas get rows that they lack, of the whole comparison */
};

/* A chunk or span, by hashes of the ids that it has. */
struct copied_item {
    uint64_t key[2], start_ns, size;
    uint64_t content; /* hash of its columns and payload; 0: not read */
    bool is_known;    /* whether the target has it */
};
struct copied_items {
    ARRAY_OF(struct copied_item) all;
    struct slice service; /* service of all items: an empty name in a query chooses everything */
    bool failed;          /* whether memory was short */
};

struct copying {
    struct store *source, *target;
    struct store_copy_counts *counts;
    struct store_query query;  /* project and service */
    struct copied_items items; /* chunks or spans of the source */
    struct error *error;
    enum status status;      /* result of a visitor */
    unsigned waited_seconds; /* time that the comparison has waited for replicas */
};

static void pause_ms(unsigned milliseconds)
{
    const struct timespec pause = timespec_of(milliseconds * MILLISECOND_NS);
    (void)nanosleep(&pause, NULL);
}

static int compare_keys(const void *a, const void *b)
{
    const struct copied_item *left = a, *right = b;
    if (left->key[0] != right->key[0]) return left->key[0] < right->key[0] ? -1 : 1;
    return (left->key[1] > right->key[1]) - (left->key[1] < right->key[1]);
}

static int compare_starts(const void *a, const void *b)
{
    const struct copied_item *left = a, *right = b;
    if (left->start_ns != right->start_ns) return left->start_ns < right->start_ns ? -1 : 1;
    return compare_keys(a, b);
}

static void sort_items(struct copied_items *items, int (*compare)(const void *, const void *))
{
    if (items->all.count > 0) qsort(items->all.items, items->all.count, sizeof(*items->all.items), compare);
}

/* ITEMS are in the order of their keys. */
static struct copied_item *find_item(const struct copied_item *items, size_t count, const struct copied_item *wanted)
{
    return count > 0 ? bsearch(wanted, items, count, sizeof(*items), compare_keys) : NULL;
}

/* --- Lists -------------------------------------------------------------------------------------------------------- */

static struct copied_item item_of_chunk(const struct store_chunk *chunk)
{
    return (struct copied_item){.key = {hash_bytes(chunk->profiler_id.data, chunk->profiler_id.size),
                                        hash_bytes(chunk->chunk_id.data, chunk->chunk_id.size)},
                                .start_ns = chunk->start_ns,
                                .size = chunk->payload.size};
}

static struct copied_item item_of_span(const struct store_span *span)
{
    return (struct copied_item){.key = {hash_mix(hash_bytes(span->trace_id.data, span->trace_id.size), span->start_ns),
                                        hash_bytes(span->span_id.data, span->span_id.size)},
                                .start_ns = span->start_ns};
}

static bool add_item(struct copied_items *items, struct slice service, struct copied_item item)
{
    if (!slice_equal(service, items->service)) return true;
    items->failed = !ARRAY_PUSH(&items->all, COPIED_ITEMS_MAX, item);
    return !items->failed;
}

static bool list_chunk(void *context, const struct store_chunk *chunk)
{
    return add_item(context, chunk->service, item_of_chunk(chunk));
}

static bool list_span(void *context, const struct store_span *span)
{
    return add_item(context, span->service, item_of_span(span));
}

/* Fails if there are MISSING shards of the source. */
static enum status check_shards(const struct copying *copying, uint32_t missing)
{
    if (missing == 0) return STATUS_OK;
    return error_set(
        copying->error, STATUS_IO, 0,
        "a shard of the cluster does not answer, or lacks rows for now; run the command again to continue");
}

static enum status list_items(const struct copying *copying, struct store *store, bool of_spans,
                              struct copied_items *items)
{
    uint32_t missing = 0;
    struct store_query query = copying->query;
    if (store == copying->source) query.missing_shards = &missing;
    items->service = query.service;
    enum status status = of_spans ? store_each_span(store, &query, list_span, items, copying->error)
                                  : store_each_chunk(store, &query, list_chunk, items, copying->error);
    if (status == STATUS_OK) status = check_shards(copying, missing);
    if (status == STATUS_OK && items->failed)
        status = error_set(copying->error, STATUS_NO_MEMORY, 0, "not enough memory for the ids of a service");
    return status;
}

/* Marks those of ITEMS that OTHERS has, which is in the order of keys. Returns the number of the others. */
static size_t mark_known(struct copied_items *items, const struct copied_items *others)
{
    size_t unknown = 0;
    for (size_t i = 0; i < items->all.count; i++) {
        struct copied_item *item = &items->all.items[i];
        item->is_known = find_item(others->all.items, others->all.count, item) != NULL;
        unknown += !item->is_known;
    }
    return unknown;
}

/* Sorts ITEMS by their keys, and removes those that the source has twice: two of its days may have the same one. */
static void remove_repeated(struct copied_items *items)
{
    size_t kept = 0;
    sort_items(items, compare_keys);
    for (size_t i = 0; i < items->all.count; i++) {
        if (kept == 0 || compare_keys(&items->all.items[i], &items->all.items[kept - 1]) != 0)
            items->all.items[kept++] = items->all.items[i];
    }
    items->all.count = kept;
}

/* --- Adding to the target ----------------------------------------------------------------------------------------- */

/* Waits while the target has no room. */
static enum status add_batch(struct copying *copying, const struct store_batch *batch)
{
    uint64_t duplicates, end_ns = clock_monotonic_ns() + WAIT_SECONDS_MAX * SECOND_NS;
    enum status status;
    while ((status = store_add(copying->target, batch, &duplicates, copying->error)) == STATUS_TOO_LARGE &&
           clock_monotonic_ns() < end_ns)
        pause_ms(FULL_PAUSE_MS);
    return status;
}

/* Adds CHUNK with its sum: the server makes one of each profile that it can decode. */
static enum status add_chunk(struct copying *copying, const struct store_chunk *chunk)
{
    struct described_chunk described = {.chunk = *chunk};
    struct profile profile;
    struct error ignored;
    profile_init(&profile);
    if (chunk_decode(chunk, &profile, &ignored) == STATUS_OK) ingest_add_up(&described, &profile);
    const struct store_batch batch = {
        .project = chunk->project, .received_ns = chunk->received_ns, .chunks = &described.chunk, .chunk_count = 1};
    enum status status = add_batch(copying, &batch);
    described_chunk_fini(&described);
    profile_fini(&profile);
    copying->counts->copied += status == STATUS_OK;
    return status;
}

/* A span has no time of receipt: it counts as received when it ended. */
static bool copy_span(void *context, const struct store_span *span)
{
    struct copying *copying = context;
    struct copied_item item = item_of_span(span);
    const struct copied_item *listed = find_item(copying->items.all.items, copying->items.all.count, &item);
    uint64_t now_ns = clock_utc_ns();
    if (!slice_equal(span->service, copying->query.service) || !listed || listed->is_known) return true;
    const struct store_batch batch = {.project = copying->query.project,
                                      .received_ns = span->end_ns < now_ns ? span->end_ns : now_ns,
                                      .spans = span,
                                      .span_count = 1};
    copying->status = add_batch(copying, &batch);
    copying->counts->spans += copying->status == STATUS_OK;
    return copying->status == STATUS_OK;
}

static enum status copy_spans(struct copying *copying)
{
    struct copied_items known = {0};
    copying->items.all.count = 0;
    enum status status = list_items(copying, copying->source, true, &copying->items);
    if (status == STATUS_OK) status = list_items(copying, copying->target, true, &known);
    if (status == STATUS_OK) {
        sort_items(&known, compare_keys);
        size_t unknown = mark_known(&copying->items, &known);
        sort_items(&copying->items, compare_keys);
        copying->status = STATUS_OK;
        if (unknown > 0) status = store_each_span(copying->source, &copying->query, copy_span, copying, copying->error);
        if (copying->status != STATUS_OK) status = copying->status;
    }
    free(known.all.items);
    return status;
}

/* --- Windows ------------------------------------------------------------------------------------------------------ */

/* Chunks that are next to each other in time, in the order of their keys. */
struct copy_window {
    struct copying *copying;
    struct copied_item *items;
    size_t count;
    size_t unknown; /* chunks that the target lacks */
    uint64_t from_ns, to_ns;
    bool is_compared; /* contents of the target are compared, else those of the source are taken */
    size_t different;
};

/* Takes the window that begins with chunk FIRST. */
static struct copy_window take_window(struct copying *copying, size_t first)
{
    struct copied_item *items = &copying->items.all.items[first];
    struct copy_window window = {.copying = copying, .items = items, .from_ns = items->start_ns};
    uint64_t bytes = 0;
    while (first + window.count < copying->items.all.count && window.count < WINDOW_CHUNKS_MAX &&
           (window.count == 0 || bytes + items[window.count].size <= WINDOW_BYTES_MAX)) {
        bytes += items[window.count].size;
        window.unknown += !items[window.count].is_known;
        window.to_ns = items[window.count++].start_ns + 1;
    }
    qsort(items, window.count, sizeof(*items), compare_keys);
    return window;
}

static enum status read_window(struct copy_window *window, struct store *store, store_visit_chunk *visit)
{
    struct copying *copying = window->copying;
    struct store_query query = copying->query;
    bool is_damaged = false;
    query.from_ns = window->from_ns;
    query.to_ns = window->to_ns;
    query.with_payload = true;
    query.is_damaged = &is_damaged;
    copying->status = STATUS_OK;
    enum status status = store_each_chunk(store, &query, visit, window, copying->error);
    return copying->status != STATUS_OK ? copying->status : status;
}

static struct copied_item *find_in_window(const struct copy_window *window, const struct store_chunk *chunk)
{
    struct copied_item item = item_of_chunk(chunk);
    if (!slice_equal(chunk->service, window->copying->query.service)) return NULL;
    return find_item(window->items, window->count, &item);
}

static bool copy_chunk(void *context, const struct store_chunk *chunk)
{
    const struct copy_window *window = context;
    const struct copied_item *item = find_in_window(window, chunk);
    if (!item || item->is_known) return true;
    window->copying->status = add_chunk(window->copying, chunk);
    return window->copying->status == STATUS_OK;
}

static bool compare_chunk(void *context, const struct store_chunk *chunk)
{
    struct copy_window *window = context;
    struct copied_item *item = find_in_window(window, chunk);
    if (!item) return true;
    const struct slice texts[] = {chunk->environment, chunk->release, chunk->host,   chunk->platform,
                                  chunk->kinds,       chunk->series,  chunk->payload};
    uint64_t content = hash_mix(hash_mix(chunk->start_ns, chunk->end_ns), chunk->sample_count + chunk->kind);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        content = hash_mix(content, hash_bytes(texts[i].data, texts[i].size));
    if (!window->is_compared)
        item->content = content | 1;
    else if (item->content == (content | 1))
        item->content = 0; /* equal */
    return true;
}

/* Reads a window of both stores. A chunk that is damaged in the source is left out. */
static enum status compare_window(struct copy_window *window)
{
    size_t unread = 0;
    enum status status = read_window(window, window->copying->source, compare_chunk);
    for (size_t i = 0; i < window->count; i++) unread += window->items[i].content == 0;
    window->is_compared = true;
    while (status == STATUS_OK) {
        window->different = 0;
        status = read_window(window, window->copying->target, compare_chunk);
        for (size_t i = 0; i < window->count; i++) window->different += window->items[i].content != 0;
        if (window->different == 0 || window->copying->waited_seconds == COMPARE_SECONDS_MAX) break;
        window->copying->waited_seconds++;
        pause_ms(1000);
    }
    window->copying->counts->different += unread + window->different;
    return status;
}

/* --- Services ----------------------------------------------------------------------------------------------------- */

static enum status copy_service(struct copying *copying)
{
    struct copied_items known = {0};
    enum status status = list_items(copying, copying->source, false, &copying->items);
    remove_repeated(&copying->items);
    copying->counts->chunks += copying->items.all.count;
    if (status == STATUS_OK) status = list_items(copying, copying->target, false, &known);
    sort_items(&known, compare_keys);
    (void)mark_known(&copying->items, &known);
    sort_items(&copying->items, compare_starts);
    for (size_t first = 0; first < copying->items.all.count && status == STATUS_OK;) {
        struct copy_window window = take_window(copying, first);
        if (window.unknown > 0) status = read_window(&window, copying->source, copy_chunk);
        first += window.count;
    }
    free(known.all.items);
    return status == STATUS_OK ? copy_spans(copying) : status;
}

static enum status compare_service(struct copying *copying)
{
    enum status status = list_items(copying, copying->source, false, &copying->items);
    remove_repeated(&copying->items);
    sort_items(&copying->items, compare_starts);
    for (size_t first = 0; first < copying->items.all.count && status == STATUS_OK;) {
        struct copy_window window = take_window(copying, first);
        status = compare_window(&window);
        first += window.count;
    }
    return status;
}

/* A walk over the services of the source's projects. */
struct service_walk {
    struct copying *copying;
    enum status (*run)(struct copying *copying);
    struct buffer names; /* each ends with a NUL */
    size_t count;        /* names that the store's list has */
};

static bool take_service(void *context, const struct store_value *value)
{
    struct service_walk *walk = context;
    walk->count++;
    buffer_append(&walk->names, value->value.data, value->value.size);
    buffer_append(&walk->names, "", 1);
    return !walk->names.failed;
}

/* Spans may be of a service that has no chunks; then the others' are without a name here. */
static bool take_service_of_span(void *context, const struct store_span *span)
{
    struct service_walk *walk = context;
    for (struct slice rest = buffer_slice(&walk->names); rest.size > 0;) {
        if (slice_equal(text_take_until(&rest, '\0'), span->service)) return true;
    }
    buffer_append(&walk->names, span->service.data, span->service.size);
    buffer_append(&walk->names, "", 1);
    return !walk->names.failed;
}

static enum status walk_project(struct service_walk *walk, uint64_t project)
{
    struct copying *copying = walk->copying;
    uint32_t missing = 0;
    const struct store_query query = {.project = project, .missing_shards = &missing};
    copying->query = (struct store_query){.project = project};
    walk->count = 0;
    buffer_init(&walk->names, (size_t)STORE_VALUES_MAX * (STORE_NAME_BYTES_MAX + 1));
    enum status status = store_each_value(copying->source, &query, STORE_SERVICE, take_service, walk, copying->error);
    if (status == STATUS_OK && walk->run == copy_service)
        status = store_each_span(copying->source, &query, take_service_of_span, walk, copying->error);
    if (status == STATUS_OK) status = check_shards(copying, missing);
    if (status == STATUS_OK && (walk->names.failed || walk->count >= STORE_VALUES_MAX))
        status = error_set(copying->error, STATUS_TOO_LARGE, 0, "the store has too many services");
    for (struct slice rest = buffer_slice(&walk->names); rest.size > 0 && status == STATUS_OK;) {
        copying->query.service = text_take_until(&rest, '\0');
        copying->items.all.count = 0;
        status = walk->run(copying);
    }
    buffer_fini(&walk->names);
    return status;
}

struct project_list {
    ARRAY_OF(uint64_t) ids;
    bool failed; /* whether memory was short */
};

static bool take_project(void *context, const struct store_project *project)
{
    struct project_list *list = context;
    list->failed = !ARRAY_PUSH(&list->ids, COPIED_ITEMS_MAX, project->id);
    return !list->failed;
}

static enum status each_service(struct copying *copying, enum status (*run)(struct copying *))
{
    struct project_list projects = {0};
    struct service_walk walk = {.copying = copying, .run = run};
    enum status status = store_each_project(copying->source, take_project, &projects, copying->error);
    if (status == STATUS_OK && projects.failed)
        status = error_set(copying->error, STATUS_NO_MEMORY, 0, "not enough memory for the projects");
    for (size_t i = 0; i < projects.ids.count && status == STATUS_OK; i++)
        status = walk_project(&walk, projects.ids.items[i]);
    free(projects.ids.items);
    return status;
}

/* Waits until a cluster has what its spool has. */
static enum status wait_until_taken(struct copying *copying)
{
    uint64_t waits = UINT64_MAX, end_ns = 0;
    for (;;) {
        struct store_usage usage;
        store_usage(copying->target, &usage);
        if (!usage.is_in_cluster || usage.spool_bytes == 0) return STATUS_OK;
        if (usage.spool_bytes < waits) end_ns = clock_monotonic_ns() + WAIT_SECONDS_MAX * SECOND_NS;
        waits = usage.spool_bytes;
        if (clock_monotonic_ns() > end_ns)
            return error_set(copying->error, STATUS_IO, 0,
                             "the cluster takes nothing; run the command again to continue");
        pause_ms(FULL_PAUSE_MS);
    }
}

static bool take_nothing(void *context, const struct store_value *value)
{
    (void)context, (void)value;
    return false;
}

/* A cluster that is away has no projects either. */
static enum status answers(struct store *store, struct error *error)
{
    const struct store_query query = {0};
    return store_each_value(store, &query, STORE_SERVICE, take_nothing, NULL, error);
}

enum status store_copy(struct store *source, struct store *target, struct store_copy_counts *ret_counts,
                       struct error *error)
{
    *ret_counts = (struct store_copy_counts){0};
    struct copying copying = {.source = source, .target = target, .counts = ret_counts, .error = error};
    enum status status = answers(source, error);
    if (status == STATUS_OK) status = answers(target, error);
    if (status == STATUS_OK) status = store_copy_projects(source, target, error);
    if (status == STATUS_OK) status = each_service(&copying, copy_service);
    if (status == STATUS_OK) status = wait_until_taken(&copying);
    if (status == STATUS_OK) status = each_service(&copying, compare_service);
    free(copying.items.all.items);
    return status;
}
