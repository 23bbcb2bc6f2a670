/* A folder with a file for each envelope, TIME-SIZE-UUID.envelope: sorted by name they are sorted by time, and a
 * listing contains all that is needed to keep the maxima.
 *
 * Storing: UUID.tmp is created, locked, written and fsynced, then renamed; a name that ends with .envelope is never
 * half an envelope. Claiming: the file is locked (flock) without waiting, and then must still have a name: its previous
 * holder may have deleted it. Only the holder of the lock deletes. Locks end with their process, so after kill -9 only
 * .tmp files need to be tidied: a process that finds one that is not locked deletes it. SPDX-License-Identifier: MIT */
#include "spool/spool.h"

#include "base/clocks.h"
#include "base/array.h"
#include "base/folder_names.h"
#include "base/sort.h"
#include "base/file_descriptor.h"
#include "base/uuid.h"
#include "format/sentry/envelope.h"
#include "spool/exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TIME_DIGITS = 20, SIZE_DIGITS = 10, NAME_LENGTH = TIME_DIGITS + 1 + SIZE_DIGITS + 1 + 32 + 9 };
enum { TEMPORARY_ATTEMPTS_MAX = 8 };
_Static_assert((int)NAME_LENGTH < (int)SPOOL_NAME_SIZE, "names fit");

/* --- The folder --------------------------------------------------------------------------------------------------- */

bool spool_init(struct spool *spool, const char *folder, const char *subfolder)
{
    *spool = (struct spool){.folder.number = -1, .bytes_max = UINT64_MAX, .count_max = SPOOL_FILES_MAX};
    int length = snprintf(spool->path, sizeof(spool->path), "%s/%s", folder, subfolder);
    return length > 0 && (size_t)length < sizeof(spool->path);
}

void spool_fini(struct spool *spool)
{
    own_descriptor_close(&spool->folder);
}

static bool make_folder(const char *path)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* A folder of somebody else's could be made to hold anything. */
static bool is_ours(int folder)
{
    struct stat facts;
    if (fstat(folder, &facts) != 0) return false;
    if (facts.st_uid == geteuid()) return true;
    errno = EPERM;
    return false;
}

static bool is_deleted(int folder)
{
    struct stat facts;
    return fstat(folder, &facts) != 0 || facts.st_nlink == 0;
}

