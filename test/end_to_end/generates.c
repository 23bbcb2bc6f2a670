/* Generates a function at run time, names it as JIT compilers do, in /tmp/perf-PID.map, and calls it until it is ended.
 * The argument says what is at that path: map, link (to a file elsewhere), fifo, or earlier (a file that is older than
 * the process).  SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Counts its argument down, with a frame pointer. */
#if defined(__x86_64__)
static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0x5d, 0xc3};
#elif defined(__aarch64__)
static const uint32_t code[] = {0xa9bf7bfd, 0x910003fd, 0xf1000400, 0x54ffffe1, 0xa8c17bfd, 0xd65f03c0};
#endif

static int write_map(const char *path, const void *generated)
{
    FILE *file = fopen(path, "w");
    if (!file) return 1;
    (void)fprintf(file, "%llx %zx counts_down_generated\n", (unsigned long long)(uintptr_t)generated, sizeof(code));
    return fclose(file);
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "map";
    char path[64], other[64];
    void *generated = mmap(NULL, sizeof(code), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (generated == MAP_FAILED) return 1;
    memcpy(generated, code, sizeof(code));
    if (mprotect(generated, sizeof(code), PROT_READ | PROT_EXEC) != 0) return 1;
    (void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
    (void)snprintf(other, sizeof(other), "/tmp/other-%d.map", (int)getpid());
    (void)unlink(path);
    int error = 0;
    if (strcmp(kind, "fifo") == 0)
        error = mkfifo(path, 0666);
    else if (strcmp(kind, "link") == 0)
        error = write_map(other, generated) || symlink(other, path);
    else
        error = write_map(path, generated);
    const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    if (strcmp(kind, "earlier") == 0) error |= utimensat(AT_FDCWD, path, long_ago, 0);
    if (error) return 1;
    (void)puts("ready");
    (void)fflush(stdout);
    uint64_t (*count_down)(uint64_t) = (uint64_t(*)(uint64_t))(uintptr_t)generated;
    for (;;) (void)count_down(10000000);
}
