/* SPDX-License-Identifier: MIT */
#include "cli/record_outputs.h"

#include "cli/convert_profile.h"
#include "cli/message.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- Choosing ----------------------------------------------------------------------------------------------------- */

static bool is_stdout(const char *path)
{
    return strcmp(path, "-") == 0;
}

static bool add_output(struct record_outputs *outputs, const char *path, unsigned choice)
{
    if (is_stdout(path) && choice == CONVERT_TARGET_COUNT) choice = CONVERT_TARGET_PPROF;
    const struct format *format = convert_format_for(path, choice);
    if (format == NULL || !convert_check_terminal(path, format)) return false;
    if (is_stdout(path) && record_outputs_use_stdout(outputs)) {
        message("--output - was given twice, and standard output holds one file");
        return false;
    }
    outputs->items[outputs->count++] = (struct record_output){.path = path, .format = format, .series = {.number = 1}};
    return true;
}

static bool add_default(struct record_outputs *outputs, unsigned choice, const char *program)
{
    const char *slash = strrchr(program, '/');
    if (choice == CONVERT_TARGET_COUNT) choice = CONVERT_TARGET_PPROF;
    const struct format *format = convert_format_for("", choice);
    if (asprintf(&outputs->default_path, "%s%s", slash ? slash + 1 : program, format_written_suffix(format)) >= 0)
        return add_output(outputs, outputs->default_path, choice);
    outputs->default_path = NULL;
    message("not enough memory");
    return false;
}

bool record_outputs_choose(struct record_outputs *outputs, const struct option_texts *paths, unsigned choice,
                           const char *program)
{
    if (paths->count == 0) return add_default(outputs, choice, program);
    for (size_t i = 0; i < paths->count; i++) {
        bool name_decides = paths->count > 1 && format_is_written(format_of_path(paths->items[i]));
        if (!add_output(outputs, paths->items[i], name_decides ? CONVERT_TARGET_COUNT : choice)) return false;
    }
    if (!outputs->splits_processes || !record_outputs_use_stdout(outputs)) return true;
    message("--split-processes writes a file for each process, and standard output holds one; name a file");
    return false;
}

void record_outputs_fini(struct record_outputs *outputs)
{
    free(outputs->default_path);
    *outputs = (struct record_outputs){0};
}

bool record_outputs_use_stdout(const struct record_outputs *outputs)
{
    for (size_t i = 0; i < outputs->count; i++) {
        if (is_stdout(outputs->items[i].path)) return true;
    }
    return false;
}

/* --- Checking ----------------------------------------------------------------------------------------------------- */

static bool is_folder_writable(const char *path)
{
    char folder[PATH_MAX];
    (void)snprintf(folder, sizeof(folder), "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash == folder)
        slash[1] = '\0';
    else if (slash)
        *slash = '\0';
    else
        (void)snprintf(folder, sizeof(folder), ".");
    return access(folder, W_OK) == 0;
}

static bool check_output(const char *path)
{
    struct stat status;
    if (is_stdout(path)) return true;
    bool exists = stat(path, &status) == 0;
    bool can_be_made = !exists && errno == ENOENT && lstat(path, &status) != 0; /* otherwise it is a dangling link */
    if (exists && S_ISDIR(status.st_mode))
        errno = EISDIR;
    else if (exists && !S_ISREG(status.st_mode))
        return true;
    else if ((can_be_made || (exists && access(path, W_OK) == 0)) && is_folder_writable(path))
        return true;
    message("cannot write %s: %s", path, strerror(errno));
    return false;
}

bool record_outputs_check(const struct record_outputs *outputs)
{
    for (size_t i = 0; i < outputs->count; i++) {
        if (!check_output(outputs->items[i].path)) return false;
    }
    return true;
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static bool holds_one_process(const struct record_outputs *outputs, const struct format *format)
{
    return outputs->splits_processes || format->sentry_version == 2;
}

static bool write_process(struct profile *profile, struct profile *labelled, struct record_output *output)
{
    if (output->format->sentry_version == 2)
        return write_chunk_series(profile, output->path, output->format, &output->series);
    return write_one_of_series(labelled, output->path, output->format, &output->series);
}

bool record_outputs_write_process(struct record_outputs *outputs, struct profile *profile, struct profile *labelled)
{
    bool is_written = true;
    for (size_t i = 0; i < outputs->count; i++) {
        struct record_output *output = &outputs->items[i];
        if (!holds_one_process(outputs, output->format) || output->has_failed) continue;
        output->has_failed = !write_process(profile, labelled, output);
        is_written &= !output->has_failed;
    }
    return is_written;
}

bool record_outputs_write_all(struct record_outputs *outputs, struct profile *all)
{
    bool is_written = true;
    unsigned number = 1;
    for (size_t i = 0; i < outputs->count; i++) {
        const struct record_output *output = &outputs->items[i];
        if (!holds_one_process(outputs, output->format))
            is_written &= write_profile(all, output->path, output->format, &number);
    }
    return is_written;
}
