/* SPDX-License-Identifier: MIT */
#include "deliver/program_script.h"

#include "base/plain_text.h"
#include "format/common/text_line.h"

#include <string.h>

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