enum status spool_open(struct spool *spool, struct error *error)
{
    if (own_descriptor_is_there(&spool->folder) && !is_deleted(spool->folder.number)) return STATUS_OK;
    spool_fini(spool);
    char parent[PATH_MAX];
    memcpy(parent, spool->path, sizeof(parent));
    *strrchr(parent, '/') = 0;
    if (!make_folder(parent) || !make_folder(spool->path))
        return error_set_errno(error, "spool: cannot make %.150s", spool->path);
    int folder = descriptor_move_up(open(spool->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (folder < 0) return error_set_errno(error, "spool: cannot open %.150s", spool->path);
    if (!is_ours(folder)) {
        enum status status = error_set_errno(error, "spool: %.150s is not ours", spool->path);
        (void)close(folder);
        return status;
    }
    spool->folder = own_descriptor_of(folder);
    return STATUS_OK;
}

/* --- What is in it ---------------------------------------------------------------------------------------------- */

struct entry {
    char name[SPOOL_NAME_SIZE];
    uint64_t size;
};

struct listing {
    struct entry *items; /* the oldest first */
    size_t count, capacity;
    uint64_t bytes;
};

/* Opens and locks NAME if nobody else has it. */
static int try_lock(const struct spool *spool, const char *name)
{
    struct stat facts;
    int descriptor =
        descriptor_move_up(openat(spool->folder.number, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (descriptor < 0) return -1;
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0 && fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode) &&
        facts.st_nlink > 0)
        return descriptor;
    (void)close(descriptor);
    return -1;
}

static void delete_if_left(const struct spool *spool, const char *name)
{
    int descriptor = try_lock(spool, name);
    if (descriptor < 0) return;
    (void)unlinkat(spool->folder.number, name, 0);
    (void)close(descriptor);
}

static void list_file(const struct spool *spool, const char *name, struct listing *listing)
{
    if (exchange_has_suffix(name, ".tmp")) delete_if_left(spool, name);
    if (strlen(name) != NAME_LENGTH || !exchange_has_suffix(name, ".envelope")) return;
    if (!array_reserve(&listing->items, &listing->capacity, listing->count + 1, sizeof(struct entry), SPOOL_FILES_MAX))
        return;
    struct entry *entry = &listing->items[listing->count++];
    (void)snprintf(entry->name, sizeof(entry->name), "%s", name);
    entry->size = strtoull(name + TIME_DIGITS + 1, NULL, 10);
    listing->bytes += entry->size;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static void listing_fini(struct listing *listing)
{
    free(listing->items);
}

/* The caller finishes LISTING in every case. */
static enum status list(const struct spool *spool, struct listing *listing, struct error *error)
{
    *listing = (struct listing){0};
    int copy = openat(spool->folder.number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* with its own position */
    if (copy < 0) return error_set_errno(error, "spool: cannot list");
    struct folder_names names;
    folder_of(&names, copy);
    for (const char *name; (name = folder_next(&names));) list_file(spool, name, listing);
    sort_in_place(listing->items, listing->count, sizeof(struct entry), compare_names);
    return STATUS_OK;
}

/* --- Claiming ----------------------------------------------------------------------------------------------------- */

static bool read_all(int descriptor, uint64_t size, struct buffer *bytes)
{
    struct stat facts;
    if (fstat(descriptor, &facts) != 0 || (uint64_t)facts.st_size != size) return false;
    uint8_t *place = size <= ENVELOPE_BYTES_MAX ? buffer_reserve(bytes, (size_t)size) : NULL;
    size_t done = 0;
    while (place && done < size) {
        ssize_t got = pread(descriptor, place + done, (size_t)size - done, (off_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += (size_t)got;
    }
    if (place) buffer_grow(bytes, (size_t)size);
    return place != NULL;
}

static bool claim_entry(const struct spool *spool, const struct entry *entry, struct spool_claim *ret_claim,
                        struct buffer *bytes)
{
    int descriptor = try_lock(spool, entry->name);
    if (descriptor < 0) return false;
    if (!read_all(descriptor, entry->size, bytes)) {
        (void)close(descriptor);
        return false;
    }
    *ret_claim =
        (struct spool_claim){.file = own_descriptor_of(descriptor), .time_ns = strtoull(entry->name, NULL, 10)};
    memcpy(ret_claim->name, entry->name, sizeof(entry->name));
    return true;
}

enum status spool_claim(struct spool *spool, uint64_t since_ns, struct spool_claim *ret_claim, struct buffer *bytes,
                        struct error *error)
{
    struct listing listing = {0};
    enum status status = spool_open(spool, error);
    if (status == STATUS_OK) status = list(spool, &listing, error);
    if (status == STATUS_OK) {
        status = STATUS_NOT_FOUND;
        for (size_t i = 0; i < listing.count && status == STATUS_NOT_FOUND; i++) {
            if (strtoull(listing.items[i].name, NULL, 10) < since_ns) continue;
            if (claim_entry(spool, &listing.items[i], ret_claim, bytes)) status = STATUS_OK;
        }
        if (status == STATUS_NOT_FOUND) (void)error_set(error, status, 0, "spool: nothing to send");
    }
    listing_fini(&listing);
    return status;
}

uint64_t spool_oldest_ns(struct spool *spool)
{
    struct listing listing = {0};
    struct error error;
    uint64_t oldest_ns = UINT64_MAX;
    if (spool_open(spool, &error) == STATUS_OK && list(spool, &listing, &error) == STATUS_OK && listing.count > 0)
        oldest_ns = strtoull(listing.items[0].name, NULL, 10);
    listing_fini(&listing);
    return oldest_ns;
}

void spool_remove(struct spool *spool, struct spool_claim *claim)
{
    struct error error;
    if (spool_open(spool, &error) == STATUS_OK) (void)unlinkat(spool->folder.number, claim->name, 0);
    spool_release(claim);
}

void spool_release(struct spool_claim *claim)
{
    own_descriptor_close(&claim->file);
}

/* --- Storing ------------------------------------------------------------------------------------------------------ */

static void drop(struct spool *spool, const struct entry *entry, struct listing *listing, size_t *left,
                 struct discards *dropped)
{
    struct buffer bytes = {.maximum = ENVELOPE_BYTES_MAX};
    int descriptor = try_lock(spool, entry->name);
    if (descriptor < 0) return;
    if (read_all(descriptor, entry->size, &bytes)) {
        discards_add_envelope(dropped, DISCARD_CACHE_OVERFLOW, buffer_slice(&bytes));
    } else {
        discards_add(dropped, DISCARD_CACHE_OVERFLOW, CATEGORY_DEFAULT, 1); /* damaged since it was stored */
    }
    (void)unlinkat(spool->folder.number, entry->name, 0);
    (void)close(descriptor);
    listing->bytes -= entry->size;
    (*left)--;
    buffer_fini(&bytes);
}

static enum status make_room(struct spool *spool, size_t size, struct discards *dropped, struct error *error)
{
    struct listing listing = {0};
    if (size > spool->bytes_max) return error_set(error, STATUS_TOO_LARGE, 0, "spool: larger than all of it may be");
    enum status status = list(spool, &listing, error);
    size_t left = listing.count;
    for (size_t i = 0; status == STATUS_OK && i < listing.count; i++) {
        if (left < spool->count_max && listing.bytes <= spool->bytes_max - size) break;
        drop(spool, &listing.items[i], &listing, &left, dropped);
    }
    if (status == STATUS_OK && (left >= spool->count_max || listing.bytes > spool->bytes_max - size))
        status = error_set(error, STATUS_TOO_LARGE, 0, "spool: full of what is being sent");
    listing_fini(&listing);
    return status;
}

/* Makes and locks a file that is to be renamed. Between the two somebody may take it for one that was left. */
static int make_temporary(const struct spool *spool, const char *name)
{
    struct stat facts;
    for (unsigned i = 0; i < TEMPORARY_ATTEMPTS_MAX; i++) {
        int descriptor = openat(spool->folder.number, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (descriptor < 0) return -1;
        if (flock(descriptor, LOCK_EX) == 0 && fstat(descriptor, &facts) == 0 && facts.st_nlink > 0) return descriptor;
        (void)close(descriptor);
    }
    errno = EAGAIN;
    return -1;
}

/* Writes BYTES to FILE, which the program may close meanwhile, because it may take long. */
static bool write_durably(const struct own_descriptor *file, struct slice bytes)
{
    for (size_t done = 0; done < bytes.size;) {
        if (!own_descriptor_is_there(file)) return false;
        ssize_t written = write(file->number, bytes.data + done, bytes.size - done);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return false;
        done += (size_t)written;
    }
    return own_descriptor_is_there(file) && fsync(file->number) == 0;
}

/* Names an envelope of SIZE bytes; RET_TEMPORARY, which may be NULL, is its name until it is complete. */
static bool name_envelope(const char *owner, uint64_t size, char ret_name[SPOOL_NAME_SIZE],
                          char ret_temporary[SPOOL_NAME_SIZE])
{
    char uuid[UUID_TEXT_SIZE];
    if (!uuid_new(uuid)) return false;
    if (owner[0]) memcpy(uuid, owner, SPOOL_OWNER_SIZE - 1);
    (void)snprintf(ret_name, SPOOL_NAME_SIZE, "%0*" PRIu64 "-%0*" PRIu64 "-%s.envelope", TIME_DIGITS, clock_utc_ns(),
                   SIZE_DIGITS, size, uuid);
    if (ret_temporary) (void)snprintf(ret_temporary, SPOOL_NAME_SIZE, "%s.tmp", uuid);
    return true;
}

void spool_owner_of(const char *name, char ret_owner[SPOOL_OWNER_SIZE])
{
    enum { OWNER_AT = TIME_DIGITS + 1 + SIZE_DIGITS + 1 };
    bool has_owner = strlen(name) == NAME_LENGTH;
    (void)snprintf(ret_owner, SPOOL_OWNER_SIZE, "%.16s", has_owner ? name + OWNER_AT : "");
}

static enum status write_and_rename(const struct spool *spool, struct slice bytes, struct error *error)
{
    char temporary[SPOOL_NAME_SIZE], name[SPOOL_NAME_SIZE];
    if (!name_envelope(spool->owner, bytes.size, name, temporary))
        return error_set(error, STATUS_IO, 0, "spool: no random bytes for a name");
    int descriptor = make_temporary(spool, temporary);
    if (descriptor < 0) return error_set_errno(error, "spool: cannot create a file");
    struct own_descriptor file = own_descriptor_of(descriptor);
    enum status status = STATUS_OK;
    if (!write_durably(&file, bytes) || renameat(spool->folder.number, temporary, spool->folder.number, name) != 0) {
        status = error_set_errno(error, "spool: cannot write");
        (void)unlinkat(spool->folder.number, temporary, 0);
    }
    own_descriptor_close(&file);
    if (status == STATUS_OK) (void)fsync(spool->folder.number);
    return status;
}

enum status spool_store(struct spool *spool, struct slice bytes, struct discards *dropped, struct error *error)
{
    enum status status = spool_open(spool, error);
    if (status == STATUS_OK) status = make_room(spool, bytes.size, dropped, error);
    if (status == STATUS_OK) status = write_and_rename(spool, bytes, error);
    return status;
}

enum status spool_take_file(struct spool *spool, const char *path, const char *owner, struct discards *dropped,
                            struct error *error)
{
    char name[SPOOL_NAME_SIZE];
    struct stat facts;
    enum status status = spool_open(spool, error);
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    bool is_durable = file >= 0 && fstat(file, &facts) == 0 && fsync(file) == 0;
    if (status == STATUS_OK && !is_durable) status = error_set_errno(error, "spool: cannot take %.150s", path);
    if (file >= 0) (void)close(file);
    if (status == STATUS_OK) status = make_room(spool, (size_t)facts.st_size, dropped, error);
    if (status == STATUS_OK && !name_envelope(owner, (uint64_t)facts.st_size, name, NULL))
        status = error_set(error, STATUS_IO, 0, "spool: no random bytes for a name");
    if (status == STATUS_OK && renameat(AT_FDCWD, path, spool->folder.number, name) != 0)
        status = error_set_errno(error, "spool: cannot take %.150s", path);
    if (status == STATUS_OK) (void)fsync(spool->folder.number);
    return status;
}
