/* V8's sampling heap profiles: the .heapprofile of Chrome's DevTools and of node --heap-prof.  SPDX-License-Identifier:
 * MIT
 */
#ifndef OFFBEAT_FORMAT_VIEWER_V8_HEAP_H
#define OFFBEAT_FORMAT_VIEWER_V8_HEAP_H

#include "profile/profile.h"

enum {
    V8_HEAP_DEPTH_MAX = 400, /* frames of a stack; V8 records at most 128 */
};

bool v8_heap_detect(struct slice bytes);

/* Values are objects/count, the sampled allocations, and space/bytes, what V8 estimates that they hold. "(root)" is
 * left out. PROFILE must be initialised and empty; after a failure it is only good for profile_fini. ERROR may be NULL.
 */
enum status v8_heap_decode(struct slice bytes, struct profile *profile, struct error *error);

#endif
