/* makecontext. All of its arguments are pointers or of type int.  SPDX-License-Identifier: MIT */
#include "interpose/interposed.inc"

    .text
    interposed makecontext, interpose_before_makecontext

    END_OF_FILE
