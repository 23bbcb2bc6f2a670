/* The chunks that a query selects, as one profile. Every chunk is used; none is left out to save time.
 * SPDX-License-Identifier: MIT */
#include "query/selection.h"

#include "analyze/filter.h"
#include "analyze/time_cut.h"
#include "base/clocks.h"
#include "base/rfc3339.h"
#include "demangle/demangled_names.h"
#include "format/format.h"
#include "format/otlp/otlp.h"
#include "format/sentry/sentry_v1.h"
#include "format/sentry/sentry_v2.h"
#include "profile/profile_scale.h"
#include "profile/thread_labels.h"
#include "query/image_place.h"
#include "query/named_threads.h"
#include "query/profile_rollup.h"
#include "query/series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STITCH_NS_MAX (2 * SECOND_NS) /* between samples of a thread that follow one another in chunks */

/* --- Parameters --------------------------------------------------------------------------------------------------- */

static const char *prefixed(const struct query *query, const char *prefix, const char *name)
{
    char full[64];
    (void)snprintf(full, sizeof(full), "%s%s", prefix, name);
    return query_text(query, full);
}

static enum status read_time(const struct query *query, const char *prefix, const char *name, uint64_t *ret_ns,
                             struct error *error)
{
    const char *text = prefixed(query, prefix, name);
    if (!text || !text[0] || time_parse(text, ret_ns) || time_before_parse(text, clock_utc_ns(), ret_ns))
        return STATUS_OK;
    return error_set(error, STATUS_MALFORMED, 0,
                     "%s%s: a time is needed, in seconds since 1970, as 2026-11-23T04:00:00Z or as now-1h", prefix,
                     name);
}

/* Reads "at": the last snapshot until then, or until the end of the range. */
static enum status read_at(const struct query *query, struct selection *selection, struct error *error)
{
    enum { SNAPSHOT_SECONDS = 3600 };
    uint64_t at_ns = 0;
    const char *at = query_text(query, "at");
    selection->only_last = at != NULL;
    if (!at || strcmp(at, "last") == 0) return STATUS_OK;
    enum status status = read_time(query, "", "at", &at_ns, error);
    if (status != STATUS_OK) return status;
    selection->query.to_ns = at_ns + 1;
    if (selection->query.from_ns == 0 && at_ns > SNAPSHOT_SECONDS * SECOND_NS)
        selection->query.from_ns = at_ns - SNAPSHOT_SECONDS * SECOND_NS;
    return STATUS_OK;
}

static enum status read_range(const struct query *query, const char *prefix, struct selection *selection,
                              struct error *error)
{
    struct store_query *range = &selection->query;
    const char *seconds = prefixed(query, prefix, "seconds");
    enum status status = read_time(query, prefix, "from", &range->from_ns, error);
    if (status == STATUS_OK) status = read_time(query, prefix, "to", &range->to_ns, error);
    if (status == STATUS_OK && seconds && range->from_ns == 0) {
        char *end;
        double number = strtod(seconds, &end);
        if (!*seconds || *end || !(number > 0) || number > 1e9)
            return error_set(error, STATUS_MALFORMED, 0, "seconds: a number is needed");
        range->from_ns = query->now_ns - (uint64_t)(number * 1e9);
    }
    if (status == STATUS_OK && !prefix[0]) status = read_at(query, selection, error);
    if (status == STATUS_OK && range->to_ns && range->to_ns <= range->from_ns)
        status = error_set(error, STATUS_MALFORMED, 0, "%sto is not after %sfrom", prefix, prefix);
    return status;
}

