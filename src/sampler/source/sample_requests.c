/* SPDX-License-Identifier: MIT */
#include "sampler/source/sample_requests.h"

#include "base/kernel.h"
#include "base/pages.h"
#include "base/unsigned.h"
#include "sampler/kernel/cpu_clock.h"

/* Requests that were ever taken; each is allocated then, and never freed: a late reply may come at any time. */
static struct sample_request *requests[REQUESTS_MAX];
static _Atomic uint32_t used_end;             /* end of the requests that were ever taken */
static uint64_t lowest = UINT64_MAX, highest; /* addresses between which all requests are */
static uint32_t free_requests[REQUESTS_MAX];
static uint32_t free_count;
static uint32_t left_count; /* requests that were given back while they were written to */

void sample_requests_prepare(void)
{
    free_count = left_count = 0;
    for (uint32_t i = REQUESTS_MAX; i > 0; i--) free_requests[free_count++] = i - 1;
}

void sample_requests_forget(void)
{
    for (uint32_t i = 0, end = atomic_exchange(&used_end, 0); i < end; i++) {
        struct interpreted_request *interpreted = atomic_load(&requests[i]->interpreted);
        if (interpreted) pages_free(interpreted, sizeof(*interpreted));
        pages_free(requests[i], sizeof(*requests[i]));
        requests[i] = NULL;
    }
    lowest = UINT64_MAX;
    highest = 0;
}

bool sample_requests_install_handler(void)
{
    return signal_handler_install(requests, REQUESTS_MAX);
}

/* A generation is not 0, so that the values of the program's own timers name no request. */
enum { FIRST_GENERATION = 0x4f4254 };

/* Returns the generation of REQUEST. The load is relaxed: only the sampler thread changes generations. */
static uint64_t generation_of(const struct sample_request *request)
{
    uint64_t generation = atomic_load_explicit(&request->state, memory_order_relaxed) >> 2;
    return generation ? generation : FIRST_GENERATION;
}

enum request_phase sample_request_phase(const struct sample_request *request)
{
    return (enum request_phase)(atomic_load_explicit(&request->state, memory_order_acquire) & 3);
}

bool sample_requests_hold_stack(uint64_t stack_pointer)
{
    if (stack_pointer <= lowest || stack_pointer > highest) return false; /* nearly all */
    for (uint32_t i = 0, end = atomic_load(&used_end); i < end; i++) {
        uint64_t top = (uint64_t)(uintptr_t)(requests[i] + 1); /* the pointer is there before the first push */
        if (top - stack_pointer < sizeof(*requests[i])) return true;
    }
    return false;
}

/* Returns request INDEX, the lowest one that was never taken or an earlier one; NULL without memory. */
static struct sample_request *allocated(uint32_t index)
{
    if (index < atomic_load(&used_end)) return requests[index];
    struct sample_request *request = pages_allocate(sizeof(*request));
    if (!request) return NULL;
    request->index = index;
    requests[index] = request;
    lowest = least(lowest, (uintptr_t)request);
    highest = greatest(highest, (uintptr_t)(request + 1));
    atomic_store(&used_end, index + 1);
    return request;
}

static void empty(struct sample_request *request)
{
    request->reply_count = 0;
    request->long_calls = (struct long_calls_total){0};
}

struct sample_request *sample_request_take(pid_t thread, const struct unwind_modules *modules,
                                           enum stack_reading reading)
{
    if (free_count == 0) return NULL;
    struct sample_request *request = allocated(free_requests[free_count - 1]);
    if (!request) return NULL;
    free_count--;
    request->modules = modules;
    request->is_left = false;
    empty(request);
    atomic_store(&request->is_sent, false);
    atomic_store(&request->thread, thread);
    request->reading = reading;
    atomic_store_explicit(&request->state, request_state(generation_of(request) + 1, REQUEST_OPEN),
                          memory_order_release);
    return request;
}

static void delete_timer(struct sample_request *request)
{
    int timer = atomic_exchange(&request->timer.number, 0);
    if (timer > 0) (void)kernel_call3(SYS_timer_delete, timer - 1, 0, 0);
}

static bool change_phase(struct sample_request *request, enum request_phase from, enum request_phase to)
{
    uint64_t generation = generation_of(request), expected = request_state(generation, from);
    return atomic_compare_exchange_strong(&request->state, &expected, request_state(generation, to));
}

/* Frees REQUEST. Returns false if it is being written to at this instant. */
static bool make_free(struct sample_request *request)
{
    bool is_ours = change_phase(request, REQUEST_OPEN, REQUEST_FREE) ||
                   change_phase(request, REQUEST_DONE, REQUEST_FREE) || sample_request_phase(request) == REQUEST_FREE;
    if (is_ours) free_requests[free_count++] = request->index;
    return is_ours;
}

