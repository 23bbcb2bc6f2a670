/* The list of debug files in the control file, and the files themselves. Chunks are in debug_chunks.c.
 * SPDX-License-Identifier: MIT */
#include "store/debug_files.h"

#include "base/file.h"
#include "store/store_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char SCHEMA[] =
    "CREATE TABLE IF NOT EXISTS debug_file(id INTEGER PRIMARY KEY, project INTEGER NOT NULL, checksum TEXT NOT NULL,"
    " image TEXT NOT NULL, build_id TEXT NOT NULL, name TEXT NOT NULL, machine INTEGER NOT NULL,"
    " contents INTEGER NOT NULL, size INTEGER NOT NULL, added_ns INTEGER NOT NULL, used_ns INTEGER NOT NULL,"
    " UNIQUE(project,checksum));"
    "CREATE INDEX IF NOT EXISTS debug_file_by_image ON debug_file(project,image,contents);";

#define COLUMNS "id,project,checksum,image,build_id,name,machine,contents,size,added_ns,used_ns"

static struct store_debug_file file_of_row(sqlite3_stmt *row)
{
    struct store_debug_file file = {.id = sql_u64(row, 0),
                                    .project = sql_u64(row, 1),
                                    .machine = sql_u64(row, 6),
                                    .contents = sql_u64(row, 7),
                                    .size = sql_u64(row, 8),
                                    .added_ns = sql_u64(row, 9),
                                    .used_ns = sql_u64(row, 10)};
    sql_copy_text(row, 2, file.checksum, sizeof(file.checksum));
    sql_copy_text(row, 3, file.image, sizeof(file.image));
    sql_copy_text(row, 4, file.build_id, sizeof(file.build_id));
    sql_copy_text(row, 5, file.name, sizeof(file.name));
    return file;
}

/* --- Paths -------------------------------------------------------------------------------------------------------- */

/* Writes the path of FILE, or with another ENDING that of its symbol index. Only digits come from a client:
 * checksums and images. */
static void path_of(const struct store *store, const struct store_debug_file *file, const char *ending,
                    char ret_path[STORE_DEBUG_PATH_SIZE])
{
    (void)snprintf(ret_path, STORE_DEBUG_PATH_SIZE, "%s/debug/%llu/%s/%s%s", store->folder,
                   (unsigned long long)file->project, file->image, file->checksum, ending);
}

static void remove_files(struct store *store, const struct store_debug_file *file)
{
    char path[STORE_DEBUG_PATH_SIZE];
    path_of(store, file, ".debug", path);
    (void)unlink(path);
    path_of(store, file, ".names", path);
    (void)unlink(path);
    *strrchr(path, '/') = '\0';
    (void)rmdir(path); /* if it was the last one of the image */
}

/* Up to the store's folder, so that the names of PATH and its folders are on disk. */
static bool sync_folders(const struct store *store, char *path)
{
    bool is_synced = true;
    for (char *slash = strrchr(path, '/'); slash && (size_t)(slash - path) >= strlen(store->folder);
         slash = strrchr(path, '/')) {
        *slash = '\0';
        int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        is_synced &= folder >= 0 && fsync(folder) == 0;
        if (folder >= 0) (void)close(folder);
    }
    return is_synced;
}

/* --- Adding and finding ------------------------------------------------------------------------------------------- */

static enum status insert(struct store *store, const struct store_debug_file *file, struct error *error)
{
    const char *const texts[] = {file->checksum, file->image, file->build_id, file->name};
    const uint64_t numbers[] = {file->machine, file->contents, file->size, file->added_ns, file->used_ns};
    sqlite3_stmt *add = control_begin(store, "INSERT OR REPLACE INTO debug_file(project,checksum,image,build_id,name,"
                                             "machine,contents,size,added_ns,used_ns) VALUES(?,?,?,?,?,?,?,?,?,?)");
    sql_bind_u64(add, 1, file->project);
    for (int i = 0; i < 4; i++) sql_bind_slice(add, 2 + i, slice_of_text(texts[i]));
    for (int i = 0; i < 5; i++) sql_bind_u64(add, 6 + i, numbers[i]);
    return control_end(store, add, sqlite3_step(add), "cannot add a debug file", error);
}

