/* Files that are cut short: a decoder rejects them, with a place and a reason, or what it accepts is all of the
 * profile, or says that it is not. Lines of some text formats are independent: there, nobody can see that the rest is
 * missing.
 *
 *     cut LENGTHS FILE|FOLDER…
 *
 * Each file is cut at LENGTHS lengths, a small one at all of them; a compressed one once decompressed. One TAP case an
 * argument.  SPDX-License-Identifier: MIT */
#include "base/file.h"
#include "format/common/format_ops.h"
#include "format/format.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPEN_FOLDERS_MAX = 8,
    UNKNOWN_BYTES_MAX = 512, /* shorter files need not be recognised */
    PLACELESS_BYTES_MAX = 16,
};

/* The counts that must not shrink without a message. */
struct reading {
    enum status status;
    const struct format *format;
    struct error error;
    size_t samples, remarks; /* REMARKS: facts and comments */
    bool is_unfinished;      /* says it */
    uint64_t sums[PROFILE_VALUES_MAX];
};

static size_t length_max;
static unsigned file_count, cut_count, failure_count;

static struct reading read_bytes(struct slice bytes)
{
    struct reading reading = {0};
    struct profile profile;
    profile_init(&profile);
    reading.status = format_decode(bytes, &profile, &reading.format, &reading.error);
    reading.samples = profile.samples.count;
    reading.remarks = profile.metadata.count + profile.comments.count;
    for (size_t i = 0; i < profile.samples.count; i++) {
        const int64_t *values = profile_sample_values(&profile, i);
        for (size_t k = 0; k < profile.value_type_count; k++) reading.sums[k] += (uint64_t)values[k];
    }
    for (size_t i = 0; i < profile.metadata.count; i++)
        reading.is_unfinished |=
            strcmp(profile_c_string(&profile, profile.metadata.items[i].key), "list_not_ended") == 0;
    reading.is_unfinished |= profile.omissions.count > 0;
    profile_fini(&profile);
    return reading;
}

/* Each line, or each record of perf in a pipe, says all of its sample, and nothing comes after the last. */
static bool has_no_end(const struct format *format)
{
    static const char *const names[] = {"collapsed", "bpftrace", "dtrace", "perf-script"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(format_name(format), names[i]) == 0) return true;
    return false;
}

static bool is_pipe_of_perf(struct slice file)
{
    return file.size > 8 && memcmp(file.data, "PERFILE2\x10", 9) == 0;
}

/* NULL: nothing is wrong. */
static const char *find_fault(struct slice file, const struct reading *whole, size_t length, const struct reading *cut)
{
    if (cut->status == STATUS_NOT_THIS_FORMAT) {
        bool may_be_unknown = length < UNKNOWN_BYTES_MAX || strcmp(format_name(whole->format), "otlp") == 0;
        return may_be_unknown ? NULL : "is not recognised";
    }
    if (cut->status != STATUS_OK) {
        if (cut->error.message[0] == '\0') return "is rejected without a reason";
        return cut->error.offset == 0 && length > PLACELESS_BYTES_MAX ? "is rejected without a place" : NULL;
    }
    if (cut->format != whole->format) return "is read as another format";
    bool is_all = cut->samples == whole->samples && memcmp(cut->sums, whole->sums, sizeof(cut->sums)) == 0;
    bool is_stated = cut->remarks > whole->remarks || cut->is_unfinished;
    if (is_all || is_stated || has_no_end(whole->format) || is_pipe_of_perf(file)) return NULL;
    return "is read as if it were whole";
}

static void cut_file(const char *path, struct slice file)
{
    const struct reading whole = read_bytes(file);
    if (whole.status != STATUS_OK) return;
    size_t step = file.size / length_max + 1;
    file_count++;
    for (size_t length = 1; length < file.size; length += step) {
        uint8_t *bytes = malloc(length); /* exact size: a sanitizer sees each read past the end */
        if (!bytes) exit(1);
        memcpy(bytes, file.data, length);
        struct reading cut = read_bytes(slice_of(bytes, length));
        free(bytes);
        cut_count++;
        const char *fault = find_fault(file, &whole, length, &cut);
        if (!fault) continue;
        printf("# %s (%s) cut to %zu of %zu bytes %s: %s %s\n", path, format_name(whole.format), length, file.size,
               fault, format_name(cut.format), cut.error.message);
        failure_count++;
        return;
    }
}

static int visit(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    struct buffer file, storage;
    struct slice raw;
    if (kind != FTW_F || facts->st_size == 0) return 0;
    buffer_init(&file, FORMAT_BYTES_MAX);
    if (file_read(path, &file, NULL) != STATUS_OK) exit(1);
    bool is_read = format_decompress(buffer_slice(&file), FORMAT_BYTES_MAX, &storage, &raw, NULL) == STATUS_OK;
    if (is_read) cut_file(path, raw);
    buffer_fini(&storage);
    buffer_fini(&file);
    return 0;
}

int main(int argc, char **argv)
{
    bool has_failed = false;
    if (argc < 3) return 2;
    length_max = strtoull(argv[1], NULL, 10);
    for (int i = 2; i < argc; i++) {
        file_count = cut_count = failure_count = 0;
        bool is_there = nftw(argv[i], visit, OPEN_FOLDERS_MAX, FTW_PHYS) == 0;
        bool is_good = is_there && file_count > 0 && failure_count == 0;
        has_failed |= !is_good;
        printf("%s %d - %u cuts of %u files of %s are rejected, or it is known what is missing\n",
               is_good ? "ok" : "not ok", i - 1, cut_count, file_count, argv[i]);
    }
    printf("1..%d\n", argc - 2);
    return has_failed;
}
