/* offbeat upload-debug: gives a server the debug files that name the addresses of its profiles.
 * SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "base/environment.h"
#include "base/json_writer.h"
#include "binary/contents_id.h"
#include "binary/debug_id.h"
#include "binary/elf_file.h"
#include "cli/commands.h"
#include "cli/message.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/secrets.h"
#include "cli/upload_client.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 100000, DEPTH_MAX = 64 };

struct found {
    char *path;
    uint64_t size;
    char build_id[ELF_BUILD_ID_TEXT_SIZE];
};

struct search {
    struct found *items;
    size_t count, capacity;
    uint64_t bytes;
    size_t passed_over; /* files in folders that name nothing */
    enum exit_status status;
};

/* --- What names something -------------------------------------------------------------------------------------------
 */

static bool has_bytes(const struct elf_file *file, const char *name)
{
    const struct elf_section *section = elf_file_section(file, name);
    return section && section->has_bytes;
}

/* NULL: PATH is a debug file or a program that was not stripped. */
static const char *why_not(const char *path, struct found *ret_found, struct error *error)
{
    struct elf_file file;
    char of_code[BUILD_ID_START_SIZE];
    if (elf_file_open(&file, path, error) != STATUS_OK) return error->message;
    bool has_names = has_bytes(&file, ".symtab") || has_bytes(&file, ".debug_info") || has_bytes(&file, ".zdebug_info");
    const char *id = file.build_id[0] || !contents_id_of(&file, of_code) ? file.build_id : of_code;
    ret_found->size = file.size;
    (void)snprintf(ret_found->build_id, sizeof(ret_found->build_id), "%s", id);
    elf_file_close(&file);
    if (!has_names) return "has neither symbols nor debug information: it was stripped";
    return ret_found->build_id[0] ? NULL : "has no build id; link it with -Wl,--build-id";
}

static void add_file(struct search *search, const char *path, const struct found *found)
{
    if (!array_reserve(&search->items, &search->capacity, search->count + 1, sizeof(*search->items), FILES_MAX)) {
        message("upload-debug: more than %d files, or not enough memory; %s is left out", FILES_MAX, path);
        search->status = EXIT_FAILED;
        return;
    }
    struct found *item = &search->items[search->count];
    *item = *found;
    item->path = strdup(path);
    if (!item->path) return;
    search->count++;
    search->bytes += found->size;
}

static void look_at(struct search *search, const char *path, bool was_named)
{
    struct found found = {0};
    struct error error = {0};
    const char *why = why_not(path, &found, &error);
    if (!why) {
        add_file(search, path, &found);
    } else if (was_named) {
        message("%s: %s", path, why);
        search->status = error.status == STATUS_NOT_FOUND || error.status == STATUS_IO ? EXIT_FAILED : EXIT_NO;
    } else {
        search->passed_over++;
    }
}

