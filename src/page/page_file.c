/* The page as one file. Its policy allows just the two inline parts that were built with it, by their hashes, and no
 * request at all; nothing of the profile is HTML.  SPDX-License-Identifier: MIT */
#include "base/gzip.h"
#include "page/page.h"
#include "page/page_assets.h"

enum { ASSET_BYTES_MAX = 4 << 20 };

static const char missing[] =
    "this offbeat was built without its web page: esbuild was not installed (Debian: esbuild)";

bool page_is_built(void)
{
    return embedded_files[EMBEDDED_SCRIPT].gzip_size > 0;
}

size_t page_assets(struct page_asset ret_assets[PAGE_ASSETS_MAX])
{
    if (!page_is_built()) return 0;
    for (int i = 0; i < EMBEDDED_FILES; i++) {
        const struct embedded_file *file = &embedded_files[i];
        ret_assets[i] = (struct page_asset){
            .path = file->path, .content_type = file->content_type, .gzip = slice_of(file->gzip, file->gzip_size)};
    }
    return EMBEDDED_FILES;
}

static enum status append_asset(int which, struct buffer *out, struct error *error)
{
    const struct embedded_file *file = &embedded_files[which];
    struct buffer text;
    buffer_init(&text, ASSET_BYTES_MAX);
    enum status status = gzip_decompress(slice_of(file->gzip, file->gzip_size), &text, error);
    if (status == STATUS_OK) buffer_append(out, text.data, text.size);
    buffer_fini(&text);
    return status;
}

/* Four bytes are five digits of base 85: less than base64 by a sixteenth. No digit is "<", so that the text cannot end
 * its element. The last one to three bytes have one digit more than they are bytes. */
static void append_digits(struct slice bytes, struct buffer *out)
{
    enum { BASE = 85, GROUP = 4, FIRST_DIGIT = '(', INSTEAD = '}' };
    uint8_t *text = buffer_reserve(out, (bytes.size + GROUP - 1) / GROUP * (GROUP + 1));
    if (!text) return;
    size_t size = 0;
    for (size_t i = 0; i < bytes.size; i += GROUP) {
        size_t left = bytes.size - i < GROUP ? bytes.size - i : GROUP;
        uint32_t number = 0;
        for (size_t k = 0; k < GROUP; k++) number = number << 8 | (k < left ? bytes.data[i + k] : 0);
        uint8_t digits[GROUP + 1];
        for (size_t k = GROUP + 1; k-- > 0; number /= BASE) digits[k] = (uint8_t)(FIRST_DIGIT + number % BASE);
        for (size_t k = 0; k <= left; k++) text[size++] = digits[k] == '<' ? INSTEAD : digits[k];
    }
    buffer_grow(out, size);
}

static void append_data(const char *id, struct slice data, struct buffer *out)
{
    buffer_append_format(out, "<script type=\"application/octet-stream\" id=\"%s\">", id);
    append_digits(data, out);
    buffer_append_text(out, "</script>\n");
}

enum status page_file_write(struct slice data, struct slice base, struct buffer *out, struct error *error)
{
    if (!page_is_built()) return error_set(error, STATUS_UNSUPPORTED, 0, missing);
    buffer_append_format(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src %s; "
        "style-src %s; worker-src blob:; img-src data:; base-uri 'none'; form-action 'none'\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>offbeat</title>\n<style>",
        embedded_files[EMBEDDED_SCRIPT].csp_hash, embedded_files[EMBEDDED_STYLE].csp_hash);
    enum status status = append_asset(EMBEDDED_STYLE, out, error);
    buffer_append_text(out, "</style>\n<body>\n");
    append_data("data", data, out);
    if (base.size > 0) append_data("base", base, out);
    buffer_append_text(out, "<script>");
    if (status == STATUS_OK) status = append_asset(EMBEDDED_SCRIPT, out, error);
    buffer_append_text(out, "</script>\n</body>\n</html>\n");
    if (status == STATUS_OK && out->failed)
        return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the page");
    return status;
}
