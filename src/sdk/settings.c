/* SPDX-License-Identifier: MIT */
#include "sdk/settings.h"

#include "base/environment.h"
#include "base/percent.h"
#include "base/plain_text.h"
#include "binary/contents_id.h"
#include "binary/elf_file.h"
#include "format/recording/record_environment.h"
#include "format/sentry/sentry_v2.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAME_RATE_MIN 0.001
#define FRAME_RATE_MAX 1e6
#define CPU_PERCENT_MIN 0.1

enum {
    TEXTS_BYTES_MAX = 1 << 20,
    HOST_NAME_BYTES_MAX = 256,
    DEFAULT_TEXTS_BYTES = 3 * PATH_MAX,
    SPOOL_BYTES_DEFAULT = 100 << 20
};

/* --- Texts -------------------------------------------------------------------------------------------------------- */

struct text_option {
    const char *variable;
    size_t offset;
};

static const struct text_option text_options[] = {
    {"OFFBEAT_DSN", offsetof(struct offbeat_options, dsn)},
    {"OFFBEAT_RELEASE", offsetof(struct offbeat_options, release)},
    {"OFFBEAT_ENVIRONMENT", offsetof(struct offbeat_options, environment)},
    {"OFFBEAT_DIST", offsetof(struct offbeat_options, dist)},
    {"OFFBEAT_SERVER_NAME", offsetof(struct offbeat_options, server_name)},
    {"OFFBEAT_IN_APP_INCLUDE", offsetof(struct offbeat_options, in_app_include)},
    {"OFFBEAT_IN_APP_EXCLUDE", offsetof(struct offbeat_options, in_app_exclude)},
    {"OFFBEAT_SPOOL_DIRECTORY", offsetof(struct offbeat_options, spool_directory)},
    {"OFFBEAT_PROXY", offsetof(struct offbeat_options, proxy)},
    {"OFFBEAT_CA_FILE", offsetof(struct offbeat_options, ca_file)},
    {"OFFBEAT_HELPER", offsetof(struct offbeat_options, helper)},
    {"OFFBEAT_PLATFORM", offsetof(struct offbeat_options, platform)},
};
enum { TEXT_OPTION_COUNT = sizeof(text_options) / sizeof(text_options[0]) };

static const char *keep_text(struct settings *settings, const char *text)
{
    struct buffer *texts = &settings->texts;
    size_t at = texts->size;
    buffer_append(texts, text, strlen(text) + 1);
    return texts->failed ? NULL : (const char *)texts->data + at;
}

/* Copies the text options. Reserves all memory at once, so that the texts stay where they are. */
static bool keep_texts(struct settings *settings)
{
    const char *chosen[TEXT_OPTION_COUNT];
    size_t size = DEFAULT_TEXTS_BYTES;
    for (size_t i = 0; i < TEXT_OPTION_COUNT; i++) {
        memcpy(&chosen[i], (const char *)&settings->options + text_options[i].offset, sizeof(chosen[i]));
        if (!chosen[i]) chosen[i] = environment_get(text_options[i].variable);
        if (chosen[i]) size += strlen(chosen[i]) + 1;
    }
    buffer_init(&settings->texts, TEXTS_BYTES_MAX);
    bool has_room = buffer_reserve(&settings->texts, size) != NULL;
    for (size_t i = 0; i < TEXT_OPTION_COUNT; i++) {
        const char *kept = has_room && chosen[i] ? keep_text(settings, chosen[i]) : NULL;
        memcpy((char *)&settings->options + text_options[i].offset, &kept, sizeof(kept));
    }
    return has_room;
}

/* Returns the program's name and its build id, or an id of its code instead (V2-12). */
static const char *default_release(struct settings *settings)
{
    char path[PATH_MAX], release[NAME_MAX + 1 + ELF_BUILD_ID_TEXT_SIZE];
    struct elf_file file;
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (length <= 0) return keep_text(settings, "unknown");
    path[length] = '\0';
    plain_path(path);
    const char *slash = strrchr(path, '/');
    bool is_open = elf_file_open(&file, "/proc/self/exe", NULL) == STATUS_OK;
    char contents_id[BUILD_ID_START_SIZE] = "";
    if (is_open) (void)contents_id_of(&file, contents_id);
    const char *id = is_open && file.build_id[0] ? file.build_id : contents_id;
    (void)snprintf(release, sizeof(release), "%.*s%s%s", NAME_MAX, slash ? slash + 1 : path, id[0] ? "@" : "", id);
    if (is_open) elf_file_close(&file);
    return keep_text(settings, release);
}

