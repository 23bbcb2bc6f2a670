/* Instructions with their costs: the functions are found in their files, then samples are counted by instruction, then
 * one function after the other is printed.  SPDX-License-Identifier: MIT */
#include "analyze/name_match.h"
#include "analyze/row_costs.h"
#include "cli/code_source.h"
#include "cli/message.h"
#include "cli/reports.h"
#include "symbolize/code_functions.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)OPTION_TEXTS_MAX <= (int)SYMBOLIZER_DEBUG_DIRECTORIES_MAX, "all folders can be searched");

struct disasm {
    const struct report_request *request;
    const struct report *report;
    struct profile *profile;
    struct grouping grouping; /* one group for each location */
    struct regexp regexp;
    struct code_functions functions;
    uint32_t *row_of_group;
    uint32_t *row_of_place;                  /* rows by place of the functions; places in one instruction share a row */
    struct row_cost *costs, *function_costs; /* costs by row, and by function, from 1 on */
    struct code_report all;
    struct code_source source;
};

static bool matches(void *context, struct slice name)
{
    return regexp_matches_within(context, name);
}

static enum status no_memory(struct error *error)
{
    return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the costs of the instructions");
}

/* --- Functions ---------------------------------------------------------------------------------------------------- */

static uint32_t group_at(const struct disasm *disasm, uint32_t location)
{
    uint32_t count;
    return grouping_frames(&disasm->grouping, location, &count)[0];
}

/* Returns for each location whether a sample with a value has it. NULL without memory. */
static bool *find_used(struct disasm *disasm)
{
    size_t group_count = disasm->grouping.count, location_count = disasm->profile->locations.count;
    struct row_cost *costs = calloc(group_count + 1, sizeof(*costs));
    bool *is_used = calloc(location_count, sizeof(*is_used));
    for (uint32_t i = 0; costs && is_used && i < group_count; i++) disasm->row_of_group[i] = i + 1;
    bool is_done = costs && is_used &&
                   row_costs_compute(disasm->profile, &disasm->grouping, disasm->row_of_group, group_count + 1,
                                     disasm->report->choice, costs);
    for (uint32_t i = 1; is_done && i < location_count; i++) is_used[i] = costs[group_at(disasm, i) + 1].is_used;
    free(costs);
    if (is_done) return is_used;
    free(is_used);
    return NULL;
}

