/* An address of an image is asked for once: names are kept in memory, by project, image and address. When they are
 * dropped, a process finds them again within milliseconds, in the symbol index of the debug file.
 *
 * Queries name what they have merged, so chunks and sums in the store never change: a debug file that comes later names
 * what came before it, in roll-ups too.  SPDX-License-Identifier: MIT */
#include "serve/symbolication.h"

#include "base/array.h"
#include "base/hash.h"
#include "serve/image_place.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The functions at one address of an image; in its LINES. */
struct place {
    uint64_t key;
    uint32_t first, count;
};

struct image {
    uint64_t project, used;
    char id[IMAGE_ID_SIZE];
    char checksum[SHA1_TEXT_SIZE]; /* of the debug file that the names are from */
    struct profile names;          /* has the functions */
    struct line *lines;
    size_t line_count, line_capacity;
    struct place *places;
    size_t place_count, place_capacity;
    struct index_table by_key;
    size_t bytes;
};

struct symbols {
    struct store *store;
    struct symbol_reader reader;
    symbols_log *log;
    void *log_context;
    pthread_mutex_t lock; /* of the images */
    struct image *images[SYMBOLS_IMAGES_MAX];
    size_t image_count, bytes;
    uint64_t uses;
    atomic_ullong named, asked, failed;
};

struct symbols *symbols_new(struct store *store, const char *program, const atomic_bool *is_ending, symbols_log *log,
                            void *context)
{
    struct symbols *symbols = calloc(1, sizeof(*symbols));
    if (!symbols) return NULL;
    symbols->store = store;
    symbols->reader = (struct symbol_reader){.program = program, .is_ending = is_ending};
    symbols->log = log;
    symbols->log_context = context;
    (void)pthread_mutex_init(&symbols->lock, NULL);
    return symbols;
}

void symbols_count(const struct symbols *symbols, struct symbol_counts *ret_counts)
{
    *ret_counts = (struct symbol_counts){0};
    if (!symbols) return;
    ret_counts->named = atomic_load(&symbols->named);
    ret_counts->asked = atomic_load(&symbols->asked);
    ret_counts->failed = atomic_load(&symbols->failed);
}

