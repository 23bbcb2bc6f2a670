/* Spans: their life, and which one is current on a thread.
 *
 * A reference keeps a span's memory. A recorded span belongs to its transaction after its finish, and the root always
 * does. Each span that is referred to is a holder of its transaction; the last holder frees it. The current spans of
 * a thread are a chain of references that only this thread follows. SPDX-License-Identifier: MIT */
#include "trace/trace_private.h"

#include "base/hex.h"
#include "base/process.h"

#include <math.h>
#include <stdlib.h>

/* --- Memory ------------------------------------------------------------------------------------------------------- */

/* The counters of a transaction are relaxed, as is the growth of a count of references: nothing else is read or written
 * because of their values. Only the last reference orders memory. */
static void give_text_bytes(struct trace_transaction *transaction, size_t size)
{
    atomic_fetch_sub_explicit(&transaction->text_bytes, size, memory_order_relaxed);
}

/* Counts SIZE bytes of text; false, with nothing counted, if they are too many. */
static bool take_text_bytes(struct trace_transaction *transaction, size_t size)
{
    size_t before = atomic_fetch_add_explicit(&transaction->text_bytes, size, memory_order_relaxed);
    if (before + size <= TRACE_TEXT_BYTES_MAX) return true;
    give_text_bytes(transaction, size);
    return false;
}

static char *put_text(char *at, const char *text, size_t size)
{
    if (text) memcpy(at, text, size); /* SIZE is 0 without a text */
    at[size] = '\0';
    return at + size + 1;
}

struct trace_span *trace_span_new(struct trace_transaction *transaction, const char *op, const char *description)
{
    size_t op_size = 0, description_size = 0;
    if (transaction->sampling.is_sampled) { /* nobody reads the strings of other spans */
        op_size = trace_text_size(op, TRACE_NAME_BYTES_MAX);
        description_size = trace_text_size(description, TRACE_DESCRIPTION_BYTES_MAX);
        if (!take_text_bytes(transaction, op_size + description_size)) op_size = description_size = 0;
    }
    struct trace_span *span = malloc(sizeof(*span) + op_size + description_size + 2);
    if (!span) return NULL;
    struct trace_thread *thread = trace_thread_self();
    *span = (struct trace_span){.transaction = transaction, .references = 1, .tid = thread->tid};
    memcpy(span->thread_name, thread->name, sizeof(span->thread_name));
    do {
        span->id = trace_thread_random(thread);
    } while (span->id == 0);
    span->description = put_text(span->texts, op, op_size);
    (void)put_text(span->description, description, description_size);
    atomic_fetch_add_explicit(&transaction->holders, 1, memory_order_relaxed);
    return span;
}

static bool has_own_description(const struct trace_span *span)
{
    return span->description != span->texts + strlen(span->texts) + 1;
}

void trace_span_free(struct trace_span *span)
{
    for (size_t i = 0; i < span->entry_count; i++) free(span->entries[i].key);
    free(span->entries);
    if (has_own_description(span)) free(span->description);
    free(span);
}

/* False for NULL and, in a forked child, for spans of its parent. */
static bool is_alive(const struct trace_span *span)
{
    return span && span->transaction->process == process_number();
}

struct trace_span *trace_span_ref(struct trace_span *span)
{
    if (is_alive(span)) atomic_fetch_add_explicit(&span->references, 1, memory_order_relaxed);
    return span;
}

void trace_span_unref(struct trace_span *span)
{
    if (!is_alive(span) || atomic_fetch_sub(&span->references, 1) != 1) return;
    struct trace_transaction *transaction = span->transaction;
    if (span == transaction->root) {
        if (!atomic_load(&span->is_finished)) trace_transaction_abandon(transaction);
    } else if (!span->is_recorded) {
        atomic_fetch_add(span->is_recordable || !transaction->sampling.is_sampled ? &transaction->lost_late
                                                                                  : &transaction->lost_over_maximum,
                         1);
        trace_span_free(span);
    }
    trace_transaction_drop_holder(transaction);
}

/* --- Start and finish --------------------------------------------------------------------------------------------- */

struct trace_span *trace_span_start_child(struct trace_span *parent, const char *op, const char *description)
{
    if (!is_alive(parent)) return NULL;
    struct trace_transaction *transaction = parent->transaction;
    struct trace_span *span = trace_span_new(transaction, op, description);
    if (!span) {
        atomic_fetch_add(&transaction->lost_over_maximum, 1);
        return NULL;
    }
    size_t before = atomic_fetch_add_explicit(&transaction->started, 1, memory_order_relaxed);
    span->is_recordable = transaction->sampling.is_sampled && before < TRACE_SPANS_MAX;
    span->parent_id = parent->id;
    span->profiler = atomic_load_explicit(&transaction->tracer->running_profiler, memory_order_relaxed);
    span->start_ns = clock_monotonic_ns();
    return span;
}

