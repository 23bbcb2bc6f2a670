/* SPDX-License-Identifier: MIT */
#include "deliver/complete.h"

#include "base/clocks.h"
#include "base/uuid.h"
#include "binary/debug_id.h"
#include "format/sentry/sentry_extension.h"
#include "profile/sample_times.h"

#include <stdio.h>
#include <string.h>

/* Returns the service that the recorder names, or the name that was started if the recorder knows it (of a script, not
 * of its interpreter; of a link, not of the file that it names), else the name of the file at PATH. The kernel keeps 15
 * bytes of a name. */
static const char *started_name(const struct profile *profile, const char *path)
{
    enum { KERNEL_NAME_MAX = 15 };
    const char *name = path_base_name_text(path), *service = profile_metadata_text(profile, "service");
    const char *started = profile_metadata_text(profile, "process"), *script = profile_metadata_text(profile, "script");
    if (service[0]) return service;
    if (script[0]) return script;
    return started[0] && strncmp(name, started, KERNEL_NAME_MAX) != 0 ? started : name;
}

/* The build id, or the debug id that was computed from the code, says which version of the program it is (V2-12). */
static void give_release(struct profile *profile)
{
    char release[512];
    const struct mapping *program = &profile->mappings.items[profile->mappings.count > 1 ? 1 : 0];
    const char *path = profile_c_string(profile, program->file_name);
    char made[BUILD_ID_START_SIZE] = "";
    (void)debug_id_to_build_id(profile_slice(profile, program->debug_id), made);
    const char *build_id = program->build_id.index ? profile_c_string(profile, program->build_id) : made;
    const char *name = started_name(profile, path);
    (void)snprintf(release, sizeof(release), "%.400s%s%.80s", name[0] ? name : "unknown", build_id[0] ? "@" : "",
                   build_id);
    profile->release = profile_text(profile, release);
}

static void give_id(struct profile *profile, struct string_id *id)
{
    char text[UUID_TEXT_SIZE];
    if (id->index == 0 && uuid_new(text)) *id = profile_text(profile, text);
}

/* Replaces an id that another format had, such as OTLP's profile id, and that servers do not accept. */
static void replace_foreign_id(struct profile *profile, struct string_id *id)
{
    bool is_of_sentry = sentry_extension(profile)->sample_format != 0;
    if (is_of_sentry || id->index == 0 || uuid_is_random(profile_c_string(profile, *id))) return;
    id->index = 0;
    give_id(profile, id);
}

static bool is_whole_number(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/* Gives each thread a number for an id: V1 has no others. The id is the name of a thread without one. */
static void number_threads(struct profile *profile)
{
    enum { NUMBERS_FIRST = 1 << 24 }; /* beyond the kernel's */
    for (size_t i = 1; i < profile->threads.count; i++) {
        struct thread *thread = &profile->threads.items[i];
        char number[16];
        if (is_whole_number(profile_c_string(profile, thread->id))) continue;
        (void)snprintf(number, sizeof(number), "%zu", NUMBERS_FIRST + i);
        if (thread->name.index == 0) thread->name = thread->id;
        thread->id = profile_text(profile, number);
    }
}

static void give_transaction(struct profile *profile)
{
    struct sentry_extension *extension = sentry_extension_make(profile);
    const struct sample_columns *samples = &profile->samples;
    if (!extension || extension->transaction.id.index || samples->count == 0) return;
    struct sentry_transaction *transaction = &extension->transaction;
    give_id(profile, &transaction->id);
    give_id(profile, &transaction->trace_id);
    if (transaction->name.index == 0) transaction->name = profile->release;
    struct string_id thread = profile_thread(profile, samples->thread[0])->id;
    profile->active_thread = thread.index ? thread : profile_text(profile, "0");
}

bool deliver_complete(struct profile *profile)
{
    bool has_times = profile->has_times;
    if (!has_times) sample_times_assign(profile, clock_utc_ns() / SECOND_NS * SECOND_NS);
    if (profile->release.index == 0) give_release(profile);
    return !has_times;
}

bool deliver_complete_v2(struct profile *profile)
{
    bool gave_times = deliver_complete(profile);
    replace_foreign_id(profile, &profile->chunk_id);
    give_id(profile, &profile->profiler_id);
    return gave_times;
}

bool deliver_complete_v1(struct profile *profile)
{
    bool gave_times = deliver_complete(profile);
    if (sentry_extension(profile)->sample_format == 0) number_threads(profile);
    give_transaction(profile);
    replace_foreign_id(profile, &profile->chunk_id);
    give_id(profile, &profile->chunk_id);
    return gave_times;
}

bool deliver_cut_v1(struct profile *profile)
{
    struct sample_times_part all = sample_times_part(profile, 0, UINT64_MAX);
    uint64_t start_ns = profile_start_ns(profile), end_ns;
    if (start_ns == 0 || start_ns > all.first_ns) start_ns = all.first_ns;
    if (all.tick_count == 0 || __builtin_add_overflow(start_ns, DELIVER_V1_SECONDS_MAX * SECOND_NS, &end_ns))
        return false;
    if (all.last_ns <= end_ns) return false;
    sample_times_keep(profile, 0, end_ns);
    return true;
}
