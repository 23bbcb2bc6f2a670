/* Names without the arguments of templates.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_SHORT_NAMES_H
#define OFFBEAT_PROFILE_SHORT_NAMES_H

#include "base/buffer.h"
#include "profile/profile.h"

/* Appends NAME without template arguments of C++ and generic arguments of Rust: std::vector::push_back(int const&) for
 * std::vector<int>::push_back(int const&). Operators (operator<, operator<<, operator->), lambdas and other names in
 * angle brackets (<lambda(int)>, <init>, <module>, <T as Trait>) stay. A bracket without its counterpart stays. */
void short_name_append(struct slice name, struct buffer *out);

/* Gives every function its short name. Nothing may be added to the profile afterwards. Fails as
 * profile_failed does. */
void profile_give_short_names(struct profile *profile);

#endif