static void report(const struct symbols *symbols, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void report(const struct symbols *symbols, const char *format, ...)
{
    char text[400];
    va_list arguments;
    if (!symbols->log) return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    symbols->log(symbols->log_context, text);
}

/* --- Images in memory -----------------------------------------------------------------------------------------------
 */

static void forget_names(struct symbols *symbols, struct image *image)
{
    symbols->bytes -= image->bytes;
    profile_fini(&image->names);
    free(image->lines);
    free(image->places);
    index_table_fini(&image->by_key);
    *image = (struct image){.project = image->project, .used = image->used};
    profile_init(&image->names);
}

static void forget_image(struct symbols *symbols, size_t place)
{
    struct image *image = symbols->images[place];
    forget_names(symbols, image);
    profile_fini(&image->names);
    free(image);
    symbols->images[place] = symbols->images[--symbols->image_count];
}

void symbols_free(struct symbols *symbols)
{
    if (!symbols) return;
    while (symbols->image_count) forget_image(symbols, symbols->image_count - 1);
    (void)pthread_mutex_destroy(&symbols->lock);
    free(symbols);
}

static void make_room(struct symbols *symbols)
{
    while (symbols->image_count == SYMBOLS_IMAGES_MAX ||
           (symbols->image_count && symbols->bytes > SYMBOLS_CACHE_BYTES_MAX)) {
        size_t oldest = 0;
        for (size_t i = 1; i < symbols->image_count; i++)
            if (symbols->images[i]->used < symbols->images[oldest]->used) oldest = i;
        forget_image(symbols, oldest);
    }
}

/* The names that came from FILE; none yet, if the image had another file before. NULL without memory. */
static struct image *take_image(struct symbols *symbols, const struct store_debug_file *file)
{
    struct image *image = NULL;
    for (size_t i = 0; i < symbols->image_count && !image; i++) {
        struct image *known = symbols->images[i];
        if (known->project == file->project && strcmp(known->id, file->image) == 0) image = known;
    }
    if (!image) {
        make_room(symbols);
        image = calloc(1, sizeof(*image));
        if (!image) return NULL;
        image->project = file->project;
        profile_init(&image->names);
        symbols->images[symbols->image_count++] = image;
    }
    if (strcmp(image->checksum, file->checksum) != 0) forget_names(symbols, image);
    (void)memcpy(image->id, file->image, sizeof(image->id));
    (void)memcpy(image->checksum, file->checksum, sizeof(image->checksum));
    image->used = ++symbols->uses;
    return image;
}

static bool has_key(const void *context, uint32_t index, const void *key)
{
    return ((const struct image *)context)->places[index].key == *(const uint64_t *)key;
}

static const struct place *find_place(const struct image *image, uint64_t key)
{
    uint32_t index = index_table_find(&image->by_key, hash_mix(0, key), has_key, image, &key);
    return index == INDEX_NONE ? NULL : &image->places[index];
}

/* --- Asking ---------------------------------------------------------------------------------------------------------
 */

static struct line line_of_frame(struct image *image, const struct symbol_frame *frame)
{
    struct function function = {.name = profile_string(&image->names, frame->name),
                                .system_name = profile_string(&image->names, frame->system_name),
                                .file_name = profile_string(&image->names, frame->file),
                                .start_line = frame->start_line};
    if (function.system_name.index == 0) function.system_name = function.name;
    return (struct line){
        .function = profile_add_function(&image->names, &function), .line = frame->line, .column = frame->column};
}

static bool add_place(struct image *image, uint64_t key, const struct symbol_frame *frames, size_t count)
{
    if (!array_reserve(&image->places, &image->place_capacity, image->place_count + 1, sizeof(*image->places),
                       PROFILE_ENTITIES_MAX) ||
        !array_reserve(&image->lines, &image->line_capacity, image->line_count + count, sizeof(*image->lines),
                       PROFILE_ENTITIES_MAX) ||
        !index_table_add(&image->by_key, hash_mix(0, key), (uint32_t)image->place_count))
        return false;
    image->places[image->place_count++] =
        (struct place){.key = key, .first = (uint32_t)image->line_count, .count = (uint32_t)count};
    for (size_t i = 0; i < count; i++) image->lines[image->line_count++] = line_of_frame(image, &frames[i]);
    return image->names.failed == STATUS_OK;
}

static enum status add_answer(struct symbols *symbols, struct image *image, struct slice bytes, const uint64_t *keys,
                              size_t count, struct error *error)
{
    struct symbol_answer answer;
    struct symbol_frame *frames = calloc(SYMBOL_FRAMES_MAX, sizeof(*frames));
    enum status status = symbol_answer_open(&answer, bytes, error);
    if (!frames) status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for names");
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        size_t frame_count;
        if (!symbol_answer_next(&answer, frames, &frame_count))
            status = error_set(error, STATUS_MALFORMED, 0, "the names of a debug file are damaged");
        else if (!add_place(image, keys[i], frames, frame_count))
            status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for names");
    }
    size_t added = bytes.size + count * (sizeof(struct place) + sizeof(struct index_slot)) +
                   answer.text_count * 2 * sizeof(struct slice) + image->names.functions.count * 8;
    image->bytes += added;
    symbols->bytes += added;
    symbol_answer_close(&answer);
    free(frames);
    return status;
}

static enum status ask(struct symbols *symbols, const int files[3], const uint64_t *keys, size_t count,
                       struct buffer *answer, struct error *error)
{
    struct buffer request;
    const struct symbol_reader reader = {.program = symbols->reader.program,
                                         .is_ending = symbols->reader.is_ending,
                                         .file = files[0],
                                         .kept = files[1],
                                         .into = files[2]};
    buffer_init(&request, SYMBOL_REQUEST_BYTES_MAX);
    symbol_request_write(keys, count, &request);
    atomic_fetch_add(&symbols->asked, 1);
    enum status status = request.failed ? error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for names")
                                        : symbol_reader_ask(&reader, buffer_slice(&request), answer, error);
    buffer_fini(&request);
    return status;
}

static void close_all(const int files[3])
{
    for (size_t i = 0; i < 3; i++)
        if (files[i] >= 0) (void)close(files[i]);
}

static enum status ask_once(struct symbols *symbols, struct image *image, const struct store_debug_file *file,
                            const uint64_t *keys, size_t count, struct error *error)
{
    int files[3];
    struct buffer answer;
    enum status status = store_debug_open(symbols->store, file, files, error);
    if (status != STATUS_OK) return status;
    buffer_init(&answer, SYMBOL_ANSWER_BYTES_MAX);
    status = ask(symbols, files, keys, count, &answer, error);
    if (status == STATUS_OK) status = add_answer(symbols, image, buffer_slice(&answer), keys, count, error);
    buffer_fini(&answer);
    close_all(files);
    return status;
}

/* What the file itself is to blame for would fail again: its places have no names until they are dropped from memory.
 */
