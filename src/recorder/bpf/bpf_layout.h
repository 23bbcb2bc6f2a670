/* Values that the BPF programs and their loader share: maps in the kernel and records of the ring buffer. Both sides
 * are built for one machine; nothing here is written to files.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_BPF_BPF_LAYOUT_H
#define OFFBEAT_RECORDER_BPF_BPF_LAYOUT_H

#include "format/recording/recording_layout.h"
#include "interpreters/interpreter.h"
#include "unwind/machine.h"

#include <stdint.h>

enum {
    BPF_FRAMES_MAX = 255,
    BPF_KERNEL_FRAMES_MAX = 64,
    BPF_PROCESSES_MAX = 1 << 14,
    BPF_MODULE_ENTRIES_MAX = 1 << 16, /* module entries of all processes */
    BPF_PROCESS_MODULES_MAX = 1 << 12,
    BPF_TABLES_MAX = 1 << 12,
    BPF_VALUE_WORDS_SHIFT = 12, /* a value of a table's map has 1 << this many words of 4 bytes: 16 KB */
    BPF_VALUE_WORDS = 1 << BPF_VALUE_WORDS_SHIFT,
    BPF_RULE_WORDS = 4,
    BPF_WIDE_RULE_WORDS = 64, /* room for a wide rule, so that none is in two values */
    BPF_RING_BYTES = 8 << 20,
    BPF_REGISTERS = MACHINE_REGISTERS,
    BPF_COPY_BYTES = 16 << 10,
    BPF_INTERPRETED_MAX = 1 << 13, /* threads whose functions are copied */
    BPF_STATE_BYTES = 256,
    BPF_FUNCTIONS_MAX = 256, /* frames of one stack */
    BPF_RECORD_BYTES = 32,
    BPF_FRAME_BYTES = 128,
    BPF_CODE_BYTES = 192,
    BPF_NAME_BYTES = 96,
    BPF_FILE_BYTES = 24,
    BPF_FILE_END_BYTES = 32,
    BPF_TEXT_BYTES = 48,
    BPF_ENVIRONMENT_BYTES = 24,
};

/* A process that is recorded, by its number. A sample is unwound only if the running task is the one that START and
 * SELF_EXEC_ID identify: a process number that is used again has no modules. */
struct bpf_process_entry {
    uint32_t first, count;    /* range of its module entries */
    uint32_t version;         /* version of these entries; 0: the modules are not known yet */
    uint32_t mapping_count;   /* number of mappings that count when the modules were listed */
    uint64_t start_boottime;  /* start of its main thread, ns of CLOCK_BOOTTIME */
    uint64_t self_exec_id;    /* number of exec calls of the process and its parents, as the kernel counts them */
    uint32_t is_being_listed; /* 1: user space lists the modules again, and all mappings count */
    uint32_t unused;
};

/* One executable range of a process. The entries of a process are side by side, sorted by START. */
struct bpf_module_entry {
    uint64_t start, end;
    uint64_t base;    /* address to which the table is relative */
    uint32_t table;   /* number of the table */
    uint32_t code;    /* enum bpf_code */
    uint32_t version; /* equal to the version of the process entry, unless this place has been used again */
    uint32_t unused;
};

enum bpf_code {
    BPF_CODE_TABLE,          /* described by its table, or to be */
    BPF_CODE_UNKNOWN,        /* without a table: followed by frame pointers only to code that is known */
    BPF_CODE_FRAME_POINTERS, /* keeps frame pointers: generated at run time, or Go */
    BPF_CODE_ROOT,           /* stacks end there */
    BPF_CODE_STACK_SWITCH,   /* keeps the frame pointer of its caller, which is on another stack */
};

/* A table: the parts of one array, as numbers of words. Rules are at word 0. */
struct bpf_table_entry {
    uint32_t start, end; /* range of the code, relative to the module's base; both 0: not loaded */
    uint32_t blocks;     /* a pair for each block: the word of its first row, and the number of rows */
    uint32_t wide;       /* wide rules; BPF_WIDE_RULE_WORDS each */
};

struct bpf_table_value {
    uint32_t words[BPF_VALUE_WORDS];
};

enum bpf_record {
    BPF_SAMPLE,     /* struct bpf_sample */
    BPF_FORKED,     /* struct bpf_change: PID is a new process, a child of PARENT */
    BPF_EXECUTED,   /* struct bpf_change */
    BPF_MAPPED,     /* struct bpf_change: PID has mapped memory in the place of listed code */
    BPF_ENDED,      /* struct bpf_change: the thread TID has ended, and IS_LAST tells whether PID has */
    BPF_WAIT_BEGAN, /* struct bpf_sample: the stack with which a thread leaves its processor */
    BPF_WAITED,     /* struct bpf_wait: a thread has a processor again */
    BPF_FUNCTIONS,  /* struct bpf_functions, before the sample with the same thread and time */
};

