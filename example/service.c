/* A small service that profiles itself: the smallest use of offbeat in C.
 *
 *     cc -g service.c -o service $(pkg-config --cflags --libs offbeat) -lm
 *     OFFBEAT_DSN=https://KEY@HOST/PROJECT ./service
 *
 * It answers 500 pretended requests, or as many as the argument says. Without OFFBEAT_DSN it does the same,
 * unprofiled.  SPDX-License-Identifier: MIT */
#include <offbeat.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The two functions below are not inlined, so that the profile shows both names. */
__attribute__((noinline)) static double price_of_basket(unsigned items)
{
    double sum = 0;
    for (unsigned i = 1; i < items; i++) sum += sqrt(i) * sin(i);
    return sum;
}

__attribute__((noinline)) static void wait_for_database(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

static double answer(unsigned request)
{
    /* A transaction is one piece of work from outside: here a request. It is sent when it finishes. */
    struct offbeat_span *transaction = offbeat_transaction_start("GET /basket", "http.server");

    /* A span is a part of it, and says what it is about. */
    struct offbeat_span *query = offbeat_span_start_child(transaction, "db.query", "SELECT price FROM item");
    wait_for_database();
    offbeat_span_finish(query);

    double price = price_of_basket(100000 + request % 7 * 50000);
    offbeat_span_set_number(transaction, "basket.price", price);
    offbeat_span_set_status(transaction, OFFBEAT_STATUS_OK);
    offbeat_span_finish(transaction);
    return price;
}

int main(int argc, char **argv)
{
    unsigned requests = argc > 1 ? (unsigned)atoi(argv[1]) : 500;

    /* Other options come from the environment, such as the DSN, the address of the server. */
    offbeat_init(&(struct offbeat_options){
        .size = sizeof(struct offbeat_options),
        .release = "service@1.0.0",
        .profile_session_sample_rate = 1.0, /* profile every process that runs this */
        .traces_sample_rate = 1.0,          /* send every transaction; in production rather 0.01 */
    });
    offbeat_start_profiler();

    double sum = 0;
    for (unsigned i = 0; i < requests; i++) {
        sum += answer(i);
        offbeat_measure("queue_bytes", "byte", i % 100 * 1024.0); /* a curve beside the profile */
    }

    printf("%u requests, %.0f\n", requests, sum);
    return 0; /* the library sends the rest at exit: no call is needed */
}
