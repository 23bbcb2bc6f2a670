/* The environment that `offbeat record` gives to the program: cli/record_run.c sets it, sdk/preload.c reads it in the
 * program and in its children, which inherit it. A value that is missing or cannot be parsed has no effect, except that
 * a frequency out of range or a wrong percentage disables recording.
 *
 * The variables without RECORD in their comment are also options of the library for programs that profile themselves
 * (sdk/settings.c), with the same values. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_RECORDING_RECORD_ENVIRONMENT_H
#define OFFBEAT_FORMAT_RECORDING_RECORD_ENVIRONMENT_H

/* RECORD: an absolute path, where each process writes its recording. The library records only if it is set. */
#define RECORD_ENVIRONMENT_DIRECTORY "OFFBEAT_RECORD_DIRECTORY"
/* RECORD: milliseconds; after them the sampler ends, not the program. 0 or unset: no limit. */
#define RECORD_ENVIRONMENT_DURATION_MS "OFFBEAT_DURATION_MS"
/* RECORD: the only process that is sampled; exec keeps the number. Unset: its children, too. */
#define RECORD_ENVIRONMENT_ONLY_PID "OFFBEAT_ONLY_PID"
/* RECORD: set if stacks keep the native frames of an interpreter beside the functions that it runs. */
#define RECORD_ENVIRONMENT_NATIVE "OFFBEAT_NATIVE"
/* RECORD: percent of a processor that the sampler may use in each process (base/percent.h); 0: the default. */
#define RECORD_ENVIRONMENT_CPU_MAX "OFFBEAT_RECORD_CPU_MAX"

/* "cpu" or "wall"; anything else is "wall". */
#define RECORD_ENVIRONMENT_MODE "OFFBEAT_MODE"
/* Samples of each thread a second, a decimal number from 1 to SAMPLER_FREQUENCY_MAX. */
#define RECORD_ENVIRONMENT_FREQUENCY "OFFBEAT_FREQUENCY"
/* Where frame tables are kept between runs; unset: nowhere. */
#define RECORD_ENVIRONMENT_CACHE_DIRECTORY "OFFBEAT_CACHE_DIRECTORY"

#endif