enum status store_debug_add(struct store *store, const struct store_debug_parts *parts,
                            struct store_debug_joined *joined, const char *index, const struct store_debug_file *file,
                            struct error *error)
{
    char path[STORE_DEBUG_PATH_SIZE], names[STORE_DEBUG_PATH_SIZE];
    path_of(store, file, ".debug", path);
    path_of(store, file, ".names", names);
    if (fsync(joined->descriptor) != 0) return error_set_errno(error, "cannot keep a debug file");
    (void)pthread_mutex_lock(&store->debug_lock);
    file_make_folders_above(path, strlen(store->folder) + 1);
    if (index[0]) (void)rename(index, names);
    bool is_kept = rename(joined->path, path) == 0;
    joined->path[is_kept ? 0 : strlen(joined->path)] = '\0';
    enum status status = is_kept && sync_folders(store, path) ? insert(store, file, error)
                                                              : error_set_errno(error, "cannot keep a debug file");
    struct store_debug_file earlier;
    if (status != STATUS_OK && !store_debug_find(store, file->project, file->checksum, &earlier))
        remove_files(store, file);
    (void)pthread_mutex_unlock(&store->debug_lock);
    if (status == STATUS_OK) debug_remove_chunks(store, parts);
    return status;
}

static bool find_file(struct store *store, const char *sql, uint64_t project, const char *text,
                      struct store_debug_file *ret_file)
{
    sqlite3_stmt *row = control_begin(store, sql);
    sql_bind_u64(row, 1, project);
    sql_bind_slice(row, 2, slice_of_text(text));
    int code = sqlite3_step(row);
    if (code == SQLITE_ROW) *ret_file = file_of_row(row);
    (void)control_end(store, row, code, "", NULL);
    return code == SQLITE_ROW;
}

bool store_debug_find(struct store *store, uint64_t project, const char checksum[SHA1_TEXT_SIZE],
                      struct store_debug_file *ret_file)
{
    return find_file(store, "SELECT " COLUMNS " FROM debug_file WHERE project=? AND checksum=?", project, checksum,
                     ret_file);
}

/* Returns whether SQL changed a row. */
static bool run_with_id(struct store *store, const char *sql, uint64_t id, uint64_t value)
{
    sqlite3_stmt *statement = control_begin(store, sql);
    sql_bind_u64(statement, 1, id);
    sql_bind_u64(statement, 2, value);
    int code = sqlite3_step(statement);
    bool is_changed = code == SQLITE_DONE && sqlite3_changes(store->control) > 0;
    (void)control_end(store, statement, code, "", NULL);
    return is_changed;
}

bool store_debug_find_image(struct store *store, uint64_t project, const char image[STORE_IMAGE_SIZE], uint64_t now_ns,
                            struct store_debug_file *ret_file)
{
    static const char sql[] = "SELECT " COLUMNS " FROM debug_file WHERE project=? AND image=? ORDER BY contents DESC,"
                              "id DESC LIMIT 1";
    if (!find_file(store, sql, project, image, ret_file)) return false;
    /* A commit for each use would cost more than the use. */
    if (now_ns > ret_file->used_ns && now_ns - ret_file->used_ns > DAY_NS)
        (void)run_with_id(store, "UPDATE debug_file SET used_ns=?2 WHERE id=?1", ret_file->id, now_ns);
    return true;
}

enum status store_debug_open(struct store *store, const struct store_debug_file *file, int ret_files[3],
                             struct error *error)
{
    char path[STORE_DEBUG_PATH_SIZE];
    path_of(store, file, ".debug", path);
    ret_files[0] = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (ret_files[0] < 0) return error_set_errno(error, "cannot open a debug file");
    path_of(store, file, ".names", path);
    ret_files[2] = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    ret_files[1] = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (ret_files[1] >= 0 && ret_files[2] >= 0) return STATUS_OK;
    (void)error_set_errno(error, "cannot open the symbol index of a debug file");
    for (size_t i = 0; i < 3; i++)
        if (ret_files[i] >= 0) (void)close(ret_files[i]);
    return STATUS_IO;
}

/* False if FILE has no row, or it cannot be deleted. SQLite uses the id of a deleted row again, so the time decides. */
static bool remove_with_row(struct store *store, const struct store_debug_file *file)
{
    static const char sql[] = "DELETE FROM debug_file WHERE id=?1 AND added_ns=?2";
    (void)pthread_mutex_lock(&store->debug_lock);
    bool is_removed = run_with_id(store, sql, file->id, file->added_ns);
    if (is_removed) remove_files(store, file);
    (void)pthread_mutex_unlock(&store->debug_lock);
    return is_removed;
}

void store_debug_remove(struct store *store, const struct store_debug_file *file)
{
    (void)remove_with_row(store, file);
}

enum status store_each_debug_file(struct store *store, uint64_t project, store_visit_debug_file *visit, void *context,
                                  struct error *error)
{
    sqlite3_stmt *row =
        control_begin(store, "SELECT " COLUMNS " FROM debug_file WHERE project=?1 OR ?1=0 ORDER BY used_ns,id");
    int code;
    sql_bind_u64(row, 1, project);
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        struct store_debug_file file = file_of_row(row);
        if (!visit(context, &file)) break;
    }
    return control_end(store, row, code, "cannot read the debug files", error);
}