struct trace_span *trace_span_start(const char *op, const char *description)
{
    struct trace_span *parent = trace_span_current();
    struct trace_span *span = trace_span_start_child(parent, op, description);
    trace_span_unref(parent);
    (void)trace_span_enter(span);
    return span;
}

/* Appends SPAN, which finishes, to the list of TRANSACTION. Under the lock. */
static void append_finished(struct trace_transaction *transaction, struct trace_span *span)
{
    span->is_recorded = true;
    *(transaction->last_finished ? &transaction->last_finished->next : &transaction->finished) = span;
    transaction->last_finished = span;
    transaction->finished_count++;
}

void trace_span_finish(struct trace_span *span)
{
    if (!is_alive(span)) return;
    struct trace_transaction *transaction = span->transaction;
    uint64_t now_ns = clock_monotonic_ns();
    trace_span_leave(span);
    (void)pthread_mutex_lock(&transaction->lock);
    bool is_first = !atomic_exchange(&span->is_finished, true);
    if (is_first) {
        span->end_ns = now_ns;
        trace_span_read_thread_name(span, now_ns);
        if (span->is_recordable && !transaction->is_complete && span != transaction->root)
            append_finished(transaction, span);
        if (span == transaction->root) transaction->is_complete = true;
    }
    (void)pthread_mutex_unlock(&transaction->lock);
    if (is_first && span == transaction->root) trace_transaction_complete(transaction);
    trace_span_unref(span);
}

/* --- The current spans of a thread -------------------------------------------------------------------------------- */

/* Removes *PLACE, a link of THREAD's chain. */
static void unlink_current(struct trace_span **place)
{
    struct trace_span *span = *place;
    *place = span->previous;
    span->previous = NULL;
    atomic_store(&span->entered_by, NULL);
    trace_span_unref(span);
}

static void drop_finished(struct trace_span **place)
{
    while (*place && atomic_load(&(*place)->is_finished)) unlink_current(place);
}

/* Drops spans that another thread finished, from the top and right below it, so that a thread that always has an open
 * span on top has no long chain. */
static void drop_finished_spans(struct trace_thread *thread)
{
    drop_finished(&thread->current);
    if (thread->current) drop_finished(&thread->current->previous);
}

bool trace_span_enter(struct trace_span *span)
{
    if (!is_alive(span) || atomic_load(&span->is_finished)) return false;
    struct trace_thread *thread = trace_thread_self();
    struct trace_thread *nobody = NULL;
    drop_finished_spans(thread);
    if (!atomic_compare_exchange_strong(&span->entered_by, &nobody, thread)) return false;
    if (!thread->current) trace_thread_read_name(thread);
    trace_thread_watch(thread);
    span->previous = thread->current;
    thread->current = trace_span_ref(span);
    return true;
}

void trace_span_leave(struct trace_span *span)
{
    if (!is_alive(span)) return;
    struct trace_thread *thread = trace_thread_self();
    if (atomic_load(&span->entered_by) != thread) return;
    struct trace_span **place = &thread->current;
    while (*place && *place != span) place = &(*place)->previous;
    if (*place) unlink_current(place);
}

struct trace_span *trace_span_current(void)
{
    struct trace_thread *thread = trace_thread_self();
    drop_finished_spans(thread);
    return trace_span_ref(thread->current);
}

void trace_thread_leave_all(struct trace_thread *thread)
{
    if (thread->process != process_number()) return;
    while (thread->current) unlink_current(&thread->current);
    thread->is_watched = false; /* destructors of the program's own keys may still trace */
}

/* --- The data of a span ------------------------------------------------------------------------------------------- */

/* True if the calling thread edits the complete transaction of SPAN. */
static bool is_edited(const struct trace_span *span)
{
    return is_alive(span) && atomic_load(&span->transaction->editor) == trace_thread_self()->tid;
}

/* Takes the lock if SPAN can be changed; false otherwise. */
static bool begin_change(struct trace_span *span)
{
    if (!is_alive(span)) return false;
    (void)pthread_mutex_lock(&span->transaction->lock);
    if (!atomic_load(&span->is_finished) || is_edited(span)) return true;
    (void)pthread_mutex_unlock(&span->transaction->lock);
    return false;
}