static void give_up(struct symbols *symbols, struct image *image, const struct store_debug_file *file,
                    const uint64_t *keys, size_t count, const struct error *error)
{
    atomic_fetch_add(&symbols->failed, 1);
    report(symbols, "no names from the debug file %.40s of image %.32s: %s", file->checksum, file->image,
           error->message);
    bool lasts = error->status != STATUS_IO && error->status != STATUS_NOT_FOUND;
    for (size_t i = 0; i < count && lasts; i++)
        if (!find_place(image, keys[i]) && !add_place(image, keys[i], NULL, 0)) break;
}

static void ask_for(struct symbols *symbols, struct image *image, const struct store_debug_file *file,
                    const uint64_t *keys, size_t count)
{
    struct error error = {0};
    enum status status = ask_once(symbols, image, file, keys, count, &error);
    bool is_ending = atomic_load(symbols->reader.is_ending);
    if (status == STATUS_NOT_FOUND) store_debug_remove(symbols->store, file); /* somebody removed it from the folder */
    if (status != STATUS_OK && !is_ending) give_up(symbols, image, file, keys, count, &error);
}

enum status symbols_check(struct symbols *symbols, int file, const char *index, struct symbol_file *ret_file,
                          struct error *error)
{
    struct buffer bytes;
    struct symbol_answer answer;
    int files[3] = {file, -1, open(index, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600)};
    files[1] = open(index, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (files[1] < 0 || files[2] < 0) {
        (void)error_set_errno(error, "cannot make a symbol index");
        close_all((const int[3]){-1, files[1], files[2]});
        return STATUS_IO;
    }
    buffer_init(&bytes, SYMBOL_ANSWER_BYTES_MAX);
    enum status status = ask(symbols, files, NULL, 0, &bytes, error);
    if (status == STATUS_OK) {
        status = symbol_answer_open(&answer, buffer_slice(&bytes), error);
        *ret_file = answer.file;
        symbol_answer_close(&answer);
    }
    if (status != STATUS_OK) atomic_fetch_add(&symbols->failed, 1);
    buffer_fini(&bytes);
    close_all((const int[3]){-1, files[1], files[2]});
    return status;
}

/* --- What has no names ----------------------------------------------------------------------------------------------
 */

struct unnamed {
    uint32_t image; /* number in the list of images */
    uint32_t location;
    uint64_t key;
};

struct naming {
    struct symbols *symbols;
    struct profile *profile;
    uint64_t project;
    uint32_t *image_of_mapping; /* 1 + its number; 0: not looked at; UINT32_MAX: none */
    char (*images)[IMAGE_ID_SIZE];
    size_t image_count;
    struct index_table by_id;
    struct unnamed *items;
    size_t count;
};

static bool has_id(const void *context, uint32_t index, const void *key)
{
    return strcmp(((const struct naming *)context)->images[index], key) == 0;
}

/* False without memory. */
static bool number_image(struct naming *naming, uint32_t mapping, uint32_t *ret_number)
{
    uint32_t *known = &naming->image_of_mapping[mapping];
    char id[IMAGE_ID_SIZE];
    if (*known == 0 && !image_id_of(naming->profile, &naming->profile->mappings.items[mapping], id))
        *known = UINT32_MAX;
    if (*known == 0) {
        uint64_t hash = hash_bytes(id, sizeof(id) - 1);
        uint32_t number = index_table_find(&naming->by_id, hash, has_id, naming, id);
        if (number == INDEX_NONE) {
            number = (uint32_t)naming->image_count++;
            (void)memcpy(naming->images[number], id, sizeof(id));
            if (!index_table_add(&naming->by_id, hash, number)) return false;
        }
        *known = number + 1;
    }
    *ret_number = *known;
    return true;
}

static bool collect(struct naming *naming)
{
    const struct profile *profile = naming->profile;
    size_t mappings = profile->mappings.count;
    naming->image_of_mapping = calloc(mappings, sizeof(uint32_t));
    naming->images = calloc(mappings, sizeof(*naming->images));
    naming->items = calloc(profile->locations.count, sizeof(*naming->items));
    if (!naming->image_of_mapping || !naming->images || !naming->items) return false;
    for (uint32_t i = 1; i < profile->locations.count; i++) {
        const struct location *location = &profile->locations.items[i];
        uint32_t number;
        uint64_t key;
        if (!image_key_of(profile, location, &key)) continue;
        if (!number_image(naming, location->mapping.index, &number)) return false;
        if (number != UINT32_MAX)
            naming->items[naming->count++] = (struct unnamed){.image = number - 1, .location = i, .key = key};
    }
    return true;
}

static int compare_unnamed(const void *left, const void *right)
{
    const struct unnamed *a = left, *b = right;
    if (a->image != b->image) return a->image < b->image ? -1 : 1;
    return (a->key > b->key) - (a->key < b->key);
}

/* --- Naming ---------------------------------------------------------------------------------------------------------
 */

/* The function of the image as one of the profile; KNOWN remembers it. */
static struct function_id copy_function(struct profile *profile, const struct image *image, struct function_id id,
                                        struct function_id *known)
{
    if (known[id.index].index) return known[id.index];
    const struct function *from = profile_function(&image->names, id);
    const struct function function = {
        .name = profile_string(profile, profile_slice(&image->names, from->name)),
        .system_name = profile_string(profile, profile_slice(&image->names, from->system_name)),
        .file_name = profile_string(profile, profile_slice(&image->names, from->file_name)),
        .start_line = from->start_line,
    };
    return known[id.index] = profile_add_function(profile, &function);
}

static void name_location(struct naming *naming, const struct image *image, const struct unnamed *unnamed,
                          struct function_id *known)
{
    struct line lines[SYMBOL_FRAMES_MAX];
    struct profile *profile = naming->profile;
    const struct place *place = find_place(image, unnamed->key);
    if (!place || place->count == 0) return;
    struct mapping *mapping = &profile->mappings.items[profile->locations.items[unnamed->location].mapping.index];
    mapping->has_functions = true;
    for (uint32_t i = 0; i < place->count; i++) {
        lines[i] = image->lines[place->first + i];
        lines[i].function = copy_function(profile, image, lines[i].function, known);
        mapping->has_line_numbers |= lines[i].line > 0;
        mapping->has_filenames |= profile_function(profile, lines[i].function)->file_name.index != 0;
    }
    mapping->has_inline_frames |= mapping->has_line_numbers;
    profile->locations.items[unnamed->location].line_count = 0; /* a placeholder */
    profile_set_lines(profile, (struct location_id){unnamed->location}, lines, place->count);
    atomic_fetch_add(&naming->symbols->named, 1);
}

/* Asks for the keys of ITEMS that IMAGE does not have. */
static bool find_missing(struct naming *naming, struct image *image, const struct store_debug_file *file,
                         const struct unnamed *items, size_t count)
{
    uint64_t *keys = calloc(count, sizeof(*keys));
    size_t missing = 0;
    for (size_t i = 0; keys && i < count; i++) {
        bool is_new = missing == 0 || keys[missing - 1] != items[i].key;
        if (is_new && !find_place(image, items[i].key)) keys[missing++] = items[i].key;
    }
    for (size_t done = 0; done < missing;) {
        size_t some = missing - done < SYMBOL_KEYS_MAX ? missing - done : SYMBOL_KEYS_MAX;
        ask_for(naming->symbols, image, file, keys + done, some);
        done += some;
    }
    free(keys);
    return keys != NULL;
}

/* ITEMS are of one image. */
static bool name_image(struct naming *naming, const struct unnamed *items, size_t count, uint64_t now_ns)
{
    struct symbols *symbols = naming->symbols;
    struct store_debug_file file;
    if (!store_debug_find_image(symbols->store, naming->project, naming->images[items->image], now_ns, &file))
        return true;
    (void)pthread_mutex_lock(&symbols->lock);
    struct image *image = take_image(symbols, &file);
    bool is_fine = image && find_missing(naming, image, &file, items, count);
    struct function_id *known = is_fine ? calloc(image->names.functions.count + 1, sizeof(*known)) : NULL;
    for (size_t i = 0; i < count && known; i++) name_location(naming, image, &items[i], known);
    free(known);
    (void)pthread_mutex_unlock(&symbols->lock);
    return known != NULL;
}

static bool name_all(struct naming *naming)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    bool is_fine = true;
    if (naming->count) qsort(naming->items, naming->count, sizeof(*naming->items), compare_unnamed);
    for (size_t i = 0, size; i < naming->count && is_fine; i += size) {
        for (size = 1; i + size < naming->count && naming->items[i + size].image == naming->items[i].image; size++) {
        }
        is_fine = name_image(naming, naming->items + i, size, now_ns);
    }
    return is_fine;
}

enum status symbols_name(struct symbols *symbols, uint64_t project, struct profile *profile, struct error *error)
{
    struct naming naming = {.symbols = symbols, .profile = profile, .project = project};
    if (!symbols) return STATUS_OK;
    bool is_fine = collect(&naming) && name_all(&naming);
    free(naming.image_of_mapping);
    free(naming.images);
    free(naming.items);
    index_table_fini(&naming.by_id);
    if (!is_fine) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for names");
    return profile_failed(profile, error);
}
