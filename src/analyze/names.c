/* SPDX-License-Identifier: MIT */
#include "analyze/names.h"

void names_init(struct names *names, const struct profile *profile)
{
    *names = (struct names){.profile = profile, .first_added = (uint32_t)profile->strings.count};
    profile_init(&names->added);
}

void names_fini(struct names *names)
{
    profile_fini(&names->added);
    *names = (struct names){0};
}

struct name_id names_add(struct names *names, struct slice text)
{
    struct string_id string;
    if (profile_find_string(names->profile, text, &string)) return name_of_string(string);
    string = profile_string(&names->added, text);
    return (struct name_id){string.index ? names->first_added + string.index : 0};
}

struct name_id name_of_string(struct string_id string)
{
    return (struct name_id){string.index};
}

bool name_is_string(const struct names *names, struct name_id name, struct string_id *ret_string)
{
    ret_string->index = name.index;
    return name.index < names->first_added;
}

enum status names_failed(const struct names *names, struct error *error)
{
    return profile_failed(&names->added, error);
}

struct slice names_slice(const struct names *names, struct name_id name)
{
    struct string_id string;
    if (name_is_string(names, name, &string)) return profile_slice(names->profile, string);
    return profile_slice(&names->added, (struct string_id){name.index - names->first_added});
}

const char *names_text(const struct names *names, struct name_id name)
{
    return (const char *)names_slice(names, name).data;
}