static void end_change(struct trace_span *span)
{
    (void)pthread_mutex_unlock(&span->transaction->lock);
}

void trace_span_set_status(struct trace_span *span, enum trace_status status)
{
    if (!trace_status_is_known(status) || !begin_change(span)) return;
    span->status = status;
    end_change(span);
}

/* Replaces the description, under the lock. It stays as it is if there is no room for the new one. */
static void replace_description(struct trace_span *span, const char *description)
{
    size_t size = trace_text_size(description, TRACE_DESCRIPTION_BYTES_MAX);
    if (!span->transaction->sampling.is_sampled || !take_text_bytes(span->transaction, size)) return;
    char *copy = trace_text_copy(description, TRACE_DESCRIPTION_BYTES_MAX);
    give_text_bytes(span->transaction, copy ? strlen(span->description) : size);
    if (!copy) return;
    if (has_own_description(span)) free(span->description);
    span->description = copy;
}

void trace_span_set_description(struct trace_span *span, const char *description)
{
    if (!begin_change(span)) return;
    replace_description(span, description);
    end_change(span);
}

void trace_span_set_transaction_name(struct trace_span *span, const char *name, enum trace_source source)
{
    struct trace_span *root = is_alive(span) ? span->transaction->root : NULL;
    if (!trace_source_is_known(source) || !begin_change(root)) return;
    char *copy = trace_text_copy(name, TRACE_NAME_BYTES_MAX);
    if (copy) {
        free(root->transaction->name);
        root->transaction->name = copy;
        root->transaction->source = source;
    }
    end_change(root);
}

static bool replace_text(char **text, const char *value)
{
    char *copy = value ? trace_text_copy(value, TRACE_NAME_BYTES_MAX) : NULL;
    if (value && !copy) return false;
    free(*text);
    *text = copy;
    return true;
}

bool trace_span_set_user(struct trace_span *span, const struct trace_user *user)
{
    static const struct trace_user nobody;
    struct trace_span *root = is_alive(span) ? span->transaction->root : NULL;
    if (!begin_change(root)) return false;
    const struct trace_user *set = user ? user : &nobody;
    const char *const values[] = {set->id, set->username, set->email, set->ip_address};
    bool is_done = true;
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
        is_done &= replace_text(&root->transaction->user[i], values[i]);
    end_change(root);
    return is_done;
}

/* Returns the place for ENTRY: the place of the same key, or a new one; NULL if there is none. */
static struct trace_entry *place_of_entry(struct trace_span *span, const struct trace_entry *entry)
{
    for (size_t i = 0; i < span->entry_count; i++) {
        struct trace_entry *other = &span->entries[i];
        bool is_same_kind = (other->kind == TRACE_ENTRY_TAG) == (entry->kind == TRACE_ENTRY_TAG);
        if (is_same_kind && strcmp(other->key, entry->key) == 0) return other;
    }
    if (span->entry_count == span->entry_capacity) {
        size_t capacity = span->entry_capacity ? 2 * span->entry_capacity : 4;
        struct trace_entry *grown =
            capacity <= TRACE_ENTRIES_MAX ? realloc(span->entries, capacity * sizeof(*grown)) : NULL;
        if (!grown) return NULL;
        span->entries = grown;
        span->entry_capacity = capacity;
    }
    struct trace_entry *place = &span->entries[span->entry_count++];
    *place = (struct trace_entry){0};
    return place;
}

static bool is_reserved(const struct trace_entry *entry)
{
    static const char *const own[] = {"thread.id", "thread.name", "profiler_id"};
    for (size_t i = 0; entry->kind != TRACE_ENTRY_TAG && i < sizeof(own) / sizeof(*own); i++) {
        if (strcmp(entry->key, own[i]) == 0) return true;
    }
    return entry->key[0] == '\0';
}

/* Copies KEY and the text of ENTRY to one piece of memory. Counts it among the transaction's texts. */
static bool copy_entry_texts(struct trace_transaction *transaction, struct trace_entry *entry, const char *key)
{
    size_t text_max = entry->kind == TRACE_ENTRY_TAG ? TRACE_NAME_BYTES_MAX : TRACE_DATA_BYTES_MAX;
    size_t key_size = trace_text_size(key, TRACE_NAME_BYTES_MAX), text_size = trace_text_size(entry->text, text_max);
    if (!take_text_bytes(transaction, key_size + text_size)) return false;
    entry->key = malloc(key_size + text_size + 2);
    if (!entry->key) {
        give_text_bytes(transaction, key_size + text_size);
        return false;
    }
    char *text = put_text(entry->key, key, key_size);
    (void)put_text(text, entry->text, text_size);
    entry->text = text;
    return true;
}

