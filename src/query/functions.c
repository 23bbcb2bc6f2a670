/* One function with its callers and callees, and functions over time.  SPDX-License-Identifier: MIT */
#include "query/answers.h"

#include "analyze/call_graph.h"
#include "analyze/top.h"
#include "analyze/totals.h"
#include "base/rfc3339.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_type(struct json_writer *json, const char *type, const char *unit)
{
    json_begin_object_member(json, "sample_type");
    json_member_text(json, "type", type);
    json_member_text(json, "unit", unit);
    json_end_object(json);
}

static void write_numbers(struct json_writer *json, const char *key, const int64_t *numbers, size_t count)
{
    json_begin_array_member(json, key);
    for (size_t i = 0; i < count; i++) json_write_i64(json, numbers[i]);
    json_end_array(json);
}

/* --- Callers and callees ------------------------------------------------------------------------------------------ */

struct neighbours {
    struct slice name;
    struct profile *profile;
    size_t column;
    struct grouping grouping;
    struct graph_source source;
    struct call_graph graph;
};

static void write_edges(struct neighbours *all, struct json_writer *json, const char *key, uint32_t node, bool is_in)
{
    const struct call_graph *graph = &all->graph;
    const uint32_t *first = is_in ? graph->in_first : graph->out_first, *edges = is_in ? graph->in : graph->out;
    json_begin_array_member(json, key);
    for (uint32_t i = first[node]; i < first[node + 1] && !json->out->failed; i++) {
        const struct call_edge *edge = &graph->edges[edges[i]];
        uint32_t other = is_in ? edge->from : edge->to;
        json_begin_object(json);
        json_member_text(json, "name", group_name(&all->grouping, group_of_node(graph, &all->source, other)));
        json_member_i64(json, "total", edge->weight);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_neighbours(struct neighbours *all, uint32_t node, struct buffer *out)
{
    struct json_writer json = json_writer_of(out);
    const struct call_node *found = &all->graph.nodes[node];
    const struct group *group = group_of_node(&all->graph, &all->source, node);
    const struct value_type *type = &all->profile->value_types[all->column];
    const struct value_choice choice = {.index = all->column};
    json_begin_object(&json);
    write_type(&json, profile_c_string(all->profile, type->type), profile_c_string(all->profile, type->unit));
    json_member_i64(&json, "all", total_of_samples(all->profile, choice, NULL));
    json_member_text(&json, "name", group_name(&all->grouping, group));
    json_member_i64(&json, "self", found->flat);
    json_member_i64(&json, "total", found->cum);
    write_edges(all, &json, "callers", node, true);
    write_edges(all, &json, "callees", node, false);
    json_end_object(&json);
}

static enum status find_neighbours(struct neighbours *all, struct buffer *out, struct error *error)
{
    const struct grouping_options grouping = {.names_unsymbolized = true};
    enum status status = grouping_init(&all->grouping, all->profile, &grouping, error);
    bool has_memory = status == STATUS_OK &&
                      graph_source_init(&all->source, all->profile, &all->grouping,
                                        (struct value_choice){.index = all->column}, false) &&
                      call_graph_build(&all->graph, &all->source, NULL, false) &&
                      call_graph_link(&all->graph, &all->source, false);
    if (status == STATUS_OK && !has_memory) status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    uint32_t node = 0;
    while (status == STATUS_OK && node < all->graph.node_count &&
           !slice_equals_text(all->name, group_name(&all->grouping, group_of_node(&all->graph, &all->source, node))))
        node++;
    if (status == STATUS_OK && node == all->graph.node_count)
        status = error_set(error, STATUS_NOT_FOUND, 0, "no function has that name");
    if (status == STATUS_OK) write_neighbours(all, node, out);
    return status;
}

enum status query_function(struct query *query, struct buffer *out, struct error *error)
{
    struct profile profile;
    struct neighbours all = {.name = query_slice(query, "name"), .profile = &profile};
    if (!query_text(query, "name"))
        return error_set(error, STATUS_UNSUPPORTED, 0, "name is needed: of a function, as `top` lists it");
    query->detail = DETAIL_STACKS;
    enum status status = query_prepare(query, &profile, &all.column, error);
    if (status == STATUS_OK) status = find_neighbours(&all, out, error);
    call_graph_fini(&all.graph);
    graph_source_fini(&all.source);
    grouping_fini(&all.grouping);
    profile_fini(&profile);
    return status;
}

/* --- Trend -------------------------------------------------------------------------------------------------------- */

enum { TREND_BUCKETS = 20, TREND_FUNCTIONS = 50, TREND_NAMES_MAX = 1 << 18 };

/* SELF has BUCKET_COUNT entries. */
struct trend_function {
    struct string_id name;
    int64_t self_sum, total_sum;
    int64_t *self;
};

struct trend {
    struct query *query;
    struct selection selection;
    uint64_t from_ns, to_ns;
    size_t bucket_count;
    struct profile names; /* strings only: the id of a name is its index in FUNCTIONS */
    struct trend_function *functions;
    size_t capacity;
    int64_t totals[QUERY_BUCKETS_MAX];
};

static bool widen(void *context, const struct store_chunk *chunk)
{
    struct trend *trend = context;
    if (chunk->start_ns < trend->from_ns) trend->from_ns = chunk->start_ns;
    if (chunk->end_ns >= trend->to_ns) trend->to_ns = chunk->end_ns + 1;
    return true;
}

/* Sets the range: without from and to, from the first chunk's start to the last one's end. BUCKETS_MAX is at least
 * 1; a bucket has at least 1 ns. */
static enum status find_range(struct trend *trend, size_t buckets_max, struct error *error)
{
    const struct store_query *query = &trend->selection.query;
    trend->from_ns = UINT64_MAX;
    enum status status = store_each_chunk(trend->query->store, query, widen, trend, error);
    if (status != STATUS_OK) return status;
    if (query->from_ns) trend->from_ns = query->from_ns;
    if (query->to_ns) trend->to_ns = query->to_ns;
    uint64_t length_ns = trend->to_ns > trend->from_ns ? trend->to_ns - trend->from_ns : 0;
    if (length_ns == 0) return error_set(error, STATUS_NOT_FOUND, 0, "no chunk matches");
    trend->bucket_count = length_ns < buckets_max ? (size_t)length_ns : buckets_max;
    return STATUS_OK;
}

static struct trend_function *trend_function(struct trend *trend, struct slice name)
{
    struct string_id id = profile_string(&trend->names, name);
    if (id.index >= TREND_NAMES_MAX) return NULL;
    if (id.index >= trend->capacity) {
        size_t capacity = trend->capacity ? 2 * trend->capacity : 256;
        struct trend_function *grown = realloc(trend->functions, capacity * sizeof(*grown));
        if (!grown) return NULL;
        memset(grown + trend->capacity, 0, (capacity - trend->capacity) * sizeof(*grown));
        trend->functions = grown;
        trend->capacity = capacity;
    }
    struct trend_function *function = &trend->functions[id.index];
    if (!function->self) function->self = calloc(trend->bucket_count, sizeof(*function->self));
    function->name = id;
    return function->self ? function : NULL;
}

static enum status add_functions(struct trend *trend, size_t bucket, struct profile *profile, struct error *error)
{
    struct top top;
    int column = profile_value_index(profile, trend->query->kind.type);
    if (column < 0) return STATUS_OK;
    query_name_functions(profile);
    const struct top_options options = {.value_index = (size_t)column};
    enum status status = top_compute(profile, &options, &top, error);
    if (status != STATUS_OK) return status;
    trend->totals[bucket] = top.total;
    for (size_t i = 0; i < top.groups[0].function_count && status == STATUS_OK; i++) {
        const struct top_function *found = &top.groups[0].functions[i];
        struct trend_function *function = trend_function(trend, names_slice(&top.names, found->name));
        if (!function) {
            status = error_set(error, STATUS_TOO_LARGE, 0, "too many functions; narrow the time range");
            break;
        }
        function->self[bucket] += found->self;
        function->self_sum += found->self;
        function->total_sum += found->total;
    }
    top_fini(&top);
    return status;
}

static uint64_t bucket_start(const struct trend *trend, size_t bucket)
{
    uint64_t length_ns = trend->to_ns - trend->from_ns, count = trend->bucket_count;
    return trend->from_ns + length_ns / count * bucket + length_ns % count * bucket / count;
}

static enum status add_bucket(struct trend *trend, size_t bucket, struct error *error)
{
    struct profile profile;
    struct selection part = trend->selection;
    part.query.from_ns = bucket_start(trend, bucket);
    part.query.to_ns = bucket_start(trend, bucket + 1);
    profile_init(&profile);
    enum status status = selection_merge(trend->query, &part, false, &profile, error);
    if (status == STATUS_OK) status = query_filter(trend->query, &profile, error);
    if (status == STATUS_OK) status = add_functions(trend, bucket, &profile, error);
    profile_fini(&profile);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static int compare_sums(const void *a, const void *b)
{
    const struct trend_function *left = a, *right = b;
    if (left->self_sum != right->self_sum) return left->self_sum < right->self_sum ? 1 : -1;
    return (left->total_sum < right->total_sum) - (left->total_sum > right->total_sum);
}

static void write_trend(struct trend *trend, struct buffer *out)
{
    struct json_writer json = json_writer_of(out);
    size_t limit = query_number(trend->query, "limit", TREND_FUNCTIONS);
    qsort(trend->functions, trend->capacity, sizeof(*trend->functions), compare_sums);
    json_begin_object(&json);
    write_type(&json, trend->query->kind.type, trend->query->kind.unit);
    json_begin_array_member(&json, "starts");
    for (size_t i = 0; i <= trend->bucket_count; i++) {
        char text[RFC3339_TEXT_SIZE];
        rfc3339_format(bucket_start(trend, i), text);
        json_write_text(&json, text);
    }
    json_end_array(&json);
    write_numbers(&json, "totals", trend->totals, trend->bucket_count);
    json_begin_array_member(&json, "functions");
    for (size_t i = 0; i < trend->capacity && (limit == 0 || i < limit) && trend->functions[i].self; i++) {
        const struct trend_function *function = &trend->functions[i];
        json_begin_object(&json);
        json_member_string(&json, "name", profile_slice(&trend->names, function->name));
        json_member_i64(&json, "self", function->self_sum);
        json_member_i64(&json, "total", function->total_sum);
        write_numbers(&json, "self_by_time", function->self, trend->bucket_count);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
}

static enum status fill_trend(struct trend *trend, struct error *error)
{
    struct query *query = trend->query;
    struct store_query *chunks = &trend->selection.query;
    size_t buckets_max = query_number(query, "buckets", TREND_BUCKETS);
    if (buckets_max < 1 || buckets_max > QUERY_BUCKETS_MAX)
        return error_set(error, STATUS_UNSUPPORTED, 0, "buckets: a number from 1 to %d is needed", QUERY_BUCKETS_MAX);
    enum status status = selection_read(query, "", &trend->selection, error);
    /* The parts of spans choose a kind among those of the spans. */
    if (status == STATUS_OK && !trend->selection.has_spans)
        status = kind_choose(&query->kind, query->store, chunks, error);
    if (status == STATUS_OK) status = find_range(trend, buckets_max, error);
    for (size_t i = 0; i < trend->bucket_count && status == STATUS_OK; i++) status = add_bucket(trend, i, error);
    if (status == STATUS_OK && !query->kind.is_chosen)
        status = error_set(error, STATUS_NOT_FOUND, 0, "no chunk matches");
    return status;
}

enum status query_trend(struct query *query, struct buffer *out, struct error *error)
{
    struct trend trend = {.query = query};
    query->detail = DETAIL_STACKS;
    profile_init(&trend.names);
    enum status status = fill_trend(&trend, error);
    if (status == STATUS_OK) write_trend(&trend, out);
    for (size_t i = 0; i < trend.capacity; i++) free(trend.functions[i].self);
    free(trend.functions);
    profile_fini(&trend.names);
    return status;
}
