/* Projects, and the keys that say who may do what with them.
 *
 * Programs have the keys that write in their configuration, and often in public: they are stored as they are, so that
 * a DSN can be shown again. Of the others, the tokens, only the SHA-256 checksum is stored: they are 128 random bits,
 * which need no salt. The tokens that the start of a server prints are in a file beside, which no backup has.
 * SPDX-License-Identifier: MIT */
#include "base/file.h"
#include "base/uuid.h"
#include "store/debug_files.h"
#include "store/store_private.h"

#include <nettle/sha2.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SECRET_SIZE = 2 * SHA256_DIGEST_SIZE + 1, TOKEN_FILE_BYTES_MAX = 256 };

#define START_TOKEN_NAME "printed at the start"

/* The text that the key table has for SECRET: itself if it writes, else its checksum. */
static struct slice stored_secret(struct slice secret, enum store_role role, char checksum[SECRET_SIZE])
{
    struct sha256_ctx sha256;
    uint8_t digest[SHA256_DIGEST_SIZE];
    if (role == STORE_ROLE_WRITE) return secret;
    sha256_init(&sha256);
    sha256_update(&sha256, secret.size, secret.data);
    sha256_digest(&sha256, sizeof(digest), digest);
    for (size_t i = 0; i < sizeof(digest); i++) (void)snprintf(checksum + 2 * i, 3, "%02x", digest[i]);
    return slice_of(checksum, SECRET_SIZE - 1);
}

/* Runs a change whose row may not exist: then STATUS_NOT_FOUND, and MISSING names it. */
static enum status run_change(struct store *store, sqlite3_stmt *change, const char *missing, struct error *error)
{
    int code = sqlite3_step(change);
    bool is_found = sqlite3_changes(store->control) > 0;
    enum status status = control_end(store, change, code, "cannot write control.db", error);
    if (status == STATUS_OK && !is_found)
        return error_set(error, STATUS_NOT_FOUND, 0, "there is no %s with that number", missing);
    return status;
}

/* --- Projects ----------------------------------------------------------------------------------------------------- */

static enum status check_name(const char *name, struct error *error)
{
    enum { NAME_BYTES_MAX = sizeof(((struct store_project *)0)->name) - 1 };
    size_t size = strlen(name);
    if (size > 0 && size <= NAME_BYTES_MAX) return STATUS_OK;
    return error_set(error, STATUS_MALFORMED, 0, "a name of 1 to %d bytes is needed", NAME_BYTES_MAX);
}

enum status store_add_project(struct store *store, const char *name, struct store_project *ret_project,
                              struct error *error)
{
    struct store_project project = {0};
    enum status status = check_name(name, error);
    if (status != STATUS_OK) return status;
    (void)snprintf(project.name, sizeof(project.name), "%s", name);
    sqlite3_stmt *add = control_begin(store, "INSERT INTO project(id,name) VALUES(" NEW_ID ",?)");
    sql_bind_slice(add, 1, slice_of_text(project.name));
    int code = sqlite3_step(add);
    project.id = (uint64_t)sqlite3_last_insert_rowid(store->control);
    status = control_end(store, add, code, "cannot add a project", error);
    struct store_key key = {.project = project.id, .role = STORE_ROLE_WRITE};
    if (status == STATUS_OK) status = store_add_key(store, &key, project.key, error);
    if (status == STATUS_OK) *ret_project = project;
    return status;
}

enum status store_rename_project(struct store *store, uint64_t project, const char *name, struct error *error)
{
    enum status status = check_name(name, error);
    if (status != STATUS_OK) return status;
    sqlite3_stmt *set = control_begin(store, "UPDATE project SET name=? WHERE id=?");
    sql_bind_slice(set, 1, slice_of_text(name));
    sql_bind_u64(set, 2, project);
    return run_change(store, set, "project", error);
}

enum status store_each_project(struct store *store, store_visit_project *visit, void *context, struct error *error)
{
    sqlite3_stmt *row = control_begin(store, "SELECT id,name,coalesce((SELECT secret FROM key WHERE project=project.id "
                                             "AND role=4 ORDER BY id LIMIT 1),''),keep_ns,disk_bytes FROM project "
                                             "ORDER BY id");
    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        struct store_project project = {.id = sql_u64(row, 0), .bytes_max = sql_u64(row, 4)};
        int64_t keep_ns = sqlite3_column_int64(row, 3);
        sql_copy_text(row, 1, project.name, sizeof(project.name));
        sql_copy_text(row, 2, project.key, sizeof(project.key));
        project.keep_ns = keep_ns < 0 ? STORE_FOREVER : (uint64_t)keep_ns;
        if (!visit(context, &project)) break;
    }
    return control_end(store, row, code, "cannot read the projects", error);
}

