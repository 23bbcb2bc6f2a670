/* Envelopes on disk, until they are sent. Any number of processes may have the same spool, and each sends what is
 * there, whichever process stored it: an envelope that was stored is in the hands of one process at a time, and of none
 * that has died. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SPOOL_SPOOL_H
#define OFFBEAT_SPOOL_SPOOL_H

#include "base/buffer.h"
#include "base/status.h"
#include "spool/discards.h"
#include "spool/own_descriptor.h"

#include <limits.h>

enum { SPOOL_NAME_SIZE = 80, SPOOL_FILES_MAX = 4096 };

enum { SPOOL_OWNER_SIZE = 17 };

/* All members are private, save the last three, which may be set after spool_init. One thread at a time. */
struct spool {
    char path[PATH_MAX];
    struct own_descriptor folder;
    uint64_t bytes_max;
    size_t count_max;             /* maximum number of files, up to SPOOL_FILES_MAX */
    char owner[SPOOL_OWNER_SIZE]; /* 16 hex digits that each name of a stored envelope has; "": random ones */
};

/* An envelope that nobody else has, by a lock on its file, which the kernel lets go if we die. */
struct spool_claim {
    struct own_descriptor file;
    char name[SPOOL_NAME_SIZE];
    uint64_t time_ns; /* UTC: when it was stored */
};

/* Prepares SPOOL without touching a file; spool_open makes SUBFOLDER, but nothing above FOLDER's last part. False if
 * the path is too long. */
bool spool_init(struct spool *spool, const char *folder, const char *subfolder);
void spool_fini(struct spool *spool); /* the files stay */

/* Opens the folder, made with mode 0700 if there is none; fails if it is not ours. The other functions call it. */
enum status spool_open(struct spool *spool, struct error *error);

/* Writes BYTES to a file that outlasts us and a power cut: the file is complete or not there at all. If the spool would
 * exceed its maxima, the oldest files that no process has claimed are deleted and counted in DROPPED as cache_overflow;
 * several processes that store at once may pass a maximum by one envelope each. STATUS_TOO_LARGE if it does not fit
 * even so. After STATUS_IO (a full disk, …) nothing was stored, and no file remains. */
enum status spool_store(struct spool *spool, struct slice bytes, struct discards *dropped, struct error *error);

/* Moves the file at PATH, of the same file system, into the spool as an envelope of OWNER. As spool_store. */
enum status spool_take_file(struct spool *spool, const char *path, const char *owner, struct discards *dropped,
                            struct error *error);
/* Returns the owner in NAME, the name of a file of the spool. */
void spool_owner_of(const char *name, char ret_owner[SPOOL_OWNER_SIZE]);

/* Claims the oldest unclaimed envelope that was stored at SINCE_NS (UTC) or later, and appends it to BYTES.
 * STATUS_NOT_FOUND if there is none. Skips files that cannot be read. Also deletes the files of processes that died
 * while they stored. */
enum status spool_claim(struct spool *spool, uint64_t since_ns, struct spool_claim *ret_claim, struct buffer *bytes,
                        struct error *error);
/* Returns the time (UTC) at which the oldest envelope was stored; UINT64_MAX if there is none. */
uint64_t spool_oldest_ns(struct spool *spool);
/* Deletes the file of CLAIM, which was sent or given up. */
void spool_remove(struct spool *spool, struct spool_claim *claim);
/* Gives up CLAIM: any process may send it later. */
void spool_release(struct spool_claim *claim);

#endif
