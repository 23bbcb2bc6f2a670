/* offbeat agent: profiles the processes of a machine all the time, from outside (recorder/). Each process has a
 * recording a minute, which becomes a chunk for a server or a file (agent_delivery.h).  SPDX-License-Identifier: MIT */
#include "base/clocks.h"
#include "base/environment.h"
#include "base/percent.h"
#include "base/unsigned.h"
#include "cli/agent_delivery.h"
#include "cli/agent_rules.h"
#include "cli/agent_service.h"
#include "cli/commands.h"
#include "cli/convert_profile.h"
#include "cli/message.h"
#include "cli/record.h"
#include "cli/record_attach.h"
#include "recorder/task_files.h"
#include "symbolize/index_store.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FREQUENCY_DEFAULT = 19, CPU_PPM_MIN = 100, MEMORY_DEFAULT = 256, MEMORY_MIN = 8 };
#define RECORDING_NS (60 * SECOND_NS) /* as long as a chunk may be */
#define END_NS (10 * SECOND_NS)       /* time for what waits, at the end */
#define STATE_NS (60 * SECOND_NS)

/* The options, as the command line, variables and the file give them. */
struct agent_options {
    struct option_texts rules;
    struct agent_delivery_options delivery;
    const char *service, *keep;
    uint64_t frequency_hz, cpu_max_ppm, memory_megabytes, disk_megabytes, recording_ns;
    unsigned mode, engine, format_choice;
    const char *config;
    bool is_verbose;
};

struct agent {
    int argument_count;
    char **arguments;
    struct agent_options options;
    struct agent_rules rules;
    struct agent_delivery *delivery;
    struct recorder *recorder;
    uint64_t state_ns; /* time of the next line about the state */
    bool is_scarce;    /* true if the last search left out processes for want of memory */
};

static const char *const engine_names[] = {NULL, "bpf", "perf", "proc"};

/* --- Options ------------------------------------------------------------------------------------------------------ */

static bool parse(int argc, char **argv, struct agent_options *options, enum exit_status *ret_status)
{
    /* clang-format off */
    const struct option table[] = {
        {"dsn", 0, OPTION_TEXT, &options->delivery.dsn, .argument = "DSN",
         .help = "the server: https://KEY@HOST/PROJECT (default: $OFFBEAT_DSN)"},
        {"output", 'o', OPTION_TEXT, &options->delivery.output, .argument = "DIR",
         .help = "instead, a folder for a file of each process and minute: SERVICE-PID-TIME.pb.gz"},
        {"to", 0, OPTION_CHOICE, &options->format_choice, .argument = CONVERT_TARGETS,
         .help = "the format of the files (default: pprof)"},
        {"keep", 0, OPTION_TEXT, &options->keep, .argument = "SIZE|AGE",
         .help = "remove the oldest files beyond: 500M, 10G, 12h, 7d (default: 1G)"},
        {"rule", 0, OPTION_TEXTS, &options->rules, .argument = "RULE",
         .help = "which processes, and how: \"name=^postgres service=db\", \"user=backup record=no\"; the first\n"
                 "                            one that fits decides; may be given several times"},
        {"service", 0, OPTION_TEXT, &options->service, .argument = "auto|unit|container|command|NAME",
         .help = "what services are named after (default: auto, the first of unit, container and command)"},
        {"frequency", 'F', OPTION_NUMBER, &options->frequency_hz, .argument = "HZ",
         .help = "samples of each thread a second (default: 19)", .minimum = 1, .maximum = RECORD_FREQUENCY_MAX},
        {"cpu-max", 0, OPTION_PERCENT, &options->cpu_max_ppm, .argument = "PERCENT",
         .help = "what the agent may use of a processor; above it, samples are rarer (default: 1%)",
         .minimum = CPU_PPM_MIN, .maximum = 100 * PERCENT_PPM},
        {"memory-max", 0, OPTION_NUMBER, &options->memory_megabytes, .argument = "MEGABYTES",
         .help = "what the agent may have of memory, with the kernel's; above it, tables of programs that have ended\n"
                 "                            are dropped, and new processes left out (default: 256)",
         .minimum = MEMORY_MIN, .maximum = 1 << 20},
        {"mode", 0, OPTION_CHOICE, &options->mode, .argument = "cpu|wall",
         .help = "time on a processor, or also time that threads wait (default: cpu)"},
        {"engine", 0, OPTION_CHOICE, &options->engine, .argument = "auto|bpf|perf|proc",
         .help = "how to sample (default: auto)"},
        {"environment", 0, OPTION_TEXT, &options->delivery.environment, .argument = "TEXT",
         .help = "environment of the profiles (default: production)"},
        {"data", 0, OPTION_TEXT, &options->delivery.data, .argument = "DIR",
         .help = "where profiles wait (default: $XDG_STATE_HOME/offbeat-agent)"},
        {"disk", 0, OPTION_NUMBER, &options->disk_megabytes, .argument = "MEGABYTES",
         .help = "what may wait for the server; the oldest goes first (default: 1024)", .minimum = 1, .maximum = 1 << 20},
        {"chunk-seconds", 0, OPTION_SECONDS, &options->recording_ns, .argument = "SECONDS",
         .help = "length of a profile (default: 60)", .minimum = SECOND_NS, .maximum = RECORDING_NS},
        {"proxy", 0, OPTION_TEXT, &options->delivery.proxy, "URL",
         .help = "through this one, \"\" for none (default: $https_proxy, $http_proxy)"},
        {"ca-file", 0, OPTION_TEXT, &options->delivery.ca_file, "FILE",
         .help = "certificates that are trusted (default: the system's)"},
        {"config", 0, OPTION_TEXT, &options->config, .argument = "FILE",
         .help = "read options from lines NAME = VALUE; variables OFFBEAT_AGENT_… and options take precedence"},
        {"verbose", 'v', OPTION_SWITCH, &options->is_verbose, .help = "say every minute what was done"},
        {0},
    };
    /* clang-format on */
    const struct command_syntax syntax = {
        .name = "agent",
        .usage = "--dsn DSN | --output DIR [options]",
        .example = "offbeat agent --dsn http://0123456789abcdef0123456789abcdef@127.0.0.1:7117/1",
        .about =
            "Profiles all processes of the machine, from outside, until it is ended. Each process that runs gives\n"
            "a profile a minute. What cannot be sent waits on disk. SIGTERM and Ctrl-C deliver what there is,\n"
            "SIGHUP reads the rules again, SIGUSR1 prints the state. Needs root or some capabilities:\n"
            "offbeat doctor says what is missing.",
        .options = table,
        .variables = "OFFBEAT_AGENT_",
        .file = &options->config,
    };
    struct operands operands;
    return options_parse(&syntax, argc, argv, &operands, ret_status);
}