enum status selection_read(struct query *query, const char *prefix, struct selection *ret_selection,
                           struct error *error)
{
    struct selection selection = {.query = {.project = query->project,
                                            .is_damaged = &query->is_damaged,
                                            .missing_shards = &query->missing_shards}};
    struct store_query *chunks = &selection.query;
    const struct {
        const char *name;
        struct slice *value;
    } texts[] = {{"service", &chunks->service},
                 {"environment", &chunks->environment},
                 {"release", &chunks->release},
                 {"host", &chunks->host},
                 {"platform", &chunks->platform},
                 {"profiler", &chunks->profiler_id},
                 {"chunk", &chunks->chunk_id},
                 {"thread", &selection.thread},
                 {"trace", &selection.spans.trace},
                 {"span", &selection.spans.span},
                 {"transaction", &selection.spans.transaction}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *given = prefixed(query, prefix, texts[i].name);
        if (!given && prefix[0]) given = query_text(query, texts[i].name);
        *texts[i].value = slice_of_text(given);
    }
    query->kind.wanted = query_slice(query, "type");
    enum status status = read_range(query, prefix, &selection, error);
    selection.has_spans = selection.spans.trace.size + selection.spans.span.size + selection.spans.transaction.size > 0;
    if (status == STATUS_OK) *ret_selection = selection;
    return status;
}

/* --- Merging ------------------------------------------------------------------------------------------------------ */

struct time_range chunk_times(const struct profile *profile)
{
    const uint64_t *time_ns = profile->samples.time_ns;
    size_t count = profile->has_times ? profile->samples.count : 0;
    struct time_range range = {UINT64_MAX, 0};
    uint64_t first_date_ns = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        range.start_ns = time_ns[i] < range.start_ns ? time_ns[i] : range.start_ns;
        range.end_ns = time_ns[i] > range.end_ns ? time_ns[i] : range.end_ns;
    }
    if (range.start_ns >= CHUNK_UPTIMES_END_NS || range.end_ns < CHUNK_UPTIMES_END_NS) return range;
    for (size_t i = 0; i < count; i++) {
        if (time_ns[i] >= CHUNK_UPTIMES_END_NS && time_ns[i] < first_date_ns) first_date_ns = time_ns[i];
    }
    range.start_ns = first_date_ns;
    return range;
}

/* Moves the times of PROFILE if they are of a clock that is not the one of days, so that it begins at START_NS. */
static void move_to_start(struct profile *profile, uint64_t start_ns)
{
    struct time_range range = chunk_times(profile);
    uint64_t first_ns = range.start_ns;
    if (range.start_ns > range.end_ns || range.end_ns >= CHUNK_UPTIMES_END_NS) return;
    profile->time_ns = profile_start_at(start_ns);
    for (size_t i = 0; i < profile->samples.count; i++) profile->samples.time_ns[i] += start_ns - first_ns;
}

enum status chunk_decode(const struct store_chunk *chunk, struct profile *profile, struct error *error)
{
    enum status status;
    switch (chunk->kind) {
    case STORE_CHUNK:
        status = sentry_v2_decode(chunk->payload, profile, error);
        break;
    case STORE_PROFILE:
        status = sentry_v1_decode(chunk->payload, profile, error);
        if (status == STATUS_OK) status = profile_fill_idle(profile, error);
        break;
    case STORE_FILE:
    case STORE_TRACE:
    default:
        status = format_decode(chunk->payload, profile, NULL, error);
        if (status == STATUS_OK) move_to_start(profile, chunk->start_ns);
    }
    if (status != STATUS_OK) return status;
    profile_demangle(profile);
    return profile_failed(profile, error);
}

struct merge {
    struct query *query;
    const struct selection *selection;
    struct profile *merged;
    bool keeps_times;
    size_t count, compacted_samples;
    struct series_list *series; /* profiles that do not add up */
    bool reduces;               /* profiles have what sums of the store have */
    bool only_linked;           /* samples of files that are linked to the chosen spans */
    bool may_use_sums;          /* sums have all that the parameters choose by */
    bool uses_sums;             /* sums of the store are added, and what is decoded as they are */
    struct rollup_needs needs;  /* parts of sums that the answer needs */
    enum status status;
    struct error *error;
};

