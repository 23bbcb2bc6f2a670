/* An address of an image is asked for once: names are kept in memory, by project, image and address. When they are
 * dropped, a process finds them again within milliseconds, in the symbol index of the debug file.
 *
 * Queries name what they have merged, so chunks and rollups in the store never change: a debug file that comes later
 * names what came before it, in roll-ups too.  SPDX-License-Identifier: MIT */
#include "serve/symbolication.h"

#include "base/hash.h"
#include "query/image_place.h"
#include "serve/symbol_images.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct symbols {
    struct store *store;
    struct symbol_reader reader;
    symbols_log *log;
    void *log_context;
    pthread_mutex_t lock; /* lock of the members below */
    pthread_cond_t has_read;
    struct symbol_images images;
    struct symbol_image *read[SYMBOLS_READERS_MAX]; /* images that running processes read; NULL: none */
    atomic_ullong named, asked, failed;
};

struct symbols *symbols_new(struct store *store, const char *program, const atomic_bool *is_ending, symbols_log *log,
                            void *context)
{
    struct symbols *symbols = calloc(1, sizeof(*symbols));
    pthread_condattr_t clock;
    if (!symbols) return NULL;
    symbols->store = store;
    symbols->reader = (struct symbol_reader){.program = program, .is_ending = is_ending};
    symbols->log = log;
    symbols->log_context = context;
    (void)pthread_mutex_init(&symbols->lock, NULL);
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&symbols->has_read, &clock);
    (void)pthread_condattr_destroy(&clock);
    return symbols;
}

