/* Numbers of perf's files: records of the kernel (linux/perf_event.h), and what `perf record` adds to them (the
 * kernel's tools/perf/Documentation/perf.data-file-format.txt).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_PERF_PERF_LAYOUT_H
#define OFFBEAT_FORMAT_PERF_PERF_LAYOUT_H

#include <stdint.h>

#define PERF_MAGIC "PERFILE2"
#define PERF_MAGIC_SWAPPED "2ELIFREP" /* magic of a machine with the other byte order */

enum {
    PERF_MAGIC_SIZE = 8,
    PERF_PIPE_HEADER_SIZE = 16,
    PERF_FILE_HEADER_SIZE = 104,
    PERF_RECORD_HEADER_SIZE = 8,
    PERF_SECTION_SIZE = 16, /* offset and size */
    PERF_FEATURES = 256,
    PERF_BUILD_ID_BYTES = 20,
};

enum perf_record_type {
    PERF_RECORD_MMAP = 1,
    PERF_RECORD_LOST = 2,
    PERF_RECORD_COMM = 3,
    PERF_RECORD_EXIT = 4,
    PERF_RECORD_FORK = 7,
    PERF_RECORD_SAMPLE = 9,
    PERF_RECORD_MMAP2 = 10,
    PERF_RECORD_LOST_SAMPLES = 13,
    PERF_RECORD_NAMESPACES = 16,
    PERF_RECORD_KSYMBOL = 17,
    PERF_RECORD_CGROUP = 19,
    PERF_RECORD_KERNEL_TYPES = 64, /* all below are the kernel's; all others are of perf record, without a time */
    PERF_RECORD_HEADER_ATTR = 64,
    PERF_RECORD_HEADER_TRACING_DATA = 66,
    PERF_RECORD_HEADER_BUILD_ID = 67,
    PERF_RECORD_FINISHED_ROUND = 68,
    PERF_RECORD_AUXTRACE = 71,
    PERF_RECORD_EVENT_UPDATE = 78,
    PERF_RECORD_HEADER_FEATURE = 80,
    PERF_RECORD_COMPRESSED = 81,
    PERF_RECORD_COMPRESSED2 = 83,
};

enum perf_misc {
    PERF_MISC_MODE_MASK = 7,
    PERF_MISC_KERNEL = 1,
    PERF_MISC_USER = 2,
    PERF_MISC_MMAP_DATA = 1 << 13,
    PERF_MISC_COMM_EXEC = 1 << 13,
    PERF_MISC_MMAP_BUILD_ID = 1 << 14,
    PERF_MISC_BUILD_ID_SIZE = 1 << 15,
};

enum perf_ksymbol { PERF_KSYMBOL_BPF = 1, PERF_KSYMBOL_UNREGISTER = 1 << 0 /* a flag */ };

enum perf_sample_type {
    PERF_SAMPLE_IP = 1 << 0,
    PERF_SAMPLE_TID = 1 << 1,
    PERF_SAMPLE_TIME = 1 << 2,
    PERF_SAMPLE_ADDR = 1 << 3,
    PERF_SAMPLE_READ = 1 << 4,
    PERF_SAMPLE_CALLCHAIN = 1 << 5,
    PERF_SAMPLE_ID = 1 << 6,
    PERF_SAMPLE_CPU = 1 << 7,
    PERF_SAMPLE_PERIOD = 1 << 8,
    PERF_SAMPLE_STREAM_ID = 1 << 9,
    PERF_SAMPLE_RAW = 1 << 10,
    PERF_SAMPLE_BRANCH_STACK = 1 << 11,
    PERF_SAMPLE_REGS_USER = 1 << 12,
    PERF_SAMPLE_STACK_USER = 1 << 13,
    PERF_SAMPLE_WEIGHT = 1 << 14,
    PERF_SAMPLE_DATA_SRC = 1 << 15,
    PERF_SAMPLE_IDENTIFIER = 1 << 16,
    PERF_SAMPLE_TRANSACTION = 1 << 17,
    PERF_SAMPLE_REGS_INTR = 1 << 18,
    PERF_SAMPLE_PHYS_ADDR = 1 << 19,
    PERF_SAMPLE_CGROUP = 1 << 21,
    PERF_SAMPLE_WEIGHT_STRUCT = 1 << 24,
};

enum perf_read_format {
    PERF_FORMAT_TOTAL_TIME_ENABLED = 1 << 0,
    PERF_FORMAT_TOTAL_TIME_RUNNING = 1 << 1,
    PERF_FORMAT_ID = 1 << 2,
    PERF_FORMAT_GROUP = 1 << 3,
    PERF_FORMAT_LOST = 1 << 4,
};

enum perf_branch_type {
    PERF_BRANCH_CALL_STACK = 1 << 11,
    PERF_BRANCH_HW_INDEX = 1 << 17,
    PERF_BRANCH_COUNTERS = 1 << 19,
};

enum { PERF_BRANCH_SIZE = 24 }; /* where it was, where it went to, flags */

/* Addresses of a call chain from here on are marks: the mode of what follows. */
#define PERF_CONTEXT_FIRST ((uint64_t)-4095)
#define PERF_CONTEXT_KERNEL ((uint64_t)-128)
#define PERF_CONTEXT_USER ((uint64_t)-512)

enum perf_event_type { PERF_TYPE_HARDWARE = 0, PERF_TYPE_SOFTWARE = 1, PERF_TYPE_TRACEPOINT = 2 };
enum perf_software { PERF_SOFTWARE_CPU_CLOCK = 0, PERF_SOFTWARE_TASK_CLOCK = 1, PERF_SOFTWARE_DUMMY = 9 };

enum perf_update { PERF_UPDATE_NAME = 2 };

enum perf_feature {
    PERF_FEATURE_BUILD_ID = 2,
    PERF_FEATURE_HOSTNAME = 3,
    PERF_FEATURE_OSRELEASE = 4,
    PERF_FEATURE_VERSION = 5,
    PERF_FEATURE_ARCH = 6,
    PERF_FEATURE_CMDLINE = 11,
    PERF_FEATURE_EVENT_DESC = 12,
    PERF_FEATURE_DIRECTORY = 24,
    PERF_FEATURE_CLOCK_DATA = 29,
};

enum { PERF_ABI_64 = 2 };

#endif
