/* Source lines with their costs.  SPDX-License-Identifier: MIT */
#include "analyze/line_listing.h"
#include "cli/code_source.h"
#include "cli/message.h"
#include "cli/reports.h"

static enum exit_status write_listing(const struct report_request *request, const struct report *report,
                                      const struct line_listing *listing, struct buffer *out)
{
    struct code_source source;
    code_source_init(&source, request, report->profile);
    struct code_report all = code_report_of(request, report, &source, out);
    if (request->output.json)
        list_write_json(&all, listing);
    else if (request->output.is_html)
        list_write_html(&all, listing);
    else
        list_write_text(&all, listing);
    bool warns_in_text = request->is_pprof;
    if (!warns_in_text) (void)code_source_warn_missing(&source);
    code_source_fini(&source);
    return EXIT_DONE;
}

static enum exit_status check_and_write(const struct report_request *request, const struct report *report,
                                        const struct line_listing *listing, struct buffer *out)
{
    if (listing->function_count == 0) {
        message("no function matches \"%s\"; offbeat top --nodecount 0 lists them all", request->peek);
        return EXIT_NO;
    }
    if (!line_listing_has_file(listing) && !request->is_pprof) {
        message("the profile has no source lines for \"%s\"; offbeat symbolize adds them if the program has debug "
                "information",
                request->peek);
        return EXIT_FAILED;
    }
    return write_listing(request, report, listing, out);
}

enum exit_status report_list(const struct report_request *request, const struct report *report, struct buffer *out)
{
    struct error error = {0};
    struct grouping grouping;
    struct line_listing listing = {0};
    const struct grouping_options options = {.granularity = GRANULARITY_LINES,
                                             .no_inlines = request->frames.no_inlines,
                                             .keeps_objects = true,
                                             .names_unsymbolized = !request->is_pprof};
    enum exit_status exit_status = EXIT_FAILED;
    enum status status = grouping_init(&grouping, report->profile, &options, &error);
    if (status == STATUS_OK)
        status = line_listing_init(&listing, report->profile, &grouping, request->peek, report->choice, &error);
    if (status == STATUS_OK) {
        exit_status = check_and_write(request, report, &listing, out);
    } else {
        bool is_wrong_use = status == STATUS_MALFORMED || status == STATUS_UNSUPPORTED || status == STATUS_TOO_LARGE;
        message("%s", error.message);
        if (is_wrong_use) exit_status = EXIT_WRONG_USE;
    }
    line_listing_fini(&listing);
    grouping_fini(&grouping);
    return exit_status;
}