static enum status run_for_project(struct store *store, const char *sql, uint64_t project, struct error *error)
{
    sqlite3_stmt *statement = control_begin(store, sql);
    sql_bind_u64(statement, 1, project);
    return control_end(store, statement, sqlite3_step(statement), "cannot write control.db", error);
}

enum status store_delete_project(struct store *store, uint64_t project, uint64_t *ret_chunks, struct error *error)
{
    const struct store_query all = {.project = project};
    /* First the keys: nothing may arrive behind the deletion. */
    enum status status = run_for_project(store, "DELETE FROM key WHERE project=?", project, error);
    if (status == STATUS_OK) status = store_delete(store, &all, ret_chunks, error);
    if (status == STATUS_OK) status = store_debug_delete(store, project, error);
    if (status != STATUS_OK) return status;
    sqlite3_stmt *remove = control_begin(store, "DELETE FROM project WHERE id=?");
    sql_bind_u64(remove, 1, project);
    return run_change(store, remove, "project", error);
}

/* --- Files of the tokens that a start prints ------------------------------------------------------------------------
 */

static void start_token_path(const struct store *store, enum store_role role, char path[STORE_PATH_SIZE + 32])
{
    (void)snprintf(path, STORE_PATH_SIZE + 32, "%s/start-token-%s", store->folder,
                   role == STORE_ROLE_UPLOAD ? "upload" : "read");
}

static enum status write_start_token(const struct store *store, enum store_role role, const char *secret,
                                     struct error *error)
{
    char path[STORE_PATH_SIZE + 32];
    start_token_path(store, role, path);
    (void)unlink(path);
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    size_t size = strlen(secret);
    bool is_written = file >= 0 && write(file, secret, size) == (ssize_t)size && fsync(file) == 0;
    enum status status = is_written ? STATUS_OK : error_set_errno(error, "cannot write %s", path);
    if (file >= 0) (void)close(file);
    return status;
}

/* --- Keys --------------------------------------------------------------------------------------------------------- */

enum status store_add_key(struct store *store, const struct store_key *key, char ret_secret[STORE_KEY_SIZE],
                          struct error *error)
{
    char secret[UUID_TEXT_SIZE], checksum[SECRET_SIZE];
    if (!uuid_new(secret)) return error_set(error, STATUS_IO, 0, "the system has no random bytes");
    sqlite3_stmt *add = control_begin(store, "INSERT INTO key(id,project,role,name,secret,created_ns) SELECT " NEW_ID
                                             ",?1,?2,?3,?4,?5 WHERE ?1=0 OR "
                                             "EXISTS(SELECT 1 FROM project WHERE id=?1)");
    sql_bind_u64(add, 1, key->project);
    sql_bind_u64(add, 2, key->role);
    sql_bind_slice(add, 3, slice_of_text(key->name));
    sql_bind_slice(add, 4, stored_secret(slice_of_text(secret), key->role, checksum));
    sql_bind_u64(add, 5, clock_utc_ns());
    enum status status = run_change(store, add, "project", error);
    if (status == STATUS_OK) (void)memcpy(ret_secret, secret, STORE_KEY_SIZE);
    return status;
}

enum status store_each_key(struct store *store, store_visit_key *visit, void *context, struct error *error)
{
    sqlite3_stmt *row = control_begin(store, "SELECT id,project,role,name,created_ns,secret FROM key ORDER BY id");
    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        struct store_key key = {.id = sql_u64(row, 0),
                                .project = sql_u64(row, 1),
                                .role = (enum store_role)sql_u64(row, 2),
                                .created_ns = sql_u64(row, 4)};
        sql_copy_text(row, 3, key.name, sizeof(key.name));
        if (key.role == STORE_ROLE_WRITE) sql_copy_text(row, 5, key.secret, sizeof(key.secret));
        if (!visit(context, &key)) break;
    }
    return control_end(store, row, code, "cannot read the keys", error);
}

enum status store_rename_key(struct store *store, uint64_t key, const char *name, struct error *error)
{
    enum status status = check_name(name, error);
    if (status != STATUS_OK) return status;
    sqlite3_stmt *set = control_begin(store, "UPDATE key SET name=? WHERE id=?");
    sql_bind_slice(set, 1, slice_of_text(name));
    sql_bind_u64(set, 2, key);
    return run_change(store, set, "key", error);
}

enum status store_revoke_key(struct store *store, uint64_t key, struct error *error)
{
    sqlite3_stmt *remove = control_begin(store, "DELETE FROM key WHERE id=?");
    sql_bind_u64(remove, 1, key);
    return run_change(store, remove, "key", error);
}

struct key_search {
    uint64_t id;
    struct store_key key;
};

