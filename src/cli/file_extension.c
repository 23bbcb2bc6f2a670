/* SPDX-License-Identifier: MIT */
#include "cli/file_extension.h"

#include <string.h>
#include <strings.h>

/* Graphviz can write most of the others too, with plugins that few machines have; these five are always there. */
static const char *const drawn[] = {"svg", "png", "pdf", "ps", "gif"};
static const char *const others[] = {"bmp",  "jpg",  "jpeg", "jpe",   "jxl", "webp", "avif", "heic", "heif", "tif",
                                     "tiff", "eps",  "ico",  "svgz",  "xcf", "psd",  "tga",  "ppm",  "pgm",  "pnm",
                                     "wbmp", "html", "htm",  "xhtml", "fig", "vml",  "emf",  "wmf"};

static const char *find_ending(const char *path, const char *const *endings, size_t count)
{
    const char *slash = path ? strrchr(path, '/') : NULL, *dot = path ? strrchr(slash ? slash : path, '.') : NULL;
    for (size_t i = 0; dot && i < count; i++) {
        if (strcasecmp(dot + 1, endings[i]) == 0) return endings[i];
    }
    return NULL;
}

const char *file_extension_drawn(const char *path)
{
    return find_ending(path, drawn, sizeof(drawn) / sizeof(drawn[0]));
}

const char *file_extension_of_picture(const char *path)
{
    const char *ending = file_extension_drawn(path);
    return ending ? ending : find_ending(path, others, sizeof(others) / sizeof(others[0]));
}

bool file_extension_is_promised(const char *path, const char *format)
{
    const char *ending = file_extension_of_picture(path);
    return !ending || (format && strcmp(ending, format) == 0);
}
