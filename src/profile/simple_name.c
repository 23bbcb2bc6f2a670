/* SPDX-License-Identifier: MIT */
#include "profile/simple_name.h"

static bool begins(struct slice text, size_t at, const char *with)
{
    size_t size = strlen(with);
    return text.size - at >= size && memcmp(text.data + at, with, size) == 0;
}

struct slice simple_name(struct slice name)
{
    static const char anonymous[] = "(anonymous namespace)", call[] = "operator()";
    if (name.size > 0 && name.data[0] == '.') name = slice_of(name.data + 1, name.size - 1);
    for (size_t i = 0; i < name.size;) {
        if (begins(name, i, anonymous)) {
            i += strlen(anonymous);
        } else if (begins(name, i, call)) {
            i += strlen(call);
        } else if (name.data[i] == '(') {
            return slice_of(name.data, i);
        } else {
            i++;
        }
    }
    return name;
}
