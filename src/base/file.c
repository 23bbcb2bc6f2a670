/* Reads and writes whole files through descriptors. Writing makes a temporary file in the directory of the target, as
 * rename is atomic only within one file system.  SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    READ_BYTES = 64 << 10,
    ATTEMPTS_MAX = 100, /* names tried for a temporary file */
};

static bool is_standard_stream(const char *path)
{
    return strcmp(path, "-") == 0;
}

static enum status read_to_end(int descriptor, struct buffer *out, struct error *error)
{
    for (;;) {
        /* Reads what fits, then one byte more, to distinguish a full buffer from a file that is too large. */
        size_t left = out->maximum - out->size;
        size_t spare = out->capacity - out->size;
        size_t wanted = spare > 0 ? spare : READ_BYTES;
        if (wanted > left) wanted = left;
        uint8_t one_more;
        uint8_t *place = wanted > 0 ? buffer_reserve(out, wanted) : &one_more;
        if (!place) return error_set(error, STATUS_NO_MEMORY, out->size, "not enough memory to read it");
        ssize_t got = read(descriptor, place, wanted > 0 ? wanted : 1);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return error_set_errno(error, "cannot read");
        if (got == 0) return STATUS_OK;
        if (wanted == 0) return error_set(error, STATUS_TOO_LARGE, out->size, "larger than %zu bytes", out->maximum);
        buffer_grow(out, (size_t)got);
    }
}

enum status file_read(const char *path, struct buffer *out, struct error *error)
{
    if (is_standard_stream(path)) return read_to_end(STDIN_FILENO, out, error);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor < 0) return error_set_errno(error, "cannot open");

    struct stat facts;
    if (fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0) {
        /* If the file has a size, one allocation is enough; the additional byte is for noticing the end. */
        size_t size = (size_t)facts.st_size;
        if (size < out->maximum - out->size) (void)buffer_reserve(out, size + 1);
    }
    enum status status = out->failed ? error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to read it")
                                     : read_to_end(descriptor, out, error);
    (void)close(descriptor);
    return status;
}

enum status file_write_descriptor(int descriptor, struct slice bytes, struct error *error)
{
    size_t done = 0;
    while (done < bytes.size) {
        ssize_t written = write(descriptor, bytes.data + done, bytes.size - done);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return error_set_errno(error, "cannot write");
        done += (size_t)written;
    }
    return STATUS_OK;
}

static enum status write_and_close(int descriptor, struct slice bytes, struct error *error)
{
    enum status status = file_write_descriptor(descriptor, bytes, error);
    /* Some file systems report only now that there is no room. */
    if (close(descriptor) != 0 && status == STATUS_OK) status = error_set_errno(error, "cannot write");
    return status;
}

static enum status write_in_place(const char *path, struct slice bytes, struct error *error)
{
    int descriptor = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor < 0) return error_set_errno(error, "cannot open for writing");
    return write_and_close(descriptor, bytes, error);
}

/* Opens a new file beside PATH, with the permissions that the umask leaves. RET_NAME is PATH with a suffix; a name as
 * long as the file system allows is cut, so that the suffix fits. */
static int open_beside(const char *path, char *ret_name, size_t name_size)
{
    enum { SUFFIX_BYTES_MAX = sizeof(".-2147483648-99.tmp") };
    const char *slash = strrchr(path, '/');
    size_t name_begin = slash ? (size_t)(slash + 1 - path) : 0;
    int kept = (int)(name_begin + strnlen(path + name_begin, NAME_MAX - SUFFIX_BYTES_MAX));
    for (unsigned attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        int length = snprintf(ret_name, name_size, "%.*s.%d-%u.tmp", kept, path, getpid(), attempt);
        if (length < 0 || (size_t)length >= name_size) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int descriptor = open(ret_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0 || errno != EEXIST) return descriptor;
    }
    return -1;
}

/* REPLACED is what PATH names now, or NULL. */
static enum status write_and_rename(const char *path, const struct stat *replaced, struct slice bytes,
                                    struct error *error)
{
    char temporary[PATH_MAX];
    int descriptor = open_beside(path, temporary, sizeof(temporary));
    if (descriptor < 0) return error_set_errno(error, "cannot create");
    if (replaced) (void)fchmod(descriptor, replaced->st_mode & 0777);
    enum status status = write_and_close(descriptor, bytes, error);
    if (status == STATUS_OK && rename(temporary, path) != 0)
        status = error_set_errno(error, replaced ? "cannot replace" : "cannot create");
    if (status != STATUS_OK) (void)unlink(temporary);
    return status;
}

/* The kernel raises SIGXFSZ beside the error that a write over the size limit returns. The signal would end the program
 * that the library is in, and the error says enough. */
static void discard_size_signal(const sigset_t *pending_before)
{
    const struct timespec no_time = {0};
    sigset_t size_signal;
    if (sigismember(pending_before, SIGXFSZ)) return;
    (void)sigemptyset(&size_signal);
    (void)sigaddset(&size_signal, SIGXFSZ);
    while (sigtimedwait(&size_signal, NULL, &no_time) < 0 && errno == EINTR) continue;
}

/* A signal that ends the process comes when the file is whole or gone, and leaves no half of one after. */
static enum status write_regular(const char *path, const struct stat *replaced, struct slice bytes, struct error *error)
{
    static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
    sigset_t held, before, pending;
    (void)sigemptyset(&held);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) (void)sigaddset(&held, ends[i]);
    (void)pthread_sigmask(SIG_BLOCK, &held, &before);
    (void)sigpending(&pending);
    enum status status = write_and_rename(path, replaced, bytes, error);
    if (status != STATUS_OK) discard_size_signal(&pending);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

enum status file_write(const char *path, struct slice bytes, struct error *error)
{
    if (is_standard_stream(path)) return file_write_descriptor(STDOUT_FILENO, bytes, error);

    struct stat facts;
    if (stat(path, &facts) != 0) {
        /* Keep a dangling link: /dev/stdout is one where standard output is closed. */
        if (lstat(path, &facts) == 0) return error_set_errno(error, "cannot follow the symbolic link");
        return write_regular(path, NULL, bytes, error);
    }
    if (!S_ISREG(facts.st_mode)) return write_in_place(path, bytes, error);
    char resolved[PATH_MAX];
    if (!realpath(path, resolved)) return error_set_errno(error, "cannot find");
    /* A rename would ask the folder alone. */
    if (faccessat(AT_FDCWD, resolved, W_OK, AT_EACCESS) != 0) return error_set_errno(error, "cannot replace");
    return write_regular(resolved, &facts, bytes, error);
}

void file_make_folders_above(char *path, size_t from)
{
    for (char *slash = strchr(path + from, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
}

void file_make_folders(char *path)
{
    file_make_folders_above(path, 1);
    (void)mkdir(path, 0700);
}
