/* Searches the transactions and spans of an envelope, which either came with the profile, or are read again from a
 * file.  SPDX-License-Identifier: MIT */
#include "cli/reports.h"

#include "analyze/time_cut.h"
#include "base/buffer.h"
#include "cli/message.h"
#include "cli/open_profile.h"
#include "format/format.h"
#include "format/sentry/envelope.h"
#include "format/sentry/sentry_extension.h"
#include "format/sentry/transaction.h"

#include <stdio.h>
#include <string.h>

enum { SPANS_LISTED = 10 };

/* Copies of what is needed of a span: an item is decoded and forgotten. */
struct found_span {
    bool is_found;
    uint64_t start_ns, end_ns;
    char profiler[UUID_TEXT_SIZE], profile[UUID_TEXT_SIZE], thread[64];
};

struct search {
    const char *wanted; /* an id, or "transaction" */
    struct found_span found;
    struct buffer list; /* "abdbb7686abc4205 (GET /)", for a message */
    size_t span_count;
};

static void copy(char *into, size_t size, struct slice text)
{
    (void)snprintf(into, size, "%.*s", SLICE_ARGUMENTS(text));
}

static void list_span(struct search *search, struct slice id, struct slice name)
{
    if (search->span_count++ >= SPANS_LISTED) return;
    buffer_append_format(&search->list, "%s%.*s", search->span_count > 1 ? ", " : "", SLICE_ARGUMENTS(id));
    if (name.size > 0) buffer_append_format(&search->list, " (%.*s)", SLICE_ARGUMENTS(name));
}

static bool is_wanted(const struct search *search, struct slice id)
{
    return id.size > 0 && slice_equals_text(id, search->wanted);
}

static void set_found(struct search *search, const struct span *span, struct slice profiler, struct slice profile,
                      struct slice thread)
{
    struct found_span *found = &search->found;
    if (found->is_found) return;
    *found = (struct found_span){.is_found = true, .start_ns = span->start_ns, .end_ns = span->end_ns};
    copy(found->profiler, sizeof(found->profiler), profiler);
    copy(found->profile, sizeof(found->profile), profile);
    copy(found->thread, sizeof(found->thread), span->thread_id.size > 0 ? span->thread_id : thread);
}

/* A span without a thread ran on that of its transaction. */
static void search_transaction(struct search *search, struct slice payload)
{
    struct transaction transaction;
    if (transaction_decode(payload, &transaction, NULL) != STATUS_OK) return;
    const struct span *root = &transaction.root;
    list_span(search, root->span_id, transaction.name);
    bool is_root = strcmp(search->wanted, "transaction") == 0 || is_wanted(search, root->span_id) ||
                   is_wanted(search, slice_of_text(transaction.event_id));
    if (is_root) set_found(search, root, root->profiler_id, transaction.profile_id, root->thread_id);
    for (size_t i = 0; i < transaction.spans.count; i++) {
        const struct span *span = &transaction.spans.items[i];
        list_span(search, span->span_id, span->op);
        if (is_wanted(search, span->span_id))
            set_found(search, span, transaction_profiler_of(&transaction, span), transaction.profile_id,
                      root->thread_id);
    }
    transaction_fini(&transaction);
}

static void search_spans(struct search *search, struct slice payload)
{
    struct span_list spans;
    if (spans_decode(payload, &spans, NULL) != STATUS_OK) return;
    for (size_t i = 0; i < spans.count; i++) {
        const struct span *span = &spans.items[i];
        list_span(search, span->span_id, span->description);
        if (is_wanted(search, span->span_id))
            set_found(search, span, span->profiler_id, slice_of_text(""), slice_of_text(""));
    }
    spans_fini(&spans);
}

static void search_item(struct search *search, struct slice type, struct slice payload)
{
    if (slice_equals_text(type, "transaction"))
        search_transaction(search, payload);
    else if (slice_equals_text(type, "span"))
        search_spans(search, payload);
}

/* --- Places ------------------------------------------------------------------------------------------------------- */

static void search_carried(struct search *search, const struct profile *profile)
{
    for (size_t i = 0; i < sentry_extension(profile)->passthrough_items.count; i++)
        search_item(search, profile_slice(profile, sentry_extension(profile)->passthrough_items.items[i].type),
                    sentry_extension(profile)->passthrough_items.items[i].payload);
}

static void search_envelope(struct search *search, struct slice bytes)
{
    struct envelope_reader reader;
    struct envelope_item item;
    if (envelope_open_lenient(&reader, bytes, NULL) == STATUS_OK) {
        while (envelope_next(&reader, &item, NULL)) search_item(search, item.type, item.payload);
    }
    envelope_close(&reader);
}