/* The head of a sample in the ring. If the stack was walked, COUNT addresses follow and KERNEL_COUNT ones of the
 * kernel; else room for BPF_KERNEL_FRAMES_MAX of the kernel, the registers (BPF_REGISTERS words by enum
 * machine_register) and COPY_SIZE bytes of the stack from SP on. The innermost is first. */
struct bpf_sample {
    uint32_t record; /* BPF_SAMPLE or BPF_WAIT_BEGAN */
    uint32_t copy_size;
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    uint32_t pid, tid;
    uint64_t start_boottime, self_exec_id;
    uint16_t count;
    uint8_t outcome;        /* enum unwind_outcome; UNWIND_PENDING: not walked to the end, with registers */
    uint8_t is_known;       /* 1: the modules of the process were known */
    uint32_t mapping_count; /* number of mappings in the place of listed code so far */
    uint32_t kernel_count, unused;
};

/* Waits of a thread that have no record, since the recording began. */
struct bpf_wait_sums {
    uint64_t short_ns, left_out_ns; /* times of waits below the threshold, and of those not chosen */
    uint32_t short_count, left_out_count;
};

/* A wait in the ring. Times are ns of CLOCK_MONOTONIC. */
struct bpf_wait {
    uint32_t record; /* BPF_WAITED */
    uint32_t reason; /* enum recording_wait */
    uint32_t pid, tid;
    uint64_t began_ns, ended_ns;
    uint64_t woken_ns;             /* 0: it was not asleep */
    uint32_t one_in;               /* number of waits that it stands for */
    uint32_t waker_pid, waker_tid; /* 0: an interrupt */
    uint32_t unused;
    char waker[16];
};

/* A thread that an interpreter runs. */
struct bpf_interpreted_thread {
    uint64_t state; /* address of its description */
    struct interpreter_chain chain;
    uint32_t unused;
};

/* A frame of an interpreter: addresses, and the memory there. */
struct bpf_function {
    uint64_t record, frame, code, name; /* RECORD, on the C stack, is that of the first frame in it, else 0 */
    uint64_t text, environment;         /* ENVIRONMENT is the start of what is copied */
    uint64_t file, file_end;            /* starts of what is copied of the string of the file, and of its text */
    uint8_t record_bytes[BPF_RECORD_BYTES];
    uint8_t frame_bytes[BPF_FRAME_BYTES];
    uint8_t code_bytes[BPF_CODE_BYTES];
    uint8_t name_bytes[BPF_NAME_BYTES];
    uint8_t text_bytes[BPF_TEXT_BYTES];
    uint8_t environment_bytes[BPF_ENVIRONMENT_BYTES];
    uint8_t file_bytes[BPF_FILE_BYTES];
    uint8_t file_end_bytes[BPF_FILE_END_BYTES];
};

/* The functions of a thread, the innermost first. */
struct bpf_functions {
    uint32_t record; /* BPF_FUNCTIONS */
    uint32_t tid;
    uint64_t time_ns;
    uint64_t state;
    struct interpreter_chain chain;
    uint32_t count;
    uint8_t state_bytes[BPF_STATE_BYTES];
    uint64_t stack_pointers[BPF_FRAMES_MAX + 1]; /* stack pointers of the sample's frames */
    struct bpf_function functions[BPF_FUNCTIONS_MAX];
};

/* A change of a process in the ring. */
struct bpf_change {
    uint32_t record; /* enum bpf_record */
    uint32_t pid, tid, parent;
    uint64_t start_boottime, self_exec_id;
    uint64_t time_ns;              /* CLOCK_MONOTONIC */
    uint64_t cpu_ns, run_delay_ns; /* clocks of the thread that has ended */
    uint32_t is_last;
    uint32_t mapping_count; /* number of mappings in the place of listed code so far */
    struct bpf_wait_sums waits;
};

/* A thread at a tick, which has run since the last one or is new. */
struct bpf_thread {
    uint32_t pid, tid;
    uint64_t cpu_ns, run_delay_ns;
    uint32_t state;     /* bits of the kernel's __state; 0: runs or wants to */
    uint32_t is_on_cpu; /* 1: a processor executes it at the moment */
    char name[16];
    uint64_t wait_began_ns; /* time when its wait began; 0: it does not wait */
    uint32_t wait_reason;   /* enum recording_wait */
    uint32_t needs_stack;   /* 1: its stack was not sent */
    struct bpf_wait_sums waits;
    uint64_t registers[BPF_REGISTERS]; /* registers of its last entry into the kernel */
};

/* Argument of the program that samples its caller. */
struct bpf_self_sample {
    uint32_t repeat; /* number of walks */
    uint32_t unused;
    uint64_t walk_ns; /* result: duration of all walks */
};

#endif
