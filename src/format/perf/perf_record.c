/* Fields come in the order of the PERF_SAMPLE_… bits as linux/perf_event.h lists them, each only if the event asked for
 * it. Other records end with the fields of struct sample_id.  SPDX-License-Identifier: MIT */
#include "format/perf/perf_record.h"

static uint64_t word_at(struct slice bytes, size_t offset)
{
    uint64_t word = 0;
    if (offset <= bytes.size && bytes.size - offset >= sizeof(word)) memcpy(&word, bytes.data + offset, sizeof(word));
    return word;
}

static size_t words_of(uint64_t sample_type, uint64_t fields)
{
    return (size_t)__builtin_popcountll(sample_type & fields) * sizeof(uint64_t);
}

/* Returns the offset of the id of a sample. */
static size_t id_place(uint64_t sample_type)
{
    if (sample_type & PERF_SAMPLE_IDENTIFIER) return PERF_RECORD_HEADER_SIZE;
    return PERF_RECORD_HEADER_SIZE +
           words_of(sample_type, PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR);
}

/* Returns the offset of the id of another record, counted back from its end: time, id, stream id, cpu, identifier. */
static size_t id_place_from_end(uint64_t sample_type)
{
    if (sample_type & PERF_SAMPLE_IDENTIFIER) return sizeof(uint64_t);
    return words_of(sample_type, PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU);
}

static size_t time_place_from_end(uint64_t sample_type)
{
    return words_of(sample_type, PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
                                     PERF_SAMPLE_IDENTIFIER);
}

/* All events that have ids have them in the same place. */
struct perf_event *perf_record_event(const struct perf_events *events, const struct perf_record *record)
{
    if (events->count <= 1) return events->items;
    const struct perf_event *first = &events->items[0];
    if (!(first->sample_type & (PERF_SAMPLE_ID | PERF_SAMPLE_IDENTIFIER))) return events->items;
    if (record->type != PERF_RECORD_SAMPLE && !first->has_sample_id_all) return events->items;
    size_t from_end = id_place_from_end(first->sample_type);
    if (record->type == PERF_RECORD_SAMPLE)
        return perf_events_find(events, word_at(record->bytes, id_place(first->sample_type)));
    if (record->bytes.size < from_end) return NULL;
    struct perf_event *found = perf_events_find(events, word_at(record->bytes, record->bytes.size - from_end));
    return found ? found : events->items; /* perf itself writes records with 0 there */
}

uint64_t perf_record_time(const struct perf_events *events, const struct perf_event *event,
                          const struct perf_record *record)
{
    if (!event || events->count == 0 || !(event->sample_type & PERF_SAMPLE_TIME)) return 0;
    if (record->type == PERF_RECORD_SAMPLE)
        return word_at(record->bytes,
                       PERF_RECORD_HEADER_SIZE +
                           words_of(event->sample_type, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID));
    size_t from_end = time_place_from_end(event->sample_type);
    bool has_end = event->has_sample_id_all && record->bytes.size >= PERF_RECORD_HEADER_SIZE + from_end;
    return has_end ? word_at(record->bytes, record->bytes.size - from_end) : 0;
}

/* COUNT entries of SIZE bytes each. */
static struct slice take_many(struct cursor *cursor, uint64_t count, size_t size)
{
    if (count > cursor_left(cursor) / size) {
        cursor->failed = true;
        return slice_of(NULL, 0);
    }
    return cursor_take(cursor, count * size);
}

/* Returns the size of one counter. Of several counters, each has its value, id and losses; one alone has the times
 * after its value. */
static size_t read_size(uint64_t format)
{
    return sizeof(uint64_t) + words_of(format, PERF_FORMAT_ID | PERF_FORMAT_LOST);
}

