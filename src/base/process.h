/* Distinguishes a process from its children, also from children that no fork handler sees (_Fork, clone).
 *
 * The number lives in a page that the kernel clears in every child with its own memory (MADV_WIPEONFORK), so that
 * reading it costs two loads and no system call. A child that shares our memory (vfork) has our number.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_PROCESS_H
#define OFFBEAT_BASE_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct process_page {
    atomic_uint number;
};
extern _Atomic(struct process_page *) process_page;

unsigned process_number_first(void);

/* Never 0. The number is one word that stands for nothing else, so that its load is relaxed. The same as long as the
 * process lives; a child has another one, which no ancestor had. From any thread. */
static inline unsigned process_number(void)
{
    struct process_page *page = atomic_load_explicit(&process_page, memory_order_acquire);
    unsigned number = page ? atomic_load_explicit(&page->number, memory_order_relaxed) : 0;
    return __builtin_expect(number != 0, 1) ? number : process_number_first();
}

#endif