static void keep_thread(struct profile *profile, struct slice id)
{
    bool *is_kept = calloc(profile->samples.count + 1, sizeof(*is_kept));
    if (!is_kept) return;
    for (size_t i = 0; i < profile->samples.count; i++) {
        const struct thread *thread = profile_thread(profile, profile->samples.thread[i]);
        is_kept[i] = slice_equal(profile_slice(profile, thread->id), id);
    }
    profile_keep_samples(profile, is_kept);
    free(is_kept);
}

static bool has_label(const struct profile *profile, const struct label_set *set, const char *key, struct slice text)
{
    for (uint32_t i = 0; i < set->count && text.size; i++) {
        const struct label *label = &profile->labels.items[set->first + i];
        if (slice_equals_text(profile_slice(profile, label->key), key) &&
            slice_equal(profile_slice(profile, label->text), text))
            return true;
    }
    return text.size == 0;
}

/* Keeps the samples that OTLP links to the spans of CHOICE. */
static void keep_linked(struct profile *profile, const struct span_choice *choice)
{
    bool *is_kept = calloc(profile->samples.count + 1, sizeof(*is_kept));
    if (!is_kept) return;
    for (size_t i = 0; i < profile->samples.count; i++) {
        const struct label_set *set = &profile->label_sets.items[profile->samples.labels[i].index];
        is_kept[i] = has_label(profile, set, OTLP_TRACE_LABEL, choice->trace) &&
                     has_label(profile, set, OTLP_SPAN_LABEL, choice->span);
    }
    profile_keep_samples(profile, is_kept);
    free(is_kept);
}

/* A chunk that the range cuts is cut; one without times belongs to the range that has its start. */
static enum status cut_to_range(const struct store_query *query, const struct store_chunk *chunk,
                                struct profile *profile, struct error *error)
{
    struct time_cut cut = {.start_ns = query->from_ns, .end_ns = query->to_ns ? query->to_ns : UINT64_MAX};
    bool is_inside = chunk->start_ns >= cut.start_ns && chunk->end_ns < cut.end_ns;
    if (is_inside) return STATUS_OK;
    if (profile->has_times) return time_cut_apply(profile, &cut, error);
    bool begins_inside = chunk->start_ns >= cut.start_ns && chunk->start_ns < cut.end_ns;
    if (begins_inside) return STATUS_OK;
    profile->samples.count = 0;
    return STATUS_OK;
}

/* The merged profile grows with the number of different stacks, not of chunks. */
static enum status compact_sometimes(struct merge *merge)
{
    enum { SAMPLES_FREE = 1 << 18 };
    size_t count = merge->merged->samples.count;
    if (merge->keeps_times || count < SAMPLES_FREE || count < 2 * merge->compacted_samples) return STATUS_OK;
    enum status status = profile_compact(merge->merged, merge->error);
    merge->compacted_samples = merge->merged->samples.count;
    return status;
}

static bool chooses_tags(const struct merge *merge)
{
    return merge->needs.tags[0].size + merge->needs.tags[1].size > 0;
}

/* Leaves the samples of PROFILE that the parameters choose by tags, without labels if the answer has none. */
static enum status keep_tagged(const struct merge *merge, struct profile *profile)
{
    struct filter_outcome ignored = {0};
    const struct filter_options options = {.tag_focus = query_text(merge->query, "tag_focus"),
                                           .tag_ignore = query_text(merge->query, "tag_ignore")};
    enum status status = STATUS_OK;
    if (chooses_tags(merge)) status = filter_labels(profile, &options, &ignored, merge->error);
    for (size_t i = 0; i < profile->samples.count && merge->needs.detail > DETAIL_LABELS; i++)
        profile->samples.labels[i] = (struct label_set_id){0};
    return status;
}

/* Reads ROLLUP into PROFILE, which is empty. */
static enum status read_sums(const struct merge *merge, const struct store_rollup *rollup, struct profile *profile,
                             struct rollup_series *ret_series)
{
    enum status status = profile_of_rollup(rollup, &merge->needs, profile, ret_series, merge->error);
    return status == STATUS_OK ? keep_tagged(merge, profile) : status;
}

