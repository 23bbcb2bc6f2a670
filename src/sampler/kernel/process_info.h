/* Questions of the sampler to the kernel about its own process.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_PROCESS_INFO_H
#define OFFBEAT_SAMPLER_PROCESS_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

uint64_t monotonic_ns(void);
uint64_t wall_clock_ns(void);

/* Random numbers; not for secrets. */
enum { RANDOM_BYTES = 16 };
void process_random_bytes(uint8_t ret_bytes[RANDOM_BYTES]);
uint64_t process_random_number(void);

/* getpid and gettid without libc, whose functions can be interposed. */
pid_t process_id(void);
pid_t thread_id(void);

/* Returns the CPU time of the calling thread, ns; 0 if the kernel does not tell it. */
uint64_t thread_own_cpu_ns(void);

/* Returns the number of processors that this process may use, at least 1. */
uint32_t process_processor_count(void);

/* Gives the calling thread an empty table of descriptors of its own: nothing that it opens takes a number from the
 * program, it keeps nothing of the program open, and the program cannot close its files. KEPT, if it is not negative,
 * stays open. Does nothing where the kernel (before 5.9, or a seccomp filter) denies it. */
void process_own_descriptors(int kept);
bool process_has_own_descriptors(void);

/* Returns true if DESCRIPTOR may stay open: in a table of our own, as long as enough others are free. */
bool process_may_keep(int descriptor);

/* Returns DESCRIPTOR if it may stay open; closes it otherwise, and returns -1. */
int process_keep(int descriptor);

/* Opens PATH, and notes why it may not be opened. */
int process_open(const char *path, int flags);
int process_file_errno(void);         /* first such error; 0: none */
void process_close_descriptors(void); /* closes the files that process_info.c keeps open */

/* Opens the list of mappings at its start, or returns a negative errno. It stays open where that is possible, and can
 * then be read after a chroot, too. */
int process_open_maps(void);
void process_release_maps(int file);

/* Returns true if / is another directory than at the last call. */
bool process_root_has_changed(void);

/* Copies memory of this process, which may vanish at any time, and returns the number of bytes from ADDRESS on that
 * could be read. Uses /proc/self/mem, which needs no call that a filter could object to, or else process_vm_readv. */
size_t process_read_memory(uint64_t address, void *buffer, size_t size);

/* Asks for a processor at once when the calling thread wakes up: a sampler that wakes up late, when a processor falls
 * idle, sees threads asleep more often than they are. With nice -20, if that is allowed and the process has the right.
 */
void thread_wake_promptly(void);
void thread_allow_urgency(bool may_be_urgent); /* called on the program's thread, before the sampler thread starts */

/* Returns the priority of TID, 0: of the calling thread, if it is a real-time thread, else 0. */
uint32_t thread_real_time_priority(pid_t tid);

/* Makes TID, the sampler thread (0: the calling thread), a real-time thread that precedes those of PRIORITY, if it may
 * be urgent and has the right. */
void thread_precede(pid_t tid, uint32_t priority);

bool thread_is_urgent(void);
void thread_end_urgency(void); /* takes nice -20 back */

/* Writes "/proc/self/task/TID/FILE" to PATH. */
enum { TASK_PATH_SIZE = 64 };
void task_path(char path[TASK_PATH_SIZE], pid_t tid, const char *file);

/* Find "KEY:" in STATUS, the text of a /proc/…/status file, and return the text after it (NULL without KEY), or the
 * number there (0 without KEY). */
const char *status_line(const char *status, const char *key);
uint64_t status_number(const char *status, const char *key, unsigned base);

/* Reads a small file under /proc, NUL-terminated, cut at SIZE - 1. Returns its size, negative if it cannot be read. */
ssize_t read_small_file(const char *path, char *buffer, size_t size);

#endif
