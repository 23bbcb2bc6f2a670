/* SPDX-License-Identifier: MIT */
#include <offbeat.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/auxv.h>
/* a set-user-ID program whose author uses the library, DSN in code */
int main(void)
{
    bool ok = offbeat_init(&(struct offbeat_options){.size = sizeof(struct offbeat_options),
                                                     .dsn = "http://0123456789abcdef0123456789abcdef@127.0.0.1:9/1",
                                                     .profile_session_sample_rate = 1.0,
                                                     .spool_directory = ""});
    fprintf(stderr, "init %d uid %d euid %d AT_SECURE %lu\n", ok, getuid(), geteuid(), getauxval(AT_SECURE));
    offbeat_start_profiler();
    volatile double s = 0;
    for (long i = 1; i < 600000000; i++) s += 1.0 / i;
    return 0;
}
