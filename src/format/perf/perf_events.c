/* SPDX-License-Identifier: MIT */
#include "format/perf/perf_events.h"

#include "base/array.h"
#include "base/hash.h"
#include "format/perf/perf_layout.h"

#include <inttypes.h>
#include <stdio.h>

/* Bits of the field of flags. */
enum { FLAG_INHERIT = 1 << 1, FLAG_SAMPLE_ID_ALL = 1 << 18 };

/* Older perfs write fewer fields, newer ones more. */
bool perf_event_parse(struct cursor *cursor, uint64_t size, struct perf_event *ret_event)
{
    enum { SIZE_MIN = 64, BRANCH_PLACE = 72, STACK_AND_CLOCK = 8 };
    struct slice bytes = cursor_take(cursor, size);
    struct cursor attr = cursor_of(bytes);
    if (cursor->failed || size < SIZE_MIN) return false;
    struct perf_event event = {.type = cursor_u32(&attr)};
    cursor_skip(&attr, sizeof(uint32_t)); /* the size again */
    event.config = cursor_u64(&attr);
    event.period = cursor_u64(&attr);
    event.sample_type = cursor_u64(&attr);
    event.read_format = cursor_u64(&attr);
    uint64_t flags = cursor_u64(&attr);
    event.has_sample_id_all = flags & FLAG_SAMPLE_ID_ALL;
    event.is_inherited = flags & FLAG_INHERIT;
    cursor_skip(&attr, BRANCH_PLACE - cursor_offset(&attr));
    if (cursor_left(&attr) >= sizeof(uint64_t)) event.branch_type = cursor_u64(&attr);
    if (cursor_left(&attr) >= sizeof(uint64_t)) event.user_registers = cursor_u64(&attr);
    cursor_skip(&attr, STACK_AND_CLOCK);
    if (cursor_left(&attr) >= sizeof(uint64_t)) event.interrupt_registers = cursor_u64(&attr);
    *ret_event = event;
    return true;
}

enum status perf_events_add(struct perf_events *events, const struct perf_event *event)
{
    if (events->count == PERF_EVENTS_MAX) return STATUS_TOO_LARGE;
    return ARRAY_PUSH(events, PERF_EVENTS_MAX, *event) ? STATUS_OK : STATUS_NO_MEMORY;
}

static bool is_id(const void *context, uint32_t index, const void *key)
{
    return ((const struct perf_events *)context)->ids.items[index].id == *(const uint64_t *)key;
}

static uint32_t find_id(const struct perf_events *events, uint64_t id)
{
    return index_table_find(&events->ids.index, hash_mix(id, 1), is_id, events, &id);
}

enum status perf_events_add_id(struct perf_events *events, uint64_t id, size_t event)
{
    if (find_id(events, id) != INDEX_NONE) return STATUS_OK;
    if (events->ids.count == PERF_EVENT_IDS_MAX) return STATUS_TOO_LARGE;
    const struct perf_event_id added = {.id = id, .event = (uint32_t)event};
    return INDEXED_ARRAY_PUSH(&events->ids, PERF_EVENT_IDS_MAX, hash_mix(id, 1), added) ? STATUS_OK : STATUS_NO_MEMORY;
}

struct perf_event *perf_events_find(const struct perf_events *events, uint64_t id)
{
    uint32_t place = find_id(events, id);
    return place == INDEX_NONE ? NULL : &events->items[events->ids.items[place].event];
}

static bool is_counter(const void *context, uint32_t index, const void *key)
{
    const struct perf_counter *counter = &((const struct perf_events *)context)->counters.items[index], *wanted = key;
    return counter->id == wanted->id && counter->tid == wanted->tid;
}

