/* Profiles a program that does not know liboffbeat.so, by LD_PRELOAD and OFFBEAT_… variables. With the variables of
 * `offbeat record` the library writes recordings; with OFFBEAT_DSN or SENTRY_DSN it sends profiles. Without them it
 * does nothing; with OFFBEAT_DEBUG it says so.  SPDX-License-Identifier: MIT */
#include "base/environment.h"
#include "base/percent.h"
#include "base/seccomp_filter.h"
#include "format/recording/record_environment.h"
#include "sampler/sampler.h"
#include "sdk/aside.h"
#include "sdk/program_name.h"
#include "sdk/sdk_private.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

const char *gnu_get_libc_version(void);
#pragma weak gnu_get_libc_version

/* False with another C library, where nothing of this library may start (other_libc.c). Called by the loader, too. */
static bool is_gnu_libc(void)
{
    return gnu_get_libc_version != NULL;
}

/* True under Valgrind, which preloads its own library: it runs a translation of the program, and stacks would be of the
 * translation. */
static bool is_translated(void)
{
    const char *libraries = environment_get("LD_PRELOAD");
    return libraries && strstr(libraries, "/vgpreload_");
}

static uint64_t number_or(const char *name, uint64_t otherwise)
{
    const char *text = environment_get(name);
    char *end = NULL;
    if (!text || !*text) return otherwise;
    unsigned long long number = strtoull(text, &end, 10);
    return *end == '\0' ? number : otherwise;
}

static bool is_recording, ends_last;

/* Registers a handler with libc. If it belongs to no library, it runs after the destructors of the libraries that were
 * loaded when it was registered. */
int __cxa_atexit(void (*handler)(void *), void *argument, void *library);

bool preload_is_recording(void)
{
    return is_recording;
}

static void stop_recording(void *unused)
{
    KEEP_ERRNO;
    if (is_recording) sampler_stop();
}

void sdk_end_recording(void)
{
    if (is_recording && sampler_is_present()) sampler_stop();
}

/* False if `offbeat record` has ended sampling (record_folder_close). */
static bool takes_recordings(const char *directory)
{
    struct stat status;
    return stat(directory, &status) != 0 || (status.st_mode & S_IWUSR);
}

static void record_process(const char *directory)
{
    const char *mode = environment_get(RECORD_ENVIRONMENT_MODE);
    uint64_t frequency = number_or(RECORD_ENVIRONMENT_FREQUENCY, SAMPLER_FREQUENCY_DEFAULT);
    uint64_t only_pid = number_or(RECORD_ENVIRONMENT_ONLY_PID, 0);
    if (only_pid && only_pid != (uint64_t)getpid()) return;
    if (!takes_recordings(directory)) return;
    if (frequency < 1 || frequency > SAMPLER_FREQUENCY_MAX) return;
    uint32_t cpu_max_ppm = 0;
    const char *cpu_max = environment_get(RECORD_ENVIRONMENT_CPU_MAX);
    if (cpu_max && *cpu_max && !percent_parse(cpu_max, &cpu_max_ppm)) return;
    char script[NAME_MAX + 1];
    struct sampler_options options = {
        .shows_interpreter = environment_get(RECORD_ENVIRONMENT_NATIVE) != NULL,
        .script = program_name(script) ? script : NULL,
        .cpu_max_ppm = cpu_max_ppm,
        .frequency_hz = (uint32_t)frequency,
        .mode = mode && strcmp(mode, "cpu") == 0 ? RECORDING_CPU : RECORDING_WALL,
        .duration_ns = number_or(RECORD_ENVIRONMENT_DURATION_MS, 0) * 1000000,
        .ignores_children = only_pid != 0,
        .cache_directory = environment_get(RECORD_ENVIRONMENT_CACHE_DIRECTORY),
        .directory = directory,
    };
    filter_try();
    is_recording = sampler_start(&options);
    if (!is_recording) return;
    (void)pthread_atfork(sampler_before_fork, NULL, sampler_after_fork_in_child);
    ends_last = __cxa_atexit(stop_recording, NULL, NULL) == 0; /* this library is never unloaded */
}

static const char *wanted_directory(void)
{
    const char *directory = environment_get(RECORD_ENVIRONMENT_DIRECTORY);
    return directory && directory[0] == '/' && !is_translated() ? directory : NULL;
}

void sdk_record_first(char **environment)
{
    if (!is_gnu_libc()) return;
    KEEP_ERRNO;
    environment_begin(environment);
    const char *directory = wanted_directory();
    if (directory) record_process(directory);
}

__attribute__((constructor)) static void preload_start(void)
{
    if (!is_gnu_libc()) return;
    KEEP_ERRNO;
    const char *directory = wanted_directory(), *dsn = environment_get("OFFBEAT_DSN");
    if (!dsn) dsn = environment_get("SENTRY_DSN");
    const char *libraries = environment_get("LD_PRELOAD"); /* a program that is linked with the library calls init */
    bool is_preloaded = libraries && strstr(libraries, "liboffbeat") && !is_translated();
    if (getauxval(AT_SECURE)) return;
    if (directory && !is_recording)
        record_process(directory);
    else if (!directory && is_preloaded && ((dsn && *dsn) || environment_get("OFFBEAT_DEBUG")))
        sdk_init_preloaded();
}

__attribute__((destructor)) static void preload_stop(void)
{
    if (!ends_last) stop_recording(NULL);
}