/* Parses "0x401136": as in pprof, a number is also an address. */
static bool parse_address(const char *text, uint64_t *ret_address)
{
    char *end;
    *ret_address = strtoull(text, &end, 0);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

static enum status find_functions(struct disasm *disasm, struct error *error)
{
    const struct report_request *request = disasm->request;
    struct code_options options = {.debug_folders = request->code.debug_folders.items,
                                   .debug_folder_count = request->code.debug_folders.count,
                                   .trusts_paths = request->code.trusts_paths,
                                   .is_intel_syntax = request->code.intel_syntax,
                                   .matches = matches,
                                   .context = &disasm->regexp};
    options.has_address = parse_address(request->peek, &options.address);
    bool *is_used = find_used(disasm);
    if (!is_used) return no_memory(error);
    enum status status = code_functions_find(&disasm->functions, disasm->profile, is_used, &options, error);
    free(is_used);
    return status;
}

/* --- Costs -------------------------------------------------------------------------------------------------------- */

static const struct code_place *places_of(const struct disasm *disasm, const struct code_function *function)
{
    return &disasm->functions.places[function->place_first];
}

static void number_rows(struct disasm *disasm, bool by_instruction, size_t *ret_row_count)
{
    uint32_t row = 0;
    memset(disasm->row_of_group, 0, disasm->grouping.count * sizeof(*disasm->row_of_group));
    for (size_t f = 0; f < disasm->functions.count; f++) {
        const struct code_function *function = &disasm->functions.items[f];
        const struct code_place *places = places_of(disasm, function);
        for (size_t i = 0; i < function->place_count; i++) {
            bool is_new = i == 0 || (by_instruction && places[i].instruction != places[i - 1].instruction);
            if (is_new) row++;
            disasm->row_of_group[group_at(disasm, places[i].location)] = row;
            if (by_instruction) disasm->row_of_place[function->place_first + i] = row;
        }
    }
    *ret_row_count = (size_t)row + 1;
}

static enum status compute_costs(struct disasm *disasm, struct error *error)
{
    size_t row_count, place_count = disasm->functions.place_count, function_count = disasm->functions.count;
    disasm->row_of_place = calloc(place_count + 1, sizeof(*disasm->row_of_place));
    disasm->costs = calloc(place_count + 1, sizeof(*disasm->costs));
    disasm->function_costs = calloc(function_count + 1, sizeof(*disasm->function_costs));
    if (!disasm->row_of_place || !disasm->costs || !disasm->function_costs) return no_memory(error);
    number_rows(disasm, true, &row_count);
    bool is_done = row_costs_compute(disasm->profile, &disasm->grouping, disasm->row_of_group, row_count,
                                     disasm->report->choice, disasm->costs);
    number_rows(disasm, false, &row_count);
    is_done = is_done && row_costs_compute(disasm->profile, &disasm->grouping, disasm->row_of_group, row_count,
                                           disasm->report->choice, disasm->function_costs);
    return is_done ? STATUS_OK : no_memory(error);
}

/* --- Printing ----------------------------------------------------------------------------------------------------- */

static void fill(const struct disasm *disasm, const struct code_function *function, const struct disassembly *code,
                 const struct code_source_location *sources, struct costed_instruction *items,
                 struct costed_code *costed)
{
    const struct code_place *places = places_of(disasm, function);
    size_t next = 0;
    for (size_t i = 0; i < code->count; i++) {
        const struct instruction *at = &code->items[i];
        items[i] = (struct costed_instruction){.address = at->address,
                                               .text = instruction_text(code, at),
                                               .function = sources[i].function,
                                               .file = sources[i].file,
                                               .line = sources[i].line,
                                               .target = sources[i].target};
        if (next < function->place_count && places[next].instruction == at->address) {
            const struct row_cost *cost = &disasm->costs[disasm->row_of_place[function->place_first + next]];
            items[i].flat = cost->flat;
            items[i].cum = cost->cum;
            costed->cum_of_rows = profile_add_values(costed->cum_of_rows, cost->cum);
        }
        while (next < function->place_count && places[next].instruction == at->address) next++;
    }
}

static enum status write_function(struct disasm *disasm, size_t index, struct disassembly *code, struct error *error)
{
    const struct code_function *function = &disasm->functions.items[index];
    struct code_source_location *sources = NULL;
    enum status status = code_function_read(&disasm->functions, function, code, &sources, error);
    struct costed_instruction *items = status == STATUS_OK ? calloc(code->count + 1, sizeof(*items)) : NULL;
    struct costed_code costed = {.name = function->name,
                                 .binary = profile_mapping(disasm->profile, function->mapping)->file_name,
                                 .flat = disasm->function_costs[index + 1].flat,
                                 .cum = disasm->function_costs[index + 1].cum,
                                 .items = items,
                                 .count = code->count};
    if (items) {
        fill(disasm, function, code, sources, items, &costed);
        if (disasm->request->output.json)
            disasm_write_json(&disasm->all, &costed);
        else
            disasm_write_text(&disasm->all, &costed);
    } else if (status == STATUS_OK) {
        status = no_memory(error);
    }
    free(items);
    free(sources);
    return status;
}

static enum status write_functions(struct disasm *disasm, struct buffer *out, struct error *error)
{
    struct disassembly code;
    enum status status = compute_costs(disasm, error);
    disassembly_init(&code);
    code_source_init(&disasm->source, disasm->request, disasm->profile);
    disasm->all = code_report_of(disasm->request, disasm->report, &disasm->source, out);
    disasm_begin(&disasm->all, disasm->request->output.json);
    for (size_t i = 0; status == STATUS_OK && i < disasm->functions.count && !out->failed; i++)
        status = write_function(disasm, i, &code, error);
    disasm_end(&disasm->all, disasm->request->output.json);
    code_source_fini(&disasm->source);
    disassembly_fini(&code);
    return status == STATUS_OK ? profile_failed(disasm->profile, error) : status;
}

/* --- What could not be shown -------------------------------------------------------------------------------------- */

/* After the name of the file. */
static const char *const advice[CODE_PROBLEMS] = {
    [CODE_MISSING] = " is not here; its code cannot be shown",
    [CODE_CHANGED] = " is of another build here than the one that was recorded; its code cannot be shown",
    [CODE_UNPROVEN] = " may be another file here: the profile has no build id of it; --trust-paths uses it",
    [CODE_BOUNDLESS] = " does not say where the function begins and ends",
    [CODE_UNPLACED] = ": the profile does not say where it was in memory; its code cannot be found",
    [CODE_UNREAD] = ": ",
};

/* Prints one line each. Returns whether there was a problem. */
static bool warn_problems(const struct disasm *disasm)
{
    const struct code_functions *functions = &disasm->functions;
    bool has_problem = false;
    for (int i = 0; i < CODE_PROBLEMS; i++) {
        const char *file = profile_c_string(disasm->profile, functions->problem_files[i]);
        if (functions->problem_counts[i] == 0) continue;
        has_problem = true;
        if (file[0] == '\0') file = "code that is in no file";
        message("%s%s%s", file, advice[i], i == CODE_UNREAD ? functions->problem.message : "");
    }
    return has_problem;
}

static enum exit_status explain_nothing_found(const struct disasm *disasm)
{
    const char *pattern = disasm->request->peek;
    const struct code_functions *functions = &disasm->functions;
    if (warn_problems(disasm)) return EXIT_FAILED;
    if (functions->unnamed_problem != CODE_PROBLEMS && functions->inlined_into.index == 0) {
        message("%s%s", profile_c_string(disasm->profile, functions->unnamed_file), advice[functions->unnamed_problem]);
        return EXIT_FAILED;
    }
    if (functions->inlined_into.index != 0)
        message("\"%s\" matches only inlined functions, whose code is in others: offbeat disasm '%s'", pattern,
                profile_c_string(disasm->profile, functions->inlined_into));
    else
        message("no function with code in a file matches \"%s\"; offbeat top --nodecount 0 lists all functions",
                pattern);
    return EXIT_NO;
}

static enum exit_status report_instructions(struct disasm *disasm, struct buffer *out)
{
    struct error error = {0};
    const struct grouping_options options = {
        .granularity = GRANULARITY_ADDRESSES, .no_inlines = true, .keeps_objects = true};
    enum status status = compile_option(&disasm->regexp, "REGEX", slice_of_text(disasm->request->peek), &error);
    if (status != STATUS_OK) {
        message("%s", error.message);
        return status == STATUS_NO_MEMORY ? EXIT_FAILED : EXIT_WRONG_USE;
    }
    status = grouping_init(&disasm->grouping, disasm->profile, &options, &error);
    if (status == STATUS_OK) {
        disasm->row_of_group = calloc(disasm->grouping.count + 1, sizeof(*disasm->row_of_group));
        if (!disasm->row_of_group) {
            message("not enough memory for the instructions");
            return EXIT_FAILED;
        }
        status = find_functions(disasm, &error);
        if (status == STATUS_OK && check_steps(&disasm->regexp, "REGEX", &error) != STATUS_OK) {
            message("%s", error.message);
            return EXIT_WRONG_USE;
        }
    }
    if (status == STATUS_OK && disasm->functions.count == 0) return explain_nothing_found(disasm);
    if (status == STATUS_OK) status = write_functions(disasm, out, &error);
    if (status == STATUS_OK) {
        (void)warn_problems(disasm);
        return EXIT_DONE;
    }
    message("%s", error.message);
    return EXIT_FAILED;
}

enum exit_status report_disasm(const struct report_request *request, const struct report *report,
                               struct profile *profile, struct buffer *out)
{
    struct disasm disasm = {.request = request, .report = report, .profile = profile};
    enum exit_status status = report_instructions(&disasm, out);
    grouping_fini(&disasm.grouping);
    regexp_fini(&disasm.regexp);
    code_functions_fini(&disasm.functions);
    free(disasm.row_of_group);
    free(disasm.row_of_place);
    free(disasm.costs);
    free(disasm.function_costs);
    return status;
}
