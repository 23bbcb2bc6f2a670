/* Three ways to run a profiler, of which the options choose one: the program starts it (manual), sampled root spans
 * start it (trace), or single transactions are profiled (V1). In the first two the session must be sampled.
 *
 * The token of a root contains the number of the session to which it belongs, the place of its trace, and whether it is
 * the root of the program's start. SPDX-License-Identifier: MIT */
#include "sdk/lifecycle.h"

static const struct lifecycle_step nothing;

static struct lifecycle_step no_operation(const char *message)
{
    return (struct lifecycle_step){.message = message};
}

static bool is_rate(double rate)
{
    return rate >= 0 && rate <= 1; /* not NaN */
}

static bool is_drawn(double rate, double draw)
{
    return is_rate(rate) && draw < rate;
}

static bool follows_roots(const struct lifecycle *lifecycle)
{
    return lifecycle->options.has_v1 || lifecycle->options.mode == LIFECYCLE_TRACE;
}

/* --- The profiler ------------------------------------------------------------------------------------------------- */

static struct lifecycle_step run_with(struct lifecycle *lifecycle, enum lifecycle_action action)
{
    lifecycle->profiler = LIFECYCLE_RUNNING;
    lifecycle->profiler_session = lifecycle->session;
    return (struct lifecycle_step){.action = action};
}

static struct lifecycle_step stop_profiler(struct lifecycle *lifecycle)
{
    bool is_idle = lifecycle->profiler == LIFECYCLE_IDLE;
    lifecycle->profiler = LIFECYCLE_IDLE;
    lifecycle->app_start = LIFECYCLE_STARTED;
    lifecycle->carried_roots = 0;
    return is_idle ? nothing : (struct lifecycle_step){.action = LIFECYCLE_STOP};
}

static struct lifecycle_step finish_chunk(struct lifecycle *lifecycle)
{
    lifecycle->profiler = LIFECYCLE_FINISHING;
    return (struct lifecycle_step){.action = LIFECYCLE_FINISH_CHUNK};
}

static bool may_run(const struct lifecycle *lifecycle)
{
    return lifecycle->is_sampled && !lifecycle->is_in_background && !lifecycle->is_limited;
}

/* --- Options, init ------------------------------------------------------------------------------------------------ */

const char *lifecycle_warning(const struct lifecycle_options *options, size_t index)
{
    const struct {
        bool is_wrong;
        const char *message;
    } warnings[] = {
        {options->has_v1 && options->profile_session_sample_rate != 0,
         "profile_session_sample_rate has no effect, because profiles_sample_rate or profiles_sampler is set"},
        {options->has_v1 && options->mode == LIFECYCLE_TRACE,
         "profile_lifecycle has no effect, because profiles_sample_rate or profiles_sampler is set"},
        {options->has_v1 && options->starts_on_app_start,
         "start_profiler_on_app_start has no effect, because profiles_sample_rate or profiles_sampler is set"},
        {!options->has_tracing && (options->has_v1 || options->mode == LIFECYCLE_TRACE),
         "nothing is profiled, because profiles follow transactions and tracing is off: set traces_sample_rate"},
    };
    for (size_t i = 0; i < sizeof(warnings) / sizeof(*warnings); i++) {
        if (warnings[i].is_wrong && index-- == 0) return warnings[i].message;
    }
    return NULL;
}

struct lifecycle_step lifecycle_init(struct lifecycle *lifecycle, const struct lifecycle_options *options,
                                     enum lifecycle_kept kept, double draw, double draw_next)
{
    double rate = options->profile_session_sample_rate;
    bool can_start =
        options->starts_on_app_start && !options->has_v1 && (options->mode == LIFECYCLE_MANUAL || options->has_tracing);
    *lifecycle = (struct lifecycle){.options = *options, .session = 1};
    if (can_start) lifecycle->for_next_launch = is_drawn(rate, draw_next) ? LIFECYCLE_KEPT_YES : LIFECYCLE_KEPT_NO;
    bool is_kept = can_start && kept != LIFECYCLE_KEPT_NOTHING;
    lifecycle->is_sampled = is_kept ? kept == LIFECYCLE_KEPT_YES : is_drawn(rate, draw);
    if (!is_kept || !lifecycle->is_sampled) return nothing;
    if (options->mode == LIFECYCLE_TRACE) lifecycle->app_start = LIFECYCLE_AWAITS_ROOT;
    return run_with(lifecycle, LIFECYCLE_START);
}

/* --- Manual ------------------------------------------------------------------------------------------------------- */

struct lifecycle_step lifecycle_start_profiler(struct lifecycle *lifecycle)
{
    if (lifecycle->is_closed) return no_operation("start_profiler does nothing: profiling is shut down");
    if (lifecycle->options.has_v1) return no_operation("start_profiler does nothing: transactions are profiled (V1)");
    if (follows_roots(lifecycle)) return no_operation("start_profiler does nothing: profile_lifecycle is trace");
    if (!lifecycle->is_sampled) return no_operation("start_profiler does nothing: the session is not sampled");
    if (lifecycle->profiler == LIFECYCLE_RUNNING)
        return no_operation("start_profiler does nothing: the profiler is running");
    if (lifecycle->is_in_background) return no_operation("start_profiler does nothing: the session has ended");
    if (lifecycle->is_limited) return no_operation("start_profiler does nothing: the server wants no profiles now");
    return run_with(lifecycle, LIFECYCLE_START);
}