/* Adds PROFILE, the sum of the profiles of SUMS. */
static enum status add_series_sum(struct merge *merge, const struct rollup_series *sums, const struct profile *profile)
{
    if (sums->profile_count == 0) return error_set(merge->error, STATUS_UNSUPPORTED, 0, "the sums are of no series");
    return series_add_sum(merge->series, sums, profile, merge->error);
}

/* Adds PROFILE, decoded from CHUNK, to its series. */
static enum status add_to_series(struct merge *merge, const struct store_chunk *chunk, struct profile *profile)
{
    struct rollup_series of_chunk;
    struct profile_rollup sum;
    struct profile added;
    bool is_base = chunk->start_ns < merge->series->from_ns;
    const struct rollup_needs needs = {.detail = merge->needs.detail, .has_differences = merge->needs.has_differences};
    if (!merge->uses_sums) return series_add(merge->series, chunk, profile, merge->error);
    if (needs.has_differences && !is_base)
        return error_set(merge->error, STATUS_UNSUPPORTED, 0, "a profile of differences has no sum");
    series_of_chunk(chunk, profile, &of_chunk);
    bool is_sum = profile_rollup_init(&sum, profile, &of_chunk);
    sum.rollup.first_ns = chunk->start_ns;
    sum.rollup.last_ns = chunk->end_ns;
    profile_init(&added);
    enum status status = is_sum ? profile_of_rollup(&sum.rollup, &needs, &added, &of_chunk, merge->error)
                                : error_set(merge->error, STATUS_UNSUPPORTED, 0, "a profile cannot be added up");
    if (status == STATUS_OK && needs.has_differences)
        status = series_add(merge->series, chunk, &added, merge->error);
    else if (status == STATUS_OK)
        status = add_series_sum(merge, &of_chunk, &added);
    profile_fini(&added);
    profile_rollup_fini(&sum);
    return status;
}

/* Adds ROLLUP to its series, in which values grow since the start of a process. */
static enum status add_increases(struct merge *merge, const struct store_rollup *rollup)
{
    struct series_increases sum = {.first_ns = rollup->first_ns, .last_ns = rollup->last_ns};
    struct profile *const parts[] = {
        [ROLLUP_INCREASES] = &sum.increases, [ROLLUP_FIRST] = &sum.first, [ROLLUP_LAST] = &sum.last};
    struct rollup_series series;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < 3; i++) profile_init(parts[i]);
    for (size_t i = 0; i < 3 && status == STATUS_OK; i++) {
        merge->needs.part = (enum rollup_part)i;
        status = read_sums(merge, rollup, parts[i], &series);
    }
    merge->needs.part = ROLLUP_INCREASES;
    if (status == STATUS_OK && series.profile_count == 0)
        status = error_set(merge->error, STATUS_UNSUPPORTED, 0, "the sums are of no series");
    if (status == STATUS_OK) status = series_add_increases(merge->series, &series, &sum, merge->error);
    for (size_t i = 0; i < 3; i++) profile_fini(parts[i]);
    return status;
}

static enum status merge_one(struct merge *merge, const struct store_chunk *chunk)
{
    struct profile profile;
    profile_init(&profile);
    enum status status = chunk_decode(chunk, &profile, merge->error);
    if (status == STATUS_OK && !merge->keeps_times && !merge->series)
        status = cut_to_range(&merge->selection->query, chunk, &profile, merge->error);
    if (status == STATUS_OK && merge->only_linked) keep_linked(&profile, &merge->selection->spans);
    if (status == STATUS_OK && merge->selection->thread.size) keep_thread(&profile, merge->selection->thread);
    if (status == STATUS_OK && merge->uses_sums) status = keep_tagged(merge, &profile);
    if (status == STATUS_OK && merge->keeps_times && !profile.has_times)
        status = error_set(merge->error, STATUS_UNSUPPORTED, 0, "a profile of this range has no times");
    if (status == STATUS_OK && (merge->reduces || merge->query->detail > DETAIL_LABELS)) image_places_rebase(&profile);
    if (status == STATUS_OK && merge->reduces) name_threads(&profile, merge->query->detail != DETAIL_STACKS);
    if (status == STATUS_OK && !merge->keeps_times) status = profile_compact(&profile, merge->error);
    if (status == STATUS_OK && merge->series) {
        status = add_to_series(merge, chunk, &profile);
    } else if (status == STATUS_OK && profile.samples.count > 0) {
        status = profile_make_compatible(merge->merged, &profile, merge->error);
        if (status == STATUS_OK) status = profile_merge(merge->merged, &profile, NULL, merge->error);
        if (status == STATUS_OK) status = compact_sometimes(merge);
    }
    profile_fini(&profile);
    return status;
}

