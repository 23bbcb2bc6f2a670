/* offbeat-helper --spool DIR: sends what programs with liboffbeat leave in DIR. liboffbeat starts it with --ends.
 *
 * Exit status: 0; 2 for a wrong use or a folder that cannot be used.  SPDX-License-Identifier: MIT */
#include "helper/make.h"
#include "helper/service.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DONE = 0, FAILED = 2 };

static const char usage[] =
    "Usage: offbeat-helper --spool DIR [--ends]\n"
    "\n"
    "Sends the profiles and transactions that programs with liboffbeat leave in DIR, their spool_directory: in a\n"
    "container or service beside them, where they cannot start it themselves. It runs until it is killed; with\n"
    "--ends, until a minute has passed without work and without such a program.\n";

/* Stays out of the way of the program that it works for: takes no signals of the terminal, holds no folder, and
 * leaves no core file after a fault or at a limit on file sizes. */
static void stay_out_of_the_way(void)
{
    const struct rlimit no_core = {0};
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)umask(077);
}

/* Closes what the program had open. Not by close_range: a seccomp filter of the program may kill for that. */
static void close_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    for (const struct dirent *entry; directory && (entry = readdir(directory));) {
        int number = atoi(entry->d_name);
        if (number > STDERR_FILENO && number != dirfd(directory)) (void)close(number);
    }
    if (directory) (void)closedir(directory);
}

static int serve(const char *spool, bool ends)
{
    char root[PATH_MAX];
    if (!realpath(spool, root)) {
        perror(spool);
        return FAILED;
    }
    if (chdir("/") != 0) return FAILED;
    if (ends) {
        (void)setsid();
        close_descriptors();
    }
    return service_run(root, ends) || ends ? DONE : FAILED;
}

int main(int argument_count, char **arguments, char **environment)
{
    const char *word = argument_count > 1 ? arguments[1] : "";
    if (strcmp(word, "--version") == 0 || strcmp(word, "--help") == 0) {
        (void)fputs(word[2] == 'v' ? "offbeat-helper " OFFBEAT_VERSION "\n" : usage, stdout);
        return DONE;
    }
    stay_out_of_the_way();
    make_keep_environment(environment);
    bool ends = argument_count == 4 && strcmp(arguments[3], "--ends") == 0;
    if (strcmp(word, "--spool") == 0 && (argument_count == 3 || ends)) return serve(arguments[2], ends);
    if (strcmp(word, "--make") == 0) return make_payloads((const char *const *)arguments + 2);
    (void)fputs(usage, stderr);
    return FAILED;
}
