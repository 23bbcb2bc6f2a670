/* SPDX-License-Identifier: MIT */
#include "query/query.h"

#include <stdlib.h>
#include <string.h>

const char *query_text(const struct query *query, const char *name)
{
    for (size_t i = 0; i < query->parameter_count; i++) {
        if (strcmp(query->parameters[i].name, name) == 0) return query->parameters[i].value;
    }
    return NULL;
}

struct slice query_slice(const struct query *query, const char *name)
{
    return slice_of_text(query_text(query, name));
}

size_t query_number(const struct query *query, const char *name, size_t otherwise)
{
    const char *text = query_text(query, name);
    return text ? (size_t)strtoull(text, NULL, 10) : otherwise;
}
