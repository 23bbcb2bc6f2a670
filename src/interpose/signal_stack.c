/* sigaltstack, and the size of makecontext's stacks (coroutine_stack.S). The kernel writes some kilobytes to a thread's
 * stack for a signal, more than the smallest stacks that programs use.  SPDX-License-Identifier: MIT */
#include "interpose/interpose_private.h"

#include "sampler/sampler.h"

#include <stdint.h>

long interpose_sigaltstack(interpose_call make_call, const long arguments[6])
{
    if (arguments[0] == 0) return make_call(arguments);
    sampler_expect_alternate_stack();
    long result = make_call(arguments);
    sampler_note_alternate_stack();
    return result;
}

static long make_sigaltstack(const long arguments[6])
{
    return next_functions()->sigaltstack((const stack_t *)(uintptr_t)arguments[0], (stack_t *)(uintptr_t)arguments[1]);
}

int sigaltstack(const stack_t *stack, stack_t *old);

INTERPOSED int sigaltstack(const stack_t *stack, stack_t *old)
{
    const long arguments[6] = {(long)(uintptr_t)stack, (long)(uintptr_t)old};
    return (int)interpose_sigaltstack(make_sigaltstack, arguments);
}

void *interpose_before_makecontext(const ucontext_t *context)
{
    sampler_note_coroutine_stack(context->uc_stack.ss_size);
    return next_functions()->makecontext;
}
