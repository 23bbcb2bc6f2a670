/* A list: there are few images, and each is looked up once in a query.  SPDX-License-Identifier: MIT */
#include "serve/symbol_images.h"

#include "base/array.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

static void forget(struct symbol_images *images, size_t place)
{
    struct symbol_image *image = images->items[place];
    images->bytes -= image->bytes;
    images->items[place] = images->items[--images->count];
    profile_fini(&image->names);
    free(image->lines);
    free(image->places);
    index_table_fini(&image->by_key);
    free(image);
}

void symbol_images_fini(struct symbol_images *images)
{
    while (images->count) forget(images, images->count - 1);
}

/* False if all are pinned. */
static bool forget_oldest(struct symbol_images *images)
{
    size_t oldest = images->count;
    for (size_t i = 0; i < images->count; i++) {
        const struct symbol_image *image = images->items[i];
        if (image->pins == 0 && (oldest == images->count || image->used < images->items[oldest]->used)) oldest = i;
    }
    if (oldest == images->count) return false;
    forget(images, oldest);
    return true;
}

static struct symbol_image *add_image(struct symbol_images *images, const struct store_debug_file *file)
{
    if (images->count == SYMBOL_IMAGES_MAX && !forget_oldest(images)) return NULL;
    struct symbol_image *image = calloc(1, sizeof(*image));
    if (!image) return NULL;
    image->project = file->project;
    (void)memcpy(image->id, file->image, sizeof(image->id));
    (void)memcpy(image->checksum, file->checksum, sizeof(image->checksum));
    profile_init(&image->names);
    images->items[images->count++] = image;
    return image;
}

struct symbol_image *symbol_images_take(struct symbol_images *images, const struct store_debug_file *file)
{
    struct symbol_image *image = NULL;
    for (size_t i = 0; i < images->count && !image; i++) {
        struct symbol_image *one = images->items[i];
        if (one->project == file->project && strcmp(one->id, file->image) == 0 &&
            strcmp(one->checksum, file->checksum) == 0 && one->bytes <= SYMBOL_IMAGES_BYTES_MAX)
            image = one;
    }
    if (!image) image = add_image(images, file);
    if (!image) return NULL;
    image->pins++;
    image->used = ++images->uses;
    return image;
}

void symbol_images_release(struct symbol_images *images, struct symbol_image *image)
{
    image->pins--;
    while (images->bytes > SYMBOL_IMAGES_BYTES_MAX && forget_oldest(images)) {
    }
}

/* --- Places ------------------------------------------------------------------------------------------------------- */

static bool has_key(const void *context, uint32_t index, const void *key)
{
    return ((const struct symbol_image *)context)->places[index].key == *(const uint64_t *)key;
}

const struct symbol_place *symbol_image_find(const struct symbol_image *image, uint64_t key)
{
    uint32_t index = index_table_find(&image->by_key, hash_mix(0, key), has_key, image, &key);
    return index == INDEX_NONE ? NULL : &image->places[index];
}

static struct line line_of_frame(struct symbol_image *image, const struct symbol_frame *frame)
{
    struct function function = {.name = profile_string(&image->names, frame->name),
                                .system_name = profile_string(&image->names, frame->system_name),
                                .file_name = profile_string(&image->names, frame->file),
                                .start_line = frame->start_line};
    if (function.system_name.index == 0) function.system_name = function.name;
    return (struct line){
        .function = profile_add_function(&image->names, &function), .line = frame->line, .column = frame->column};
}

static bool add_place(struct symbol_image *image, uint64_t key, const struct symbol_frame *frames, size_t count)
{
    if (!array_reserve(&image->places, &image->place_capacity, image->place_count + 1, sizeof(*image->places),
                       PROFILE_ENTITIES_MAX) ||
        !array_reserve(&image->lines, &image->line_capacity, image->line_count + count, sizeof(*image->lines),
                       PROFILE_ENTITIES_MAX) ||
        !index_table_add(&image->by_key, hash_mix(0, key), (uint32_t)image->place_count))
        return false;
    image->places[image->place_count++] =
        (struct symbol_place){.key = key, .first = (uint32_t)image->line_count, .count = (uint32_t)count};
    for (size_t i = 0; i < count; i++) image->lines[image->line_count++] = line_of_frame(image, &frames[i]);
    return image->names.failed == STATUS_OK;
}

/* Counts the bytes of IMAGE again; called after places were added. */
static void count_bytes(struct symbol_images *images, struct symbol_image *image)
{
    images->bytes -= image->bytes;
    image->bytes = image->text_bytes + image->line_capacity * sizeof(*image->lines) +
                   image->place_capacity * (sizeof(*image->places) + 2 * sizeof(struct index_slot)) +
                   image->names.functions.count * (sizeof(struct function) + 2 * sizeof(struct index_slot));
    images->bytes += image->bytes;
}

enum status symbol_images_add(struct symbol_images *images, struct symbol_image *image, struct slice answer,
                              const uint64_t *keys, size_t count, struct error *error)
{
    struct symbol_answer opened;
    struct symbol_frame *frames = calloc(SYMBOL_FRAMES_MAX, sizeof(*frames));
    enum status status = symbol_answer_open(&opened, answer, error);
    if (!frames) status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for names");
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        size_t frame_count;
        if (!symbol_answer_next(&opened, frames, &frame_count))
            status = error_set(error, STATUS_MALFORMED, 0, "the names of a debug file are damaged");
        else if (!add_place(image, keys[i], frames, frame_count))
            status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for names");
    }
    image->text_bytes += answer.size + opened.text_count * 2 * sizeof(struct slice);
    count_bytes(images, image);
    symbol_answer_close(&opened);
    free(frames);
    return status;
}

void symbol_images_add_nameless(struct symbol_images *images, struct symbol_image *image, const uint64_t *keys,
                                size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!symbol_image_find(image, keys[i]) && !add_place(image, keys[i], NULL, 0)) break;
    count_bytes(images, image);
}