void symbols_free(struct symbols *symbols)
{
    if (!symbols) return;
    symbol_images_fini(&symbols->images);
    (void)pthread_mutex_destroy(&symbols->lock);
    (void)pthread_cond_destroy(&symbols->has_read);
    free(symbols);
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

/* --- Asking ------------------------------------------------------------------------------------------------------- */

static enum status ask(struct symbols *symbols, struct symbol_reader reader, const int files[3], const uint64_t *keys,
                       size_t count, struct buffer *answer, struct error *error)
{
    struct buffer request;
    reader.file = files[0];
    reader.kept = files[1];
    reader.into = files[2];
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
    enum status status = ask(symbols, symbols->reader, files, NULL, 0, &bytes, error);
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

/* --- What has no names -------------------------------------------------------------------------------------------- */

struct unnamed {
    uint32_t image; /* number in the list of images */
    uint32_t location;
    uint64_t key;
};

struct naming {
    struct symbols *symbols;
    struct profile *profile;
    uint64_t project;
    const struct symbols_waiter *waiter; /* waiter of the query; NULL: none */
    bool has_waited;                     /* a slow file was waited for */
    enum status ended; /* status of WAITER or of the ending server; STATUS_OK: neither ended the query */
    struct error *error;
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

/* --- Reading: without the lock. ----------------------------------------------------------------------------------- */

static enum status keep_waiting(struct naming *naming, bool is_reader, struct error *error)
{
    const struct symbols_waiter *waiter = naming->waiter;
    naming->has_waited = true;
    naming->ended = waiter ? waiter->wait(waiter->context, is_reader, error) : STATUS_OK;
    return naming->ended;
}

static enum status wait_for_process(void *context, struct error *error)
{
    return keep_waiting(context, true, error);
}

static enum status ask_file(struct naming *naming, const struct store_debug_file *file, const uint64_t *keys,
                            size_t count, struct buffer *answer, struct error *error)
{
    int files[3];
    struct symbol_reader reader = naming->symbols->reader;
    reader.wait = wait_for_process;
    reader.context = naming;
    enum status status = store_debug_open(naming->symbols->store, file, files, error);
    if (status != STATUS_OK) return status;
    status = ask(naming->symbols, reader, files, keys, count, answer, error);
    close_all(files);
    return status;
}

/* Finds the place for a process that reads IMAGE; called with the lock. NULL: IMAGE is being read, or too many are. */
static struct symbol_image **find_reader(struct symbols *symbols, const struct symbol_image *image)
{
    struct symbol_image **place = NULL;
    size_t of_project = 0;
    for (size_t i = 0; i < SYMBOLS_READERS_MAX; i++) {
        struct symbol_image **read = &symbols->read[i];
        if (!*read) place = read;
        of_project += *read && (*read)->project == image->project;
        if (*read == image) return NULL;
    }
    return of_project < SYMBOLS_PROJECT_READERS_MAX ? place : NULL;
}

static bool begin_reading(struct symbols *symbols, struct symbol_image *image)
{
    struct symbol_image **place = find_reader(symbols, image);
    if (!place) return false;
    *place = image;
    image->read_since_ms = monotonic_ms();
    return true;
}

static void end_reading(struct symbols *symbols, struct symbol_image *image)
{
    for (size_t i = 0; i < SYMBOLS_READERS_MAX; i++)
        if (symbols->read[i] == image) symbols->read[i] = NULL;
    image->read_since_ms = 0;
    (void)pthread_cond_broadcast(&symbols->has_read);
}

/* Reads the names of KEYS, and calls end_reading for the begin_reading of its caller. */
static enum status read_names(struct naming *naming, struct symbol_image *image, const struct store_debug_file *file,
                              const uint64_t *keys, size_t count)
{
    struct symbols *symbols = naming->symbols;
    struct buffer answer;
    struct error error = {0};
    buffer_init(&answer, SYMBOL_ANSWER_BYTES_MAX);
    enum status status = ask_file(naming, file, keys, count, &answer, &error);
    if (status != STATUS_OK && atomic_load(symbols->reader.is_ending)) naming->ended = status;
    (void)pthread_mutex_lock(&symbols->lock);
    if (status == STATUS_OK)
        status = symbol_images_add(&symbols->images, image, buffer_slice(&answer), keys, count, &error);
    /* A failure that is the file's own would come again: its places have no names until they leave the memory. */
    bool is_lasting = status != STATUS_OK && status != STATUS_IO && status != STATUS_NOT_FOUND;
    if (is_lasting && naming->ended == STATUS_OK) symbol_images_add_nameless(&symbols->images, image, keys, count);
    end_reading(symbols, image);
    (void)pthread_mutex_unlock(&symbols->lock);
    buffer_fini(&answer);
    if (status == STATUS_NOT_FOUND) store_debug_remove(symbols->store, file); /* somebody removed it from the folder */
    if (naming->ended != STATUS_OK && naming->error) *naming->error = error;
    if (status != STATUS_OK && naming->ended == STATUS_OK) {
        atomic_fetch_add(&symbols->failed, 1);
        report(symbols, "no names from the debug file %.40s of image %.32s: %s", file->checksum, file->image,
               error.message);
    }
    return naming->ended;
}

/* Returns since when IMAGE waits, for its own process or for the last one that was started; called with the lock. */
static uint64_t blocked_since(const struct symbols *symbols, const struct symbol_image *image)
{
    uint64_t since_ms = image->read_since_ms;
    for (size_t i = 0; i < SYMBOLS_READERS_MAX && !image->read_since_ms; i++) {
        const struct symbol_image *read = symbols->read[i];
        if (read && read->read_since_ms > since_ms) since_ms = read->read_since_ms;
    }
    return since_ms;
}

/* Waits until IMAGE can be read, or has been. A file that is known to be slow is not waited for as if it were not. */
static enum status wait_for_others(struct naming *naming, const struct symbol_image *image)
{
    struct symbols *symbols = naming->symbols;
    uint64_t begun_ms = monotonic_ms();
    enum status status = STATUS_OK;
    (void)pthread_mutex_lock(&symbols->lock);
    while (status == STATUS_OK && !find_reader(symbols, image)) {
        uint64_t until_ms = monotonic_ms() + SYMBOL_READER_POLL_MS;
        const struct timespec until = {.tv_sec = (time_t)(until_ms / 1000),
                                       .tv_nsec = (long)(until_ms % 1000) * 1000000};
        (void)pthread_cond_timedwait(&symbols->has_read, &symbols->lock, &until);
        uint64_t since_ms = blocked_since(symbols, image);
        if (since_ms > begun_ms) since_ms = begun_ms;
        if (find_reader(symbols, image) || monotonic_ms() - since_ms < SYMBOL_READER_PATIENCE_MS) continue;
        (void)pthread_mutex_unlock(&symbols->lock);
        status = keep_waiting(naming, false, naming->error);
        (void)pthread_mutex_lock(&symbols->lock);
    }
    (void)pthread_mutex_unlock(&symbols->lock);
    return status;
}

/* --- Naming ------------------------------------------------------------------------------------------------------- */

/* The function of the image as one of the profile; KNOWN remembers it. */
static struct function_id copy_function(struct profile *profile, const struct symbol_image *image,
                                        struct function_id id, struct function_id *known)
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

static void name_location(struct naming *naming, const struct symbol_image *image, const struct unnamed *unnamed,
                          struct function_id *known)
{
    struct line lines[SYMBOL_FRAMES_MAX];
    struct profile *profile = naming->profile;
    const struct symbol_place *place = symbol_image_find(image, unnamed->key);
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

/* Puts keys of ITEMS from AT on that IMAGE does not have into KEYS, at most SYMBOL_KEYS_MAX; called with the lock.
 * RET_END: index after the last item that was looked at. */
static size_t list_missing(const struct symbol_image *image, const struct unnamed *items, size_t count, size_t at,
                           uint64_t *keys, size_t *ret_end)
{
    size_t missing = 0;
    for (; at < count && missing < SYMBOL_KEYS_MAX; at++) {
        bool is_new = missing == 0 || keys[missing - 1] != items[at].key;
        if (is_new && !symbol_image_find(image, items[at].key)) keys[missing++] = items[at].key;
    }
    *ret_end = at;
    return missing;
}

/* Asks once for the keys of ITEMS that IMAGE does not have, unless another query gets them. */
static enum status find_missing(struct naming *naming, struct symbol_image *image, const struct store_debug_file *file,
                                const struct unnamed *items, size_t count)
{
    struct symbols *symbols = naming->symbols;
    uint64_t *keys = calloc(count < SYMBOL_KEYS_MAX ? count : SYMBOL_KEYS_MAX, sizeof(*keys));
    enum status status =
        keys ? STATUS_OK : error_set(naming->error, STATUS_NO_MEMORY, 0, "not enough memory for names");
    for (size_t at = 0, end; status == STATUS_OK;) {
        (void)pthread_mutex_lock(&symbols->lock);
        size_t missing = list_missing(image, items, count, at, keys, &end);
        bool is_reader = missing > 0 && begin_reading(symbols, image);
        (void)pthread_mutex_unlock(&symbols->lock);
        if (missing == 0) break;
        status = is_reader ? read_names(naming, image, file, keys, missing) : wait_for_others(naming, image);
        if (is_reader) at = end;
    }
    free(keys);
    return status;
}

/* ITEMS are of one image. */
static enum status name_image(struct naming *naming, const struct unnamed *items, size_t count, uint64_t now_ns)
{
    struct symbols *symbols = naming->symbols;
    struct store_debug_file file;
    /* The client of this query may have gone. */
    if (naming->has_waited && keep_waiting(naming, false, naming->error) != STATUS_OK) return naming->ended;
    if (!store_debug_find_image(symbols->store, naming->project, naming->images[items->image], now_ns, &file))
        return STATUS_OK;
    (void)pthread_mutex_lock(&symbols->lock);
    struct symbol_image *image = symbol_images_take(&symbols->images, &file);
    (void)pthread_mutex_unlock(&symbols->lock);
    enum status status = image ? find_missing(naming, image, &file, items, count)
                               : error_set(naming->error, STATUS_NO_MEMORY, 0, "not enough memory for names");
    if (!image) return status;
    (void)pthread_mutex_lock(&symbols->lock);
    struct function_id *known = calloc(image->names.functions.count + 1, sizeof(*known));
    for (size_t i = 0; i < count && known && status == STATUS_OK; i++) name_location(naming, image, &items[i], known);
    symbol_images_release(&symbols->images, image);
    (void)pthread_mutex_unlock(&symbols->lock);
    if (!known) status = error_set(naming->error, STATUS_NO_MEMORY, 0, "not enough memory for names");
    free(known);
    return status;
}

static enum status name_all(struct naming *naming)
{
    uint64_t now_ns = clock_utc_ns();
    enum status status = STATUS_OK;
    if (naming->count) qsort(naming->items, naming->count, sizeof(*naming->items), compare_unnamed);
    for (size_t i = 0, size; i < naming->count && status == STATUS_OK; i += size) {
        for (size = 1; i + size < naming->count && naming->items[i + size].image == naming->items[i].image; size++) {
        }
        status = name_image(naming, naming->items + i, size, now_ns);
    }
    return status;
}

enum status symbols_name(struct symbols *symbols, uint64_t project, struct profile *profile,
                         const struct symbols_waiter *waiter, struct error *error)
{
    struct naming naming = {
        .symbols = symbols, .profile = profile, .project = project, .waiter = waiter, .error = error};
    if (!symbols) return STATUS_OK;
    enum status status =
        collect(&naming) ? name_all(&naming) : error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for names");
    free(naming.image_of_mapping);
    free(naming.images);
    free(naming.items);
    index_table_fini(&naming.by_id);
    return status == STATUS_OK ? profile_failed(profile, error) : status;
}
