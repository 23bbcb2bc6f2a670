/* Replaces pprof_encode() in the tests that write pprof (--wrap): with OFFBEAT_TEST_PPROF_FOLDER in the
 * environment, each file that it writes is kept there, and test/cli/pprof_read.py gives them to other readers. It
 * allocates nothing, so that tests may count allocations.  SPDX-License-Identifier: MIT */
#include "format/pprof/pprof.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PATH_BYTES_MAX = 512 };

enum status __real_pprof_encode(const struct profile *profile, struct buffer *out, struct error *error);
enum status __wrap_pprof_encode(const struct profile *profile, struct buffer *out, struct error *error);

static void keep(const char *folder, const uint8_t *data, size_t size)
{
    static unsigned count;
    char path[PATH_BYTES_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s-%u.pb.gz", folder, program_invocation_short_name, count++);
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 || write(file, data, size) != (ssize_t)size) {
        perror(path);
        abort();
    }
    close(file);
}

enum status __wrap_pprof_encode(const struct profile *profile, struct buffer *out, struct error *error)
{
    const char *folder = getenv("OFFBEAT_TEST_PPROF_FOLDER");
    size_t first = out->size;
    enum status status = __real_pprof_encode(profile, out, error);
    if (folder && status == STATUS_OK && !out->failed) keep(folder, out->data + first, out->size - first);
    return status;
}
