/* The conventions of git: $OFFBEAT_PAGER, $PAGER or less, in that order, run by the shell; "" and "cat" are no pager;
 * LESS and LV get values that show colours and leave short text on the screen, unless the user has set them.
 * SPDX-License-Identifier: MIT */
#include "cli/pager.h"

#include "base/environment.h"
#include "base/file.h"
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHELL_CANNOT_RUN = 126, SHELL_NOT_FOUND = 127 };

/* NULL: the user wants none. */
static const char *pager_command(void)
{
    const char *command = environment_get("OFFBEAT_PAGER");
    if (!command) command = environment_get("PAGER");
    if (!command) command = "less";
    return command[0] == '\0' || strcmp(command, "cat") == 0 ? NULL : command;
}

static bool is_long(struct slice text)
{
    enum { ROWS_USUAL = 24 };
    struct winsize size = {0};
    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    size_t rows = size.ws_row > 0 ? size.ws_row : ROWS_USUAL, lines = 0;
    for (size_t i = 0; i < text.size && lines < rows; i++) lines += text.data[i] == '\n';
    return lines >= rows; /* the prompt of the shell takes a row */
}

static _Noreturn void run_pager(const char *command, int input)
{
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGQUIT, SIG_DFL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)dup2(input, STDIN_FILENO);
    (void)setenv("LESS", "FRX", 0);
    (void)setenv("LV", "-c", 0);
    (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(SHELL_NOT_FOUND);
}

/* A user who leaves before the end of TEXT closes the pipe: that is no failure. */
static bool feed(const char *command, struct slice text)
{
    int files[2], status = 0;
    if (pipe2(files, O_CLOEXEC) != 0) return false;
    pid_t child = fork();
    if (child == 0) run_pager(command, files[0]);
    (void)close(files[0]);
    if (child > 0) (void)file_write_descriptor(files[1], text, NULL);
    (void)close(files[1]);
    if (child < 0) return false;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    bool has_run = !WIFEXITED(status) || WEXITSTATUS(status) < SHELL_CANNOT_RUN;
    return has_run;
}

/* Ctrl-C and Ctrl-\ are for the pager. */
bool pager_show(struct slice text)
{
    static const int signals[] = {SIGINT, SIGQUIT, SIGPIPE};
    enum { SIGNALS = sizeof(signals) / sizeof(signals[0]) };
    void (*before[SIGNALS])(int);
    const char *command = pager_command();
    if (!command || !output_is_to_screen() || !is_long(text)) return false;
    for (size_t i = 0; i < SIGNALS; i++) before[i] = signal(signals[i], SIG_IGN);
    bool is_shown = feed(command, text);
    for (size_t i = 0; i < SIGNALS; i++) (void)signal(signals[i], before[i]);
    return is_shown;
}
