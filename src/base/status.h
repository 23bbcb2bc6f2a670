/* One vocabulary for what can go wrong.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_STATUS_H
#define OFFBEAT_BASE_STATUS_H

#include <stdint.h>

enum status {
    STATUS_OK = 0,
    STATUS_NOT_THIS_FORMAT, /* the bytes are of another kind: try the next decoder */
    STATUS_MALFORMED,       /* the right kind, but broken */
    STATUS_TOO_LARGE,       /* a stated maximum would be exceeded */
    STATUS_UNSUPPORTED,     /* valid, but not something we can do */
    STATUS_NO_MEMORY,
    STATUS_IO,        /* the operating system reported an error; errno_value says how */
    STATUS_NOT_FOUND, /* no such file, process, symbol, … */
};

/* An error and its place. Filled only on failure. MESSAGE is owned by the struct, so that an error can be
 * returned by value and kept. */
struct error {
    enum status status;
    int errno_value; /* 0 unless STATUS_IO or STATUS_NOT_FOUND came from a system call */
    uint64_t offset; /* byte of the input at which it was noticed; 0 where that means nothing */
    char message[232];
};

/* Sets ERROR (which may be NULL) and returns STATUS, so that callers write `return error_set(...)`.
 * FORMAT as printf; a message that is too long is cut. */
enum status error_set(struct error *error, enum status status, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Does the same as error_set for STATUS_IO (STATUS_NOT_FOUND for ENOENT), adding the text of errno. */
enum status error_set_errno(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* clang's analyzer reads one file at a time and does not follow variadic functions. These say what status.c returns:
 * otherwise it assumes after each error that the status might be STATUS_OK. */
#ifdef __clang_analyzer__
#include <errno.h>
#define error_set(error, status, ...) ((void)error_set(error, status, __VA_ARGS__), (status))
#define error_set_errno(...) ((void)error_set_errno(__VA_ARGS__), errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO)
#endif

#endif
