/* SPDX-License-Identifier: MIT */
#include "cli/code_source.h"

#include "cli/message.h"
#include "cli/output.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct source_file *find(struct code_source *source, const char *path)
{
    return source_files_find(&source->files, path);
}

/* Go's words, as pprof prints them. */
static const char *problem_of_pprof(struct code_source *source, const struct source_file *file)
{
    const char *path = source_path_trimmed(&source->files.search, file->path);
    if (file->status != STATUS_NOT_FOUND || path[0] != '/') return file->error.message;
    (void)snprintf(source->problem, sizeof(source->problem), "open %s: no such file or directory", path);
    return source->problem;
}

static const char *problem(void *context, const char *path)
{
    struct code_source *source = context;
    const struct source_file *file = find(source, path);
    if (!file) return "too many source files";
    if (file->status == STATUS_OK) return NULL;
    return source->files.search.is_pprof ? problem_of_pprof(source, file) : file->error.message;
}

static bool line(void *context, const char *path, int64_t number, struct slice *ret_line)
{
    const struct source_file *file = find(context, path);
    return file && source_line(file, number, ret_line);
}

static bool is_proven(void *context, const char *path)
{
    struct code_source *source = context;
    return source->is_from_dwarf || dwarf_sources_have(&source->proven, path);
}

void code_source_init(struct code_source *source, const struct report_request *request, const struct profile *profile)
{
    *source = (struct code_source){
        .text = {.context = source, .problem = problem, .line = line},
        .files = {.search = {.folders = request->code.source_path,
                             .trimmed = request->code.trim_path,
                             .is_pprof = request->is_pprof,
                             .is_proven = is_proven,
                             .context = source}},
        .proven = {.profile = profile},
        .is_from_dwarf = request->kind == REPORT_DISASM,
    };
}

void code_source_fini(struct code_source *source)
{
    source_files_fini(&source->files);
    dwarf_sources_fini(&source->proven);
}

void code_source_trim_paths(const struct report_request *request, struct profile *profile)
{
    const struct source_search search = {.folders = request->code.source_path, .trimmed = request->code.trim_path};
    for (size_t i = 1; i < profile->functions.count; i++) {
        struct function *function = &profile->functions.items[i];
        const char *path = profile_c_string(profile, function->file_name), *trimmed;
        trimmed = source_path_trimmed(&search, path);
        if (trimmed != path) function->file_name = profile_text(profile, trimmed);
    }
}

struct code_report code_report_of(const struct report_request *request, const struct report *report,
                                  const struct code_source *source, struct buffer *out)
{
    bool is_standard_output = !request->output.path || strcmp(request->output.path, "-") == 0;
    return (struct code_report){.report = report,
                                .source = &source->text,
                                .out = out,
                                .is_pprof = request->is_pprof,
                                .has_colour = is_standard_output && output_has_colour()};
}

size_t code_source_warn_missing(const struct code_source *source)
{
    const struct source_files *files = &source->files;
    const struct source_file *missing = NULL;
    size_t missing_count = 0;
    for (size_t i = 0; i < files->count; i++) {
        if (files->items[i]->status == STATUS_OK) continue;
        if (!missing) missing = files->items[i];
        missing_count++;
    }
    if (missing_count == 1)
        message("%s; --source-path DIR says where source files are", missing->error.message);
    else if (missing_count > 1)
        message("%zu source files cannot be shown, the first: %s; --source-path DIR says where they are", missing_count,
                missing->error.message);
    return files->count - missing_count;
}
