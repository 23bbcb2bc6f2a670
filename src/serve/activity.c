/* Counts the samples that each service has sent, in each part of a range.  SPDX-License-Identifier: MIT */
#include "serve/serve_private.h"

#include <stdlib.h>
#include <string.h>

enum { SERVICES_MAX = 500, BUCKETS = 60 };

struct service {
    char name[STORE_NAME_BYTES_MAX + 1];
    size_t name_size;
    uint64_t first_ns, last_ns, chunks, samples;
    double parts[QUERY_BUCKETS_MAX];
};

struct activity {
    struct selection selection;
    struct service *services; /* sorted by name */
    size_t count, bucket_count;
    uint64_t start_ns, end_ns;
    bool is_cut;
};

static bool add_service(void *context, const struct store_value *value)
{
    struct activity *activity = context;
    activity->is_cut = activity->count == SERVICES_MAX || value->value.size > STORE_NAME_BYTES_MAX;
    if (activity->is_cut) return false;
    struct service *service = &activity->services[activity->count++];
    if (value->value.size) memcpy(service->name, value->value.data, value->value.size);
    service->name_size = value->value.size;
    service->first_ns = value->first_ns;
    service->last_ns = value->last_ns;
    service->chunks = value->chunk_count;
    service->samples = value->sample_count;
    if (activity->start_ns == 0 || value->first_ns < activity->start_ns) activity->start_ns = value->first_ns;
    if (value->last_ns >= activity->end_ns) activity->end_ns = value->last_ns + 1;
    return true;
}

static int compare_with_service(const void *key, const void *item)
{
    const struct slice *name = key;
    const struct service *service = item;
    size_t shared = name->size < service->name_size ? name->size : service->name_size;
    int order = shared ? memcmp(name->data, service->name, shared) : 0;
    return order ? order : (name->size > service->name_size) - (name->size < service->name_size);
}

/* A chunk's samples are spread evenly over its time. */
static bool add_chunk(void *context, const struct store_chunk *chunk)
{
    struct activity *activity = context;
    struct service *service = bsearch(&chunk->service, activity->services, activity->count, sizeof(*activity->services),
                                      compare_with_service);
    double part_ns = (double)(activity->end_ns - activity->start_ns) / (double)activity->bucket_count;
    double length_ns = (double)(chunk->end_ns > chunk->start_ns ? chunk->end_ns - chunk->start_ns : 1);
    if (!service) return true; /* it is not among the first, or was stored after the services were listed */
    for (size_t i = 0; i < activity->bucket_count; i++) {
        double start_ns = (double)i * part_ns, end_ns = start_ns + part_ns;
        double chunk_start_ns = (double)chunk->start_ns - (double)activity->start_ns;
        double from_ns = chunk_start_ns > start_ns ? chunk_start_ns : start_ns;
        double to_ns = chunk_start_ns + length_ns < end_ns ? chunk_start_ns + length_ns : end_ns;
        if (to_ns > from_ns) service->parts[i] += (double)chunk->sample_count * (to_ns - from_ns) / length_ns;
    }
    return true;
}

static void write_activity(struct request *request, const struct activity *activity)
{
    struct json_writer json = json_writer_of(&request->answer);
    json_begin_object(&json);
    json_member_time(&json, "start", activity->start_ns);
    json_member_time(&json, "end", activity->end_ns);
    json_begin_array_member(&json, "services");
    for (size_t i = 0; i < activity->count; i++) {
        const struct service *service = &activity->services[i];
        json_begin_object(&json);
        json_member_text(&json, "name", service->name);
        json_member_time(&json, "first", service->first_ns);
        json_member_time(&json, "last", service->last_ns);
        json_member_u64(&json, "chunks", service->chunks);
        json_member_u64(&json, "samples", service->samples);
        json_begin_array_member(&json, "samples_by_time");
        for (size_t k = 0; k < activity->bucket_count; k++) json_write_u64(&json, (uint64_t)(service->parts[k] + 0.5));
        json_end_array(&json);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_member_bool(&json, "is_cut", activity->is_cut);
    json_end_object(&json);
    answer_finish(request, "application/json");
}

void list_activity(struct request *request)
{
    struct activity activity = {.bucket_count = BUCKETS};
    struct error error = {0};
    const char *buckets = request_parameter(request, "buckets");
    if (buckets) activity.bucket_count = (size_t)strtoull(buckets, NULL, 10);
    if (activity.bucket_count < 1 || activity.bucket_count > QUERY_BUCKETS_MAX) {
        answer_error(request, 400, "buckets: a number from 1 to %d is needed", QUERY_BUCKETS_MAX);
        return;
    }
    struct store_query *query = &activity.selection.query;
    if (!request_select(request, &activity.selection)) return;
    struct store *store = request->server->store;
    activity.services = calloc(SERVICES_MAX, sizeof(*activity.services));
    if (!activity.services) {
        answer_error(request, 503, "not enough memory");
        return;
    }
    enum status status = store_each_value(store, query, STORE_SERVICE, add_service, &activity, &error);
    if (query->from_ns) activity.start_ns = query->from_ns;
    if (query->to_ns) activity.end_ns = query->to_ns;
    if (activity.end_ns <= activity.start_ns) activity.end_ns = activity.start_ns + 1;
    if (status == STATUS_OK) status = store_each_chunk(store, query, add_chunk, &activity, &error);
    if (status == STATUS_OK)
        write_activity(request, &activity);
    else
        answer_failure(request, &error);
    free(activity.services);
}