struct lifecycle_step lifecycle_stop_profiler(struct lifecycle *lifecycle)
{
    if (lifecycle->is_closed) return no_operation("stop_profiler does nothing: profiling is shut down");
    if (lifecycle->options.has_v1) return no_operation("stop_profiler does nothing: transactions are profiled (V1)");
    if (follows_roots(lifecycle)) return no_operation("stop_profiler does nothing: profile_lifecycle is trace");
    if (lifecycle->profiler == LIFECYCLE_IDLE)
        return no_operation("stop_profiler does nothing: the profiler is not running");
    return stop_profiler(lifecycle);
}

/* --- Roots -------------------------------------------------------------------------------------------------------- */

/* Parts of a token, from the lowest bit on: the start of the program, the trace's place plus one, the session. */
enum { APP_START_BIT = 1, PLACE_SHIFT = 1, PLACE_MASK = 63, SESSION_SHIFT = 7, SESSION_MASK = 0xffffff };

/* Returns the session that a root of TRACE continues: an open root of the trace began in it, and the profiler still
 * runs for it although the user has left. 0: no session. */
static uint32_t carried_session(const struct lifecycle *lifecycle, uint64_t trace)
{
    if (lifecycle->options.has_v1 || lifecycle->profiler != LIFECYCLE_RUNNING) return 0;
    for (size_t i = 0; i < LIFECYCLE_TRACES_MAX; i++) {
        const struct lifecycle_trace *known = &lifecycle->traces[i];
        if (known->roots == 0 || known->trace != trace || known->session < lifecycle->profiler_session) continue;
        bool is_earlier = known->session != lifecycle->session;
        if (is_earlier ? lifecycle->carried_roots > 0 : lifecycle->is_in_background) return known->session;
    }
    return 0;
}

/* Counts a root of TRACE in SESSION. Returns its place plus one; 0 if all places are taken. */
static uint32_t note_trace(struct lifecycle *lifecycle, uint64_t trace, uint32_t session)
{
    uint32_t place = 0;
    for (uint32_t i = LIFECYCLE_TRACES_MAX; i > 0; i--) {
        const struct lifecycle_trace *known = &lifecycle->traces[i - 1];
        if (known->roots == 0) place = i;
    }
    for (uint32_t i = 0; i < LIFECYCLE_TRACES_MAX; i++) {
        const struct lifecycle_trace *known = &lifecycle->traces[i];
        if (known->roots > 0 && known->trace == trace && known->session == session) place = i + 1;
    }
    if (place == 0) return 0;
    struct lifecycle_trace *noted = &lifecycle->traces[place - 1];
    *noted = (struct lifecycle_trace){.trace = trace, .session = session, .roots = noted->roots + 1};
    return place;
}

static struct lifecycle_step start_for_root(struct lifecycle *lifecycle)
{
    if (lifecycle->profiler == LIFECYCLE_RUNNING) return nothing;
    if (lifecycle->options.has_v1) return lifecycle->is_limited ? nothing : run_with(lifecycle, LIFECYCLE_START);
    if (!may_run(lifecycle)) return nothing;
    if (lifecycle->profiler == LIFECYCLE_IDLE) return run_with(lifecycle, LIFECYCLE_START);
    bool is_of_session = lifecycle->profiler_session == lifecycle->session;
    return run_with(lifecycle, is_of_session ? LIFECYCLE_KEEP_ON : LIFECYCLE_RESTART);
}

struct lifecycle_step lifecycle_root_started(struct lifecycle *lifecycle, bool is_sampled, uint64_t trace,
                                             uint32_t *ret_token)
{
    bool is_app_start = lifecycle->app_start == LIFECYCLE_AWAITS_ROOT;
    uint32_t session = is_sampled ? carried_session(lifecycle, trace) : 0;
    /* A root that begins in the background belongs to no session, unless its trace carries one. */
    if (session == 0 && (lifecycle->options.has_v1 || !lifecycle->is_in_background))
        session = lifecycle->session & SESSION_MASK;
    *ret_token = session << SESSION_SHIFT | (is_app_start ? APP_START_BIT : 0);
    if (lifecycle->is_closed || !follows_roots(lifecycle)) return nothing;
    if (is_app_start) lifecycle->app_start = LIFECYCLE_IN_ROOT;
    if (!is_sampled || session == 0) return nothing;
    *ret_token |= note_trace(lifecycle, trace, session) << PLACE_SHIFT;
    if (session != (lifecycle->session & SESSION_MASK)) {
        lifecycle->carried_roots++;
        return nothing;
    }
    lifecycle->roots++;
    return start_for_root(lifecycle);
}

/* Stops the profiler if no open root needs it: after the root of the program's start at once, as SES-10 says, else at
 * the end of the chunk. */
