/* Graphviz is C code of the nineties that reads text from untrusted files. So it runs in a child process: a crash, an
 * endless layout and a leak end there, and the child's memory and CPU time are limited.
 * SPDX-License-Identifier: MIT */
#include "cli/graphviz.h"

#include "base/file.h"
#include "base/printable.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHUNK_BYTES = 1 << 16, MEMORY_BYTES_MAX = 1 << 30 };
enum child_result { CHILD_DONE, CHILD_NO_LIBRARY, CHILD_NO_DRAWING, CHILD_NO_FORMAT };

/* --- In the child ------------------------------------------------------------------------------------------------- */

/* The used part of libgvc and libcgraph, whose sonames are tied to these declarations. */
struct library {
    void *(*gvContext)(void);
    int (*gvLayout)(void *context, void *graph, const char *engine);
    int (*gvRenderData)(void *context, void *graph, const char *format, char **ret_data, unsigned *ret_size);
    void *(*agmemread)(const char *text);
    int (*(*agseterrf)(int (*write)(char *text)))(char *text);
};

/* dlsym gives functions as pointers to data. */
static bool find_function(void *library, const char *name, void *ret_function)
{
    void *found = dlsym(library, name);
    memcpy(ret_function, &found, sizeof(found));
    return found != NULL;
}

static bool load_graphviz(struct library *library)
{
    void *graphs = dlopen("libcgraph.so.6", RTLD_NOW | RTLD_LOCAL), *layouts = NULL;
    if (graphs) layouts = dlopen("libgvc.so.6", RTLD_NOW | RTLD_LOCAL);
    return layouts && find_function(layouts, "gvContext", &library->gvContext) &&
           find_function(layouts, "gvLayout", &library->gvLayout) &&
           find_function(layouts, "gvRenderData", &library->gvRenderData) &&
           find_function(graphs, "agmemread", &library->agmemread) &&
           find_function(graphs, "agseterrf", &library->agseterrf);
}

/* Warnings of Graphviz, as of fonts and sizes, help nobody. */
static int drop_message(char *text)
{
    (void)text;
    return 0;
}

static enum child_result draw(const char *text, const char *format, int file)
{
    struct library library;
    char *data = NULL;
    unsigned size = 0;
    if (!load_graphviz(&library)) return CHILD_NO_LIBRARY;
    (void)library.agseterrf(drop_message);
    void *context = library.gvContext(), *graph = library.agmemread(text);
    if (!context || !graph || library.gvLayout(context, graph, "dot") != 0) return CHILD_NO_DRAWING;
    if (library.gvRenderData(context, graph, format, &data, &size) != 0 || size == 0) return CHILD_NO_FORMAT;
    bool is_written = file_write_descriptor(file, slice_of(data, size), NULL) == STATUS_OK;
    return is_written ? CHILD_DONE : CHILD_NO_DRAWING;
}

static _Noreturn void run_child(const char *text, const char *format, int file)
{
    const struct rlimit seconds = {GRAPHVIZ_CPU_SECONDS_MAX, GRAPHVIZ_CPU_SECONDS_MAX};
    const struct rlimit bytes = {MEMORY_BYTES_MAX, MEMORY_BYTES_MAX}, none = {0, 0};
    (void)setrlimit(RLIMIT_CPU, &seconds);
    (void)setrlimit(RLIMIT_CORE, &none);
#ifndef __SANITIZE_ADDRESS__ /* it reserves terabytes */
    (void)setrlimit(RLIMIT_AS, &bytes);
#else
    (void)bytes;
#endif
    (void)close(STDERR_FILENO); /* plugins write there */
    _exit((int)draw(text, format, file));
}

/* --- In the parent ------------------------------------------------------------------------------------------------ */

/* U+FFFE and U+FFFF: no XML may have them. */
static bool is_no_character(struct slice rest)
{
    return rest.size >= 3 && rest.data[0] == 0xEF && rest.data[1] == 0xBF && rest.data[2] >= 0xBE;
}

static bool begins_tooltip(const struct buffer *text)
{
    static const char name[] = "tooltip=\"";
    size_t size = strlen(name);
    return text->size >= size && memcmp(text->data + text->size - size, name, size) == 0;
}

