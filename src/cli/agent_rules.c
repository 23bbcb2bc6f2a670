/* SPDX-License-Identifier: MIT */
#include "cli/agent_rules.h"

#include "cli/message.h"
#include "cli/record.h"

#include <stdlib.h>
#include <string.h>

enum { RULES_BYTES_MAX = 1 << 16 };

static bool set_frequency(struct agent_rule *rule, const char *text)
{
    const struct option option = {.name = "frequency",
                                  .kind = OPTION_NUMBER,
                                  .value = &rule->frequency_hz,
                                  .minimum = 1,
                                  .maximum = RECORD_FREQUENCY_MAX,
                                  .origin = "rule: "};
    return option_set(&option, text);
}

static bool set_record(struct agent_rule *rule, const char *text)
{
    rule->is_left_out = strcmp(text, "no") == 0;
    if (rule->is_left_out || strcmp(text, "yes") == 0) return true;
    message("rule: record must be yes or no, not \"%s\"", text);
    return false;
}

/* Takes WORD, "KEY=VALUE". */
static bool take_word(struct agent_rule *rule, char *word)
{
    const struct {
        const char *key;
        const char **text;
    } texts[] = {{"name", &rule->choice.name},
                 {"user", &rule->choice.user},
                 {"cgroup", &rule->choice.cgroup},
                 {"service", &rule->service}};
    char *value = strchr(word, '=');
    if (value) *value++ = '\0';
    for (size_t i = 0; value && *value && i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(word, texts[i].key) != 0) continue;
        *texts[i].text = value;
        return true;
    }
    if (value && strcmp(word, "frequency") == 0) return set_frequency(rule, value);
    if (value && strcmp(word, "record") == 0) return set_record(rule, value);
    message("rule: \"%s\" is none of name=, user=, cgroup=, frequency=, service= and record= with a value", word);
    return false;
}

static bool read_rule(struct agent_rule *rule, char *text)
{
    char *rest = text;
    for (char *word; (word = strtok_r(rest, " \t", &rest));) {
        if (!take_word(rule, word)) return false;
    }
    rule->choice.takes_all = !process_choice_is_given(&rule->choice);
    return process_choice_begin(&rule->choice);
}

bool agent_rules_read(struct agent_rules *rules, const struct option_texts *texts)
{
    *rules = (struct agent_rules){.count = 0};
    buffer_init(&rules->texts, RULES_BYTES_MAX);
    for (size_t i = 0; i < texts->count; i++)
        buffer_append(&rules->texts, texts->items[i], strlen(texts->items[i]) + 1);
    if (rules->texts.failed) {
        message("the rules have over %d bytes", RULES_BYTES_MAX);
        return false;
    }
    char *text = (char *)rules->texts.data;
    for (size_t i = 0; i < texts->count; i++) {
        size_t size = strlen(text) + 1;
        if (!read_rule(&rules->items[rules->count++], text)) return false;
        text += size;
    }
    return true;
}

void agent_rules_fini(struct agent_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++) process_choice_fini(&rules->items[i].choice);
    buffer_fini(&rules->texts);
    rules->count = 0;
}

const struct agent_rule *agent_rules_find(struct agent_rules *rules, pid_t pid, const char *name)
{
    for (size_t i = 0; i < rules->count; i++) {
        if (process_choice_takes(&rules->items[i].choice, pid, name)) return &rules->items[i];
    }
    return NULL;
}
