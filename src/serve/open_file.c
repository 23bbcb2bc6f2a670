/* POST /api/N/page: a profile of any format as data of the page. Nothing of it is stored.  SPDX-License-Identifier: MIT
 */
#include "demangle/demangled_names.h"
#include "format/format.h"
#include "page/page.h"
#include "profile/profile_extent.h"
#include "serve/serve_private.h"

static enum status read_file(struct request *request, struct slice bytes, struct profile *profile, struct error *error)
{
    struct buffer storage;
    struct slice raw;
    enum status status = body_open_file(request, bytes, &storage, &raw, error);
    if (status == STATUS_OK) status = format_decode(raw, profile, NULL, error);
    buffer_fini(&storage);
    if (status == STATUS_OK) status = profile_check_inlined(profile, profile->source_bytes, error);
    if (status == STATUS_OK && profile->samples.count == 0)
        status = error_set(error, STATUS_UNSUPPORTED, 0, "the profile has no samples");
    if (status == STATUS_OK) profile_demangle(profile);
    return status == STATUS_OK ? profile_failed(profile, error) : status;
}

void open_file(struct request *request)
{
    struct error error = {0};
    struct buffer bytes;
    struct profile profile;
    const char *name = request_parameter(request, "name");
    if (!body_decompress(request, SERVE_FILE_BYTES_MAX, &bytes)) return;
    profile_init(&profile);
    enum status status = read_file(request, buffer_slice(&bytes), &profile, &error);
    int column = profile_value_index(&profile, "");
    const struct page_options options = {
        .title = name ? name : "", .column = column < 0 ? 0 : (size_t)column, .grouping = {.names_unsymbolized = true}};
    if (status == STATUS_OK) status = page_data_encode(&profile, &options, &request->answer, &error);
    profile_fini(&profile);
    buffer_fini(&bytes);
    if (status != STATUS_OK) buffer_clear(&request->answer);
    answer_result(request, status, &error, "application/octet-stream");
}
