/* Detects pprof's legacy formats, and builds a profile from what their readers found.
 *
 * Each is a list of stacks (addresses), followed by the mappings of these addresses. Every reader fills the same
 * struct legacy; the common steps work on that. SPDX-License-Identifier: MIT */
#include "format/pprof/pprof_legacy_private.h"

#include "base/array.h"
#include "base/hash.h"
#include "format/common/format_ops.h"
#include "format/pprof/pprof.h"

#include <math.h>

/* --- What the readers share --------------------------------------------------------------------------------------- */

static void fail_memory(struct legacy *legacy)
{
    if (legacy->status == STATUS_OK)
        legacy->status = error_set(legacy->error, STATUS_NO_MEMORY, 0, "not enough memory for the profile");
}

bool legacy_make_room(struct legacy *legacy, void *items, size_t *capacity, size_t count, size_t item_size,
                      size_t maximum, const char *what)
{
    if (legacy->status != STATUS_OK) return false;
    if (array_reserve(items, capacity, count + 1, item_size, maximum)) return true;
    if (count < maximum)
        fail_memory(legacy);
    else
        legacy->status = error_set(legacy->error, STATUS_TOO_LARGE, 0, "more than %zu %s", maximum, what);
    return false;
}

void legacy_set_period(struct legacy *legacy, const char *type, const char *unit, int64_t period)
{
    legacy->profile->period_type =
        (struct value_type){.type = profile_text(legacy->profile, type), .unit = profile_text(legacy->profile, unit)};
    legacy->profile->period = period;
}

struct legacy_sample *legacy_add_sample(struct legacy *legacy)
{
    if (!LEGACY_MAKE_ROOM(legacy, &legacy->samples, PPROF_LEGACY_SAMPLES_MAX, "samples")) return NULL;
    struct legacy_sample *sample = &legacy->samples.items[legacy->samples.count++];
    *sample = (struct legacy_sample){.frame_first = (uint32_t)legacy->frames.count};
    return sample;
}

void legacy_add_frame(struct legacy *legacy, uint64_t address)
{
    struct legacy_sample *sample = &legacy->samples.items[legacy->samples.count - 1];
    if (sample->frame_count == PPROF_DEPTH_MAX && legacy->status == STATUS_OK) {
        legacy->status =
            error_set(legacy->error, STATUS_TOO_LARGE, 0, "more than %d frames in a stack", PPROF_DEPTH_MAX);
    }
    if (!LEGACY_MAKE_ROOM(legacy, &legacy->frames, PPROF_LEGACY_FRAMES_MAX, "frames")) return;
    legacy->frames.items[legacy->frames.count++] = address;
    sample->frame_count++;
}

void legacy_add_frames(struct legacy *legacy, struct slice text, unsigned skipped)
{
    const uint8_t *found;
    while (legacy->status == STATUS_OK && (found = legacy_search(text, "0x"))) {
        size_t left = text.size - (size_t)(found - text.data) - 2;
        struct cursor cursor = cursor_of(slice_of(found + 2, left));
        text = legacy_rest(&cursor);
        uint64_t address = legacy_hex(&cursor);
        if (cursor.position == text.data) continue; /* "0x" and no number */
        if (cursor.failed) LEGACY_FAIL(legacy, found, "an address of more than 64 bits");
        text = legacy_rest(&cursor);
        bool is_return = legacy->samples.items[legacy->samples.count - 1].frame_count >= skipped;
        legacy_add_frame(legacy, address - is_return);
    }
}

void legacy_drop_caller(struct legacy *legacy, struct legacy_sample *sample)
{
    uint64_t *frames = legacy->frames.items + sample->frame_first;
    memmove(frames + 1, frames + 2, (sample->frame_count - 2) * sizeof(*frames));
    sample->frame_count--;
}

void legacy_drop_doubled_leaves(struct legacy *legacy)
{
    for (size_t i = 0; i < legacy->samples.count && legacy->status == STATUS_OK; i++) {
        struct legacy_sample *sample = &legacy->samples.items[i];
        if (sample->frame_count < 2) continue;
        if (legacy_place_of(legacy, sample, 0)->address == legacy_place_of(legacy, sample, 1)->address + 1)
            legacy_drop_caller(legacy, sample);
    }
}

