/* Names and labels of Pyroscope's clients.  SPDX-License-Identifier: MIT */
#include "serve/pyroscope_labels.h"

#include "base/json_reader.h"
#include "base/sha1.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Labels ------------------------------------------------------------------------------------------------------- */

/* A hash for files, unlike hash_bytes. */
static uint64_t hash_label(struct slice name, struct slice value)
{
    char text[SHA1_TEXT_SIZE];
    struct sha1 sha1;
    sha1_init(&sha1);
    sha1_add(&sha1, name);
    sha1_add(&sha1, slice_of_text("="));
    sha1_add(&sha1, value);
    sha1_finish(&sha1, text);
    text[16] = '\0';
    return strtoull(text, NULL, 16);
}

/* Labels for a server: what the profile is called, whether its values are those of an interval, the process. */
static void add_private_label(struct description *description, struct slice name, struct slice value)
{
    static const char delta[] = "godeltaprof_";
    struct kind_hints *hints = &description->hints;
    if (slice_equals_text(name, "__session_id__")) description->labels_hash += hash_label(name, value);
    if (slice_equals_text(name, "__delta__")) hints->is_delta |= slice_equals_text(value, "false");
    if (!slice_equals_text(name, "__name__")) return;
    bool is_delta = text_begins_with(value, delta);
    hints->is_delta |= is_delta;
    hints->name = ingest_cut_name(is_delta ? text_from(value, strlen(delta)) : value);
}

void description_add_label(struct description *description, struct slice name, struct slice value)
{
    static const char *const services[] = {"service_name", "service", NULL};
    static const char *const environments[] = {"environment", "env", "deployment_environment", NULL};
    static const char *const releases[] = {"release", "version", "service_version", "service_git_ref", NULL};
    static const char *const hosts[] = {"hostname", "host", "instance", "node", "pod", NULL};
    struct sent_profile *sent = &description->sent;
    struct slice *column = NULL;
    if (slice_is_one_of(name, services)) column = &sent->service;
    if (slice_is_one_of(name, environments)) column = &sent->environment;
    if (slice_is_one_of(name, releases)) column = &sent->release;
    if (slice_is_one_of(name, hosts)) column = &sent->host;
    if (name.size == 0 || value.size == 0) return;
    if (text_begins_with(name, "__")) {
        add_private_label(description, name, value);
        return;
    }
    description->labels_hash += hash_label(name, value);
    if (column && (column->size == 0 || column == &sent->service))
        *column = value;
    else if (description->other_count < NAMES_MAX)
        description->others[description->other_count++] =
            (struct name_label){ingest_cut_name(name), ingest_cut_name(value)};
}

void description_read_name(struct description *description, struct slice name)
{
    static const char *const types[] = {"cpu",
                                        "wall",
                                        "itimer",
                                        "alloc_objects",
                                        "alloc_space",
                                        "inuse_space",
                                        "goroutine",
                                        "goroutines",
                                        "inuse_objects",
                                        "threadcreate",
                                        "mutex_count",
                                        "block_count",
                                        "lock_count",
                                        "mutex_duration",
                                        "block_duration",
                                        "alloc_samples",
                                        "alloc_size",
                                        "lock_duration",
                                        "exception",
                                        "exceptions",
                                        "alloc_in_new_tlab_objects",
                                        "alloc_in_new_tlab_bytes",
                                        "alloc_outside_tlab_objects",
                                        "alloc_outside_tlab_bytes",
                                        NULL};
    struct slice application = text_trim(text_take_until(&name, '{')), labels = text_take_until(&name, '}');
    size_t dot = application.size;
    while (dot > 0 && application.data[dot - 1] != '.') dot--;
    struct slice type = text_from(application, dot);
    if (dot > 1 && slice_is_one_of(type, types)) {
        description->type = description->hints.name = type;
        application.size = dot - 1;
    }
    description->sent.service = application;
    while (labels.size > 0) {
        struct slice value = text_take_until(&labels, ',');
        struct slice key = text_trim(text_take_until(&value, '='));
        value = text_trim(value);
        if (value.size >= 2 && value.data[0] == '"' && value.data[value.size - 1] == '"')
            value = slice_of(value.data + 1, value.size - 2);
        description_add_label(description, key, value);
    }
}

/* --- Rules and series --------------------------------------------------------------------------------------------- */

void description_add_rule(struct description *description, struct slice type, enum kind_rule rule)
{
    struct kind_hints *hints = &description->hints;
    if (type.size == 0 || hints->type_count == KIND_TYPES_MAX) return;
    hints->types[hints->type_count].type = type;
    hints->types[hints->type_count++].rule = rule;
}

/* Reads one type of a sample_type_config. RET_NAME: what its sender calls it. */
static enum kind_rule read_sample_type(struct json_reader *reader, struct slice *ret_name)
{
    struct slice key;
    bool is_cumulative = false, is_average = false;
    json_object_begin(reader);
    while (json_object_next(reader, &key)) {
        if (slice_equals_text(key, "cumulative") && json_peek(reader) == JSON_BOOL)
            is_cumulative = json_bool(reader);
        else if (slice_equals_text(key, "aggregation") && json_peek(reader) == JSON_STRING)
            is_average = slice_equals_text(json_string(reader), "average");
        else if (slice_equals_text(key, "display-name") && json_peek(reader) == JSON_STRING)
            *ret_name = json_string(reader);
        else
            json_skip(reader);
    }
    return is_average ? KIND_AVERAGE : is_cumulative ? KIND_DIFFERENCE : KIND_SUM;
}

void description_read_sample_types(struct description *description, struct slice json)
{
    struct kind_hints *hints = &description->hints;
    struct json_reader reader;
    struct slice type, name = {0};
    /* A string with escapes would not outlive the reader, and no client writes one. */
    if (json.size == 0 || memchr(json.data, '\\', json.size)) return;
    json_reader_init(&reader, json);
    json_object_begin(&reader);
    while (json_object_next(&reader, &type) && json_peek(&reader) == JSON_OBJECT) {
        enum kind_rule rule = read_sample_type(&reader, &name);
        if (reader.failed) break;
        hints->is_delta = true;
        if (rule != KIND_SUM) description_add_rule(description, type, rule);
    }
    json_reader_fini(&reader);
    if (hints->name.size == 0 && kind_is_usual_name(name)) hints->name = name;
}

void description_finish(struct description *description)
{
    (void)snprintf(description->series, sizeof(description->series), "%016" PRIx64, description->labels_hash);
    description->sent.series = slice_of_text(description->series);
    description->sent.hints = &description->hints;
}
