/* SPDX-License-Identifier: MIT */
#include "sdk/program_name.h"

#include "base/plain_text.h"
#include "format/common/text_line.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

enum { ARGUMENTS_BYTES_MAX = 8192 };

/* An interpreter and its options: before the script may be options with a value in the next argument (SKIPPED); the
 * next argument of others is what runs, a module (NAMED); with others nothing of a file runs (TEXT). */
struct interpreter {
    const char *name; /* name without a version */
    const char *skipped, *named, *text;
};

static const struct interpreter interpreters[] = {
    {"python", "-W -X --check-hash-based-pycs", "-m", "-c"},
    {"pypy", "-W -X", "-m", "-c"},
    {"perl", "-I", "", "-e -E"},
    {"ruby", "-I -r -C -E", "", "-e"},
    {"node", "-r --require --import --loader -C --conditions", "", "-e --eval -p --print"},
    {"nodejs", "-r --require --import --loader -C --conditions", "", "-e --eval -p --print"},
    {"php", "-d -c -z", "-f -F", "-r -B -R -E"},
    {"java", "-cp -classpath --class-path -p --module-path --add-modules", "-jar -m --module", ""},
    {"lua", "-l", "", "-e"},
    {"luajit", "-l", "", "-e"},
    {"Rscript", "", "", "-e"},
    {"bash", "-o -O --rcfile --init-file", "", "-c -s"},
    {"dash", "-o", "", "-c -s"},
    {"sh", "-o", "", "-c -s"},
    {"zsh", "-o", "", "-c -s"},
};

static bool is_in_list(const char *list, struct slice word)
{
    struct slice rest = slice_of_text(list), next;
    do {
        next = text_take_word(&rest);
    } while (next.size > 0 && !slice_equal(next, word));
    return next.size > 0;
}

static struct slice next_argument(struct slice *arguments)
{
    const uint8_t *end = arguments->size > 0 ? memchr(arguments->data, 0, arguments->size) : NULL;
    struct slice argument = slice_of(arguments->data, end ? (size_t)(end - arguments->data) : arguments->size);
    size_t taken = end ? argument.size + 1 : arguments->size;
    *arguments = slice_of(arguments->data + taken, arguments->size - taken);
    return argument;
}

/* Returns the interpreter NAME, which may end with its version, as in "python3.11". */
static const struct interpreter *find_interpreter(const char *name)
{
    size_t size = strlen(name);
    while (size > 0 && ((name[size - 1] >= '0' && name[size - 1] <= '9') || name[size - 1] == '.')) size--;
    for (size_t i = 0; i < sizeof(interpreters) / sizeof(interpreters[0]); i++) {
        if (strlen(interpreters[i].name) == size && memcmp(interpreters[i].name, name, size) == 0)
            return &interpreters[i];
    }
    return NULL;
}

struct slice program_script(const char *name, struct slice arguments)
{
    const struct interpreter *interpreter = find_interpreter(name);
    if (!interpreter) return slice_of(NULL, 0);
    (void)next_argument(&arguments);
    while (arguments.size > 0) {
        struct slice argument = next_argument(&arguments);
        if (is_in_list(interpreter->text, argument)) break;
        if (is_in_list(interpreter->named, argument)) return path_base_name(next_argument(&arguments));
        if (is_in_list(interpreter->skipped, argument))
            (void)next_argument(&arguments);
        else if (argument.size > 0 && argument.data[0] != '-')
            return path_base_name(argument);
    }
    return slice_of(NULL, 0);
}

/* Reads the arguments of the process, as far as they fit. */
static struct slice read_arguments(uint8_t bytes[ARGUMENTS_BYTES_MAX])
{
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (file < 0) return slice_of(NULL, 0);
    ssize_t size = read(file, bytes, ARGUMENTS_BYTES_MAX);
    (void)close(file);
    return slice_of(bytes, size > 0 ? (size_t)size : 0);
}

/* Returns the path that was given to execve, or else of the file; a descriptor's path is no name. */
static const char *started_path(char file[PATH_MAX])
{
    const char *started = (const char *)getauxval(AT_EXECFN); // NOLINT(performance-no-int-to-ptr)
    static const char *const descriptors[] = {"/dev/fd/", "/proc/"};
    bool is_name = started && *started;
    for (size_t i = 0; is_name && i < sizeof(descriptors) / sizeof(descriptors[0]); i++) {
        is_name = strncmp(started, descriptors[i], strlen(descriptors[i])) != 0;
    }
    if (is_name) return started;
    ssize_t length = readlink("/proc/self/exe", file, PATH_MAX - 1);
    file[length > 0 ? length : 0] = '\0';
    plain_path(file);
    return file;
}

bool program_name(char ret_name[NAME_MAX + 1])
{
    char file[PATH_MAX];
    uint8_t bytes[ARGUMENTS_BYTES_MAX];
    struct slice name = path_base_name(slice_of_text(started_path(file)));
    (void)snprintf(ret_name, NAME_MAX + 1, "%.*s", SLICE_ARGUMENTS(name));
    struct slice script =
        find_interpreter(ret_name) ? program_script(ret_name, read_arguments(bytes)) : (struct slice){0};
    if (script.size > 0) (void)snprintf(ret_name, NAME_MAX + 1, "%.*s", SLICE_ARGUMENTS(script));
    return script.size > 0;
}
