/* Frames of the last walk of a stack. Most of a stack stays the same from one sample to the next. A walk that meets a
 * frame of the previous walk needs no rules from there on: the callers of a frame depend only on its IP, SP and FP and
 * on the words that the walk reads. If all of these are unchanged, the rest of the walk is unchanged. The places of
 * these words are known, so their cache misses overlap; a walk by rules waits for each in turn. Frames whose caller
 * depends on other registers are not kept, nor are the frames inside them. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_RESUME_CACHE_H
#define OFFBEAT_UNWIND_RESUME_CACHE_H

#include "unwind/machine.h"

enum { RESUME_FRAMES_MAX = 256 };

struct resume_frame {
    uint64_t ip; /* 0: the end of the stack; not a frame */
    uint64_t sp;
    uint64_t fp;
    uint64_t fp_place; /* address at which FP was read; 0: it is that of the inner frame */
};

/* {0} is empty. Belongs to one walk at a time. */
struct resume_cache {
    uint64_t generation; /* generation of the modules */
    size_t count;        /* number of kept frames: FRAMES from 0 on, the outermost first */
    size_t fresh;        /* start of the running walk's frames: FRAMES from here to the end, the innermost last */
    bool is_rejoined;    /* true if the walk met one of the kept frames; the rest of them are its callers */
    struct resume_frame frames[RESUME_FRAMES_MAX];
};

/* Prefetches the frames of the previous walk. */
void resume_cache_prefetch(const struct resume_cache *cache);

/* Begins a walk of the stack at SP, with modules of GENERATION. */
void resume_cache_begin(struct resume_cache *cache, uint64_t generation, uint64_t sp,
                        const struct unwind_memory *memory);

/* Notes a STEP by RULE (NULL: by the frame pointer) to REGISTERS. */
void resume_cache_note(struct resume_cache *cache, const struct machine_rule *rule, enum machine_step step,
                       const struct unwind_registers *registers);

/* Writes the addresses of the callers of the last noted frame after the first COUNT of ADDRESSES, if the previous walk
 * met that frame and all of its callers are unchanged, and returns their number. Otherwise, or if that makes more than
 * ADDRESSES_MAX, returns 0. */
size_t resume_cache_rejoin(struct resume_cache *cache, struct unwind_memory *memory, uint64_t *addresses, size_t count,
                           size_t addresses_max);

/* Ends the walk, which is kept if it HAS_ROOT. */
void resume_cache_end(struct resume_cache *cache, bool has_root);

#endif
