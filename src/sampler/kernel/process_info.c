/* SPDX-License-Identifier: MIT */
#include "sampler/kernel/process_info.h"

#include "base/kernel.h"
#include "sampler/kernel/vdso_clock.h"

#include <string.h>
#include <sys/random.h>

void process_random_bytes(uint8_t ret_bytes[RANDOM_BYTES])
{
    uint64_t unlikely[2] = {wall_clock_ns(), (uint64_t)kernel_process_id()};
    memcpy(ret_bytes, unlikely, sizeof(unlikely));
    (void)kernel_call3(SYS_getrandom, kernel_address(ret_bytes), RANDOM_BYTES, GRND_NONBLOCK);
}

uint64_t process_random_number(void)
{
    uint8_t bytes[RANDOM_BYTES];
    uint64_t random;
    process_random_bytes(bytes);
    memcpy(&random, bytes, sizeof(random));
    return random;
}

uint32_t process_processor_count(void)
{
    uint64_t allowed[1024] = {0}; /* room for 65536 processors */
    uint32_t count = 0;
    long size = kernel_call3(SYS_sched_getaffinity, 0, sizeof(allowed), kernel_address(allowed));
    for (long i = 0; i < size / (long)sizeof(*allowed); i++) {
        for (uint64_t word = allowed[i]; word != 0; word &= word - 1) count++;
    }
    return count > 0 ? count : 1;
}
