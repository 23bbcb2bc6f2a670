/* The thread of a profile that a viewer opens on.  SPDX-License-Identifier: MIT */
#include "profile/profile.h"

#include <stdlib.h>

struct liveliness {
    struct stack_id last;
    bool has_samples;
    size_t change_count;
};

size_t profile_default_thread(const struct profile *profile)
{
    const struct sample_columns *samples = &profile->samples;
    struct liveliness *threads = calloc(profile->threads.count, sizeof(*threads));
    if (!threads) return 0;
    for (size_t i = 0; i < samples->count; i++) {
        struct liveliness *thread = &threads[samples->thread[i].index];
        thread->change_count += thread->has_samples && thread->last.index != samples->stack[i].index;
        thread->last = samples->stack[i];
        thread->has_samples = true;
    }
    size_t place = 0, shown = 0, most_interest = 0;
    for (size_t i = 0; i < profile->threads.count; i++) {
        if (!threads[i].has_samples) continue;
        struct string_id id = profile->threads.items[i].id, active = profile->active_thread;
        bool is_active = active.index != 0 && id.index == active.index;
        size_t interest = is_active ? SIZE_MAX : threads[i].change_count;
        if (interest > most_interest) {
            most_interest = interest;
            shown = place;
        }
        place++;
    }
    free(threads);
    return shown;
}

struct thread_id profile_thread_with_samples(const struct profile *profile, size_t place)
{
    bool *has_samples = calloc(profile->threads.count, sizeof(*has_samples));
    struct thread_id found = {0};
    if (!has_samples) return found;
    for (size_t i = 0; i < profile->samples.count; i++) has_samples[profile->samples.thread[i].index] = true;
    for (uint32_t i = 0; i < profile->threads.count; i++) {
        if (!has_samples[i] || place-- > 0) continue;
        found.index = i;
        break;
    }
    free(has_samples);
    return found;
}