static bool add_entry(struct trace_span *span, struct trace_entry entry, const char *key)
{
    if (!copy_entry_texts(span->transaction, &entry, key)) return false;
    struct trace_entry *place = is_reserved(&entry) ? NULL : place_of_entry(span, &entry);
    struct trace_entry dropped = place ? *place : entry;
    if (place) *place = entry;
    if (!dropped.key) return place;
    give_text_bytes(span->transaction, strlen(dropped.key) + strlen(dropped.text));
    free(dropped.key);
    return place;
}

static bool set_entry(struct trace_span *span, struct trace_entry entry, const char *key)
{
    if (!begin_change(span)) return false;
    bool is_done = !span->transaction->sampling.is_sampled || add_entry(span, entry, key);
    end_change(span);
    return is_done;
}

bool trace_span_set_text(struct trace_span *span, const char *key, const char *value)
{
    return set_entry(span, (struct trace_entry){.kind = TRACE_ENTRY_TEXT, .text = value}, key);
}

bool trace_span_set_number(struct trace_span *span, const char *key, double value)
{
    if (!isfinite(value)) return false; /* JSON has no such number */
    return set_entry(span, (struct trace_entry){.kind = TRACE_ENTRY_NUMBER, .number = value}, key);
}

bool trace_span_set_integer(struct trace_span *span, const char *key, int64_t value)
{
    return set_entry(span, (struct trace_entry){.kind = TRACE_ENTRY_INTEGER, .integer = value}, key);
}

bool trace_span_set_bool(struct trace_span *span, const char *key, bool value)
{
    return set_entry(span, (struct trace_entry){.kind = TRACE_ENTRY_BOOL, .integer = value}, key);
}

bool trace_span_set_tag(struct trace_span *span, const char *key, const char *value)
{
    return set_entry(span, (struct trace_entry){.kind = TRACE_ENTRY_TAG, .text = value}, key);
}

static void remove_entry(struct trace_span *span, size_t index)
{
    struct trace_entry *removed = &span->entries[index];
    give_text_bytes(span->transaction, strlen(removed->key) + strlen(removed->text));
    free(removed->key);
    memmove(removed, removed + 1, (--span->entry_count - index) * sizeof(*removed));
}

bool trace_span_remove(struct trace_span *span, const char *key, bool is_tag)
{
    if (!key || !begin_change(span)) return false;
    size_t i = 0;
    while (i < span->entry_count &&
           ((span->entries[i].kind == TRACE_ENTRY_TAG) != is_tag || strcmp(span->entries[i].key, key) != 0))
        i++;
    bool is_there = i < span->entry_count;
    if (is_there) remove_entry(span, i);
    end_change(span);
    return is_there;
}

const char *trace_span_transaction_name(const struct trace_span *span)
{
    return is_edited(span) ? span->transaction->name : NULL;
}

const char *trace_span_op(const struct trace_span *span)
{
    return is_edited(span) ? span->texts : NULL;
}

const char *trace_span_description(const struct trace_span *span)
{
    return is_edited(span) ? span->description : NULL;
}

const struct trace_entry *trace_span_entry(const struct trace_span *span, size_t index)
{
    return is_edited(span) && index < span->entry_count ? &span->entries[index] : NULL;
}

bool trace_span_is_sampled(const struct trace_span *span)
{
    return is_alive(span) && span->transaction->sampling.is_sampled;
}

/* --- To other processes ------------------------------------------------------------------------------------------- */

bool trace_span_parent(const struct trace_span *span, struct trace_parent *ret_parent)
{
    if (!is_alive(span)) return false;
    ret_parent->decision = span->transaction->passed_on;
    memcpy(ret_parent->trace_id, span->transaction->trace_id, UUID_TEXT_SIZE);
    hex_write_u64(ret_parent->span_id, span->id);
    return true;
}

bool trace_span_baggage(struct trace_span *span, struct slice others, struct buffer *out)
{
    if (!is_alive(span)) return false;
    size_t before = out->size;
    (void)pthread_mutex_lock(&span->transaction->lock);
    trace_transaction_freeze(span->transaction);
    trace_members_write_baggage(&span->transaction->members, others, out);
    (void)pthread_mutex_unlock(&span->transaction->lock);
    return out->size > before && !out->failed;
}
