/* SPDX-License-Identifier: MIT */
#include "sdk/program_name.h"

#include "base/plain_text.h"
#include "deliver/program_script.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

enum { ARGUMENTS_BYTES_MAX = 8192 };

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
    struct slice script = program_script(ret_name, read_arguments(bytes));
    if (script.size > 0) (void)snprintf(ret_name, NAME_MAX + 1, "%.*s", SLICE_ARGUMENTS(script));
    return script.size > 0;
}