/* Returns the folder in which the helper keeps names, too (symbolize/index_store.h). */
static const char *cache_folder(struct settings *settings)
{
    static const struct {
        const char *variable, *folder;
    } places[] = {
        {RECORD_ENVIRONMENT_CACHE_DIRECTORY, ""}, {"XDG_CACHE_HOME", "/offbeat"}, {"HOME", "/.cache/offbeat"}};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const char *start = environment_get(places[i].variable);
        if (!start || start[0] != '/') continue;
        int length = snprintf(path, sizeof(path), "%s%s", start, places[i].folder);
        return (size_t)length < sizeof(path) ? keep_text(settings, path) : NULL;
    }
    return NULL;
}

static void set_default_texts(struct settings *settings)
{
    struct offbeat_options *options = &settings->options;
    char host[HOST_NAME_BYTES_MAX] = "", spool[PATH_MAX];
    settings->cache_folder = cache_folder(settings);
    if (!options->release || !*options->release) options->release = default_release(settings);
    if (!options->environment || !*options->environment) options->environment = keep_text(settings, "production");
    if (!options->spool_directory && settings->cache_folder &&
        (size_t)snprintf(spool, sizeof(spool), "%s/spool", settings->cache_folder) < sizeof(spool))
        options->spool_directory = keep_text(settings, spool);
    if (!options->server_name && gethostname(host, sizeof(host) - 1) == 0)
        options->server_name = keep_text(settings, host);
}

/* --- Numbers, flags and choices ----------------------------------------------------------------------------------- */

static void set_default_numbers(struct offbeat_options *options)
{
    if (options->frequency_hz == 0) options->frequency_hz = 101;
    if (options->chunk_seconds == 0) options->chunk_seconds = 60;
    if (options->shutdown_timeout_ms == 0) options->shutdown_timeout_ms = 2000;
    if (options->spool_bytes_max == 0) options->spool_bytes_max = SPOOL_BYTES_DEFAULT;
    if (options->frame_rate_hz == 0) options->frame_rate_hz = 60;
}

static enum status reject_variable(struct error *error, const char *variable, const char *expected, const char *found)
{
    return error_set(error, STATUS_MALFORMED, 0, "%s must be %s, not \"%.60s\"", variable, expected, found);
}

static enum status read_rate(const char *variable, double *rate, bool *has_rate, struct error *error)
{
    const char *text = environment_get(variable);
    char *end = NULL;
    *has_rate = *rate != 0;
    bool is_zero = *rate == 0 && __builtin_signbit(*rate); /* OFFBEAT_RATE_ZERO */
    if (*has_rate || is_zero || !text || !*text) return STATUS_OK;
    double number = strtod(text, &end);
    if (*end != '\0' || !(number >= 0 && number <= 1))
        return reject_variable(error, variable, "a number from 0 to 1", text);
    *rate = number;
    *has_rate = true;
    return STATUS_OK;
}

static enum status read_number(const char *variable, uint64_t *number, uint64_t minimum, uint64_t maximum,
                               struct error *error)
{
    const char *text = environment_get(variable);
    char expected[80], *end = NULL;
    if (*number != 0 || !text || !*text) return STATUS_OK;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    (void)snprintf(expected, sizeof(expected), "a whole number from %llu to %llu", (unsigned long long)minimum,
                   (unsigned long long)maximum);
    if (*end != '\0' || text[0] == '-' || errno || value < minimum || value > maximum)
        return reject_variable(error, variable, expected, text);
    *number = value;
    return STATUS_OK;
}

static enum status read_number32(const char *variable, uint32_t *number, uint32_t minimum, uint32_t maximum,
                                 struct error *error)
{
    uint64_t wide = *number;
    enum status status = read_number(variable, &wide, minimum, maximum, error);
    *number = (uint32_t)wide;
    return status;
}

static enum status read_percent(const char *variable, double *percent, struct error *error)
{
    const char *text = environment_get(variable);
    uint32_t ppm;
    if (*percent != 0 || !text || !*text) return STATUS_OK;
    if (!percent_parse(text, &ppm) || ppm < PERCENT_PPM * CPU_PERCENT_MIN)
        return reject_variable(error, variable, "a number from 0.1 to 100", text);
    *percent = (double)ppm / PERCENT_PPM;
    return STATUS_OK;
}

