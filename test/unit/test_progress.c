/* The line that shows how far a work is, on a terminal and in a pipe.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "cli/message.h"
#include "cli/progress.h"

#include <pty.h>
#include <unistd.h>

#define SECOND_NS ((uint64_t)1000000000)

static char shown[1024];

/* Runs WORK with standard error at WRITE_END, and puts into SHOWN what comes out at READ_END. */
static void show(int read_end, int write_end, void (*work)(void))
{
    int before = dup(STDERR_FILENO);
    (void)dup2(write_end, STDERR_FILENO);
    work();
    (void)dup2(before, STDERR_FILENO);
    (void)close(before);
    (void)close(write_end);
    size_t size = 0;
    for (ssize_t got; (got = read(read_end, shown + size, sizeof(shown) - 1 - size)) > 0;) size += (size_t)got;
    shown[size] = '\0';
    (void)close(read_end);
}

static void show_on_terminal(void (*work)(void))
{
    int terminal, program;
    CHECK(openpty(&terminal, &program, NULL, NULL, NULL) == 0);
    show(terminal, program, work);
}

static void show_in_pipe(void (*work)(void))
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    show(ends[0], ends[1], work);
}

static struct progress begun_before(uint64_t seconds)
{
    struct progress progress = progress_begin("writing");
    progress.started_ns -= seconds * SECOND_NS;
    return progress;
}

static void works_shortly(void)
{
    struct progress progress = begun_before(0);
    progress_step(&progress, 1, 2);
    progress_end(&progress);
}

static void works_two_seconds(void)
{
    struct progress progress = begun_before(2);
    progress_part(&progress, 1, 4);
    progress.shown_ns = 0;
    progress_step(&progress, 1, 2);
    progress_end(&progress);
}

static void works_ten_seconds(void)
{
    struct progress progress = begun_before(10);
    progress_part(&progress, 1, 4);
    progress_step(&progress, 1, 2);
    progress_end(&progress);
}

static void works_ten_seconds_quietly(void)
{
    struct progress progress = begun_before(10);
    progress.is_quiet = true;
    progress_step(&progress, 1, 2);
    progress_end(&progress);
}

TEST(a_short_work_shows_nothing)
{
    show_on_terminal(works_shortly);
    CHECK_TEXT(shown, "");
    show_in_pipe(works_shortly);
    CHECK_TEXT(shown, "");
}

TEST(a_terminal_shows_progress_after_a_second_and_removes_it)
{
    show_on_terminal(works_two_seconds);
    CHECK_TEXT(shown, "\r\033[Kwriting:  25 %\r\033[Kwriting:  38 %\r\033[K");
}

TEST(a_pipe_gets_one_line_after_five_seconds)
{
    show_in_pipe(works_two_seconds);
    CHECK_TEXT(shown, "");
    show_in_pipe(works_ten_seconds);
    CHECK_TEXT(shown, "offbeat: writing: 25 % after 10 s\n");
}

static void says_something_meanwhile(void)
{
    struct progress progress = begun_before(2);
    progress_step(&progress, 1, 4);
    message("full");
    progress_end(&progress);
}

TEST(a_message_replaces_the_line_of_progress)
{
    show_on_terminal(says_something_meanwhile);
    CHECK_TEXT(shown, "\r\033[Kwriting:  25 %\r\033[Koffbeat: full\r\n\r\033[K");
}

TEST(a_quiet_work_shows_nothing)
{
    show_in_pipe(works_ten_seconds_quietly);
    CHECK_TEXT(shown, "");
}

TEST_MAIN()
