/* libunwind through its interface for other processes. It gets the place of .eh_frame_hdr, as from perf: its own
 * search misses modules whose code is mapped at another offset than its address, as lld lays it out. Registers and
 * words come from the tracee's block, so that a walk does not take hundreds of system calls.  SPDX-License-Identifier:
 * MIT */
#include "peer.h"

#include <libunwind-ptrace.h>
#include <stdlib.h>

struct peer {
    struct tracee *tracee;
    unw_addr_space_t space;
    void *argument; /* argument of libunwind's own functions */
};

/* libunwind's accessors have no room for our context. */
static struct peer *current;

static int access_memory(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int write, void *argument)
{
    return !write && tracee_read_word(current->tracee, address, value) ? 0 : -UNW_EINVAL;
}

static int access_register(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value, int write, void *argument)
{
    const struct user_regs_struct *registers = &current->tracee->registers;
    const unsigned long long values[] = {
        [UNW_X86_64_RAX] = registers->rax, [UNW_X86_64_RDX] = registers->rdx, [UNW_X86_64_RCX] = registers->rcx,
        [UNW_X86_64_RBX] = registers->rbx, [UNW_X86_64_RSI] = registers->rsi, [UNW_X86_64_RDI] = registers->rdi,
        [UNW_X86_64_RBP] = registers->rbp, [UNW_X86_64_RSP] = registers->rsp, [UNW_X86_64_R8] = registers->r8,
        [UNW_X86_64_R9] = registers->r9,   [UNW_X86_64_R10] = registers->r10, [UNW_X86_64_R11] = registers->r11,
        [UNW_X86_64_R12] = registers->r12, [UNW_X86_64_R13] = registers->r13, [UNW_X86_64_R14] = registers->r14,
        [UNW_X86_64_R15] = registers->r15, [UNW_X86_64_RIP] = registers->rip,
    };
    if (write || number < 0 || number > UNW_X86_64_RIP) return -UNW_EBADREG;
    *value = values[number];
    return 0;
}

/* Exported for those who have their own address space, and declared in none of libunwind's headers. */
#define search_unwind_table UNW_OBJ(dwarf_search_unwind_table)
int search_unwind_table(unw_addr_space_t space, unw_word_t address, unw_dyn_info_t *tables,
                        unw_proc_info_t *ret_procedure, int need_unwind_info, void *argument);

static int find_procedure(unw_addr_space_t space, unw_word_t address, unw_proc_info_t *ret_procedure,
                          int need_unwind_info, void *argument)
{
    for (size_t i = 0; i < current->tracee->module_count; i++) {
        const struct tracee_module *module = &current->tracee->modules[i];
        if (address < module->start || address >= module->end || !module->header) continue;
        unw_dyn_info_t tables = {.format = UNW_INFO_FORMAT_REMOTE_TABLE,
                                 .start_ip = module->start,
                                 .end_ip = module->end,
                                 .u.rti = {.segbase = module->header,
                                           .table_data = module->header + 12,
                                           .table_len = module->header_fdes * (unw_word_t)8 / sizeof(unw_word_t)}};
        return search_unwind_table(space, address, &tables, ret_procedure, need_unwind_info, argument);
    }
    return _UPT_find_proc_info(space, address, ret_procedure, need_unwind_info, argument);
}

struct peer *peer_new(struct tracee *tracee)
{
    static unw_accessors_t accessors;
    struct peer *peer = calloc(1, sizeof(*peer));
    if (!peer) return NULL;
    accessors = _UPT_accessors;
    accessors.access_mem = access_memory;
    accessors.access_reg = access_register;
    accessors.find_proc_info = find_procedure;
    peer->tracee = tracee;
    peer->space = unw_create_addr_space(&accessors, 0);
    peer->argument = _UPT_create(tracee->pid);
    if (peer->space && peer->argument) {
        (void)unw_set_caching_policy(peer->space, UNW_CACHE_GLOBAL);
        return peer;
    }
    peer_free(peer);
    return NULL;
}

void peer_free(struct peer *peer)
{
    if (!peer) return;
    if (peer->argument) _UPT_destroy(peer->argument);
    if (peer->space) unw_destroy_addr_space(peer->space);
    free(peer);
}

void peer_forget(struct peer *peer)
{
    unw_flush_cache(peer->space, 0, 0);
    if (peer->argument) _UPT_destroy(peer->argument);
    peer->argument = _UPT_create(peer->tracee->pid);
}

/* True at either instruction of "mov $15, %rax; syscall", which unw_is_signal_frame does not always report. */
static bool returns_from_signal(uint64_t address)
{
    const uint64_t first_word = 0x0f0000000fc0c748;
    uint64_t word = 0;
    return (tracee_read_word(current->tracee, address, &word) && word == first_word) ||
           (tracee_read_word(current->tracee, address - 7, &word) && word == first_word);
}

static bool is_in_module(const struct tracee *tracee, uint64_t address)
{
    for (size_t i = 0; i < tracee->module_count; i++) {
        if (address >= tracee->modules[i].start && address < tracee->modules[i].end) return true;
    }
    return false;
}

/* True if libunwind may continue wrongly from ADDRESS: from code without frame information it goes to anything that
 * looks like an address, or takes the frame for the outermost one. Entry code is an exception: nothing called it. */
static bool is_root(struct peer *peer, uint64_t lookup, bool is_first)
{
    unw_proc_info_t procedure;
    bool has_information = find_procedure(peer->space, lookup, &procedure, 0, peer->argument) == 0;
    return has_information || (!is_first && is_in_module(peer->tracee, lookup));
}

void peer_walk(struct peer *peer, struct stack *ret_stack)
{
    unw_cursor_t cursor;
    current = peer;
    ret_stack->count = 0;
    ret_stack->reached_root = false;
    if (unw_init_remote(&cursor, peer->space, peer->argument) != 0) return;
    bool is_exact = true;
    while (ret_stack->count < TRACEE_FRAMES_MAX) {
        unw_word_t address = 0;
        if (unw_get_reg(&cursor, UNW_REG_IP, &address) != 0) return;
        if (ret_stack->count > 0 && address == 0) {
            ret_stack->reached_root = true;
            return;
        }
        bool is_first = ret_stack->count == 0;
        bool is_trampoline = returns_from_signal(address);
        uint64_t lookup = is_exact || is_trampoline ? address : address - 1;
        ret_stack->addresses[ret_stack->count++] = is_first ? address : lookup + 1;
        is_exact = is_trampoline;
        int stepped = unw_step(&cursor);
        ret_stack->reached_root = stepped == 0 && is_root(peer, lookup, is_first);
        if (stepped <= 0) return;
    }
}
