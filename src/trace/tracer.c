/* The state that all transactions share: options, listener, and the times at which profilers ran.
 *
 * The listener is called under a lock for reading, so that closing can wait for those that are in it.
 * SPDX-License-Identifier: MIT */
#include "trace/trace_private.h"

#include "base/invariant.h"
#include "base/process.h"
#include "base/timespec.h"

#include <stdlib.h>
#include <time.h>

/* --- Making and closing ------------------------------------------------------------------------------------------- */

static const char **text_options(struct tracer_options *options, size_t index)
{
    const char **texts[] = {&options->release,     &options->environment, &options->dist,
                            &options->server_name, &options->public_key,  &options->continuation.org_id};
    return index < sizeof(texts) / sizeof(*texts) ? texts[index] : NULL;
}

/* Copies the texts to one piece of memory, which is measured first because the texts point into it. */
static bool copy_option_texts(struct tracer *tracer)
{
    size_t size = 0;
    const char **text;
    for (size_t i = 0; (text = text_options(&tracer->options, i)); i++) {
        size += trace_text_size(*text, TRACE_NAME_BYTES_MAX) + 1;
    }
    buffer_init(&tracer->texts, size);
    buffer_init(&tracer->contexts, tracer->options.contexts.size);
    if (!buffer_reserve(&tracer->texts, size)) return false;
    buffer_append(&tracer->contexts, tracer->options.contexts.data, tracer->options.contexts.size);
    tracer->options.contexts = buffer_slice(&tracer->contexts);
    for (size_t i = 0; (text = text_options(&tracer->options, i)); i++) {
        const char *copy = (const char *)tracer->texts.data + tracer->texts.size;
        buffer_append(&tracer->texts, *text, trace_text_size(*text, TRACE_NAME_BYTES_MAX));
        buffer_append_byte(&tracer->texts, 0);
        *text = copy;
    }
    return true;
}

struct tracer *tracer_new(const struct tracer_options *options)
{
    struct tracer *tracer = calloc(1, sizeof(*tracer));
    if (!tracer) return NULL;
    tracer->options = *options;
    tracer->process = process_number();
    tracer->references = 1;
    if (!copy_option_texts(tracer)) {
        free(tracer);
        return NULL;
    }
    (void)pthread_rwlock_init(&tracer->listening, NULL); /* on Linux these cannot fail */
    (void)pthread_mutex_init(&tracer->roots_lock, NULL);
    (void)pthread_mutex_init(&tracer->profilers_lock, NULL);
    return tracer;
}

struct tracer *tracer_ref(struct tracer *tracer)
{
    if (tracer) atomic_fetch_add(&tracer->references, 1);
    return tracer;
}

void tracer_unref(struct tracer *tracer)
{
    size_t references = atomic_fetch_sub(&tracer->references, 1);
    if (!INVARIANT(references > 0) || references != 1) return;
    (void)pthread_rwlock_destroy(&tracer->listening);
    (void)pthread_mutex_destroy(&tracer->roots_lock);
    (void)pthread_mutex_destroy(&tracer->profilers_lock);
    buffer_fini(&tracer->texts);
    buffer_fini(&tracer->contexts);
    free(tracer);
}

const struct trace_continuation *tracer_continuation(const struct tracer *tracer)
{
    return &tracer->options.continuation;
}

void tracer_close(struct tracer *tracer)
{
    (void)tracer_close_until(tracer, UINT64_MAX);
}

#pragma weak pthread_rwlock_clockwrlock // see sdk/other_libc.c

bool tracer_close_until(struct tracer *tracer, uint64_t deadline_ns)
{
    if (!tracer || tracer->process != process_number()) return true;
    struct timespec deadline = timespec_of(deadline_ns);
    atomic_store(&tracer->is_closed, true); /* no new call makes this wait longer */
    if (pthread_rwlock_clockwrlock(&tracer->listening, CLOCK_MONOTONIC, &deadline) != 0) return false;
    (void)pthread_rwlock_unlock(&tracer->listening);
    return true;
}

void tracer_free(struct tracer *tracer)
{
    if (!tracer || tracer->process != process_number()) return;
    tracer_close(tracer);
    tracer_unref(tracer);
}

/* --- The listener ------------------------------------------------------------------------------------------------- */