/* False after a line on standard error. */
static bool search_file(struct search *search, const char *path)
{
    struct buffer bytes;
    struct opened_file opened;
    bool is_read = read_input(path, &bytes, &opened);
    if (is_read && opened.format == &format_envelope) search_envelope(search, buffer_slice(&bytes));
    buffer_fini(&bytes);
    return is_read;
}

/* Several profiles, merged, have no passthrough items: their files are read again, but standard input is gone. */
static bool search_all(struct search *search, const struct report_request *request, char *const *files, size_t count,
                       const struct profile *profile)
{
    if (request->inputs.span_file) return search_file(search, request->inputs.span_file);
    search_carried(search, profile);
    for (size_t i = 0; i < count && count > 1; i++) {
        if (strcmp(files[i], "-") != 0 && !search_file(search, files[i])) return false;
    }
    return true;
}

/* --- The cut ------------------------------------------------------------------------------------------------------ */

static enum exit_status say_not_found(const struct search *search, const char *path)
{
    const char *name = message_name(path, false);
    size_t listed = search->span_count < SPANS_LISTED ? search->span_count : SPANS_LISTED;
    if (search->span_count == 0)
        message("%s has no transaction and no spans; --span-file names the envelope that has them", name);
    else if (search->span_count > listed)
        message("%s has no span %s; its spans are %.*s and %zu more", name, search->wanted,
                SLICE_ARGUMENTS(buffer_slice(&search->list)), search->span_count - listed);
    else
        message("%s has no span %s; its spans are %.*s", name, search->wanted,
                SLICE_ARGUMENTS(buffer_slice(&search->list)));
    return EXIT_NO;
}

static bool differ(const char *of_span, struct slice of_profile)
{
    return of_span[0] != '\0' && of_profile.size > 0 && !slice_equals_text(of_profile, of_span);
}

/* Returns whether the span belongs to the profile: in V1 by the id of the profile, in V2 by that of the profiler. */
static bool belongs(const struct search *search, const struct profile *profile)
{
    const struct found_span *found = &search->found;
    struct slice profiler = profile_slice(profile, profile->profiler_id);
    struct slice id = profile_slice(profile, profile->chunk_id);
    bool is_other =
        sentry_extension(profile)->sample_format == 1 ? differ(found->profile, id) : differ(found->profiler, profiler);
    if (is_other)
        message("span %s was recorded by profiler %s, and the profile is of %.*s", search->wanted,
                sentry_extension(profile)->sample_format == 1 ? found->profile : found->profiler,
                SLICE_ARGUMENTS(sentry_extension(profile)->sample_format == 1 ? id : profiler));
    return !is_other;
}

/* The thread called ID; of V1, where spans need not name one, that of the transaction. */
static void find_thread(const struct profile *profile, const char *id, struct time_cut *cut)
{
    struct slice wanted = slice_of_text(id);
    if (wanted.size == 0) wanted = profile_slice(profile, profile->active_thread);
    if (wanted.size == 0) return;
    cut->has_thread = true;
    for (uint32_t i = 1; i < profile->threads.count; i++) {
        if (slice_equal(profile_slice(profile, profile->threads.items[i].id), wanted)) cut->thread.index = i;
    }
}

static enum exit_status cut_to(const struct search *search, struct profile *profile)
{
    struct error error = {0};
    struct time_cut cut = {.start_ns = search->found.start_ns, .end_ns = search->found.end_ns};
    if (!belongs(search, profile)) return EXIT_NO;
    find_thread(profile, search->found.thread, &cut);
    bool has_samples = !cut.has_thread || cut.thread.index != 0;
    if (has_samples && time_cut_apply(profile, &cut, &error) != STATUS_OK) {
        message("%s", error.message);
        return EXIT_FAILED;
    }
    if (has_samples && profile->samples.count > 0) return EXIT_DONE;
    message("the profile has no samples of span %s, which took %.6gs%s%s", search->wanted,
            (double)(cut.end_ns > cut.start_ns ? cut.end_ns - cut.start_ns : 0) / 1e9,
            search->found.thread[0] ? " on thread " : "", search->found.thread);
    return EXIT_NO;
}

enum exit_status report_cut_to_span(const struct report_request *request, char *const *files, size_t count,
                                    struct profile *profile)
{
    if (!request->inputs.span) return EXIT_DONE;
    if (!profile->has_times) {
        message("--span needs the times of samples, and the profile has none; a chunk and a V1 profile have them");
        return EXIT_WRONG_USE;
    }
    struct search search = {.wanted = request->inputs.span, .list = {.maximum = 1 << 16}};
    enum exit_status status = EXIT_FAILED;
    if (search_all(&search, request, files, count, profile))
        status = search.found.is_found
                     ? cut_to(&search, profile)
                     : say_not_found(&search, request->inputs.span_file ? request->inputs.span_file : files[0]);
    buffer_fini(&search.list);
    return status;
}
