/* The library's threads step aside for calls of the program that need a process of one thread, or that change what a
 * new thread inherits. Each of them ends where it holds nothing, and leaves its work on the heap. A new thread, a
 * clone of the calling thread with exactly that thread's rights, continues the work. For interpose/.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_ASIDE_H
#define OFFBEAT_SDK_ASIDE_H

#include <stdbool.h>

/* Starts the recording of `offbeat record` if ENVIRONMENT asks for one. Called by liboffbeat-first.so before libc has
 * its environment. */
void sdk_record_first(char **environment);

/* Writes the end of the recording of `offbeat record`. Called by _exit; does nothing in a child of vfork and in a child
 * without a sampler. Bounded; async-signal-safe. */
void sdk_end_recording(void);

enum sdk_absence {
    SDK_ASIDE,         /* a call that needs a process of one thread: a short wait */
    SDK_ASIDE_RIGHTS,  /* a change of rights, which must be the same on all threads: a longer wait */
    SDK_ASIDE_FOR_GOOD /* a seccomp filter: a longer wait */
};

/* True if this process has threads of the library; not in a child of vfork, which has the memory of its parent. */
bool sdk_has_threads(void);

/* Ends the library's threads. False if there are none or they do not end in time: they continue then. After true,
 * exactly one of sdk_come_back and sdk_stay_away must follow. All three keep errno. */
bool sdk_step_aside(enum sdk_absence absence);

/* Starts the threads again. If the kernel denies that, the library ends, and the next launch sends the rest. */
void sdk_come_back(void);

/* Ends the library without a system call, because a seccomp filter is in force. */
void sdk_stay_away(void);

/* --- Rights: libc changes them on each of its threads, and ends the process if only some changes fail ------------- */

/* Makes the library's threads step aside if their rights may differ from the calling thread's, which is about to have
 * libc change the rights of all threads. After true, sdk_come_back must follow. */
bool sdk_step_aside_if_rights_differ(void);

/* Lets the library's threads give up the capabilities that the calling thread, alone, has given up for good. Other
 * changes of its rights follow at the next sdk_step_aside_if_rights_differ. */
void sdk_follow_rights(void);

#endif