static bool is_same_text(const struct profile *a, struct string_id of_a, const struct profile *b, struct string_id of_b)
{
    return slice_equal(profile_slice(a, of_a), profile_slice(b, of_b));
}

static bool has_types_of(const struct profile *a, const struct profile *b)
{
    bool is_same = a->value_type_count == b->value_type_count &&
                   is_same_text(a, a->default_value_type, b, b->default_value_type) &&
                   is_same_text(a, a->drop_frames, b, b->drop_frames) &&
                   is_same_text(a, a->keep_frames, b, b->keep_frames);
    for (size_t i = 0; i < a->value_type_count && is_same; i++)
        is_same = is_same_text(a, a->value_types[i].type, b, b->value_types[i].type) &&
                  is_same_text(a, a->value_types[i].unit, b, b->value_types[i].unit);
    return is_same;
}

static bool may_continue(void *context)
{
    struct merge *merge = context;
    merge->status = merge->query->calls->check(merge->query->context, merge->error);
    return merge->status == STATUS_OK;
}

static bool visit(void *context, const struct store_chunk *chunk)
{
    struct merge *merge = context;
    if (chunk->kind == STORE_TRACE) return true;
    if (merge->series && !series_takes(merge->series, chunk)) return true;
    if (merge->only_linked && chunk->kind != STORE_FILE) return true;
    size_t chunks_max = merge->keeps_times ? QUERY_TIMED_CHUNKS_MAX : QUERY_CHUNKS_MAX;
    if (merge->count++ == chunks_max)
        merge->status =
            error_set(merge->error, STATUS_TOO_LARGE, 0, "more than %zu chunks match; narrow the time range%s",
                      chunks_max, merge->selection->query.service.size ? "" : ", or choose a service");
    else if (may_continue(merge))
        merge->status = merge_one(merge, chunk);
    return merge->status == STATUS_OK;
}

/* Adds ROLLUP. Value types that differ depend on the order of the chunks, which rollups do not have. */
static bool add_rollup(void *context, const struct store_rollup *rollup)
{
    struct merge *merge = context;
    struct profile profile;
    struct rollup_series series;
    bool is_first = merge->merged->value_type_count == 0;
    if (merge->needs.has_differences) {
        merge->status = add_increases(merge, rollup);
        return merge->status == STATUS_OK;
    }
    profile_init(&profile);
    merge->status = read_sums(merge, rollup, &profile, &series);
    if (merge->status == STATUS_OK && merge->series) {
        merge->status = add_series_sum(merge, &series, &profile);
        profile_fini(&profile);
        return merge->status == STATUS_OK;
    }
    if (merge->status == STATUS_OK && series.profile_count > 0)
        merge->status = error_set(merge->error, STATUS_UNSUPPORTED, 0, "the sums are of series");
    if (merge->status == STATUS_OK && !is_first && !has_types_of(merge->merged, &profile))
        merge->status = error_set(merge->error, STATUS_UNSUPPORTED, 0, "the sums have different types");
    if (merge->status == STATUS_OK) merge->status = profile_merge(merge->merged, &profile, NULL, merge->error);
    if (merge->status == STATUS_OK) merge->status = compact_sometimes(merge);
    profile_fini(&profile);
    return merge->status == STATUS_OK;
}

/* A sample of a chunk's end lasts until the thread's next one, in the next chunk (facts §4.3), unless a chunk between
 * them is missing or the profiler was stopped. */