/* Symbolic links are not followed: what they lead to has its own place. */
static void walk(struct search *search, const char *path, unsigned depth)
{
    DIR *folder = depth < DEPTH_MAX ? opendir(path) : NULL;
    if (!folder) {
        message("%s: %s", path, depth < DEPTH_MAX ? strerror(errno) : "too deep");
        search->status = EXIT_FAILED;
        return;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct stat facts;
        char *inner = NULL;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (fstatat(dirfd(folder), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (asprintf(&inner, "%s/%s", path, entry->d_name) < 0) break;
        if (S_ISDIR(facts.st_mode)) walk(search, inner, depth + 1);
        if (S_ISREG(facts.st_mode)) look_at(search, inner, false);
        free(inner);
    }
    (void)closedir(folder);
}

static void find_files(struct search *search, const struct operands *operands)
{
    for (unsigned i = 0; i < operands->count; i++) {
        struct stat facts;
        if (stat(operands->items[i], &facts) == 0 && S_ISDIR(facts.st_mode))
            walk(search, operands->items[i], 0);
        else
            look_at(search, operands->items[i], true);
    }
}

/* --- Sending --------------------------------------------------------------------------------------------------------
 */

struct printing {
    bool as_json, is_quiet;
};

struct sending {
    struct progress progress;
    uint64_t done, all; /* bytes of files */
    struct printing printing;
    size_t counts[UPLOAD_REJECTED + 1];
};

static void show_progress(void *context, uint64_t sent)
{
    struct sending *sending = context;
    progress_step(&sending->progress, (size_t)(sending->done + sent), (size_t)sending->all);
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void print_state(const struct sending *sending, const struct found *found, enum upload_state state)
{
    static const char *const names[] = {"uploaded", "was there", "rejected"};
    struct buffer line = {.maximum = 1 << 20};
    struct json_writer json = json_writer_of(&line);
    if (sending->printing.is_quiet && state != UPLOAD_REJECTED) return;
    if (!sending->printing.as_json) {
        (void)printf("%-9s  %s  %s\n", names[state], found->build_id, found->path);
        return;
    }
    json_begin_object(&json);
    json_member_text(&json, "state", names[state]);
    json_member_text(&json, "build_id", found->build_id);
    json_member_text(&json, "file", found->path);
    json_end_object(&json);
    (void)printf("%.*s\n", SLICE_ARGUMENTS(buffer_slice(&line)));
    buffer_fini(&line);
}

/* False if nothing more can be sent. */
static bool send_one(struct upload_client *client, struct sending *sending, const struct found *found)
{
    struct error error = {0};
    enum upload_state state = UPLOAD_REJECTED;
    char debug_id[DEBUG_ID_TEXT_SIZE] = "";
    struct stat facts;
    (void)debug_id_from_build_id(slice_of_text(found->build_id), debug_id);
    int descriptor = open(found->path, O_RDONLY | O_CLOEXEC);
    enum status status = STATUS_OK;
    if (descriptor < 0 || fstat(descriptor, &facts) != 0) status = error_set_errno(&error, "cannot open it");
    const struct upload_file file = {.descriptor = descriptor,
                                     .size = status == STATUS_OK ? (uint64_t)facts.st_size : 0,
                                     .name = name_of(found->path),
                                     .debug_id = debug_id,
                                     .progress = show_progress,
                                     .context = sending};
    if (status == STATUS_OK) status = upload_client_send(client, &file, &state, &error);
    if (descriptor >= 0) (void)close(descriptor);
    sending->done += found->size;
    if (status != STATUS_OK || state == UPLOAD_REJECTED) message("%s: %s", found->path, error.message);
    if (status != STATUS_OK) return false;
    sending->counts[state]++;
    print_state(sending, found, state);
    return true;
}

static void print_sums(const struct sending *sending, const struct search *search, size_t tried)
{
    (void)printf("%zu uploaded, %zu were there", sending->counts[UPLOAD_DONE], sending->counts[UPLOAD_WAS_THERE]);
    if (sending->counts[UPLOAD_REJECTED]) (void)printf(", %zu rejected", sending->counts[UPLOAD_REJECTED]);
    if (tried < search->count) (void)printf(", %zu not tried", search->count - tried);
    if (search->passed_over) (void)printf("; %zu other files have no symbols", search->passed_over);
    (void)printf("\n");
}

static enum exit_status send_all(struct upload_client *client, const struct search *search, struct printing printing)
{
    struct sending sending = {.progress = progress_begin("uploading"), .all = search->bytes, .printing = printing};
    size_t i = 0;
    while (i < search->count && send_one(client, &sending, &search->items[i])) i++;
    progress_end(&sending.progress);
    if (!printing.as_json && !printing.is_quiet) print_sums(&sending, search, i);
    if (i < search->count) return EXIT_FAILED;
    return sending.counts[UPLOAD_REJECTED] ? EXIT_NO : EXIT_DONE;
}

/* Each file that was named has its own message. */
static enum exit_status say_nothing(const struct search *search)
{
    if (search->status != EXIT_DONE) return search->status;
    message("upload-debug: nothing to upload: none of %zu files has symbols and a build id", search->passed_over);
    return EXIT_NO;
}

static enum exit_status upload_all(const struct upload_options *options, struct search *search,
                                   struct printing printing)
{
    struct upload_client *client;
    struct error error;
    enum status status = upload_client_open(options, &client, &error);
    if (status != STATUS_OK) {
        message("upload-debug: %s", error.message);
        return status == STATUS_MALFORMED ? EXIT_WRONG_USE : EXIT_FAILED;
    }
    enum exit_status sent = send_all(client, search, printing);
    upload_client_close(client);
    return sent > search->status ? sent : search->status;
}

int command_upload_debug(int argc, char **argv)
{
    struct printing printing = {0};
    struct upload_options upload = {.url = environment_get("OFFBEAT_UPLOAD_URL")};
    const struct option options[] = {
        {"url", 0, OPTION_TEXT, &upload.url, "URL",
         .help = "where to, http://TOKEN@HOST:PORT/PROJECT (default: $OFFBEAT_UPLOAD_URL)"},
        OPTION_TOKEN_FILE,
        {"proxy", 0, OPTION_TEXT, &upload.proxy, "URL",
         .help = "through this one, \"\" for none (default: $https_proxy, $http_proxy)"},
        {"ca-file", 0, OPTION_TEXT, &upload.ca_file, "FILE",
         .help = "certificates that are trusted (default: the system's)"},
        {"json", 0, OPTION_SWITCH, &printing.as_json, .help = "one JSON object a file, each on a line, for programs"},
        {"quiet", 'q', OPTION_SWITCH, &printing.is_quiet, .help = "print only what is rejected"},
        {0},
    };
    const struct command_syntax syntax = {
        .name = "upload-debug",
        .usage = "FILE|DIR… [--url URL] [options]",
        .example = "offbeat upload-debug build/ --url http://0123456789abcdef0123456789abcdef@127.0.0.1:7117/1",
        .about =
            "Uploads programs, libraries and debug files that have symbols or debug information to `offbeat serve`,\n"
            "which then names the addresses of their profiles: those that it has, and those to come.\n"
            "A folder is searched with all that is in it. What the server has is not sent again.\n"
            "`offbeat serve` prints the URL after \"upload:\".\n"
            "The exit status is 1 if a file was rejected or none has symbols, 3 if one could not be sent.",
        .options = options,
        .operands_min = 1,
        .operands_max = INT_MAX,
    };
    struct operands operands;
    struct search search = {.status = EXIT_DONE};
    enum exit_status status;
    if (!options_parse(&syntax, argc, argv, &operands, &status)) return (int)status;
    if (!upload.url) {
        message("upload-debug: --url says where to, or OFFBEAT_UPLOAD_URL in the environment; see offbeat upload-debug "
                "--help");
        return EXIT_WRONG_USE;
    }
    find_files(&search, &operands);
    status = search.count ? upload_all(&upload, &search, printing) : say_nothing(&search);
    for (size_t i = 0; i < search.count; i++) free(search.items[i].path);
    free(search.items);
    return (int)status;
}
