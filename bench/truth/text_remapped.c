/* Moves its own code to anonymous memory, as programs do that want it on large pages. Argument: seconds after which it
 * does so.  SPDX-License-Identifier: MIT */
#include "truth.h"
#include <sys/mman.h>

extern char etext;

static struct spent in_alpha, in_beta;

FUNCTION static void alpha_work(void)
{
    spin_us(about(3000));
}

FUNCTION static void beta_work(void)
{
    spin_us(about(3000));
}

/* The code that copies is not in the pages that are replaced. */
__attribute__((section(".text.remap"))) FUNCTION static bool remap(void)
{
    uintptr_t page = 4096, start = (uintptr_t)alpha_work & ~(page - 1),
              end = ((uintptr_t)&etext + page - 1) & ~(page - 1);
    void *copy = mmap(NULL, end - start, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) return false;
    memcpy(copy, (void *)start, end - start);
    return mremap(copy, end - start, end - start, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)start) != MAP_FAILED;
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    double delay = atof(argv[1]);
    bool is_remapped = delay == 0;
    if (is_remapped && !remap()) return 1;
    double remap_at = now() + delay;
    calibrate();
    for (double end = end_after(1); now() < end;) {
        if (!is_remapped && now() > remap_at) {
            if (!remap()) return 1;
            is_remapped = true;
        }
        MEASURE(in_alpha, alpha_work());
        MEASURE(in_beta, beta_work());
    }
    PRINT_TRUTH(alpha_work, in_alpha);
    PRINT_TRUTH(beta_work, in_beta);
}
