/* What the sampler asks the kernel about its own process.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_PROCESS_INFO_H
#define OFFBEAT_SAMPLER_PROCESS_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

uint64_t monotonic_ns(void);
uint64_t wall_clock_ns(void);

/* getpid and gettid without libc, whose functions can be interposed. */
pid_t process_id(void);
pid_t thread_id(void); /* of the calling thread */

/* Processors that this process may use; at least 1. */
uint32_t process_processor_count(void);

/* Gives the calling thread its own table of descriptors, empty: nothing that it opens takes a number from the
 * program, nothing of the program is kept open by it, and no close by the program can signal it. KEPT, if it is not
 * negative, stays open. False where the kernel (before 5.9, or a seccomp filter) denies it. */
bool process_own_descriptors(int kept);
bool process_has_own_descriptors(void);
void process_close_descriptors(void); /* those that this file keeps open */

/* The list of mappings, to be read from its start, or a negative errno. It stays open where that is possible: then it
 * can be read after a chroot, too. */
int process_open_maps(void);
void process_release_maps(int file);

/* True if / is another directory than at the last call. */
bool process_root_has_changed(void);

/* Copies memory of this process that may vanish at any time. The bytes that could be read, from ADDRESS on. Through
 * /proc/self/mem, which needs no call that a filter could object to, or where that cannot be read by process_vm_readv.
 */
size_t process_read_memory(uint64_t address, void *buffer, size_t size);

/* Asks that the calling thread gets a processor at once when it wakes up, as far as anybody may ask for that: one who
 * samples late, when a processor falls idle, sees threads asleep more often than they are. */
void thread_wake_promptly(bool may_be_urgent);

/* MAY_BE_URGENT above: nice -20, if the process has the right to it. This takes it back. */
void thread_end_urgency(void);

/* "/proc/self/task/TID/FILE". */
enum { TASK_PATH_SIZE = 64 };
void task_path(char path[TASK_PATH_SIZE], pid_t tid, const char *file);

/* In the text of a /proc/…/status file: what is after "KEY:", NULL if there is none; and the number there, or 0.
 */
const char *status_line(const char *status, const char *key);
uint64_t status_number(const char *status, const char *key, unsigned base);

/* All of a small file under /proc, NUL-terminated, cut at SIZE - 1. Negative if it cannot be read. */
ssize_t read_small_file(const char *path, char *buffer, size_t size);

#endif