/* Makes *FLAG 0 or 1. */
static enum status read_flag(const char *variable, offbeat_flag *flag, struct error *error)
{
    const char *text = environment_get(variable);
    bool is_set = *flag != 0;
    *flag = is_set && *flag != OFFBEAT_FALSE;
    if (is_set || !text || !*text) return STATUS_OK;
    bool is_on = strcmp(text, "1") == 0 || strcmp(text, "true") == 0;
    if (!is_on && strcmp(text, "0") != 0 && strcmp(text, "false") != 0)
        return reject_variable(error, variable, "1, true, 0 or false", text);
    *flag = is_on;
    return STATUS_OK;
}

/* Reads one of two words; OTHER is not the default. */
static enum status read_choice(const char *variable, const char *usual, const char *other, const char *expected,
                               unsigned *choice, struct error *error)
{
    const char *text = environment_get(variable);
    if (*choice != 0 || !text || !*text) return STATUS_OK;
    if (strcmp(text, usual) != 0 && strcmp(text, other) != 0) return reject_variable(error, variable, expected, text);
    *choice = strcmp(text, other) == 0;
    return STATUS_OK;
}

static enum status read_choices(struct offbeat_options *options, struct error *error)
{
    unsigned lifecycle = options->profile_lifecycle, mode = options->mode, symbols = options->symbols;
    enum status status =
        read_choice("OFFBEAT_PROFILE_LIFECYCLE", "manual", "trace", "manual or trace", &lifecycle, error);
    if (status == STATUS_OK) status = read_choice(RECORD_ENVIRONMENT_MODE, "wall", "cpu", "wall or cpu", &mode, error);
    if (status == STATUS_OK)
        status = read_choice("OFFBEAT_SYMBOLS", "local", "receiver", "local or receiver", &symbols, error);
    options->profile_lifecycle = (enum offbeat_lifecycle)lifecycle;
    options->mode = (enum offbeat_mode)mode;
    options->symbols = (enum offbeat_symbols)symbols;
    return status;
}

static enum status read_environment(struct settings *settings, struct error *error)
{
    struct offbeat_options *options = &settings->options;
    bool has_session_rate;
    enum status status = read_flag("OFFBEAT_DEBUG", &options->debug, error);
#define READ(call) status = status == STATUS_OK ? (call) : status
    READ(read_rate("OFFBEAT_PROFILE_SESSION_SAMPLE_RATE", &options->profile_session_sample_rate, &has_session_rate,
                   error));
    READ(read_rate("OFFBEAT_TRACES_SAMPLE_RATE", &options->traces_sample_rate, &settings->has_traces_sample_rate,
                   error));
    READ(read_rate("OFFBEAT_PROFILES_SAMPLE_RATE", &options->profiles_sample_rate, &settings->has_profiles_sample_rate,
                   error));
    READ(read_flag("OFFBEAT_START_PROFILER_ON_APP_START", &options->start_profiler_on_app_start, error));
    READ(read_flag("OFFBEAT_IS_UI", &options->is_ui, error));
    READ(read_flag("OFFBEAT_REPEATS_IDLE", &options->repeats_idle, error));
    READ(read_number32(RECORD_ENVIRONMENT_FREQUENCY, &options->frequency_hz, 1, 10000, error));
    READ(read_number32("OFFBEAT_CHUNK_SECONDS", &options->chunk_seconds, 1, 60, error));
    READ(read_number32("OFFBEAT_SHUTDOWN_TIMEOUT_MS", &options->shutdown_timeout_ms, 1, 3600000, error));
    READ(read_number("OFFBEAT_SPOOL_BYTES_MAX", &options->spool_bytes_max, 1, UINT64_MAX, error));
    READ(read_percent(RECORD_ENVIRONMENT_CPU_MAX, &options->cpu_max_percent, error));
    READ(read_choices(options, error));
#undef READ
    return status;
}

/* --- All settings ------------------------------------------------------------------------------------------------- */

static enum status check_range(const char *name, uint64_t number, uint64_t maximum, struct error *error)
{
    if (number <= maximum) return STATUS_OK;
    return error_set(error, STATUS_MALFORMED, 0, "%s must be from 1 to %llu, not %llu", name,
                     (unsigned long long)maximum, (unsigned long long)number);
}

