/* Function names for boxes: without the parts that say only where a function lives.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_REPORT_SHORT_FUNCTION_NAME_H
#define OFFBEAT_REPORT_SHORT_FUNCTION_NAME_H

#include "base/buffer.h"

/* Appends NAME without the folders of a Go import path, the packages and parameters of a Java method, or the namespaces
 * around a C++ class that begins with a capital letter; any other name as it is. The rules are pprof's. */
void short_function_name_append(struct buffer *out, const char *name);

#endif
