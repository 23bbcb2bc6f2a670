/* A program with a screen, as offbeat sees one: a loop that renders 60 frames a second, and a user who leaves and comes
 * back.
 *
 *     cc -g frames.c -o frames $(pkg-config --cflags --libs offbeat) -lm
 *     OFFBEAT_DSN=https://KEY@HOST/PROJECT ./frames
 *
 * Nothing is drawn. It renders 500 frames, or as many as the argument says.  SPDX-License-Identifier: MIT */
#include <offbeat.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { FRAME_NS = 1000000000 / 60 };

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t time_ns)
{
    struct timespec time = {.tv_sec = (time_t)(time_ns / 1000000000), .tv_nsec = (long)(time_ns % 1000000000)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

/* The work of one frame, of about COST_NS. */
__attribute__((noinline)) static double render(uint64_t cost_ns)
{
    uint64_t end_ns = now_ns() + cost_ns;
    double shade = 0;
    while (now_ns() < end_ns) {
        for (int i = 0; i < 1000; i++) shade += sqrt(i + shade);
    }
    return shade;
}

/* Most frames are done in time; one in twenty is slow, and one in a hundred loads something large and freezes. */
static uint64_t cost_ns_of(unsigned frame)
{
    if (frame % 100 == 50) return 720000000;
    return frame % 20 == 10 ? 40000000 : 4000000;
}

/* Shows FRAME and the following frames, up to END, to the user. */
static void show(unsigned frame, unsigned end)
{
    for (; frame < end; frame++) {
        uint64_t begin_ns = now_ns();
        render(cost_ns_of(frame));
        uint64_t rendered_ns = now_ns();
        if (rendered_ns < begin_ns + FRAME_NS) sleep_until(begin_ns + FRAME_NS);
        offbeat_frame_rendered(rendered_ns - begin_ns); /* the profile shows slow frames */
    }
}

int main(int argc, char **argv)
{
    unsigned frames = argc > 1 ? (unsigned)atoi(argv[1]) : 500;

    offbeat_init(&(struct offbeat_options){
        .size = sizeof(struct offbeat_options),
        .release = "frames@1.0.0",
        .is_ui = true, /* a session is from the user's coming to her leaving */
        .profile_session_sample_rate = 1.0,
        .frame_rate_hz = 60,
    });
    offbeat_start_profiler();
    show(0, frames / 2);

    /* The window is hidden. The profiler stops, and nothing is rendered. */
    offbeat_background();
    sleep_until(now_ns() + 500000000);

    /* The user is back: a new session, whether it is profiled is decided again. */
    offbeat_foreground();
    offbeat_start_profiler();
    show(frames / 2, frames);
    offbeat_stop_profiler();

    printf("%u frames\n", frames);
    return 0;
}
