/* offbeat-helper REQUEST PAYLOADS: turns recordings into what liboffbeat sends, with names, files and lines.
 *
 * PAYLOADS is written completely or not at all. Exit status: 0; 1 if the server would reject the payload (PAYLOADS has
 * the name of the reject reason and the details); 2 for anything else.  SPDX-License-Identifier: MIT */
#include "base/file.h"
#include "deliver/request_file.h"
#include "symbolize/index_store.h"
#include "symbolize/symbolizer.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LATE_NICE = 10, DONE = 0, REJECTED = 1, FAILED = 2 };

static void name_frames(struct profile *profile)
{
    const struct symbolizer_options options = {.sources = SYMBOLS_OF_THIS_MACHINE, .trusts_paths = true};
    (void)symbolize_profile(profile, &options, NULL, NULL);
    index_store_make_room();
}

/* Stays out of the way of the program that it works for: takes no signals of the terminal, holds no folder, and
 * leaves no core file after a fault or at a limit on file sizes. */
static void stay_out_of_the_way(void)
{
    const struct rlimit no_core = {0};
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)umask(077);
    if (chdir("/") != 0) return;
    (void)setpriority(PRIO_PROCESS, 0, LATE_NICE);
    (void)setsid();
    (void)signal(SIGPIPE, SIG_IGN);
}

static int answer(const char *request_path, const char *payloads_path, struct error *error)
{
    struct buffer bytes, payloads;
    struct request_file file = {0};
    buffer_init(&bytes, REQUEST_BYTES_MAX);
    buffer_init(&payloads, CHUNK_PAYLOADS_BYTES_MAX);
    enum status status = file_read(request_path, &bytes, error);
    if (status == STATUS_OK) status = chunk_request_read(buffer_slice(&bytes), &file, error);
    if (status == STATUS_OK)
        status = deliver_recordings(&file.request, name_frames, deliver_append_line, &payloads, error);
    int outcome = status == STATUS_OK ? DONE : status == STATUS_MALFORMED ? REJECTED : FAILED;
    if (outcome == REJECTED) {
        buffer_clear(&payloads);
        buffer_append_text(&payloads, error->message);
    }
    if (outcome != FAILED && file_write(payloads_path, buffer_slice(&payloads), error) != STATUS_OK) outcome = FAILED;
    chunk_request_fini(&file);
    buffer_fini(&payloads);
    buffer_fini(&bytes);
    return outcome;
}

int main(int argument_count, char **arguments)
{
    struct error error = {0};
    if (argument_count == 2 && strcmp(arguments[1], "--version") == 0) {
        puts("offbeat-helper " OFFBEAT_VERSION);
        return DONE;
    }
    if (argument_count != 3) {
        fputs("offbeat-helper REQUEST PAYLOADS: started by liboffbeat, not by people\n", stderr);
        return FAILED;
    }
    stay_out_of_the_way();
    int outcome = answer(arguments[1], arguments[2], &error);
    if (outcome == FAILED) (void)fprintf(stderr, "offbeat-helper: %s\n", error.message);
    return outcome;
}