static void take_reads(struct cursor *cursor, uint64_t format, struct perf_sample *sample)
{
    size_t times = words_of(format, PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
    bool is_group = format & PERF_FORMAT_GROUP;
    uint64_t count = is_group ? cursor_u64(cursor) : 1;
    if (is_group) cursor_skip(cursor, times);
    sample->reads = take_many(cursor, count, read_size(format) + (is_group ? 0 : times));
    if (format & PERF_FORMAT_ID) sample->read_count = count;
}

struct perf_read perf_sample_read(const struct perf_event *event, const struct perf_sample *sample, uint64_t i)
{
    uint64_t format = event->read_format;
    size_t place = (size_t)i * read_size(format), times = 0;
    if (!(format & PERF_FORMAT_GROUP))
        times = words_of(format, PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
    return (struct perf_read){.value = word_at(sample->reads, place),
                              .id = word_at(sample->reads, place + sizeof(uint64_t) + times)};
}

/* Branches are only of use where the processor kept those that are calls without a return. */
static void take_branches(struct cursor *cursor, const struct perf_event *event, struct perf_sample *sample)
{
    uint64_t count = cursor_u64(cursor);
    if (event->branch_type & PERF_BRANCH_HW_INDEX) cursor_skip(cursor, sizeof(uint64_t));
    struct slice branches = take_many(cursor, count, PERF_BRANCH_SIZE);
    if (event->branch_type & PERF_BRANCH_CALL_STACK) sample->calls = branches;
    if (event->branch_type & PERF_BRANCH_COUNTERS) (void)take_many(cursor, count, sizeof(uint64_t));
}

static void take_registers(struct cursor *cursor, const struct perf_event *event, struct perf_sample *sample)
{
    sample->registers_abi = cursor_u64(cursor);
    sample->registers_mask = event->user_registers;
    if (sample->registers_abi == 0) return;
    sample->registers = take_many(cursor, (unsigned)__builtin_popcountll(event->user_registers), sizeof(uint64_t));
}

/* The kernel reserves the size that was asked for, and writes after it how much of that it could copy. */
static void take_stack(struct cursor *cursor, struct perf_sample *sample)
{
    uint64_t size = cursor_u64(cursor);
    if (size == 0) return;
    sample->stack = cursor_take(cursor, size);
    uint64_t copied = cursor_u64(cursor);
    if (copied < sample->stack.size) sample->stack.size = (size_t)copied;
}

/* The cgroup, and the fields between the stack and it. */
static void take_cgroup(struct cursor *cursor, const struct perf_event *event, uint64_t type,
                        struct perf_sample *sample)
{
    cursor_skip(cursor, type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT) ? sizeof(uint64_t) : 0);
    cursor_skip(cursor, words_of(type, PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION));
    uint64_t abi = type & PERF_SAMPLE_REGS_INTR ? cursor_u64(cursor) : 0;
    if (abi != 0) cursor_skip(cursor, words_of(event->interrupt_registers, UINT64_MAX));
    cursor_skip(cursor, words_of(type, PERF_SAMPLE_PHYS_ADDR));
    sample->cgroup = cursor_u64(cursor);
}

static void parse_first(struct cursor *cursor, uint64_t type, struct perf_sample *sample)
{
    if (type & PERF_SAMPLE_IDENTIFIER) cursor_skip(cursor, sizeof(uint64_t));
    if (type & PERF_SAMPLE_IP) sample->ip = cursor_u64(cursor);
    if (type & PERF_SAMPLE_TID) {
        sample->pid = cursor_u32(cursor);
        sample->tid = cursor_u32(cursor);
    }
    sample->has_time = type & PERF_SAMPLE_TIME;
    if (sample->has_time) sample->time_ns = cursor_u64(cursor);
    cursor_skip(cursor, words_of(type, PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID));
    sample->has_cpu = type & PERF_SAMPLE_CPU;
    if (sample->has_cpu) {
        sample->cpu = cursor_u32(cursor);
        cursor_skip(cursor, sizeof(uint32_t));
    }
    if (type & PERF_SAMPLE_PERIOD) sample->period = cursor_u64(cursor);
}

static bool parse_fields(const struct perf_event *event, uint64_t type, const struct perf_record *record,
                         struct perf_sample *ret_sample)
{
    struct cursor cursor = perf_record_body(record);
    struct perf_sample sample = {.period = event->period};
    parse_first(&cursor, type, &sample);
    if (type & PERF_SAMPLE_READ) take_reads(&cursor, event->read_format, &sample);
    sample.has_chain = type & PERF_SAMPLE_CALLCHAIN;
    if (sample.has_chain) sample.chain = take_many(&cursor, cursor_u64(&cursor), sizeof(uint64_t));
    if (type & PERF_SAMPLE_RAW) cursor_skip(&cursor, cursor_u32(&cursor));
    if (type & PERF_SAMPLE_BRANCH_STACK) take_branches(&cursor, event, &sample);
    if (type & PERF_SAMPLE_REGS_USER) take_registers(&cursor, event, &sample);
    sample.stack_place = PERF_RECORD_HEADER_SIZE + cursor_offset(&cursor);
    if (type & PERF_SAMPLE_STACK_USER) take_stack(&cursor, &sample);
    if (type & PERF_SAMPLE_CGROUP) take_cgroup(&cursor, event, type, &sample);
    if (cursor.failed) return false;
    *ret_sample = sample;
    return true;
}

bool perf_sample_parse(const struct perf_event *event, const struct perf_record *record, struct perf_sample *ret_sample)
{
    return parse_fields(event, event->sample_type, record, ret_sample);
}

bool perf_sample_parse_start(const struct perf_event *event, const struct perf_record *record,
                             struct perf_sample *ret_sample)
{
    return parse_fields(event, event->sample_type & ~(uint64_t)(PERF_SAMPLE_STACK_USER | PERF_SAMPLE_CGROUP), record,
                        ret_sample);
}
