/* The web page over the store: its files, and the data that it shows (doc/decisions/page.md).  SPDX-License-Identifier:
 * MIT */
#include "page/page.h"
#include "serve/serve_private.h"

#include <string.h>

/* PATH is "/" or "/page-HASH.js". */
static bool find_file(const char *path, struct page_asset *ret_file)
{
    struct page_asset files[PAGE_ASSETS_MAX];
    size_t count = page_assets(files);
    for (size_t i = 0; i < count && path[0] == '/'; i++) {
        if (strcmp(files[i].path, path + 1) != 0) continue;
        *ret_file = files[i];
        return true;
    }
    return false;
}

bool page_host_has(const char *path)
{
    struct page_asset ignored;
    return strcmp(path, "/") == 0 || find_file(path, &ignored);
}

/* Needs no token: these files are the same for every server. The page sends the token with each question. */
void show_page(struct request *request)
{
    struct page_asset file;
    if (!find_file(request->route, &file)) {
        answer_error(request, 404, "this offbeat was built without its web page, because esbuild was missing");
        return;
    }
    request->is_page = true;
    request->is_kept = file.path[0] != '\0';
    buffer_append(&request->answer, file.gzip.data, file.gzip.size);
    answer_finish(request, file.content_type);
}

/* The data of the page. With times=1 each sample has its time. */
void query_page(struct request *request)
{
    struct profile profile;
    struct error error = {0};
    size_t column;
    bool keeps_times = request_parameter(request, "times") != NULL;
    if (keeps_times && !request_names_session(request)) return;
    request->detail = keeps_times ? DETAIL_ALL : DETAIL_THREADS;
    if (query_merge(request, keeps_times, &profile) && query_choose_value(request, &profile, &column)) {
        struct grouping grouping;
        const struct grouping_options options = {.names_unsymbolized = true};
        const char *service = request_parameter(request, "service");
        const struct page_options page = {.title = service ? service : "", .column = column};
        query_name_functions(&profile);
        enum status status = grouping_init(&grouping, &profile, &options, &error);
        if (status == STATUS_OK) status = page_data_encode(&profile, &grouping, &page, &request->answer, &error);
        grouping_fini(&grouping);
        answer_result(request, status, &error, "application/octet-stream");
    }
    profile_fini(&profile);
}
