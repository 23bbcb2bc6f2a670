/* The library's threads step aside for calls of the program that need a process of one thread, or that change what a
 * new thread inherits. Each of them ends where it holds nothing, and leaves its work on the heap. A new thread, a
 * clone of the calling thread with exactly that thread's rights, continues the work. For interpose/.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_ASIDE_H
#define OFFBEAT_SDK_ASIDE_H

#include <stdbool.h>

/* For liboffbeat-first.so: starts to record, if `offbeat record` wants it, before libc knows its ENVIRONMENT. */
void sdk_record_first(char **environment);

/* For _exit: writes the end of the recording of `offbeat record`. Does nothing in a child of vfork, and in one that
 * has no sampler. Bounded; async-signal-safe. */
void sdk_end_recording(void);

enum sdk_absence {
    SDK_ASIDE,         /* the call needs a process of one thread: waits a moment at most */
    SDK_ASIDE_RIGHTS,  /* libc ends the process if threads have different rights: waits longer */
    SDK_ASIDE_FOR_GOOD /* a seccomp filter: stores first what is to be sent */
};

/* True if this process has threads of the library; not in a child of vfork, which has the memory of its parent. */
bool sdk_has_threads(void);

/* Ends them. False if there are none or they do not end in time; they continue then. If true, exactly one of the next
 * two functions must follow. Keeps errno, as they all do. */
bool sdk_step_aside(enum sdk_absence absence);

/* Starts them again. Where the kernel denies that, the library ends, and the next launch sends what is left. */
void sdk_come_back(void);

/* The library ends. Makes no system call: a seccomp filter is in force. */
void sdk_stay_away(void);

/* --- Rights: libc changes them on each of its threads, and ends the process if that fails on some of them only -------
 */

/* The calling thread is about to have libc change the rights of all threads: the library's threads step aside if
 * their rights may differ from the calling thread's. True: sdk_come_back must follow. */
bool sdk_step_aside_if_rights_differ(void);

/* The calling thread has changed only its own rights. If it gave up capabilities for good, the library's threads do
 * the same; otherwise they follow at the next sdk_step_aside_if_rights_differ. */
void sdk_follow_rights(void);

#endif