bool tracer_begin_call(struct tracer *tracer)
{
    if (atomic_load(&tracer->is_closed) || pthread_rwlock_rdlock(&tracer->listening) != 0) return false;
    if (!atomic_load(&tracer->is_closed)) return true;
    (void)pthread_rwlock_unlock(&tracer->listening);
    return false;
}

void tracer_end_call(struct tracer *tracer)
{
    (void)pthread_rwlock_unlock(&tracer->listening);
}

void tracer_report(struct tracer *tracer, const char *reason, const char *category, uint64_t quantity)
{
    const struct trace_listener *listener = &tracer->options.listener;
    if (quantity > 0 && listener->discarded) listener->discarded(listener->data, reason, category, quantity);
}

uint32_t tracer_root_started(struct tracer *tracer, bool is_sampled, const char *trace_id)
{
    const struct trace_listener *listener = &tracer->options.listener;
    uint32_t token = 0;
    (void)pthread_mutex_lock(&tracer->roots_lock);
    if (is_sampled) tracer->sampled_open++;
    if (listener->root_started)
        token = listener->root_started(listener->data, is_sampled, trace_id, tracer->sampled_open);
    (void)pthread_mutex_unlock(&tracer->roots_lock);
    return token;
}

void tracer_root_ended(struct tracer *tracer, uint32_t token, bool is_sampled)
{
    const struct trace_listener *listener = &tracer->options.listener;
    (void)pthread_mutex_lock(&tracer->roots_lock);
    if (is_sampled) tracer->sampled_open--;
    if (listener->root_ended) listener->root_ended(listener->data, token, is_sampled, tracer->sampled_open);
    (void)pthread_mutex_unlock(&tracer->roots_lock);
}

/* --- Profilers ---------------------------------------------------------------------------------------------------- */

static struct trace_profiler *profiler_place(struct tracer *tracer, uint32_t number)
{
    return &tracer->profilers[number % TRACE_PROFILERS_KEPT_MAX];
}

void tracer_set_profiler(struct tracer *tracer, const char *profiler_id)
{
    if (!tracer || tracer->process != process_number()) return;
    uint64_t now_ns = clock_monotonic_ns();
    struct trace_profiler next = {.start_ns = now_ns, .end_ns = UINT64_MAX};
    bool is_there = profiler_id && uuid_parse(slice_of_text(profiler_id), next.id);
    (void)pthread_mutex_lock(&tracer->profilers_lock);
    if (tracer->running_profiler) profiler_place(tracer, tracer->running_profiler)->end_ns = now_ns;
    tracer->running_profiler = 0;
    if (is_there) {
        next.number = ++tracer->last_profiler;
        *profiler_place(tracer, next.number) = next;
        tracer->running_profiler = next.number;
    }
    (void)pthread_mutex_unlock(&tracer->profilers_lock);
}

bool tracer_profiler_id(struct tracer *tracer, uint32_t number, char ret_id[UUID_TEXT_SIZE])
{
    if (number == 0) return false;
    (void)pthread_mutex_lock(&tracer->profilers_lock);
    const struct trace_profiler *profiler = profiler_place(tracer, number);
    bool is_kept = profiler->number == number;
    if (is_kept) memcpy(ret_id, profiler->id, UUID_TEXT_SIZE);
    (void)pthread_mutex_unlock(&tracer->profilers_lock);
    return is_kept;
}

uint32_t tracer_profiler_within(struct tracer *tracer, uint64_t start_ns, uint64_t end_ns)
{
    uint32_t found = 0;
    uint64_t longest_ns = 0;
    (void)pthread_mutex_lock(&tracer->profilers_lock);
    for (size_t i = 0; i < TRACE_PROFILERS_KEPT_MAX; i++) {
        const struct trace_profiler *profiler = &tracer->profilers[i];
        if (profiler->number == 0 || profiler->start_ns > end_ns || profiler->end_ns < start_ns) continue;
        uint64_t first_ns = profiler->start_ns > start_ns ? profiler->start_ns : start_ns;
        uint64_t common_ns = (profiler->end_ns < end_ns ? profiler->end_ns : end_ns) - first_ns;
        bool is_longer = found == 0 || common_ns > longest_ns;
        if (!is_longer && (common_ns < longest_ns || profiler->number > found)) continue;
        found = profiler->number;
        longest_ns = common_ns;
    }
    (void)pthread_mutex_unlock(&tracer->profilers_lock);
    return found;
}
