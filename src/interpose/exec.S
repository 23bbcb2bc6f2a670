/* exec and its relatives. All of their arguments are pointers or of type int.  SPDX-License-Identifier: MIT */
#include "interpose/interposed.inc"

    .text
    interposed execve, interpose_before_exec, 0 /* the order of next.c */
    interposed execv, interpose_before_exec, 1
    interposed execvp, interpose_before_exec, 2
    interposed execvpe, interpose_before_exec, 3
    interposed execl, interpose_before_exec, 4
    interposed execlp, interpose_before_exec, 5
    interposed execle, interpose_before_exec, 6
    interposed fexecve, interpose_before_exec, 7
    interposed execveat, interpose_before_exec, 8

    END_OF_FILE
