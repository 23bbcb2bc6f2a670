/* Arguments: number of threads that trace, number of forks, and "paused" if a thread pauses for 1 ms between two
 * transactions. SPDX-License-Identifier: MIT */
#include <offbeat.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <signal.h>
#include <time.h>
static atomic_bool over;
static bool is_paused;
static void *spans(void *x)
{
    while (!over) {
        struct timespec z = {0, 1000000};
        if (is_paused) nanosleep(&z, 0);
        struct offbeat_span *t = offbeat_transaction_start("GET /", "http.server");
        struct offbeat_span *s = offbeat_span_start_child(t, "db", "q");
        offbeat_span_finish(s);
        offbeat_span_finish(t);
    }
    return NULL;
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 2;
    int rounds = argc > 2 ? atoi(argv[2]) : 500;
    is_paused = argc > 3 && strcmp(argv[3], "paused") == 0;
    bool ok = offbeat_init(&(struct offbeat_options){
        .size = sizeof(struct offbeat_options), .traces_sample_rate = 1.0, .profile_session_sample_rate = 0});
    printf("init %d\n", ok);
    fflush(stdout);
    pthread_t th[16];
    for (int i = 0; i < n; i++) pthread_create(&th[i], NULL, spans, NULL);
    int hung = 0, done = 0;
    for (int r = 0; r < rounds; r++) {
        pid_t c = fork();
        if (c == 0) _exit(0);
        int st;
        int waited = 0;
        for (;;) {
            pid_t e = waitpid(c, &st, WNOHANG);
            if (e == c) {
                done++;
                break;
            }
            if (waited++ > 3000) {
                hung++;
                printf("round %d: child %d hangs in fork()\n", r, c);
                fflush(stdout);
                if (getenv("STACK")) {
                    char b[200];
                    snprintf(b, 200,
                             "cat /proc/%d/stack /proc/%d/wchan /proc/%d/syscall; gdb -p %d -batch -ex bt 2>/dev/null "
                             "| tail -15",
                             c, c, c, c);
                    (void)!system(b);
                }
                kill(c, 9);
                waitpid(c, &st, 0);
                break;
            }
            struct timespec t = {0, 1000000};
            nanosleep(&t, 0);
        }
        if (hung >= 3) break;
    }
    printf("done %d hung %d\n", done, hung);
    fflush(stdout);
    over = 1;
    for (int i = 0; i < n; i++) pthread_join(th[i], NULL);
    return hung ? 1 : 0;
}
