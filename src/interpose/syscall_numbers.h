/* For syscall.S and syscall.c.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_INTERPOSE_SYSCALL_NUMBERS_H
#define OFFBEAT_INTERPOSE_SYSCALL_NUMBERS_H

#define INTERPOSE_NUMBERS_END 512

#endif
