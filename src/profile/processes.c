/* One pass over the label sets, one over the processes, one over the threads.  SPDX-License-Identifier: MIT */
#include "profile/processes.h"

#include "base/array.h"
#include "base/hash.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int64_t number_of(const char *digits)
{
    char *end;
    errno = 0;
    long long number = strtoll(digits, &end, 10);
    return errno == 0 && end != digits && *end == '\0' && number > 0 ? number : 0;
}

static bool is_process(const void *context, uint32_t index, const void *key)
{
    const struct process_key *a = &((const struct processes *)context)->items[index], *b = key;
    return a->pid == b->pid && a->name.index == b->name.index;
}

static uint64_t hash_of(const struct process_key *process)
{
    return hash_mix((uint64_t)process->pid, process->name.index);
}

static bool add(struct processes *processes, const struct process_key *process, uint32_t *ret_index)
{
    uint64_t hash = hash_of(process);
    *ret_index = index_table_find(&processes->index, hash, is_process, processes, process);
    if (*ret_index != INDEX_NONE) return true;
    if (!array_reserve(&processes->items, &processes->capacity, processes->count + 1, sizeof(*process),
                       PROFILE_ENTITIES_MAX))
        return false;
    *ret_index = (uint32_t)processes->count;
    processes->items[processes->count++] = *process;
    return index_table_add(&processes->index, hash, *ret_index);
}

static struct process_key process_of_metadata(const struct profile *profile)
{
    struct process_key process = {0};
    for (size_t i = 0; i < profile->metadata.count; i++) {
        const struct metadata_entry *entry = &profile->metadata.items[i];
        const char *key = profile_c_string(profile, entry->key);
        if (process.pid == 0 && strcmp(key, PROCESS_ID_LABEL) == 0)
            process.pid = entry->is_number ? entry->number : number_of(profile_c_string(profile, entry->text));
        if (process.name.index == 0 && !entry->is_number && strcmp(key, PROCESS_NAME_LABEL) == 0)
            process.name = entry->text;
    }
    return process;
}

/* False if the labels name no process. */
static bool process_of_labels(const struct profile *profile, const struct label_set *set,
                              struct process_key *ret_process)
{
    *ret_process = (struct process_key){0};
    for (uint32_t i = 0; i < set->count; i++) {
        const struct label *label = &profile->labels.items[set->first + i];
        const char *key = profile_c_string(profile, label->key);
        if (ret_process->pid == 0 && strcmp(key, PROCESS_ID_LABEL) == 0)
            ret_process->pid = label->is_number ? label->number : number_of(profile_c_string(profile, label->text));
        if (ret_process->name.index == 0 && !label->is_number && strcmp(key, PROCESS_NAME_LABEL) == 0)
            ret_process->name = label->text;
    }
    return ret_process->pid != 0 || ret_process->name.index != 0;
}

/* Names the processes that have no name after their main threads. WANTED has no name and equals no process that has
 * one.
 */
static void name_by_main_threads(struct processes *processes, const struct profile *profile)
{
    for (size_t i = 0; i < profile->threads.count; i++) {
        const struct thread *thread = &profile->threads.items[i];
        struct process_key wanted = {.pid = number_of(profile_c_string(profile, thread->id))};
        if (wanted.pid == 0) continue;
        uint32_t found = index_table_find(&processes->index, hash_of(&wanted), is_process, processes, &wanted);
        if (found != INDEX_NONE) processes->items[found].name = thread->name;
    }
}

/* The process of the metadata has its name, too. */
static bool add_table(struct processes *processes, const struct profile *profile)
{
    for (size_t i = 1; i < profile->processes.count; i++) {
        const struct process *process = &profile->processes.items[i];
        struct process_key key = {.pid = process->pid, .name = process->name};
        if (key.pid == 0 || key.pid == processes->items[0].pid) continue;
        if (!add(processes, &key, &processes->of_processes[i])) return false;
    }
    return true;
}

bool processes_find(struct processes *processes, const struct profile *profile)
{
    *processes = (struct processes){0};
    size_t set_count = profile->label_sets.count;
    struct process_key process = process_of_metadata(profile);
    uint32_t none;
    processes->of_labels = calloc(set_count + 1, sizeof(*processes->of_labels));
    processes->of_processes = calloc(profile->processes.count + 1, sizeof(*processes->of_processes));
    if (!processes->of_labels || !processes->of_processes || !add(processes, &process, &none)) return false;
    for (size_t i = 0; i < set_count; i++) {
        if (!process_of_labels(profile, &profile->label_sets.items[i], &process)) continue;
        if (!add(processes, &process, &processes->of_labels[i])) return false;
    }
    if (!add_table(processes, profile)) return false;
    name_by_main_threads(processes, profile);
    return true;
}

void processes_fini(struct processes *processes)
{
    free(processes->items);
    free(processes->of_labels);
    free(processes->of_processes);
    index_table_fini(&processes->index);
    *processes = (struct processes){0};
}

void processes_add_place(struct profile_extra_labels *labels, const struct profile *profile)
{
    static const char *const keys[] = {"unit", "container", "pod"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const char *name = profile_metadata_text(profile, keys[i]);
        if (name[0] == '\0') continue;
        labels->items[labels->count].key = keys[i];
        labels->items[labels->count++].text = name;
    }
}

struct profile_extra_labels processes_labels_of_one(const struct processes *processes, const struct profile *profile)
{
    struct profile_extra_labels labels = {0};
    const struct process_key *process = &processes->items[0];
    if (processes->count > 1) return labels;
    if (process->pid) {
        labels.items[labels.count].key = PROCESS_ID_LABEL;
        labels.items[labels.count].number = process->pid;
        labels.items[labels.count++].is_number = true;
    }
    if (process->name.index) {
        labels.items[labels.count].key = PROCESS_NAME_LABEL;
        labels.items[labels.count++].text = profile_c_string(profile, process->name);
    }
    processes_add_place(&labels, profile);
    return labels;
}

bool processes_are_several(const struct processes *processes)
{
    bool is_first_known = processes->items[0].pid != 0 || processes->items[0].name.index != 0;
    return processes->count > (is_first_known ? 1 : 2);
}

bool process_label(const struct profile *profile, struct process_id id, char ret_text[PROCESS_LABEL_SIZE])
{
    const struct process *process = profile_process(profile, id);
    const char *profiler = profile_c_string(profile, process->profiler_id);
    int size = process->pid != 0 ? snprintf(ret_text, PROCESS_LABEL_SIZE, "%" PRId64, process->pid)
                                 : snprintf(ret_text, PROCESS_LABEL_SIZE, "%s", profiler);
    return size > 0 && size < PROCESS_LABEL_SIZE;
}

struct string_id profile_thread_name_at(const struct profile *profile, size_t sample)
{
    const struct label_set *labels = &profile->label_sets.items[profile->samples.labels[sample].index];
    for (uint32_t i = 0; i < labels->count; i++) {
        const struct label *label = &profile->labels.items[labels->first + i];
        if (!label->is_number && strcmp(profile_c_string(profile, label->key), PROFILE_THREAD_NAME_LABEL) == 0)
            return label->text;
    }
    return profile_thread(profile, profile->samples.thread[sample])->name;
}

const char *profile_script(const struct profile *profile)
{
    const char *script = profile_metadata_text(profile, "script");
    bool is_interpreted = profile_metadata_text(profile, "interpreter")[0] != '\0';
    if (script[0]) return script;
    return is_interpreted ? profile_metadata_text(profile, "process") : "";
}