static enum status stitch(struct profile *profile, struct error *error)
{
    enum status status = profile_sort_by_time(profile, error);
    uint64_t *next_ns = status == STATUS_OK ? calloc(profile->threads.count + 1, sizeof(*next_ns)) : NULL;
    if (status != STATUS_OK) return status;
    if (!next_ns) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    for (size_t i = profile->samples.count; i-- > 0;) {
        uint32_t thread = profile->samples.thread[i].index;
        uint64_t time_ns = profile->samples.time_ns[i], after_ns = next_ns[thread];
        int64_t *values = profile->samples.values + i * profile->value_type_count;
        for (size_t k = 0; k < profile->value_type_count && after_ns; k++) {
            bool is_wall = strcmp(profile_c_string(profile, profile->value_types[k].type), "wall") == 0 &&
                           strcmp(profile_c_string(profile, profile->value_types[k].unit), "nanoseconds") == 0;
            bool is_next = after_ns - time_ns <= STITCH_NS_MAX;
            if (is_wall && is_next && values[k] == 0 && profile->samples.stack[i].index)
                values[k] = (int64_t)(after_ns - time_ns);
        }
        next_ns[thread] = time_ns;
    }
    free(next_ns);
    return STATUS_OK;
}

static enum status merge_range(struct merge *merge, const struct selection *range)
{
    struct store_query query = range->query;
    query.with_payload = true;
    merge->selection = range;
    enum status status = store_each_chunk(merge->query->store, &query, visit, merge, merge->error);
    return status == STATUS_OK ? merge->status : status;
}

/* Sets the keys of the labels that the parameters choose by. False if they choose by something else. */
static bool read_tags(const struct query *query, struct slice tags[2])
{
    static const char *const names[] = {"tag_focus", "tag_ignore"};
    for (size_t i = 0; i < 2; i++) {
        const char *text = query_text(query, names[i]), *equals = text ? strchr(text, '=') : NULL;
        if (!text || !text[0]) continue;
        if (!equals) return false;
        tags[i] = slice_of(text, (size_t)(equals - text));
        bool is_of_thread =
            thread_label_place(thread_name_keys, tags[i]) >= 0 || thread_label_place(thread_id_keys, tags[i]) >= 0;
        if (tags[i].size == 0 || is_of_thread) return false;
    }
    return true;
}

static bool is_served_by_rollups(const struct merge *merge, const struct selection *selection)
{
    const struct store_query *chunks = &selection->query;
    return merge->may_use_sums && merge->needs.detail != DETAIL_ALL && !merge->keeps_times && !selection->has_spans &&
           selection->thread.size + chunks->profiler_id.size + chunks->chunk_id.size == 0;
}

/* Calls MERGE's functions with the rollups of RANGE, and the chunks that have none. */
static enum status visit_rollups(struct merge *merge, const struct selection *range)
{
    const struct store_rollup_visitor visitor = {
        .add = add_rollup,
        .visit = visit,
        .continues = may_continue,
        .context = merge,
        .separates_labels = merge->needs.detail == DETAIL_LABELS || chooses_tags(merge),
        .has_increases = merge->needs.has_differences,
    };
    merge->selection = range;
    merge->uses_sums = true;
    enum status status = store_each_rollup(merge->query->store, &range->query, &visitor, merge->error);
    return status == STATUS_OK ? merge->status : status;
}

/* The same as merge_range, from the rollups of the store where it has some. */
static enum status merge_rollups(struct merge *merge, const struct selection *range)
{
    enum status status = visit_rollups(merge, range);
    if (status != STATUS_UNSUPPORTED) return status;
    profile_fini(merge->merged);
    profile_init(merge->merged);
    merge->uses_sums = false;
    merge->status = STATUS_OK;
    merge->count = merge->compacted_samples = 0;
    return merge_range(merge, range);
}

