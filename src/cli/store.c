/* offbeat store: what is done with the data of `offbeat serve` beside a server.  SPDX-License-Identifier: MIT */
#include "store/store.h"

#include "cli/commands.h"
#include "cli/message.h"
#include "cli/options.h"
#include "cli/store_folder.h"
#include "cluster/cluster.h"

#include <string.h>

static void say(void *context, const char *text)
{
    message("store: %s", text);
}

static enum exit_status check(const char *folder, bool repairs)
{
    uint64_t damaged;
    struct error error = {0};
    if (store_check(folder, repairs, say, NULL, &damaged, &error) != STATUS_OK) {
        message("store: %s", error.message);
        return EXIT_FAILED;
    }
    return damaged ? EXIT_NO : EXIT_DONE;
}

static enum exit_status back_up(const char *folder, const char *target)
{
    struct error error = {0};
    if (store_backup(folder, target, say, NULL, &error) == STATUS_OK) return EXIT_DONE;
    message("store: %s", error.message);
    return EXIT_FAILED;
}

/* The same actions for a cluster: CREATES its tables, or compares them. */
static enum exit_status run_for_cluster(const struct cluster_options *cluster, bool creates)
{
    uint64_t problems = 0;
    struct error error = {0};
    enum status status = creates ? cluster_create(cluster, &error) : cluster_check(cluster, &problems, &error);
    if (status == STATUS_OK) return problems ? EXIT_NO : EXIT_DONE;
    message("store: %s", error.message);
    return status == STATUS_MALFORMED ? EXIT_WRONG_USE : EXIT_FAILED;
}

int command_store(int argc, char **argv)
{
    const char *folder = NULL;
    bool repairs = false;
    struct cluster_options cluster = {.report = say};
    const struct option options[] = {
        {"data", 0, OPTION_TEXT, &folder, .argument = "DIR",
         .help = "the data of offbeat serve (default: $XDG_STATE_HOME/offbeat)"},
        {"store", 0, OPTION_TEXT, &cluster.address, .argument = "clickhouse://HOST:PORT,…/DATABASE",
         .help = "the cluster of offbeat serve, instead of its folder (create, check)"},
        {"store-login", 0, OPTION_TEXT, &cluster.login_path, .argument = "FILE",
         .help = "two lines: the user and the password for the cluster"},
        {"store-ca", 0, OPTION_TEXT, &cluster.authority, .argument = "FILE",
         .help = "the authority of the certificates of clickhouses:// (PEM)"},
        {"repair", 0, OPTION_SWITCH, &repairs,
         .help = "check: replace each damaged file by what is readable in it, and keep it as damaged-…"},
        {0},
    };
    const struct command_syntax syntax = {
        .name = "store",
        .usage = "check [--repair], or: backup TARGET, or: create",
        .example = "offbeat store check --data /var/lib/offbeat",
        .about = "check reads all data of offbeat serve and reports what is damaged; no server may have it open.\n"
                 "backup copies all data to the new folder TARGET, while a server may be running.\n"
                 "create makes the tables of a ClickHouse cluster that are missing, and check compares them.\n"
                 "The exit status of check is 1 if something is damaged.",
        .options = options,
        .operands_min = 1,
        .operands_max = 2,
    };
    struct operands operands;
    enum exit_status status;
    char path[PATH_MAX];
    if (!options_parse(&syntax, argc, argv, &operands, &status)) return (int)status;
    const char *action = operands.items[0], *target = operands.items[1];
    bool checks = strcmp(action, "check") == 0, copies = strcmp(action, "backup") == 0;
    bool creates = strcmp(action, "create") == 0;
    if (cluster.address && (checks || creates) && !target && !repairs && !folder) {
        if (cluster_is_address(cluster.address)) return (int)run_for_cluster(&cluster, creates);
        message("store: --store %s: an address as in clickhouse://ch1:8123,ch2:8123/offbeat is needed",
                cluster.address);
        return EXIT_WRONG_USE;
    }
    if (creates || cluster.address) {
        message("store: --store ADDRESS is for \"create\" and \"check\", without a folder; see offbeat store --help");
        return EXIT_WRONG_USE;
    }
    if ((!checks && !copies) || copies != (target != NULL) || (copies && repairs)) {
        message("store: \"check\", or \"backup\" and a new folder, are needed; see offbeat store --help");
        return EXIT_WRONG_USE;
    }
    folder = store_folder_choose("store", folder, path);
    if (!folder) return EXIT_WRONG_USE;
    return (int)(checks ? check(folder, repairs) : back_up(folder, target));
}
