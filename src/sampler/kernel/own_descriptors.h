/* Descriptors of the sampler thread, in a table of its own. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_OWN_DESCRIPTORS_H
#define OFFBEAT_SAMPLER_OWN_DESCRIPTORS_H

#include <stdbool.h>

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
void process_close_descriptors(void); /* closes the files that own_descriptors.c keeps open */

/* Opens the list of mappings at its start, or returns a negative errno. It stays open where that is possible, and can
 * then be read after a chroot, too. */
int process_open_maps(void);
void process_release_maps(int file);

/* Returns true if / is another directory than at the last call. */
bool process_root_has_changed(void);

#endif