static struct agent_options default_options(void)
{
    const char *dsn = environment_get("OFFBEAT_DSN");
    return (struct agent_options){.delivery = {.dsn = dsn ? dsn : environment_get("SENTRY_DSN")},
                                  .service = "auto",
                                  .keep = "1G",
                                  .frequency_hz = FREQUENCY_DEFAULT,
                                  .cpu_max_ppm = PERCENT_PPM,
                                  .memory_megabytes = MEMORY_DEFAULT,
                                  .disk_megabytes = 1024,
                                  .recording_ns = RECORDING_NS};
}

/* Reads the options of AGENT's arguments; the parser reorders its array. */
static bool read_options(const struct agent *agent, struct agent_options *options, enum exit_status *ret_status)
{
    char **arguments = calloc((size_t)agent->argument_count + 1, sizeof(*arguments));
    if (!arguments) abort();
    memcpy(arguments, agent->arguments, (size_t)agent->argument_count * sizeof(*arguments));
    *options = default_options();
    bool is_read = parse(agent->argument_count, arguments, options, ret_status);
    free(arguments);
    return is_read;
}

/* Reads "500M", "10G", "12h" or "7d". */
static bool read_keep(struct agent_options *options)
{
    static const struct {
        char unit;
        uint64_t bytes, seconds;
    } units[] = {{'M', 1 << 20, 0}, {'G', 1 << 30, 0}, {'T', UINT64_C(1) << 40, 0}, {'h', 0, 3600}, {'d', 0, 86400}};
    const uint64_t maximum = 100000;
    char *end;
    const char *text = options->keep;
    unsigned long number = text[0] >= '0' && text[0] <= '9' ? strtoul(text, &end, 10) : 0;
    for (size_t i = 0; number > 0 && number <= maximum && i < sizeof(units) / sizeof(units[0]); i++) {
        if (end[0] != units[i].unit || end[1] != '\0') continue;
        options->delivery.keep_bytes = number * units[i].bytes;
        options->delivery.keep_ns = number * units[i].seconds * SECOND_NS;
        return true;
    }
    message("--keep must be a size or an age, as 500M, 10G, 12h or 7d, not \"%s\"", text);
    return false;
}