/* Reads the differences of profiles of series into LIST, from sums: only the profiles before the range are decoded. */
static enum status read_increases(struct merge *merge, const struct selection *range, struct series_list *list)
{
    struct selection before = *range;
    enum status status = series_find_profiles(list, merge->query->store, &range->query, merge->error);
    before.query.from_ns = series_first_ns(list);
    before.query.to_ns = list->from_ns;
    merge->uses_sums = merge->needs.has_differences = true;
    if (status == STATUS_OK && before.query.from_ns < list->from_ns) status = merge_range(merge, &before);
    if (status == STATUS_OK) status = visit_rollups(merge, range);
    merge->needs.has_differences = false;
    return status;
}

/* Reads the profiles of series into LIST: their sums, unless they are single ones. */
static enum status read_series(struct merge *merge, const struct selection *range, struct series_list *list)
{
    struct selection wider = *range;
    enum status status = STATUS_UNSUPPORTED;
    series_list_init(list, &range->query);
    list->only_last = range->only_last;
    merge->series = list;
    if (!range->only_last && is_served_by_rollups(merge, range))
        status = merge->query->kind.rule == KIND_DIFFERENCE ? read_increases(merge, range, list)
                                                            : visit_rollups(merge, range);
    if (status != STATUS_UNSUPPORTED) return status;
    series_list_fini(list);
    series_list_init(list, &range->query);
    list->only_last = range->only_last;
    merge->uses_sums = false;
    merge->status = STATUS_OK;
    merge->count = 0;
    status = series_find_profiles(list, merge->query->store, &range->query, merge->error);
    wider.query.from_ns = series_first_ns(list);
    return status == STATUS_OK ? merge_range(merge, &wider) : status;
}

/* Merges the profiles of series by the rules of their kinds. */
static enum status merge_series(struct merge *merge, const struct selection *range)
{
    struct series_list list;
    struct kind_choice *kind = &merge->query->kind;
    enum status status = read_series(merge, range, &list);
    if (status == STATUS_OK) status = series_finish(&list, merge->merged, merge->error);
    if (status == STATUS_OK && list.profile_count == 0)
        status = error_set(merge->error, STATUS_NOT_FOUND, 0, "no chunk matches");
    kind->profile_count += list.profile_count;
    kind->restart_count += list.restart_count;
    uint64_t series_count = 0;
    for (size_t i = 0; i < list.count; i++) series_count += series_is_used(list.items[i]);
    if (series_count > kind->series_count) kind->series_count = series_count; /* parts of a trend have the same ones */
    series_list_fini(&list);
    merge->series = NULL;
    return status;
}

/* Merges the chunks of one kind in RANGE. */
static enum status merge_kind(struct merge *merge, struct selection *range)
{
    struct query *query = merge->query;
    enum status status = kind_choose(&query->kind, query->store, &range->query, merge->error);
    if (status != STATUS_OK) return status;
    if (range->only_last && query->kind.rule != KIND_AVERAGE)
        return error_set(merge->error, STATUS_UNSUPPORTED, 0, "at is for snapshots; values of %s are a %s",
                         query->kind.type, kind_rule_name(query->kind.rule));
    /* A chosen chunk is shown as it is. */
    if (query->kind.needs_series && !merge->keeps_times && range->query.chunk_id.size == 0)
        return merge_series(merge, range);
    return is_served_by_rollups(merge, range) ? merge_rollups(merge, range) : merge_range(merge, range);
}

/* Makes SELECTION that of WINDOW. */
static void window_narrow(const struct window *window, struct selection *selection)
{
    struct store_query *query = &selection->query;
    if (window->profiler[0]) query->profiler_id = slice_of_text(window->profiler);
    if (window->chunk[0]) query->chunk_id = slice_of_text(window->chunk);
    if (window->thread[0] && selection->thread.size == 0) selection->thread = slice_of_text(window->thread);
    if (window->start_ns > query->from_ns) query->from_ns = window->start_ns;
    if (query->to_ns == 0 || window->end_ns < query->to_ns) query->to_ns = window->end_ns;
}