/* --- Keeping ------------------------------------------------------------------------------------------------------ */

struct usage {
    uint64_t project, files, bytes;
};

static bool add_usage(void *context, const struct store_debug_file *file)
{
    struct usage *usage = context;
    usage->files++;
    usage->bytes += file->size;
    return true;
}

void store_debug_usage(struct store *store, uint64_t *ret_files, uint64_t *ret_bytes)
{
    struct usage usage = {0};
    (void)store_each_debug_file(store, 0, add_usage, &usage, NULL);
    *ret_files = usage.files;
    *ret_bytes = usage.bytes;
}

static bool take_file(void *context, const struct store_debug_file *file)
{
    *(struct store_debug_file *)context = *file;
    return false;
}

enum status store_debug_delete(struct store *store, uint64_t project, struct error *error)
{
    for (;;) {
        struct store_debug_file file = {0};
        enum status status = store_each_debug_file(store, project, take_file, &file, error);
        if (status != STATUS_OK || file.id == 0) return status;
        if (!remove_with_row(store, &file)) return error_set(error, STATUS_IO, 0, "cannot remove a debug file");
    }
}

struct oldest {
    uint64_t above_project; /* projects up to it are done */
    struct store_debug_file file;
    struct usage usage; /* use of FILE's project */
};

/* The project with the lowest number above those that are done, and its file that was not used for the longest time. */
static bool find_oldest(void *context, const struct store_debug_file *file)
{
    struct oldest *oldest = context;
    struct usage *usage = &oldest->usage;
    if (file->project <= oldest->above_project || (usage->project && file->project > usage->project)) return true;
    if (file->project != usage->project) {
        oldest->file = *file;
        *usage = (struct usage){.project = file->project};
    }
    return add_usage(usage, file);
}

enum status store_debug_expire(struct store *store, uint64_t now_ns, uint64_t age_ns, uint64_t bytes_max,
                               uint64_t *ret_removed, struct error *error)
{
    uint64_t removed = 0;
    struct oldest oldest = {.above_project = 0};
    enum status status = STATUS_OK;
    debug_expire_chunks(store, now_ns);
    for (;;) {
        oldest.usage = (struct usage){0};
        status = store_each_debug_file(store, 0, find_oldest, &oldest, error);
        const struct usage *usage = &oldest.usage;
        if (status != STATUS_OK || usage->project == 0) break;
        bool is_old = age_ns && now_ns > oldest.file.used_ns && now_ns - oldest.file.used_ns > age_ns;
        bool is_too_much = (bytes_max && usage->bytes > bytes_max) || usage->files > STORE_DEBUG_FILES_MAX;
        if ((is_old || is_too_much) && remove_with_row(store, &oldest.file))
            removed++;
        else
            oldest.above_project = usage->project;
    }
    *ret_removed = removed;
    return status;
}

/* --- Opening ------------------------------------------------------------------------------------------------------ */

/* Removes files of PROJECT that a killed server wrote and did not add, and folders of images that are empty. */
static void sweep_project(struct store *store, uint64_t project, char *path)
{
    struct store_debug_file known;
    char checksum[SHA1_TEXT_SIZE], *const paths[] = {path, NULL};
    FTS *tree = fts_open(paths, FTS_COMFOLLOW | FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    for (FTSENT *entry; tree && (entry = fts_read(tree));) {
        bool is_hidden = entry->fts_name[0] == '.';
        if (entry->fts_level == 1 && is_hidden) (void)fts_set(tree, entry, FTS_SKIP);
        if (entry->fts_level == 1 && entry->fts_info == FTS_DP) (void)rmdir(entry->fts_path);
        if (entry->fts_level != 2 || is_hidden) continue;
        (void)snprintf(checksum, sizeof(checksum), "%.40s", entry->fts_name);
        if (!store_debug_find(store, project, checksum, &known)) (void)unlink(entry->fts_path);
    }
    if (tree) (void)fts_close(tree);
}

static void sweep(struct store *store)
{
    char path[STORE_DEBUG_PATH_SIZE];
    (void)snprintf(path, sizeof(path), "%s/debug", store->folder);
    DIR *folder = opendir(path);
    if (!folder) return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char *end;
        unsigned long long project = strtoull(entry->d_name, &end, 10);
        if (project == 0 || *end) continue; /* "waiting" */
        (void)snprintf(path, sizeof(path), "%s/debug/%llu", store->folder, project);
        sweep_project(store, project, path);
    }
    (void)closedir(folder);
}

enum status debug_open(struct store *store, struct error *error)
{
    if (sqlite3_exec(store->control, SCHEMA, NULL, NULL, NULL) != SQLITE_OK)
        return sql_failed(store->control, error, "control.db");
    sweep(store);
    debug_sweep_chunks(store);
    return STATUS_OK;
}