static bool check_options(struct agent_options *options, const char *folder)
{
    struct agent_delivery_options *delivery = &options->delivery;
    if (delivery->output) delivery->dsn = NULL;
    if (!delivery->dsn && !delivery->output) {
        message("agent: --dsn or --output says where profiles go; see offbeat agent --help");
        return false;
    }
    if (!delivery->data) delivery->data = folder;
    if (!delivery->data) {
        message("agent: --data is needed: neither XDG_STATE_HOME nor HOME is set");
        return false;
    }
    delivery->disk_bytes_max = options->disk_megabytes << 20;
    delivery->format = convert_format_for("", options->format_choice);
    delivery->is_verbose = options->is_verbose;
    return read_keep(options);
}

/* --- Callbacks of the recorder ------------------------------------------------------------------------------------ */

static bool wants(void *context, pid_t pid, const char *name)
{
    struct agent *agent = context;
    struct process_choice all = {.takes_all = true};
    const struct agent_rule *rule = agent_rules_find(&agent->rules, pid, name);
    return rule ? !rule->is_left_out : process_choice_takes(&all, pid, name);
}

static void name_service(void *context, pid_t pid, const char *program, const struct process_place *place,
                         char ret_name[PROCESS_PLACE_NAME_SIZE])
{
    struct agent *agent = context;
    const struct agent_rule *rule = agent_rules_find(&agent->rules, pid, program);
    agent_service_name(rule && rule->service ? rule->service : agent->options.service, pid, program, place, ret_name);
}

/* A rule's frequency is that of the agent at most. */
static uint64_t thinning(void *context, pid_t pid, const char *name)
{
    struct agent *agent = context;
    const struct agent_rule *rule = agent_rules_find(&agent->rules, pid, name);
    if (!rule || rule->frequency_hz == 0) return 1;
    return greatest((agent->options.frequency_hz + rule->frequency_hz / 2) / rule->frequency_hz, 1);
}

static void take_finished(void *context, const char *path, uint64_t stack_count, uint64_t bytes_lost)
{
    const struct agent *agent = context;
    agent_delivery_take(agent->delivery, path, stack_count, bytes_lost);
}

/* --- Recording ---------------------------------------------------------------------------------------------------- */

static void print_state(const struct agent *agent)
{
    struct agent_counts counts = agent_delivery_counts(agent->delivery);
    struct transport_counts sent = agent_delivery_sent(agent->delivery);
    struct engine_losses losses = {0};
    struct recorder_memory memory;
    char server[96] = "";
    recorder_losses(agent->recorder, &losses);
    recorder_memory(agent->recorder, &memory);
    if (agent->options.delivery.dsn)
        (void)snprintf(server, sizeof(server), ", %" PRIu64 " sent, %" PRIu64 " rejected or dropped", sent.sent,
                       sent.discarded + sent.limited);
    message("agent: %zu processes, %.3g samples a second; profiles: %" PRIu64 " made%s, %" PRIu64
            " recordings with too few samples, %" PRIu64 " cut short, %" PRIu64 " failed; %" PRIu64
            " stacks lost; %" PRIu64 " MB of memory, %zu files with code, %" PRIu64
            " dropped, %zu processes left out for want of memory",
            recorder_process_count(agent->recorder),
            (double)agent->options.frequency_hz / recorder_slowness(agent->recorder), counts.stored, server,
            counts.empty, counts.cut, counts.failed, losses.stacks_lost + losses.outdated + losses.runs_missed,
            memory.bytes >> 20, memory.files, memory.evicted, memory.left_out_count);
}

/* Takes over the rules of the file; the old ones stay if there is an error in it. */
static void read_rules_again(struct agent *agent)
{
    struct agent_options options;
    struct agent_rules rules;
    enum exit_status status;
    if (!read_options(agent, &options, &status)) {
        message("agent: the rules stay as they were");
        return;
    }
    if (!agent_rules_read(&rules, &options.rules)) {
        message("agent: the rules stay as they were");
        agent_rules_fini(&rules);
        return;
    }
    agent_rules_fini(&agent->rules);
    agent->rules = rules;
    agent->options.service = options.service;
    recorder_choose_again(agent->recorder);
    message("agent: the rules were read again");
}

