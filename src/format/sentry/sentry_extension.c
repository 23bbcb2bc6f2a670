/* The data of a profile that only Sentry's formats have. SPDX-License-Identifier: MIT */
#include "format/sentry/sentry_extension.h"

#include <stdlib.h>

static void extension_fini(void *of_profile)
{
    struct sentry_extension *extension = of_profile;
    free(extension->images.items);
    free(extension->passthrough_items.items);
}

/* --- Merging ------------------------------------------------------------------------------------------------------ */

struct merge {
    struct profile *into;
    const struct profile *from;
};

static struct string_id move_string(const struct merge *merge, struct string_id id)
{
    return profile_string(merge->into, profile_slice(merge->from, id));
}

static void merge_string(const struct merge *merge, struct string_id *into, struct string_id from)
{
    if (into->index == 0) *into = move_string(merge, from);
}

/* The members of a transaction are copied together. */
static void merge_transaction(const struct merge *merge, struct sentry_transaction *into,
                              const struct sentry_transaction *from)
{
    if (into->id.index != 0 || from->id.index == 0) return;
    *into = (struct sentry_transaction){.id = move_string(merge, from->id),
                                        .trace_id = move_string(merge, from->trace_id),
                                        .name = move_string(merge, from->name),
                                        .start_ns = from->start_ns,
                                        .end_ns = from->end_ns,
                                        .attributes = move_string(merge, from->attributes)};
}

static void merge_device(const struct merge *merge, struct sentry_device *into, const struct sentry_device *from)
{
    merge_string(merge, &into->architecture, from->architecture);
    merge_string(merge, &into->manufacturer, from->manufacturer);
    merge_string(merge, &into->model, from->model);
    merge_string(merge, &into->locale, from->locale);
    merge_string(merge, &into->attributes, from->attributes);
    if (into->has_is_emulator) return;
    into->has_is_emulator = from->has_is_emulator;
    into->is_emulator = from->is_emulator;
}

/* Passthrough items and the header of the envelope are not copied. */
static void merge_extension(struct profile *into_profile, const struct profile *from_profile)
{
    struct merge merge = {.into = into_profile, .from = from_profile};
    const struct sentry_extension *from = sentry_extension(from_profile);
    struct sentry_extension *into = sentry_extension_make(into_profile);
    if (!into) return;
    merge_transaction(&merge, &into->transaction, &from->transaction);
    merge_device(&merge, &into->device, &from->device);
    merge_string(&merge, &into->os.name, from->os.name);
    merge_string(&merge, &into->os.version, from->os.version);
    merge_string(&merge, &into->os.build_number, from->os.build_number);
    merge_string(&merge, &into->os.attributes, from->os.attributes);
    merge_string(&merge, &into->runtime.name, from->runtime.name);
    merge_string(&merge, &into->runtime.version, from->runtime.version);
    merge_string(&merge, &into->runtime.attributes, from->runtime.attributes);
    merge_string(&merge, &into->attributes.chunk, from->attributes.chunk);
    merge_string(&merge, &into->attributes.client_sdk, from->attributes.client_sdk);
    merge_string(&merge, &into->attributes.data, from->attributes.data);
    merge_string(&merge, &into->attributes.debug_meta, from->attributes.debug_meta);
    into->has_item_members |= from->has_item_members;
    if (into->sample_format == 0) into->sample_format = from->sample_format;
    for (size_t i = 0; i < from->images.count; i++)
        sentry_add_image(into_profile, profile_slice(from_profile, from->images.items[i]));
}

/* --- Access ------------------------------------------------------------------------------------------------------- */

static const struct profile_extension_type type = {
    .size = sizeof(struct sentry_extension), .fini = extension_fini, .merge = merge_extension};

const struct sentry_extension *sentry_extension(const struct profile *profile)
{
    static const struct sentry_extension none;
    const struct sentry_extension *extension = profile_extension(profile, &type);
    return extension ? extension : &none;
}

struct sentry_extension *sentry_extension_make(struct profile *profile)
{
    return profile_extension_make(profile, &type);
}

/* Found by a walk: there are as many as the program has scripts. */
void sentry_add_image(struct profile *profile, struct slice json)
{
    struct sentry_extension *extension = sentry_extension_make(profile);
    struct string_id id = profile_string(profile, json);
    if (!extension) return;
    for (size_t i = 0; i < extension->images.count; i++) {
        if (extension->images.items[i].index == id.index) return;
    }
    if (profile_reserve(profile, &extension->images.items, &extension->images.capacity, extension->images.count + 1,
                        sizeof(id), SENTRY_IMAGES_MAX))
        extension->images.items[extension->images.count++] = id;
}

void sentry_set_envelope_header(struct profile *profile, struct slice header)
{
    struct sentry_extension *extension = sentry_extension_make(profile);
    if (extension) extension->envelope_header = profile_copy(profile, header);
}

void sentry_add_passthrough_item(struct profile *profile, struct slice type_name, struct slice header,
                                 struct slice payload)
{
    struct sentry_extension *extension = sentry_extension_make(profile);
    if (!extension || !profile_reserve(profile, &extension->passthrough_items.items,
                                       &extension->passthrough_items.capacity, extension->passthrough_items.count + 1,
                                       sizeof(struct passthrough_item), SENTRY_PASSTHROUGH_ITEMS_MAX))
        return;
    extension->passthrough_items.items[extension->passthrough_items.count++] =
        (struct passthrough_item){.type = profile_string(profile, type_name),
                                  .header = profile_copy(profile, header),
                                  .payload = profile_copy(profile, payload)};
}
