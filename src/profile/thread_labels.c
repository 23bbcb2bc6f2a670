/* SPDX-License-Identifier: MIT */
#include "profile/thread_labels.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* perf_data_converter and Parca have tid and comm, ddprof and libdatadog the keys with a blank. */
const char *const thread_id_keys[THREAD_LABEL_KEYS] = {THREAD_ID_LABEL, "tid", "thread id", NULL};
const char *const thread_name_keys[THREAD_LABEL_KEYS] = {THREAD_NAME_LABEL, "thread_name", "thread name", "comm"};

int thread_label_place(const char *const keys[THREAD_LABEL_KEYS], struct slice key)
{
    for (int i = 0; i < THREAD_LABEL_KEYS && keys[i]; i++) {
        if (slice_equals_text(key, keys[i])) return i;
    }
    return -1;
}

bool thread_id_is_number(struct slice id, int64_t *ret_number)
{
    char text[24], again[24];
    if (id.size == 0 || id.size >= sizeof(text)) return false;
    memcpy(text, id.data, id.size);
    text[id.size] = '\0';
    *ret_number = strtoll(text, NULL, 10);
    (void)snprintf(again, sizeof(again), "%" PRId64, *ret_number);
    return strcmp(text, again) == 0;
}
