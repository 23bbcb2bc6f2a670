/* SPDX-License-Identifier: MIT */
#include "query/named_threads.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { THREAD_DIGITS_MAX = 2 };

/* Writes the name of THREAD, or its id if it has none. Long numbers become "#": they are of one run of a program. */
static void write_thread_name(const struct profile *profile, const struct thread *thread, char name[THREAD_NAME_SIZE])
{
    struct slice text = profile_slice(profile, thread->name.index ? thread->name : thread->id);
    size_t size = 0;
    for (size_t i = 0, end; i < text.size && size + THREAD_DIGITS_MAX < THREAD_NAME_SIZE; i = end) {
        for (end = i; end < text.size && isdigit(text.data[end]);) end++;
        bool is_long = end - i > THREAD_DIGITS_MAX;
        if (end == i) end++;
        if (is_long)
            name[size++] = '#';
        else
            for (size_t k = i; k < end; k++) name[size++] = (char)text.data[k];
    }
    name[size] = '\0';
}

/* Returns the place of NAME, a new one if there is room, else that of all other names. */
static size_t place_of_name(struct thread_names *names, const char *name)
{
    size_t place = 0;
    while (place < names->count && strcmp(names->items[place], name) != 0) place++;
    if (place < names->count) return place;
    if (place >= THREAD_NAMES_MAX - 1) {
        place = THREAD_NAMES_MAX - 1;
        name = "(other threads)";
    }
    (void)strcpy(names->items[place], name);
    names->count = place + 1;
    return place;
}

bool thread_names_init(struct thread_names *names, const struct profile *profile)
{
    char name[THREAD_NAME_SIZE];
    (void)place_of_name(names, "");
    names->of_thread = calloc(profile->threads.count + 1, sizeof(*names->of_thread));
    for (size_t i = 1; names->of_thread && i < profile->threads.count; i++) {
        write_thread_name(profile, &profile->threads.items[i], name);
        names->of_thread[i] = (uint8_t)place_of_name(names, name);
    }
    return names->of_thread != NULL;
}

void thread_names_fini(struct thread_names *names)
{
    free(names->of_thread);
}

struct thread_id named_thread(struct profile *profile, struct slice name)
{
    const struct string_id text = profile_string(profile, name);
    return text.index ? profile_add_thread(profile, &(struct thread){.id = text, .name = text}) : (struct thread_id){0};
}

void name_threads(struct profile *profile, bool keeps_names)
{
    struct thread_names *names = calloc(1, sizeof(*names));
    struct thread_id *ids = calloc(profile->threads.count + 1, sizeof(*ids));
    size_t count = profile->threads.count;
    bool has_memory = names && ids && thread_names_init(names, profile);
    if (!has_memory) profile_fail(profile, STATUS_NO_MEMORY);
    for (size_t i = 1; has_memory && i < count && keeps_names; i++)
        ids[i] = named_thread(profile, slice_of_text(names->items[names->of_thread[i]]));
    for (size_t i = 0; has_memory && i < profile->samples.count; i++)
        profile->samples.thread[i] = ids[profile->samples.thread[i].index];
    profile->profiler_id = (struct string_id){0}; /* the threads are of no process */
    if (names) thread_names_fini(names);
    free(names);
    free(ids);
}