/* The character at the start of REST, and how many bytes it has there. In a tooltip, Graphviz 2.42 expands "\N" after
 * it has made "\N" of "\\N". In a label it makes "<" of "&lt;". A name means itself, and an SVG has no control
 * characters. */
static size_t append_safely(struct buffer *text, struct slice rest, bool is_tooltip)
{
    bool is_escaped = rest.data[0] == '\\' && rest.size > 1, is_backslash = is_escaped && rest.data[1] == '\\';
    size_t skip;
    bool is_shown = rest.data[0] == '\n' || printable_size(rest, &skip) > 0;
    if (!is_shown || is_no_character(rest)) {
        buffer_append_byte(text, '?');
        return is_shown ? 3 : skip;
    }
    buffer_append(text, rest.data, is_escaped ? 2 : 1);
    if (is_tooltip && is_backslash) buffer_append_text(text, "\\\\");
    if (rest.data[0] == '&') buffer_append_text(text, "amp;");
    return is_escaped ? 2 : 1;
}

static void make_text(const struct buffer *drawing, struct buffer *text)
{
    bool is_string = false, is_tooltip = false;
    for (size_t i = 0; i < drawing->size;) {
        bool is_quote = drawing->data[i] == '"'; /* a quote in a name follows a backslash */
        i += append_safely(text, slice_of(drawing->data + i, drawing->size - i), is_tooltip);
        if (!is_quote) continue;
        is_string = !is_string;
        is_tooltip = is_string && begins_tooltip(text);
    }
    buffer_append_byte(text, '\0');
}

static void read_all(int file, struct buffer *out)
{
    uint8_t *place;
    while ((place = buffer_reserve(out, CHUNK_BYTES)) != NULL) {
        ssize_t count = read(file, place, CHUNK_BYTES);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return;
        buffer_grow(out, (size_t)count);
    }
}

static enum status report_child(int status, const char *format, struct error *error)
{
    if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))
        return error_set(error, STATUS_TOO_LARGE, 0,
                         "Graphviz did not finish within %d s of CPU time; --nodecount 40 draws less",
                         GRAPHVIZ_CPU_SECONDS_MAX);
    switch (WIFEXITED(status) ? WEXITSTATUS(status) : CHILD_NO_DRAWING) {
    case CHILD_DONE:
        return STATUS_OK;
    case CHILD_NO_LIBRARY:
        return error_set(error, STATUS_UNSUPPORTED, 0,
                         "pictures need the Graphviz library: apt install libgvc6; DOT needs nothing");
    case CHILD_NO_FORMAT:
        return error_set(error, STATUS_UNSUPPORTED, 0, "this Graphviz cannot write %s; svg always works", format);
    default:
        return error_set(error, STATUS_MALFORMED, 0, "Graphviz cannot draw this graph; -o OUT.dot keeps it as DOT");
    }
}

static enum status draw_in_child(const char *text, const char *format, struct buffer *out, struct error *error)
{
    int files[2], status = 0;
    if (pipe(files) != 0) return error_set(error, STATUS_IO, 0, "cannot make a pipe: %s", strerror(errno));
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) run_child(text, format, files[1]);
    (void)close(files[1]);
    if (child > 0) read_all(files[0], out);
    (void)close(files[0]);
    if (child < 0) return error_set(error, STATUS_IO, 0, "cannot start a process for Graphviz: %s", strerror(errno));
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (out->failed) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the picture");
    return report_child(status, format, error);
}

enum status graphviz_draw(struct buffer *drawing, const char *format, struct error *error)
{
    struct buffer text, picture;
    enum status status = STATUS_NO_MEMORY;
    buffer_init(&text, drawing->maximum);
    buffer_init(&picture, drawing->maximum);
    make_text(drawing, &text);
    if (text.failed)
        (void)error_set(error, status, 0, "not enough memory for the drawing");
    else
        status = draw_in_child((const char *)text.data, format, &picture, error);
    if (status == STATUS_OK) {
        struct buffer swapped = *drawing;
        *drawing = picture;
        picture = swapped;
    }
    buffer_fini(&text);
    buffer_fini(&picture);
    return status;
}
