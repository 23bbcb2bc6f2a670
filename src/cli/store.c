/* offbeat store: what is done with the data of `offbeat serve` beside a server.  SPDX-License-Identifier: MIT */
#include "store/store.h"

#include "cli/commands.h"
#include "cli/copy_store.h"
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

static enum exit_status copy(const struct cluster_options *cluster, const char *folder, const char *target)
{
    char path[PATH_MAX];
    if (!target) folder = store_folder_choose("store", folder, path);
    if (!folder && !target) return EXIT_WRONG_USE;
    return copy_store(target ? target : folder, cluster, target != NULL);
}

/* Does ACTION with a cluster. TARGET: the operand after it. */
static enum exit_status run_for_cluster(const struct cluster_options *cluster, const char *action, const char *folder,
                                        const char *target)
{
    uint64_t problems = 0;
    struct error error = {0};
    enum status status;
    if (!cluster_is_address(cluster->address)) {
        message("store: --store %s: an address as in clickhouse://ch1:8123,ch2:8123/offbeat is needed",
                cluster->address);
        return EXIT_WRONG_USE;
    }
    if (strcmp(action, "copy") == 0) return copy(cluster, folder, target);
    if (strcmp(action, "delete") == 0) {
        const char *database = strrchr(cluster->address, '/') + 1;
        if (!target || strcmp(target, database) != 0) {
            message("store: this deletes all data in the database: to confirm it, write \"offbeat store delete %s\"",
                    database);
            return EXIT_WRONG_USE;
        }
        status = cluster_drop(cluster, &problems, &error);
        if (status == STATUS_OK && problems > 0) return EXIT_FAILED;
    } else {
        status =
            strcmp(action, "create") == 0 ? cluster_create(cluster, &error) : cluster_check(cluster, &problems, &error);
    }
    if (status == STATUS_OK) return problems ? EXIT_NO : EXIT_DONE;
    message("store: %s", error.message);
    return status == STATUS_MALFORMED ? EXIT_WRONG_USE : EXIT_FAILED;
}

/* Parts of a command line that an action may have or must have. */
enum { FOLDER = 1, TARGET = 2, REPAIR = 4 };
struct action_form {
    const char *action;
    bool is_of_cluster;
    unsigned may, must;
};

static bool is_action(const char *action, unsigned given, bool has_cluster)
{
    static const struct action_form forms[] = {
        {"check", false, FOLDER | REPAIR, 0},
        {"backup", false, FOLDER | TARGET, TARGET},
        {"check", true, 0, 0},
        {"create", true, 0, 0},
        {"copy", true, FOLDER, 0},
        {"copy", true, TARGET, TARGET},
        {"delete", true, TARGET, 0},
    };
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        const struct action_form *form = &forms[i];
        if (strcmp(action, form->action) == 0 && has_cluster == form->is_of_cluster && (given & ~form->may) == 0 &&
            (given & form->must) == form->must)
            return true;
    }
    return false;
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
         .help = "the cluster of offbeat serve (create, check, copy, delete)"},
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
        .usage = "check [--repair], or: backup TARGET, or: create, or: copy [TARGET], or: delete DATABASE",
        .example = "offbeat store check --data /var/lib/offbeat",
        .about =
            "check reads all data of offbeat serve and reports what is damaged; no server may have it open.\n"
            "backup copies all data to the new folder TARGET, while a server may be running.\n"
            "create makes the tables of a ClickHouse cluster that are missing, and check compares them.\n"
            "copy copies the data in DIR to the cluster, or the cluster's to the folder TARGET, and compares them;\n"
            "an interrupted copy is continued. delete deletes the tables of DATABASE from the cluster.\n"
            "The exit status is 1 if check finds damage, or a copy differs.",
        .options = options,
        .operands_min = 1,
        .operands_max = 2,
    };
    static const char *const of_cluster[] = {"create", "copy", "delete", NULL};
    struct operands operands;
    enum exit_status status;
    char path[PATH_MAX];
    if (!options_parse(&syntax, argc, argv, &operands, &status)) return (int)status;
    const char *action = operands.items[0], *target = operands.items[1];
    unsigned given = (folder ? FOLDER : 0) | (target ? TARGET : 0) | (repairs ? REPAIR : 0);
    bool is_known = is_action(action, given, cluster.address != NULL);
    if (!is_known && (cluster.address || slice_is_one_of(slice_of_text(action), of_cluster))) {
        message("store: --store ADDRESS is for \"create\", \"check\", \"copy\" and \"delete\", with --data only for "
                "\"copy\" without TARGET; see offbeat store --help");
        return EXIT_WRONG_USE;
    }
    if (!is_known) {
        message("store: \"check\", or \"backup\" and a new folder, are needed; see offbeat store --help");
        return EXIT_WRONG_USE;
    }
    if (cluster.address) return (int)run_for_cluster(&cluster, action, folder, target);
    folder = store_folder_choose("store", folder, path);
    if (!folder) return EXIT_WRONG_USE;
    return (int)(target ? back_up(folder, target) : check(folder, repairs));
}
