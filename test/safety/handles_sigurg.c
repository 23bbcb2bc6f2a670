/* A program that uses SIGURG itself, in the way that its argument names. It counts what it gets and prints that: of
 * 2000 signals, some are sent to the process and some to the thread. SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { SIGNALS = 1000 };

static volatile int handled, foreign;

static void plain(int number)
{
    (void)number;
    handled++;
}

static void with_information(int number, siginfo_t *information, void *context)
{
    (void)number;
    (void)context;
    handled++;
    if (information->si_code != SI_QUEUE && information->si_code != SI_TKILL) foreign++;
}

static void spin(int turns)
{
    for (volatile int i = 0; i < turns; i++) {
    }
}

static void send_all(void)
{
    for (int i = 0; i < SIGNALS; i++) {
        union sigval value = {.sival_int = i};
        sigqueue(getpid(), SIGURG, value);
        spin(20000);
        raise(SIGURG);
        spin(20000);
    }
}

static void handle(int flags)
{
    struct sigaction action = {.sa_flags = flags};
    if (flags & SA_SIGINFO)
        action.sa_sigaction = with_information;
    else
        action.sa_handler = plain;
    sigaction(SIGURG, &action, NULL);
}

static void wait_for_each(int descriptor)
{
    sigset_t urgent;
    struct signalfd_siginfo information;
    sigemptyset(&urgent);
    sigaddset(&urgent, SIGURG);
    sigprocmask(SIG_BLOCK, &urgent, NULL);
    if (descriptor) descriptor = signalfd(-1, &urgent, 0);
    for (int i = 0; i < 2 * SIGNALS; i++) {
        int number = 0;
        spin(20000);
        raise(SIGURG);
        spin(20000);
        if (descriptor ? read(descriptor, &information, sizeof(information)) > 0 : sigwait(&urgent, &number) == 0)
            handled++;
    }
    sigset_t pending;
    sigpending(&pending);
    foreign += sigismember(&pending, SIGURG);
}

int main(int count, char **words)
{
    const char *way = count > 1 ? words[1] : "";
    usleep(100000);
    if (!strcmp(way, "plain")) handle(0);
    if (!strcmp(way, "nodefer")) handle(SA_SIGINFO | SA_NODEFER);
    if (!strcmp(way, "information")) handle(SA_SIGINFO | SA_RESTART);
    if (!strcmp(way, "ignore")) signal(SIGURG, SIG_IGN);
    if (!strcmp(way, "reset")) {
        for (int i = 0; i < 2 * SIGNALS; i++) {
            handle(SA_RESETHAND);
            raise(SIGURG);
            spin(20000);
        }
    } else if (!strcmp(way, "sigwait") || !strcmp(way, "signalfd")) {
        wait_for_each(!strcmp(way, "signalfd"));
    } else {
        send_all();
    }
    printf("%d handled, %d foreign\n", handled, foreign);
    return 0;
}
