/* SPDX-License-Identifier: MIT */
#include "base/process.h"

#include "base/kernel.h"
#include "base/pages.h"

#include <pthread.h>
#include <unistd.h>

enum { WIPE_ON_FORK = 18 }; /* MADV_WIPEONFORK, Linux 4.14 */

_Atomic(struct process_page *) process_page;

static struct process_page unwiped; /* for kernels that cannot: then only fork itself is noticed */
static atomic_uint last_number;     /* a child begins with its parent's */

static void forget_number(void)
{
    atomic_store(&unwiped.number, 0);
}

static struct process_page *make_page(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    struct process_page *page = pages_map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (page && kernel_call3(SYS_madvise, kernel_address(page), (long)size, WIPE_ON_FORK) == 0) return page;
    if (page) kernel_unmap(page, size);
    (void)pthread_atfork(NULL, NULL, forget_number);
    return &unwiped;
}

static struct process_page *get_page(void)
{
    struct process_page *page = atomic_load(&process_page), *nobody = NULL;
    if (page) return page;
    page = make_page();
    if (atomic_compare_exchange_strong(&process_page, &nobody, page)) return page;
    if (page != &unwiped) kernel_unmap(page, (size_t)sysconf(_SC_PAGESIZE));
    return nobody;
}

/* A number is taken before it is shown: a child that is made in between begins above it. */
unsigned process_number_first(void)
{
    struct process_page *page = get_page();
    unsigned ours = atomic_fetch_add(&last_number, 1) + 1, shown = 0;
    return atomic_compare_exchange_strong(&page->number, &shown, ours) ? ours : shown;
}
