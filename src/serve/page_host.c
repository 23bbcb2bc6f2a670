/* The files of the web page over the store (doc/decisions/page.md).  SPDX-License-Identifier: MIT */
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
