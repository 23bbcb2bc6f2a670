/* SPDX-License-Identifier: MIT */
#include "profile/simple_name.h"

struct slice simple_name(struct slice name)
{
    static const char anonymous[] = "(anonymous namespace)", call[] = "operator()";
    if (name.size > 0 && name.data[0] == '.') name = text_from(name, 1);
    for (size_t i = 0; i < name.size;) {
        if (text_begins_with(text_from(name, i), anonymous)) {
            i += strlen(anonymous);
        } else if (text_begins_with(text_from(name, i), call)) {
            i += strlen(call);
        } else if (name.data[i] == '(') {
            return slice_of(name.data, i);
        } else {
            i++;
        }
    }
    return name;
}
