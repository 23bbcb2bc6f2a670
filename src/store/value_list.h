/* The distinct values of a column, added up over the parts of a store.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_STORE_VALUE_LIST_H
#define OFFBEAT_STORE_VALUE_LIST_H

#include "store/store.h"

/* {0} is a valid empty one. */
struct value_list {
    struct value *items;
    size_t count;
};

void value_list_fini(struct value_list *list);
/* Adds a copy of VALUE; false without memory. */
bool value_list_add(struct value_list *list, const struct store_value *value);
/* Visits the first STORE_VALUES_MAX values, in the order of their bytes. */
void value_list_visit(struct value_list *list, store_visit_value *visit, void *context);

#endif