/* Returns true if NUMBER ends the agent. */
static bool take_signal(struct agent *agent, int number)
{
    if (number == SIGTERM || number == SIGINT) return true;
    if (number == SIGHUP) read_rules_again(agent);
    if (number == SIGUSR1) print_state(agent);
    return false;
}

/* Says once that processes are left out, and when they are recorded again. */
static void note_memory(struct agent *agent)
{
    struct recorder_memory memory;
    recorder_memory(agent->recorder, &memory);
    bool is_scarce = memory.left_out_count > 0;
    if (is_scarce && !agent->is_scarce)
        message("agent: %zu processes are left out: the agent has %" PRIu64
                " MB of memory, and --memory-max is %" PRIu64,
                memory.left_out_count, memory.bytes >> 20, agent->options.memory_megabytes);
    if (!is_scarce && agent->is_scarce) message("agent: no processes are left out any more");
    agent->is_scarce = is_scarce;
}

static void record_until_signal(struct agent *agent, const sigset_t *signals)
{
    struct recorder *recorder = agent->recorder;
    bool has_ended = false;
    agent->state_ns = clock_monotonic_ns() + STATE_NS;
    while (!has_ended) {
        uint64_t next_ns = recorder_next_ns(recorder);
        recorder_work(recorder, next_ns);
        int number = attach_await_signal(signals, next_ns);
        if (number != 0) {
            has_ended = take_signal(agent, number);
            continue;
        }
        recorder_tick(recorder);
        note_memory(agent);
        agent_delivery_work(agent->delivery);
        if (!agent->options.is_verbose || clock_monotonic_ns() < agent->state_ns) continue;
        agent->state_ns += STATE_NS;
        print_state(agent);
    }
}

static bool open_recorder(struct agent *agent)
{
    static char cache_directory[PATH_MAX];
    const struct recorder_options options = {
        .frequency_hz = agent->options.frequency_hz,
        .cpu_max_ppm = agent->options.cpu_max_ppm,
        .memory_max = agent->options.memory_megabytes << 20,
        .search_ns = SECOND_NS,
        .is_cpu_mode = agent->options.mode == 0,
        .follows_children = true,
        .watches_all = true,
        .chooses_programs = true,
        .wants = wants,
        .thinning = thinning,
        .name_service = name_service,
        .finished = take_finished,
        .context = agent,
        .recording_ns = agent->options.recording_ns,
        .directory = agent_delivery_recordings(agent->delivery),
        .image_directory = agent_delivery_images(agent->delivery),
        .cache_directory = index_store_folder(cache_directory) ? cache_directory : NULL,
    };
    agent->recorder = attach_open_recorder(&options, engine_names[agent->options.engine]);
    if (!agent->recorder) return false;
    recorder_find(agent->recorder);
    return true;
}

static enum exit_status run(struct agent *agent)
{
    static const int watched[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    sigset_t signals;
    (void)sigemptyset(&signals);
    for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++) (void)sigaddset(&signals, watched[i]);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)umask(077);
    agent->delivery = agent_delivery_open(&agent->options.delivery);
    if (!agent->delivery) return EXIT_FAILED;
    bool is_open = open_recorder(agent);
    if (is_open) {
        message("agent: records %zu processes", recorder_process_count(agent->recorder));
        record_until_signal(agent, &signals);
        recorder_end(agent->recorder);
    }
    agent_delivery_close(agent->delivery, is_open ? END_NS : 0);
    recorder_free(agent->recorder);
    return is_open ? EXIT_DONE : EXIT_FAILED;
}

int command_agent(int argc, char **argv)
{
    struct agent agent = {.argument_count = argc, .arguments = argv};
    const char *state = environment_get("XDG_STATE_HOME"), *home = environment_get("HOME");
    char folder[PATH_MAX] = "";
    enum exit_status status;
    if (!read_options(&agent, &agent.options, &status)) return (int)status;
    if (state && state[0] == '/')
        (void)snprintf(folder, sizeof(folder), "%.4000s/offbeat-agent", state);
    else if (home && home[0] == '/')
        (void)snprintf(folder, sizeof(folder), "%.4000s/.local/state/offbeat-agent", home);
    status = EXIT_WRONG_USE;
    if (check_options(&agent.options, folder[0] ? folder : NULL) &&
        agent_rules_read(&agent.rules, &agent.options.rules))
        status = run(&agent);
    agent_rules_fini(&agent.rules);
    return (int)status;
}
