/* What makes liboffbeat.so profile a program that knows nothing of it: LD_PRELOAD and OFFBEAT_… variables, as set by
 * `offbeat record`. A wrong or missing variable leaves the program alone.  SPDX-License-Identifier: MIT */
#include "sampler/sampler.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static uint64_t number_or(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    char *end = NULL;
    if (!text || !*text) return otherwise;
    unsigned long long number = strtoull(text, &end, 10);
    return *end == '\0' ? number : otherwise;
}

__attribute__((constructor)) static void preload_start(void)
{
    int kept_errno = errno;
    const char *directory = getenv("OFFBEAT_RECORD_DIRECTORY");
    const char *mode = getenv("OFFBEAT_MODE");
    uint64_t frequency = number_or("OFFBEAT_FREQUENCY", SAMPLER_FREQUENCY_DEFAULT);
    if (!directory || directory[0] != '/' || getauxval(AT_SECURE)) return;
    uint64_t only_pid = number_or("OFFBEAT_ONLY_PID", 0);
    if (only_pid && only_pid != (uint64_t)getpid()) return;
    if (frequency < 1 || frequency > SAMPLER_FREQUENCY_MAX) return;
    struct sampler_options options = {
        .frequency_hz = (uint32_t)frequency,
        .mode = mode && strcmp(mode, "cpu") == 0 ? RECORDING_CPU : RECORDING_WALL,
        .duration_ns = number_or("OFFBEAT_DURATION_MS", 0) * 1000000,
        .ignores_children = only_pid != 0,
        .cache_directory = getenv("OFFBEAT_CACHE_DIRECTORY"),
        .directory = directory,
    };
    if (sampler_start(&options)) {
        (void)pthread_atfork(NULL, NULL, sampler_after_fork_in_child);
    }
    errno = kept_errno;
}

__attribute__((destructor)) static void preload_stop(void)
{
    int kept_errno = errno;
    sampler_stop();
    errno = kept_errno;
}
