/* What liboffbeat-first.so calls before any other constructor.  SPDX-License-Identifier: MIT */
#include "interpose/interpose_private.h"

#include "sdk/aside.h"

void liboffbeat_record_first(char **environment);

INTERPOSED void liboffbeat_record_first(char **environment)
{
    sdk_record_first(environment);
}
