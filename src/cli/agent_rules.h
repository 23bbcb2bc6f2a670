/* The rules of offbeat agent: which processes are recorded, how often, and as which service. A rule is words KEY=VALUE:
 *   name=REGEX user=USER cgroup=PATH       conditions, of which a process must meet all
 *   frequency=HZ                           samples of a thread a second, at most those of the agent
 *   service=unit|container|command|NAME    what the processes are called
 *   record=no                              they are left out
 * The first rule whose conditions a process meets decides. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_AGENT_RULES_H
#define OFFBEAT_CLI_AGENT_RULES_H

#include "base/buffer.h"
#include "cli/options.h"
#include "cli/process_choice.h"

struct agent_rule {
    struct process_choice choice;
    const char *service;   /* name, or one of the words for it; NULL: the agent's */
    uint64_t frequency_hz; /* 0: the agent's */
    bool is_left_out;
};

struct agent_rules {
    struct agent_rule items[OPTION_TEXTS_MAX];
    size_t count;
    struct buffer texts; /* words of the rules, NUL-terminated */
};

/* Reads TEXTS, a rule each. False after one line on standard error. agent_rules_fini follows in both cases. */
bool agent_rules_read(struct agent_rules *rules, const struct option_texts *texts);
void agent_rules_fini(struct agent_rules *rules);

/* Returns the rule for process PID, which is called NAME; NULL: none fits. */
const struct agent_rule *agent_rules_find(struct agent_rules *rules, pid_t pid, const char *name);

#endif