void legacy_unsample(int64_t *count, int64_t *size, int64_t rate)
{
    if (*count == 0 || *size == 0) {
        *count = *size = 0;
        return;
    }
    if (rate <= 1) return; /* all were taken, or nobody knows */
    double mean = (double)*size / (double)*count;
    double scale = 1 / (1 - exp(-mean / (double)rate));
    *count = legacy_whole((double)*count * scale);
    *size = legacy_whole((double)*size * scale);
}

int64_t legacy_whole(double value)
{
    if (isnan(value)) return 0;
    if (value >= 0x1p63) return INT64_MAX;
    return value <= -0x1p63 ? INT64_MIN : (int64_t)value;
}

int64_t legacy_times(int64_t a, int64_t b)
{
    int64_t product;
    if (!__builtin_mul_overflow(a, b, &product)) return product;
    return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

/* --- Places ------------------------------------------------------------------------------------------------------- */

static bool has_address(const void *context, uint32_t index, const void *key)
{
    return ((const struct legacy *)context)->places.items[index].address == *(const uint64_t *)key;
}

static uint32_t find_index(const struct legacy *legacy, uint64_t address)
{
    return index_table_find(&legacy->places.index, hash_mix(0, address), has_address, legacy, &address);
}

struct legacy_place *legacy_find_place(const struct legacy *legacy, uint64_t address)
{
    uint32_t index = find_index(legacy, address);
    return index == INDEX_NONE ? NULL : &legacy->places.items[index];
}

static uint32_t place_index(struct legacy *legacy, uint64_t address)
{
    uint32_t index = find_index(legacy, address);
    if (index != INDEX_NONE) return index;
    index = (uint32_t)legacy->places.count;
    if (!LEGACY_MAKE_ROOM(legacy, &legacy->places, PROFILE_ENTITIES_MAX, "places")) return 0;
    if (!index_table_add(&legacy->places.index, hash_mix(0, address), index)) fail_memory(legacy);
    legacy->places.items[legacy->places.count++] = (struct legacy_place){.address = address};
    return index;
}

void legacy_find_places(struct legacy *legacy)
{
    for (size_t i = 0; i < legacy->samples.count && legacy->status == STATUS_OK; i++) {
        struct legacy_sample *sample = &legacy->samples.items[i];
        for (uint32_t frame = 0; frame < sample->frame_count && legacy->status == STATUS_OK; frame++) {
            uint64_t *address = &legacy->frames.items[sample->frame_first + frame];
            *address = place_index(legacy, *address);
        }
    }
}

/* --- Detection ---------------------------------------------------------------------------------------------------- */

typedef void (*reader)(struct legacy *legacy, struct cursor *cursor);

/* Ends with a blank and a number: so do the lines of collapsed stacks, and of what is read here only a count's header.
 */
static bool ends_with_number(struct slice line)
{
    struct slice text = legacy_trim(line);
    size_t digits = 0;
    while (digits < text.size && text.data[text.size - 1 - digits] >= '0' && text.data[text.size - 1 - digits] <= '9')
        digits++;
    return digits > 0 && digits < text.size && memchr(" \t", text.data[text.size - 1 - digits], 2);
}

/* "4 @ 0x1": no other line that ends with a number is followed by it. */
static bool is_count_sample(struct slice line)
{
    struct cursor cursor = cursor_of(line);
    (void)legacy_decimal(&cursor);
    legacy_expect(&cursor, " @");
    return !cursor.failed;
}

/* "goroutine profile: total 5", and a stack, or nothing after a total of 0. */
static bool is_count_header(struct slice line, struct cursor rest)
{
    struct cursor cursor = cursor_of(line);
    struct slice name = legacy_word(&cursor), next;
    legacy_expect(&cursor, " profile: total ");
    int64_t total = legacy_decimal(&cursor);
    if (name.size == 0 || cursor.failed || !cursor_at_end(&cursor)) return false;
    for (int i = 0; i < PPROF_LEGACY_HEADER_LINES_MAX && legacy_next_line(&rest, &next); i++) {
        if (!legacy_is_blank(next)) return is_count_sample(next) || text_begins_with(next, "---");
    }
    return total == 0;
}

static bool is_java_header(struct slice line, struct cursor rest)
{
    struct slice header = legacy_trim(line), attribute;
    if (slice_equals_text(header, "--- heapz 1 ---")) return true;
    if (!slice_equals_text(header, "--- contentionz 1 ---")) return false;
    for (int i = 0; i < PPROF_LEGACY_HEADER_LINES_MAX && legacy_next_line(&rest, &attribute); i++) {
        attribute = legacy_trim(attribute);
        if (text_begins_with(attribute, "format")) return true;
        if (attribute.size > 0 && !memchr(attribute.data, '=', attribute.size)) return false;
    }
    return false;
}

/* The reader for a text whose first line is LINE, and REST what follows. */
static reader text_reader(struct slice line, struct cursor rest, bool is_first)
{
    if (is_count_header(line, rest)) return legacy_read_count;
    if (ends_with_number(line)) return NULL;
    if (text_begins_with(line, "--- threadz ") || text_begins_with(line, "--- Thread ")) return legacy_read_threads;
    if (!is_first) return NULL;
    if (text_begins_with(line, "heap profile:") && memchr(line.data, '@', line.size)) return legacy_read_heap;
    if (is_java_header(line, rest)) return legacy_read_java_text;
    if (text_begins_with(line, "--- contentionz ") || text_begins_with(line, "--- mutex:") ||
        text_begins_with(line, "--- contention:")) {
        return legacy_read_contention;
    }
    return NULL;
}

/* Returns NULL for other bytes. *RET_CURSOR begins with the header. */
static reader find_reader(struct slice bytes, struct cursor *ret_cursor)
{
    struct cursor cursor = cursor_of(bytes);
    struct slice line;
    *ret_cursor = cursor;
    if (legacy_detect_cpu(bytes)) return legacy_read_cpu;
    for (int i = 0; i < PPROF_LEGACY_HEADER_LINES_MAX; i++) {
        *ret_cursor = cursor;
        if (!legacy_next_line(&cursor, &line)) return NULL;
        if (line.size > PPROF_LEGACY_HEADER_BYTES_MAX) return NULL; /* JSON on one line */
        if (!legacy_is_blank(line)) return text_reader(line, cursor, i == 0);
    }
    return NULL;
}

bool pprof_legacy_detect(struct slice bytes)
{
    struct cursor cursor;
    return find_reader(bytes, &cursor) != NULL;
}

/* --- Making the profile ------------------------------------------------------------------------------------------- */

/* Functions of the profilers themselves in the stacks that they take: allocation, the record of a lock, the handler of
 * the profiler's signal. The names are those that the reference tool knows; "keep" are Go's frames in mid-stack. */
#define DROP_ALLOCATORS                                                                                                \
    "(tc_|__libc_)?(c|m|re)alloc|(tc_)?(cfree|free|memalign|pvalloc|valloc)|do_memalign|(__|tc_)?posix_memalign|"      \
    "malloc_zone_([cmv]alloc|realloc|memalign|free)|tc_(new|delete)(array)?|tc_new(array)?_nothrow|tcmalloc::.*|"      \
    "runtime\\..*|BaseArena::.*|(::)?do_malloc(_no_errno|_pages)?|DoSampledAllocation|"                                \
    "MallocedMemBlock::MallocedMemBlock|_M_allocate|allocate|cpp_alloc|__builtin_(vec_)?(new|delete)|"                 \
    "(__gnu_cxx::new_allocator|__malloc_alloc_template|simple_alloc)::allocate|operator new(\\[\\])?"
#define KEEP_GO "runtime\\.(panic|reflectcall|call[0-9]*)"
#define DROP_LOCKS                                                                                                     \
    "(base::)?(RecordLock|SubmitMutex|SubmitSpinLock)ProfileData.*|"                                                   \
    "((base::)?Mutex::)?(AwaitCommon|Unlock|UnlockSlow|ReaderUnlock).*|((base::)?MutexLock::)?~MutexLock.*|"           \
    "(SpinLock::)?(Unlock|SlowUnlock).*|(SpinLockHolder::)?~SpinLockHolder.*"
#define DROP_PROFILER "ProfileData::(Add|prof_handler)|CpuProfiler::prof_handler|__pthread_sighandler|__restore"

static void set_dropped_frames(struct profile *profile)
{
    const char *drop = DROP_PROFILER, *keep = "";
    const char *first = profile_c_string(profile, profile->value_types[0].type);
    if (strcmp(first, "objects") == 0 || strcmp(first, "inuse_objects") == 0 || strcmp(first, "alloc_objects") == 0) {
        drop = DROP_ALLOCATORS;
        keep = KEEP_GO;
    } else if (strcmp(first, "contentions") == 0) {
        drop = DROP_LOCKS;
    }
    profile->drop_frames = profile_text(profile, drop);
    profile->keep_frames = profile_text(profile, keep);
}

/* MAPPINGS and LOCATIONS are the ids in the profile; mappings.items[0] means "no mapping". */
static void add_places(struct legacy *legacy, struct mapping_id *mappings, struct location_id *locations)
{
    for (size_t i = 0; i < legacy->mappings.count; i++) {
        const struct legacy_mapping *from = &legacy->mappings.items[i];
        struct mapping mapping = {.start = from->start,
                                  .limit = from->limit,
                                  .file_offset = from->offset,
                                  .file_name = from->file,
                                  .build_id = from->build_id};
        mappings[i + 1] = profile_add_mapping(legacy->profile, &mapping);
    }
    for (size_t i = 0; i < legacy->places.count; i++) {
        const struct legacy_place *place = &legacy->places.items[i];
        bool has_name = place->function.index != 0;
        struct location location = {.mapping = mappings[place->mapping], .address = has_name ? 0 : place->address};
        struct line line = {.function = place->function, .line = place->line};
        locations[i] = profile_add_location(legacy->profile, &location, &line, has_name);
    }
}

static void add_samples(struct legacy *legacy, const struct location_id *locations)
{
    struct profile *profile = legacy->profile;
    struct label bytes = {.key = profile_text(profile, "bytes"), .is_number = true};
    for (size_t i = 0; i < legacy->samples.count; i++) {
        const struct legacy_sample *from = &legacy->samples.items[i];
        struct sample sample = {.stack = {0}};
        for (uint32_t frame = from->frame_count; frame-- > 0;) {
            uint64_t place = legacy->frames.items[from->frame_first + frame];
            sample.stack = profile_add_stack(profile, sample.stack, locations[place]);
        }
        bytes.number = from->block_bytes;
        if (from->has_block_bytes) sample.labels = profile_add_labels(profile, &bytes, 1);
        profile_add_sample(profile, &sample, from->values);
    }
}

static void build(struct legacy *legacy)
{
    struct mapping_id *mappings = calloc(legacy->mappings.count + 1, sizeof(*mappings));
    struct location_id *locations = calloc(legacy->places.count + 1, sizeof(*locations));
    if (mappings && locations) {
        add_places(legacy, mappings, locations);
        add_samples(legacy, locations);
        set_dropped_frames(legacy->profile);
        legacy->status = profile_failed(legacy->profile, legacy->error);
    } else {
        fail_memory(legacy);
    }
    free(mappings);
    free(locations);
}

enum status pprof_legacy_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    struct cursor cursor;
    reader read = find_reader(bytes, &cursor);
    if (!read) return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not one of pprof's older profiles");
    struct legacy legacy = {.bytes = bytes, .profile = profile, .error = error};
    read(&legacy, &cursor);
    if (legacy.status == STATUS_OK) build(&legacy);
    free(legacy.samples.items);
    free(legacy.frames.items);
    free(legacy.mappings.items);
    free(legacy.places.items);
    index_table_fini(&legacy.places.index);
    return legacy.status;
}

const struct format format_pprof_legacy = {
    .name = "pprof-legacy",
    .detect = pprof_legacy_detect,
    .decode = pprof_legacy_decode,
};
