/* SPDX-License-Identifier: MIT */
#include "sdk/settings.h"

#include "base/environment.h"
#include "binary/contents_id.h"
#include "binary/elf_file.h"
#include "format/recording/record_environment.h"
#include "sdk/program_name.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    TEXTS_BYTES_MAX = 1 << 20,
    HOST_NAME_BYTES_MAX = 256,
    RELEASE_BYTES_MAX = 512,
    DEFAULT_TEXTS_BYTES = 3 * PATH_MAX,
};

static const char of_program[] = "the program", of_default[] = "default";

/* --- Texts -------------------------------------------------------------------------------------------------------- */

static const char **text_member(struct settings *settings, const struct option_entry *entry)
{
    return (const char **)(void *)((char *)&settings->options + entry->offset);
}

static const char *keep_text(struct settings *settings, const char *text)
{
    struct buffer *texts = &settings->texts;
    size_t at = texts->size;
    buffer_append(texts, text, strlen(text) + 1);
    return texts->failed ? NULL : (const char *)texts->data + at;
}

/* Copies the texts of the options. Reserves all memory at once, so that the texts stay where they are. */
static bool keep_texts(struct settings *settings)
{
    const struct option_entry *entry;
    size_t size = DEFAULT_TEXTS_BYTES;
    for (size_t i = 0; (entry = option_entry_at(i)); i++) {
        const char *text = entry->kind == OPTION_TEXT ? *text_member(settings, entry) : NULL;
        if (text) size += strlen(text) + 1;
    }
    buffer_init(&settings->texts, TEXTS_BYTES_MAX);
    bool has_room = buffer_reserve(&settings->texts, size) != NULL;
    for (size_t i = 0; (entry = option_entry_at(i)); i++) {
        if (entry->kind != OPTION_TEXT) continue;
        const char **text = text_member(settings, entry);
        *text = has_room && *text ? keep_text(settings, *text) : NULL;
    }
    return has_room;
}

/* Returns the build id of the program, or an id of its code instead (V2-12); "" without one. */
static void program_id(char *ret_id, size_t size)
{
    struct elf_file file;
    char contents_id[BUILD_ID_START_SIZE] = "";
    ret_id[0] = '\0';
    if (elf_file_open(&file, "/proc/self/exe", NULL) != STATUS_OK) return;
    (void)contents_id_of(&file, contents_id);
    (void)snprintf(ret_id, size, "%s", file.build_id[0] ? file.build_id : contents_id);
    elf_file_close(&file);
}

/* Replaces what a server does not accept in a release, and '@', which ends the service in it. */
static void make_plain(char *name)
{
    for (char *at = name; *at; at++) {
        if ((unsigned char)*at <= ' ' || *at == 0x7F || strchr("@/\\", *at)) *at = '-';
    }
}

/* Completes the release to SERVICE@VERSION, unless the program or the environment says more than a version. The service
 * is the program's name by default, and the version its build id. */
static void set_release(struct settings *settings)
{
    struct offbeat_options *options = &settings->options;
    char service[NAME_MAX + 1] = "", id[ELF_BUILD_ID_TEXT_SIZE] = "", release[RELEASE_BYTES_MAX];
    bool has_service = options->service && *options->service, has_release = options->release && *options->release;
    if (has_release && (!has_service || strchr(options->release, '@'))) return;
    if (has_service)
        (void)snprintf(service, sizeof(service), "%s", options->service);
    else
        (void)program_name(service);
    make_plain(service);
    if (!has_release) program_id(id, sizeof(id));
    const char *version = has_release ? options->release : id;
    (void)snprintf(release, sizeof(release), "%s%s%s", service[0] ? service : "unknown", version[0] ? "@" : "",
                   version);
    options->release = keep_text(settings, release);
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
    char host[HOST_NAME_BYTES_MAX] = "";
    settings->cache_folder = cache_folder(settings);
    set_release(settings);
    if (!options->environment || !*options->environment) options->environment = keep_text(settings, "production");
    if (!options->server_name && gethostname(host, sizeof(host) - 1) == 0)
        options->server_name = keep_text(settings, host);
}

/* --- All settings ------------------------------------------------------------------------------------------------- */

/* Reads each option, and notes its source. Returns the first error, and reads the others all the same. */
static enum status read_options(struct settings *settings, struct error *error)
{
    struct offbeat_options *options = &settings->options;
    const struct option_entry *entry;
    enum status status = STATUS_OK;
    for (size_t i = 0; (entry = option_entry_at(i)); i++) {
        struct error *first = status == STATUS_OK ? error : NULL;
        enum status read = STATUS_OK;
        const char *variable = NULL;
        bool is_set = option_is_set(entry, options);
        if (!is_set) read = option_read_variable(entry, options, &variable, first);
        settings->origins[i] = is_set ? of_program : variable ? variable : of_default;
        if (read == STATUS_OK && option_is_set(entry, options)) read = option_check(entry, options, first);
        if (status == STATUS_OK) status = read;
        option_set_default(entry, options);
    }
    return status;
}

/* True if RATE is set and not OFFBEAT_RATE_ZERO. A variable "0" counts: then decisions of callers are followed. */
static bool has_rate(const struct settings *settings, const double *rate)
{
    const struct option_entry *entry;
    for (size_t i = 0; (entry = option_entry_at(i)); i++) {
        if ((const char *)&settings->options + entry->offset != (const char *)rate) continue;
        return *rate != 0 || (settings->origins[i] != of_program && settings->origins[i] != of_default);
    }
    return false;
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
    enum status status = read_options(ret_settings, error);
    ret_settings->has_traces_sample_rate = has_rate(ret_settings, &ret_settings->options.traces_sample_rate);
    ret_settings->has_profiles_sample_rate = has_rate(ret_settings, &ret_settings->options.profiles_sample_rate);
    if (!keep_texts(ret_settings)) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the options");
    set_default_texts(ret_settings);
    if (!is_size) return error_set(error, STATUS_MALFORMED, 0, "size must be sizeof(struct offbeat_options)");
    return status;
}

void settings_fini(struct settings *settings)
{
    buffer_fini(&settings->texts);
    *settings = (struct settings){0};
}

bool settings_describe(const struct settings *settings, size_t index, struct buffer *line)
{
    const struct option_entry *entry = option_entry_at(index);
    if (!entry) return false;
    buffer_append_format(line, "%s: ", entry->name);
    option_describe(entry, &settings->options, line);
    buffer_append_format(line, " (%s)", settings->origins[index]);
    return true;
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