/* Merges what ran in the chosen spans. RET_RANGE: range of the only span, if times are kept. */
static enum status merge_spans(struct merge *merge, const struct selection *selection, struct selection *ret_range)
{
    struct window_list list;
    enum status status = windows_find(merge->query->store, &selection->query, &selection->spans, &list, merge->error);
    if (status == STATUS_OK && merge->keeps_times && list.count > 1)
        status = error_set(merge->error, STATUS_UNSUPPORTED, 0,
                           "%zu spans match; choose one by its id: span=ID, and trace=ID", list.count);
    for (size_t i = 0; i < list.count && status == STATUS_OK; i++) {
        struct selection range = *selection;
        window_narrow(&list.items[i], &range);
        if (range.query.from_ns >= range.query.to_ns) continue;
        status = kind_choose(&merge->query->kind, merge->query->store, &range.query, merge->error);
        if (status == STATUS_OK) status = merge_range(merge, &range);
        if (status == STATUS_NOT_FOUND) status = STATUS_OK; /* the profile of another span may be there */
        ret_range->query.from_ns = range.query.from_ns;
        ret_range->query.to_ns = range.query.to_ns;
    }
    free(list.items);
    return status;
}

/* Merges what ran in the chosen spans: those of the store, or else those that samples of OTLP are linked to. */
static enum status merge_chosen_spans(struct merge *merge, struct selection *range)
{
    struct error ignored = {0};
    struct selection linked = *range;
    enum status status = merge_spans(merge, &linked, range);
    if (status != STATUS_NOT_FOUND || linked.spans.transaction.size > 0) return status;
    struct error *own = merge->error;
    merge->error = &ignored; /* the answer is that no span matches */
    merge->only_linked = true;
    enum status found = kind_choose(&merge->query->kind, merge->query->store, &linked.query, &ignored);
    if (found == STATUS_OK) found = merge_range(merge, &linked);
    merge->error = own;
    if (found == STATUS_OK && merge->merged->samples.count > 0) return STATUS_OK;
    if (found == STATUS_OK || found == STATUS_NOT_FOUND) return status;
    if (own) *own = ignored;
    return found;
}

enum status selection_merge(struct query *query, const struct selection *selection, bool keeps_times,
                            struct profile *profile, struct error *error)
{
    struct merge merge = {.query = query, .merged = profile, .keeps_times = keeps_times, .error = error};
    struct selection range = *selection;
    bool has_session = selection->query.profiler_id.size + selection->query.chunk_id.size > 0;
    merge.reduces = query->detail != DETAIL_ALL && !has_session;
    merge.needs.detail = query->detail;
    merge.may_use_sums = read_tags(query, merge.needs.tags);
    enum status status = selection->has_spans ? merge_chosen_spans(&merge, &range) : merge_kind(&merge, &range);
    bool has_chunks = profile->samples.count > 0 || query->kind.profile_count > 0;
    query->has_chosen_tags = merge.uses_sums && chooses_tags(&merge);
    if (status == STATUS_OK && query->has_chosen_tags && profile->samples.count == 0)
        status = error_set(error, STATUS_NOT_FOUND, 0, "the filters leave no sample");
    if (status == STATUS_OK && !has_chunks) status = error_set(error, STATUS_NOT_FOUND, 0, "no chunk matches");
    if (status == STATUS_OK) profile->default_value_type = profile_text(profile, query->kind.type);
    if (status == STATUS_OK) status = query->calls->name_places(query->context, profile, error);
    if (status == STATUS_OK && !keeps_times) status = profile_compact(profile, error);
    if (status == STATUS_OK && keeps_times) status = stitch(profile, error);
    const struct store_query *chunks = &range.query;
    const struct time_cut cut = {.start_ns = chunks->from_ns, .end_ns = chunks->to_ns ? chunks->to_ns : UINT64_MAX};
    bool is_cut = chunks->from_ns || chunks->to_ns;
    if (status == STATUS_OK && keeps_times && is_cut) status = time_cut_apply(profile, &cut, error);
    return status;
}