static bool compare_key(void *context, const struct store_key *key)
{
    struct key_search *search = context;
    if (key->id != search->id) return true;
    search->key = *key;
    return false;
}

enum status store_rotate_key(struct store *store, uint64_t id, struct store_key *ret_key,
                             char ret_secret[STORE_KEY_SIZE], struct error *error)
{
    struct key_search search = {.id = id};
    char secret[UUID_TEXT_SIZE], checksum[SECRET_SIZE];
    if (!uuid_new(secret)) return error_set(error, STATUS_IO, 0, "the system has no random bytes");
    enum status status = store_each_key(store, compare_key, &search, error);
    if (status != STATUS_OK) return status;
    sqlite3_stmt *set = control_begin(store, "UPDATE key SET secret=?,created_ns=? WHERE id=?");
    sql_bind_slice(set, 1, stored_secret(slice_of_text(secret), search.key.role, checksum));
    sql_bind_u64(set, 2, clock_utc_ns());
    sql_bind_u64(set, 3, id);
    status = run_change(store, set, "key", error);
    if (status == STATUS_OK && strcmp(search.key.name, START_TOKEN_NAME) == 0)
        status = write_start_token(store, search.key.role, secret, error);
    if (status != STATUS_OK) return status;
    *ret_key = search.key;
    (void)memcpy(ret_secret, secret, STORE_KEY_SIZE);
    return STATUS_OK;
}

/* --- Access ------------------------------------------------------------------------------------------------------- */

/* Sets RET_PROJECT to that of the key SECRET, whose role is ROLE or one of OTHER; false if there is none. */
static bool find_key(struct store *store, struct slice secret, enum store_role role, enum store_role other,
                     uint64_t *ret_project)
{
    char checksum[SECRET_SIZE];
    sqlite3_stmt *find = control_begin(store, "SELECT project FROM key WHERE secret=? AND role IN(?,?,?)");
    sql_bind_slice(find, 1, stored_secret(secret, role, checksum));
    sql_bind_u64(find, 2, role);
    sql_bind_u64(find, 3, other);
    sql_bind_u64(find, 4, role == STORE_ROLE_WRITE ? role : STORE_ROLE_ADMIN);
    int code = sqlite3_step(find);
    if (code == SQLITE_ROW) *ret_project = sql_u64(find, 0);
    (void)control_end(store, find, code, "", NULL);
    return code == SQLITE_ROW;
}

uint64_t store_project_of_key(struct store *store, struct slice key)
{
    uint64_t project = 0;
    return find_key(store, key, STORE_ROLE_WRITE, STORE_ROLE_WRITE, &project) ? project : 0;
}

enum store_access store_may_write(struct store *store, struct slice key, uint64_t project)
{
    uint64_t of_key = store_project_of_key(store, key);
    if (of_key == 0) return STORE_NO_ACCESS;
    return of_key == project ? STORE_ACCESS : STORE_OTHER_PROJECT;
}

bool store_may_upload(struct store *store, struct slice token, uint64_t *ret_project)
{
    return find_key(store, token, STORE_ROLE_UPLOAD, STORE_ROLE_UPLOAD, ret_project);
}

enum store_access store_may_read(struct store *store, struct slice token, enum store_role role, uint64_t project)
{
    uint64_t of_token;
    /* A token that reads everything reads the metrics, too. */
    enum store_role other = role == STORE_ROLE_METRICS ? STORE_ROLE_READ : role;
    if (!find_key(store, token, role, other, &of_token)) return STORE_NO_ACCESS;
    return of_token == 0 || of_token == project ? STORE_ACCESS : STORE_OTHER_PROJECT;
}

/* --- Tokens that a start prints ----------------------------------------------------------------------------------- */

enum status store_start_token(struct store *store, enum store_role role, char ret_token[STORE_KEY_SIZE],
                              struct error *error)
{
    const struct store_key key = {.role = role, .name = START_TOKEN_NAME};
    char path[STORE_PATH_SIZE + 32];
    struct buffer text = {.maximum = TOKEN_FILE_BYTES_MAX};
    uint64_t project;
    start_token_path(store, role, path);
    bool is_valid = file_read(path, &text, NULL) == STATUS_OK && text.size == STORE_KEY_SIZE - 1 &&
                    find_key(store, buffer_slice(&text), role, role, &project) && project == 0;
    if (is_valid) (void)snprintf(ret_token, STORE_KEY_SIZE, "%.*s", SLICE_ARGUMENTS(buffer_slice(&text)));
    buffer_fini(&text);
    if (is_valid) return STATUS_OK;
    enum status status = store_add_key(store, &key, ret_token, error);
    return status == STATUS_OK ? write_start_token(store, role, ret_token, error) : status;
}