static enum status check_rate(const char *name, double rate, struct error *error)
{
    if (rate >= 0 && rate <= 1) return STATUS_OK; /* not NaN */
    return error_set(error, STATUS_MALFORMED, 0, "%s must be a number from 0 to 1", name);
}

static enum status check_choice(const char *name, unsigned long choice, unsigned long last, struct error *error)
{
    if (choice <= last) return STATUS_OK;
    return error_set(error, STATUS_MALFORMED, 0, "%s is not a value of its enum", name);
}

static enum status check_options(const struct offbeat_options *options, struct error *error)
{
    enum status status = check_range("frequency_hz", options->frequency_hz, 10000, error);
#define CHECK(call) status = status == STATUS_OK ? (call) : status
    CHECK(check_range("chunk_seconds", options->chunk_seconds, 60, error));
    /* SES-14. The lifecycle checks the rate of sessions. */
    CHECK(check_rate("traces_sample_rate", options->traces_sample_rate, error));
    CHECK(check_rate("profiles_sample_rate", options->profiles_sample_rate, error));
    bool is_rate = options->frame_rate_hz == 0 || /* NaN is no rate */
                   (options->frame_rate_hz >= FRAME_RATE_MIN && options->frame_rate_hz <= FRAME_RATE_MAX);
    if (status == STATUS_OK && !is_rate)
        status = error_set(error, STATUS_MALFORMED, 0, "frame_rate_hz must be from %g to %g", FRAME_RATE_MIN,
                           FRAME_RATE_MAX);
    bool is_percent = options->cpu_max_percent == 0 ||
                      (options->cpu_max_percent >= CPU_PERCENT_MIN && options->cpu_max_percent <= 100);
    if (status == STATUS_OK && !is_percent)
        status = error_set(error, STATUS_MALFORMED, 0, "cpu_max_percent must be from %g to 100", CPU_PERCENT_MIN);
    if (status == STATUS_OK && options->platform && strlen(options->platform) >= SENTRY_PLATFORM_SIZE)
        status = error_set(error, STATUS_MALFORMED, 0, "platform must be shorter than %d bytes", SENTRY_PLATFORM_SIZE);
    CHECK(check_choice("profile_lifecycle", (unsigned long)options->profile_lifecycle, OFFBEAT_LIFECYCLE_TRACE, error));
    CHECK(check_choice("mode", (unsigned long)options->mode, OFFBEAT_MODE_CPU, error));
    CHECK(check_choice("symbols", (unsigned long)options->symbols, OFFBEAT_SYMBOLS_RECEIVER, error));
#undef CHECK
    return status;
}

enum status settings_resolve(const struct offbeat_options *options, struct settings *ret_settings, struct error *error)
{
    *ret_settings = (struct settings){0};
    /* A program that was built with another version of the library has fewer members, or more. */
    size_t size = options ? options->size : 0;
    if (size > sizeof(ret_settings->options)) size = sizeof(ret_settings->options);
    /* A size that no version has could cut a pointer in two. */
    bool is_size = !options || (size >= offsetof(struct offbeat_options, dsn) + sizeof(options->dsn) &&
                                options->size % _Alignof(struct offbeat_options) == 0);
    if (options && is_size) memcpy(&ret_settings->options, options, size);
    if (!keep_texts(ret_settings)) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the options");
    if (!is_size) return error_set(error, STATUS_MALFORMED, 0, "size must be sizeof(struct offbeat_options)");
    enum status status = read_environment(ret_settings, error);
    if (status == STATUS_OK) status = check_options(&ret_settings->options, error);
    set_default_texts(ret_settings);
    set_default_numbers(&ret_settings->options);
    return status;
}

void settings_fini(struct settings *settings)
{
    buffer_fini(&settings->texts);
    *settings = (struct settings){0};
}

struct lifecycle_options settings_lifecycle(const struct settings *settings)
{
    const struct offbeat_options *options = &settings->options;
    return (struct lifecycle_options){
        .mode = options->profile_lifecycle == OFFBEAT_LIFECYCLE_TRACE ? LIFECYCLE_TRACE : LIFECYCLE_MANUAL,
        .profile_session_sample_rate = options->profile_session_sample_rate,
        .has_v1 = settings->has_profiles_sample_rate || options->profiles_sampler,
        .has_tracing = settings->has_traces_sample_rate || options->traces_sampler,
        .is_ui = options->is_ui,
        .starts_on_app_start = options->start_profiler_on_app_start,
    };
}
