/* Files with one byte damaged: whatever it is, a decoder accepts or rejects them, in little time and no more memory
 * than doc/formats/limits.md states.
 *
 *     damage COUNT BYTES FILE|FOLDER…
 *
 * Each file gets COUNT damages, or fewer, so that no more than BYTES are decoded for it (0: all of them), but always
 * some; a compressed one gets them once as it is and once decompressed. They are the same in every run. Every file is
 * read by a separate process, so that a crash is reported and the rest continues. One TAP case an argument.
 * SPDX-License-Identifier: MIT */
#include "base/file.h"
#include "format/format.h"

#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    DAMAGES_MIN = 8,
    SECONDS_MAX = 10,       /* CPU time of one decoding */
    WAIT_SECONDS_MAX = 120, /* wall time of one decoding */
    OPEN_FOLDERS_MAX = 8,
    MEMORY_BYTES =
        64 << 20, /* plus MEMORY_BYTES_A_BYTE for each byte of the decompressed file: doc/formats/limits.md */
    MEMORY_BYTES_A_BYTE = 128,
};

/* Shared with the process that decodes, which may crash. */
struct progress {
    uint64_t damage, position;
    uint8_t was, is;
    char complaint[300];
};

static struct progress *progress;
static uint64_t count_max, bytes_max;
static unsigned file_count, damage_count, failure_count;

/* splitmix64 */
static uint64_t next_chance(uint64_t *state)
{
    uint64_t value = *state += 0x9E3779B97F4A7C15u;
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9u;
    value = (value ^ value >> 27) * 0x94D049BB133111EBu;
    return value ^ value >> 31;
}

static double processor_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void decode(struct slice bytes)
{
    struct profile profile;
    struct error error = {0};
    profile_init(&profile);
    double before = processor_seconds();
    (void)alarm(WAIT_SECONDS_MAX);
    enum status status = format_decode(bytes, &profile, NULL, &error);
    double seconds = processor_seconds() - before;
    profile_fini(&profile);
    const char *wrong = NULL;
    if (status == STATUS_NO_MEMORY) wrong = "takes too much memory";
    if (status != STATUS_OK && (error.message[0] == '\0' || error.status != status))
        wrong = "is rejected without a reason";
    if (seconds > SECONDS_MAX) wrong = "takes too long";
    if (wrong) (void)snprintf(progress->complaint, sizeof(progress->complaint), "%s (%s)", wrong, error.message);
}

static uint64_t damages_for(size_t size)
{
    uint64_t count = bytes_max / size;
    if (count < DAMAGES_MIN) count = DAMAGES_MIN;
    return bytes_max == 0 || count > count_max ? count_max : count;
}

/* Damages ORIGINAL again and again until something is wrong. */
static void damage_bytes(struct slice original)
{
    if (original.size == 0) return;
    uint64_t state = original.size;
    uint64_t count = damages_for(original.size);
    uint8_t *bytes = malloc(original.size);
    if (!bytes) _exit(1);
    memcpy(bytes, original.data, original.size);
    for (uint64_t i = 0; i < count && progress->complaint[0] == '\0'; i++) {
        uint64_t chance = next_chance(&state);
        size_t position = (size_t)(chance >> 8) % original.size;
        bytes[position] ^= (uint8_t)(1 + chance % 255);
        progress->damage++;
        progress->position = position;
        progress->was = original.data[position];
        progress->is = bytes[position];
        decode(slice_of(bytes, original.size));
        bytes[position] = original.data[position];
    }
    free(bytes);
}

/* Limits the address space. A sanitizer's build has its own limit: its options reject large allocations. */
static void limit_memory(size_t raw_size)
{
#ifndef __SANITIZE_ADDRESS__
    struct rlimit limit;
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file || fscanf(file, "%zu", &pages) != 1) _exit(1);
    (void)fclose(file);
    limit.rlim_cur = limit.rlim_max =
        pages * (size_t)sysconf(_SC_PAGESIZE) + MEMORY_BYTES + MEMORY_BYTES_A_BYTE * raw_size;
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(1);
#endif
}

static void damage_file(const char *path)
{
    struct buffer file, storage;
    struct slice raw;
    buffer_init(&file, FORMAT_BYTES_MAX);
    if (file_read(path, &file, NULL) != STATUS_OK) _exit(1);
    if (format_decompress(buffer_slice(&file), FORMAT_BYTES_MAX, &storage, &raw, NULL) != STATUS_OK)
        raw = buffer_slice(&file);
    limit_memory(raw.size);
    damage_bytes(buffer_slice(&file));
    if (raw.data != file.data) damage_bytes(raw);
    _exit(progress->complaint[0] ? 1 : 0);
}

static void print_failure(const char *path, int status)
{
    const char *complaint = progress->complaint;
    if (WIFSIGNALED(status)) complaint = WTERMSIG(status) == SIGALRM ? "never ends" : strsignal(WTERMSIG(status));
    printf("# %s with byte %" PRIu64 " 0x%02x for 0x%02x: %s\n", path, progress->position, progress->is, progress->was,
           complaint[0] ? complaint : "cannot be tried");
    failure_count++;
}

static int visit(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    if (kind != FTW_F || facts->st_size == 0) return 0;
    memset(progress, 0, sizeof(*progress));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) damage_file(path);
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) print_failure(path, status);
    damage_count += (unsigned)progress->damage;
    file_count++;
    return 0;
}

int main(int argc, char **argv)
{
    progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (argc < 4 || progress == MAP_FAILED) return 2;
    count_max = strtoull(argv[1], NULL, 10);
    bytes_max = strtoull(argv[2], NULL, 10);
    bool has_failed = false;
    for (int i = 3; i < argc; i++) {
        file_count = damage_count = failure_count = 0;
        bool is_there = nftw(argv[i], visit, OPEN_FOLDERS_MAX, FTW_PHYS) == 0;
        has_failed |= failure_count > 0;
        if (is_there) {
            printf("%s %d - %u damages of %u files of %s are read or rejected\n", failure_count ? "not ok" : "ok",
                   i - 2, damage_count, file_count, argv[i]);
        } else {
            printf("ok %d - damages of %s # SKIP it is not beside this repository\n", i - 2, argv[i]);
        }
    }
    printf("1..%d\n", argc - 3);
    return has_failed;
}