void sample_request_give_back(struct sample_request *request)
{
    delete_timer(request);
    request->is_left = !make_free(request);
    left_count += request->is_left;
}

/* Frees the requests that were given back while their threads wrote replies, if these are complete. */
static void take_left_back(void)
{
    for (uint32_t i = 0; i < used_end && left_count > 0; i++) {
        if (!requests[i]->is_left || !make_free(requests[i])) continue;
        requests[i]->is_left = false;
        left_count--;
    }
}

static void *cookie_of(const struct sample_request *request)
{
    return (void *)(uintptr_t)request_cookie(request->index, generation_of(request));
}

bool sample_request_send(struct sample_request *request, int number)
{
    siginfo_t information = {0};
    information.si_signo = number;
    information.si_code = SIGNAL_CODE;
    information.si_pid = kernel_process_id();
    information.si_uid = (uid_t)kernel_call3(SYS_getuid, 0, 0, 0);
    information.si_value.sival_ptr = cookie_of(request);
    atomic_store(&request->is_sent, true);
    return kernel_call4(SYS_rt_tgsigqueueinfo, kernel_process_id(), request->thread, number,
                        kernel_address(&information)) == 0;
}

static bool make_timer(struct sample_request *request, int number)
{
    struct sigevent event = {
        .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = number, .sigev_value.sival_ptr = cookie_of(request)};
    int timer = -1;
    event._sigev_un._tid = request->thread;
    long result = kernel_call3(SYS_timer_create, thread_cpu_clock(request->thread), kernel_address(&event),
                               kernel_address(&timer));
    if (result == 0) atomic_store(&request->timer.number, timer + 1);
    return result == 0;
}

bool sample_request_arm(struct sample_request *request, int number, struct request_timing timing)
{
    atomic_store(&request->timer.signals[ORIGIN_OUTSIDE], 0);
    atomic_store(&request->timer.signals[ORIGIN_IN_CALL], 0);
    atomic_store(&request->timer.intervals, 0);
    request->timer.chance = (uint64_t)request->thread * generation_of(request);
    request->timer.timing = timing;
    if (!make_timer(request, number)) return false;
    struct timespec interval = {.tv_nsec = (long)timing.interval_ns};
    struct itimerspec when = {.it_value = interval, .it_interval = interval};
    int timer = atomic_load(&request->timer.number); /* 0 if the program has had it deleted meanwhile */
    if (timer > 0) (void)kernel_call4(SYS_timer_settime, timer - 1, 0, kernel_address(&when), 0);
    return true;
}

bool sample_request_is_armed(const struct sample_request *request)
{
    return atomic_load(&request->timer.number) > 0;
}

bool sample_request_hold(struct sample_request *request, struct timer_signals *ret_signals)
{
    if (!change_phase(request, REQUEST_DONE, REQUEST_FREE)) return false;
    uint32_t in_call = atomic_exchange(&request->timer.signals[ORIGIN_IN_CALL], 0);
    uint32_t outside = atomic_exchange(&request->timer.signals[ORIGIN_OUTSIDE], 0);
    *ret_signals = (struct timer_signals){in_call + outside, in_call, true, atomic_load(&request->timer.intervals)};
    return true;
}

void sample_request_prefer(struct sample_request *request, enum signal_origin preferred)
{
    atomic_store(&request->timer.preferred, preferred);
}

void sample_request_release(struct sample_request *request)
{
    empty(request);
    atomic_store(&request->state, request_state(generation_of(request), REQUEST_OPEN));
}

bool sample_request_renew(struct sample_request *request, const struct unwind_modules *modules)
{
    enum request_phase phase = sample_request_phase(request);
    if (request->modules == modules) return true;
    if (phase == REQUEST_WRITING || !change_phase(request, phase, REQUEST_FREE)) return false;
    request->modules = modules;
    return change_phase(request, REQUEST_FREE, phase);
}

void sample_requests_disarm(pid_t thread)
{
    if (kernel_process_id() != signal_handler_owner())
        return; /* a child of vfork shares our memory, but not our timers */
    for (size_t i = 0, end = atomic_load(&used_end); i < end; i++) {
        if (thread == 0 || requests[i]->thread == thread) delete_timer(requests[i]);
    }
}

bool sample_requests_are_sent(void)
{
    if (kernel_process_id() != signal_handler_owner()) return false;
    for (size_t i = 0, end = atomic_load(&used_end); i < end; i++) {
        if (atomic_load(&requests[i]->is_sent) && sample_request_phase(requests[i]) == REQUEST_OPEN) return true;
    }
    return false;
}

uint32_t sample_requests_used(void)
{
    take_left_back();
    return REQUESTS_MAX - free_count;
}
