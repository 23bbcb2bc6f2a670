/* Debug ids of files without a build id (facts §3.5).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_CONTENTS_IDS_H
#define OFFBEAT_SYMBOLIZE_CONTENTS_IDS_H

#include "profile/profile.h"

/* Gives each mapping without build id and debug id the debug id that Sentry's SDKs make of the file's code, so that its
 * frames are in an image (FMT-9). A file that cannot be read has none. Reads files that PROFILE names: for recordings
 * of this machine. */
void contents_ids_give(struct profile *profile);

#endif