/* The counter of WANTED, which is added with the value 0 if it is new. */
static enum status get_counter(struct perf_events *events, const struct perf_counter *wanted,
                               struct perf_counter **ret_counter)
{
    uint64_t hash = hash_mix(wanted->id, wanted->tid);
    uint32_t found = index_table_find(&events->counters.index, hash, is_counter, events, wanted);
    if (found == INDEX_NONE) {
        if (events->counters.count == PERF_COUNTERS_MAX) return STATUS_TOO_LARGE;
        found = (uint32_t)events->counters.count;
        if (!INDEXED_ARRAY_PUSH(&events->counters, PERF_COUNTERS_MAX, hash, *wanted)) return STATUS_NO_MEMORY;
    }
    *ret_counter = &events->counters.items[found];
    return STATUS_OK;
}

enum status perf_events_count(struct perf_events *events, uint64_t id, uint32_t tid, uint64_t value,
                              struct perf_event **ret_event, uint64_t *ret_growth)
{
    struct perf_counter *counter;
    *ret_growth = 0;
    *ret_event = perf_events_find(events, id);
    if (!*ret_event) return STATUS_OK;
    const struct perf_counter wanted = {.id = id, .tid = (*ret_event)->is_inherited ? tid : 0};
    enum status status = get_counter(events, &wanted, &counter);
    if (status != STATUS_OK) return status;
    if (value > counter->value) *ret_growth = value - counter->value;
    counter->value = value;
    return STATUS_OK;
}

/* --- Columns ------------------------------------------------------------------------------------------------------ */

static bool is_clock(const struct perf_event *event)
{
    return event->type == PERF_TYPE_SOFTWARE &&
           (event->config == PERF_SOFTWARE_CPU_CLOCK || event->config == PERF_SOFTWARE_TASK_CLOCK);
}

/* Returns perf's name of an event to which its file gives none. */
static struct string_id name_of(const struct perf_event *event, struct profile *profile)
{
    static const char *const hardware[] = {
        "cycles",        "instructions", "cache-references",        "cache-misses",           "branches",
        "branch-misses", "bus-cycles",   "stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles"};
    static const char *const software[] = {"cpu-clock",        "task-clock",   "page-faults",  "context-switches",
                                           "cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
                                           "emulation-faults", "dummy",        "bpf-output",   "cgroup-switches"};
    char text[64];
    if (event->name.index) return event->name;
    if (event->type == PERF_TYPE_HARDWARE && event->config < sizeof(hardware) / sizeof(hardware[0]))
        return profile_text(profile, hardware[event->config]);
    if (event->type == PERF_TYPE_SOFTWARE && event->config < sizeof(software) / sizeof(software[0]))
        return profile_text(profile, software[event->config]);
    (void)snprintf(text, sizeof(text), "%s 0x%" PRIx64, event->type == PERF_TYPE_TRACEPOINT ? "tracepoint" : "raw",
                   event->config);
    return profile_text(profile, text);
}

/* The column of NAME, which is added if there is none; 0 if there are too many. */
static unsigned column_of(struct profile *profile, struct string_id name, bool counts_time)
{
    for (unsigned i = 1; i < profile->value_type_count; i++) {
        if (profile->value_types[i].type.index == name.index) return i;
    }
    if (profile->value_type_count == PROFILE_VALUES_MAX) return 0;
    profile_add_value_type(profile, profile_c_string(profile, name), counts_time ? "nanoseconds" : "count");
    return (unsigned)profile->value_type_count - 1;
}

bool perf_events_give_columns(struct perf_events *events, struct profile *profile)
{
    events->has_columns = true;
    profile_add_value_type(profile, "samples", "count");
    for (size_t i = 0; i < events->count; i++) {
        struct perf_event *event = &events->items[i];
        /* A dummy exists only to have records of mappings: it takes no samples. */
        if (event->type == PERF_TYPE_SOFTWARE && event->config == PERF_SOFTWARE_DUMMY) continue;
        event->column = column_of(profile, name_of(event, profile), is_clock(event));
        if (event->column == 0 && profile->failed == STATUS_OK) return false;
    }
    if (profile->value_type_count > 1) profile->default_value_type = profile->value_types[1].type;
    return true;
}

void perf_events_fini(struct perf_events *events)
{
    free(events->items);
    free(events->ids.items);
    free(events->counters.items);
    index_table_fini(&events->counters.index);
    index_table_fini(&events->ids.index);
    *events = (struct perf_events){0};
}