static struct lifecycle_step stop_after_root(struct lifecycle *lifecycle, bool is_app_start)
{
    if (lifecycle->profiler != LIFECYCLE_RUNNING) return nothing;
    if (lifecycle->options.has_v1) return lifecycle->roots == 0 ? stop_profiler(lifecycle) : nothing;
    if (lifecycle->carried_roots > 0 || lifecycle->app_start != LIFECYCLE_STARTED) return nothing;
    if (lifecycle->roots == 0) return is_app_start ? stop_profiler(lifecycle) : finish_chunk(lifecycle);
    if (lifecycle->profiler_session == lifecycle->session) return nothing;
    return may_run(lifecycle) ? run_with(lifecycle, LIFECYCLE_RESTART) : finish_chunk(lifecycle);
}

struct lifecycle_step lifecycle_root_ended(struct lifecycle *lifecycle, uint32_t token, bool is_sampled)
{
    if (lifecycle->is_closed || !follows_roots(lifecycle)) return nothing;
    bool is_app_start = (token & APP_START_BIT) != 0;
    if (is_app_start) lifecycle->app_start = LIFECYCLE_STARTED;
    if (!is_sampled) return stop_after_root(lifecycle, is_app_start);
    uint32_t place = token >> PLACE_SHIFT & PLACE_MASK, session = token >> SESSION_SHIFT & SESSION_MASK;
    if (place > 0 && lifecycle->traces[place - 1].roots > 0) lifecycle->traces[place - 1].roots--;
    if (session == lifecycle->session) {
        if (lifecycle->roots > 0) lifecycle->roots--;
    } else if (session >= lifecycle->profiler_session && lifecycle->carried_roots > 0) {
        lifecycle->carried_roots--;
    }
    return stop_after_root(lifecycle, is_app_start);
}

bool lifecycle_profiles_transaction(const struct lifecycle *lifecycle, bool is_sampled, double rate, double draw)
{
    return lifecycle->options.has_v1 && is_sampled && is_drawn(rate, draw);
}

struct lifecycle_step lifecycle_chunk_ended(struct lifecycle *lifecycle)
{
    bool has_no_root = lifecycle->app_start == LIFECYCLE_AWAITS_ROOT;
    if (lifecycle->profiler != LIFECYCLE_FINISHING && !has_no_root) return nothing;
    struct lifecycle_step step = stop_profiler(lifecycle);
    if (has_no_root)
        step.message = "the profile of the program's start ends: no root span started within its first chunk";
    return step;
}

/* --- Sessions of a user ------------------------------------------------------------------------------------------- */

struct lifecycle_step lifecycle_background(struct lifecycle *lifecycle)
{
    if (lifecycle->is_closed) return nothing;
    if (!lifecycle->options.is_ui)
        return no_operation("background has no effect: the session lasts as long as the process");
    if (lifecycle->is_in_background) return no_operation("background does nothing: the program is in the background");
    lifecycle->is_in_background = true;
    if (lifecycle->options.has_v1) return nothing;
    bool has_root = lifecycle->roots > 0 || lifecycle->carried_roots > 0 || lifecycle->app_start == LIFECYCLE_IN_ROOT;
    /* A profile that only completes its last chunk does not belong to a trace. */
    bool carries_trace = follows_roots(lifecycle) && lifecycle->profiler == LIFECYCLE_RUNNING && has_root;
    return carries_trace ? nothing : stop_profiler(lifecycle);
}

struct lifecycle_step lifecycle_foreground(struct lifecycle *lifecycle, double draw)
{
    if (lifecycle->is_closed) return nothing;
    if (!lifecycle->options.is_ui)
        return no_operation("foreground has no effect: the session lasts as long as the process");
    if (!lifecycle->is_in_background) return no_operation("foreground does nothing: the program is in the foreground");
    lifecycle->is_in_background = false;
    if (lifecycle->options.has_v1) return nothing;
    bool carries = lifecycle->profiler == LIFECYCLE_RUNNING;
    lifecycle->carried_roots = carries ? lifecycle->carried_roots + lifecycle->roots : 0;
    lifecycle->roots = 0;
    lifecycle->session++;
    lifecycle->is_sampled = is_drawn(lifecycle->options.profile_session_sample_rate, draw);
    return nothing;
}

/* --- Limits, the end ---------------------------------------------------------------------------------------------- */

struct lifecycle_step lifecycle_set_limited(struct lifecycle *lifecycle, bool is_limited)
{
    bool begins = is_limited && !lifecycle->is_limited;
    lifecycle->is_limited = is_limited;
    if (lifecycle->is_closed || !begins) return nothing;
    struct lifecycle_step step = stop_profiler(lifecycle);
    if (step.action == LIFECYCLE_STOP) step.message = "the profiler stops: the server wants no profiles now";
    return step;
}

struct lifecycle_step lifecycle_close(struct lifecycle *lifecycle)
{
    if (lifecycle->is_closed) return nothing;
    lifecycle->is_closed = true;
    return stop_profiler(lifecycle);
}
