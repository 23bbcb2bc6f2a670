/* pthread_create: a thread that lives between two ticks of the sampler reports its own CPU time.
 *
 * The new thread begins here, notes its start, and jumps to its routine: no frame of ours is on its stack. A destructor
 * of thread-specific data notes its end, whichever way it ends. Nothing is allocated: the routine and its argument wait
 * in a place of a fixed table until the thread runs. If the table is full, the thread is created without a note.
 * SPDX-License-Identifier: MIT */
#include "interpose/interpose_private.h"

#include "base/kernel.h"
#include "sampler/kernel/vdso_clock.h"
#include "sampler/sampler.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>

enum {
    PLACES = 1024,
    TRIES = 16,
    KEYS_WITHOUT_MEMORY = 32, /* glibc's pthread_setspecific allocates none for a key below that */
};

struct start {
    atomic_bool is_taken;
    void *(*routine)(void *);
    void *argument;
    uint64_t created_ns;
};

static struct start starts[PLACES];
static _Atomic uint32_t next_place;
static pthread_key_t key;
static bool has_key;

/* Values of the thread's key. Destructors of other keys may run for long, so this one asks to be called again after
 * them. */
static char first_call, second_call;

static void at_end(void *call)
{
    if (call == &first_call && pthread_setspecific(key, &second_call) == 0) return;
    sampler_note_thread_end();
}

__attribute__((constructor(101))) static void prepare(void)
{
    if (pthread_key_create(&key, at_end) != 0) return;
    has_key = key < KEYS_WITHOUT_MEMORY;
    if (!has_key) (void)pthread_key_delete(key);
}

static struct start *take_place(void)
{
    for (unsigned i = 0; i < TRIES; i++) {
        struct start *start = &starts[atomic_fetch_add(&next_place, 1) % PLACES];
        bool was_taken = false;
        if (atomic_compare_exchange_strong(&start->is_taken, &was_taken, true)) return start;
    }
    return NULL;
}

static void *run_routine(void *place)
{
    struct start *start = place;
    void *(*routine)(void *) = start->routine;
    void *argument = start->argument;
    uint64_t created_ns = start->created_ns;
    atomic_store(&start->is_taken, false);
    if (pthread_setspecific(key, &first_call) == 0) sampler_note_thread_begin((uintptr_t)routine, created_ns);
    return routine(argument);
}

/* Creates a thread while the sampler is away, which may have taken the last one that the user's limit allows. */
static int create_alone(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument)
{
    enum { PAUSE_NS = 100000000 };
    static _Atomic uint64_t denied_ns;
    struct sampler_absence absence;
    uint64_t last_ns = atomic_load(&denied_ns);
    if (last_ns && monotonic_ns() < last_ns + PAUSE_NS) return EAGAIN;
    if (!sampler_step_aside(RECORDING_END_NO_THREAD, &absence)) return EAGAIN;
    int result = next_functions()->pthread_create(thread, attributes, routine, argument);
    if (result == EAGAIN) atomic_store(&denied_ns, monotonic_ns());
    sampler_come_back(&absence);
    return result;
}

static int create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument)
{
    int result = next_functions()->pthread_create(thread, attributes, routine, argument);
    return result == EAGAIN && sampler_is_present() ? create_alone(thread, attributes, routine, argument) : result;
}

INTERPOSED int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *),
                              void *argument)
{
    struct start *start = has_key && sampler_is_present() ? take_place() : NULL;
    if (!start) return create(thread, attributes, routine, argument);
    start->routine = routine;
    start->argument = argument;
    start->created_ns = monotonic_ns();
    int result = create(thread, attributes, run_routine, start);
    if (result != 0) atomic_store(&start->is_taken, false);
    return result;
}
