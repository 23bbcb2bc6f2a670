/* Access: writing with keys, reading and uploading with tokens (facts §2.4; doc/serve.md).  SPDX-License-Identifier:
 * MIT */
#include "base/base64.h"
#include "base/uuid.h"
#include "serve/serve_private.h"
#include "store/debug_files.h"
#include "spool/dsn.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool begins_with(const char *text, const char *scheme)
{
    return text && strncasecmp(text, scheme, strlen(scheme)) == 0;
}

/* The sentry_key in "Sentry k=v, k=v". */
static struct slice key_in(const char *value)
{
    static const char name[] = "sentry_key";
    const char *pair = value + strlen("sentry ");
    while (*pair) {
        pair += strspn(pair, ", \t");
        size_t size = strcspn(pair, ",");
        size_t name_size = strcspn(pair, "=,");
        if (name_size == sizeof(name) - 1 && memcmp(pair, name, name_size) == 0 && pair[name_size] == '=') {
            struct slice key = slice_of(pair + name_size + 1, size - name_size - 1);
            while (key.size > 0 && (key.data[key.size - 1] == ' ' || key.data[key.size - 1] == '\t')) key.size--;
            return key;
        }
        pair += size;
    }
    return slice_of(NULL, 0);
}

/* The ways in which the request names a key, and the last one of them. */
static int find_keys(const struct request *request, struct slice *ret_key)
{
    int count = 0;
    *ret_key = slice_of(NULL, 0);
    if (begins_with(request->sentry_auth, "sentry ")) {
        *ret_key = key_in(request->sentry_auth);
        count++;
    }
    if (begins_with(request->authorization, "sentry ")) {
        *ret_key = key_in(request->authorization);
        count++;
    }
    if (request_parameter(request, "sentry_key")) {
        *ret_key = request_slice(request, "sentry_key");
        count++;
    }
    return count;
}

enum { PLAIN_SIZE = 200, LETTERS_MAX = (PLAIN_SIZE - 1) / 3 * 4 }; /* more is cut off */

/* The Bearer token, or the password of Basic authentication, or its user name if the password is empty; NULL: none is
 * there. PLAIN keeps it. */
static const char *find_credential(const struct request *request, char plain[PLAIN_SIZE])
{
    const char *value = request->authorization;
    if (begins_with(value, "bearer ")) return value + strlen("bearer ") + strspn(value + strlen("bearer "), " ");
    if (!begins_with(value, "basic ")) return NULL;
    value += strlen("basic ");
    struct slice letters = slice_of_text(value + strspn(value, " "));
    if (letters.size > LETTERS_MAX) letters.size = LETTERS_MAX;
    plain[base64_decode(letters, (uint8_t *)plain)] = '\0';
    char *colon = strchr(plain, ':');
    if (!colon || colon[1]) return colon ? colon + 1 : NULL; /* any user's name */
    *colon = '\0';
    return plain;
}

/* Counts the ways in which the request names a key, and sets RET_KEY to the last one. A Bearer token or a password
 * counts only without a key in the form of Sentry: a proxy may have added it. */
static int find_key(const struct request *request, char plain[PLAIN_SIZE], struct slice *ret_key)
{
    int count = find_keys(request, ret_key);
    const char *credential = count == 0 ? find_credential(request, plain) : NULL;
    if (!credential) return count;
    *ret_key = slice_of_text(credential);
    return 1;
}

bool access_names_key(const struct request *request)
{
    char plain[PLAIN_SIZE];
    struct slice key;
    return find_key(request, plain, &key) > 0;
}

static bool deny(struct request *request, unsigned status, const char *detail)
{
    answer_error(request, status, "%s", detail);
    return false;
}

static bool check_key(struct request *request, struct slice key)
{
    char plain[UUID_TEXT_SIZE];
    struct server *server = request->server;
    if (!uuid_parse(key, plain)) return deny(request, 400, "bad sentry_key: 32 hex digits are needed");
    if (store_may_write(server->store, slice_of_text(plain), request->project) != STORE_ACCESS)
        return deny(request, 403, "the project does not exist or the key is not one of its keys");
    request->is_known = true;
    if (request->has_key) return true;
    request->retry_seconds = rates_take(server, request->project);
    if (request->retry_seconds > 0) {
        atomic_fetch_add(&server->limited, 1);
        return deny(request, 429, "the project sends more than its rate; try again later");
    }
    request->has_key = true;
    rates_add_bytes(server, request->project, request->decoded_bytes);
    return true;
}

/* Checks the key. The DSN of the envelope must name the same key and project as the request does. */
bool access_may_write(struct request *request, struct slice dsn)
{
    struct slice key;
    struct dsn parsed;
    char text[DSN_URL_SIZE], plain[PLAIN_SIZE];
    int count = find_key(request, plain, &key);
    if (count > 1) return deny(request, 401, "multiple authorization payloads detected");
    if (dsn.size == 0) {
        if (count == 0) return deny(request, 401, "missing authorization information");
        return check_key(request, key);
    }
    (void)snprintf(text, sizeof(text), "%.*s", SLICE_ARGUMENTS(dsn));
    if (dsn.size >= sizeof(text) || dsn_parse(text, &parsed, NULL) != STATUS_OK)
        return deny(request, 400, "the DSN in the envelope is not valid");
    if (parsed.project != request->project || (count == 1 && !slice_equals_text(key, parsed.public_key)))
        return deny(request, 400, "the DSN in the envelope is of another project or key than the request");
    return check_key(request, slice_of_text(parsed.public_key));
}

bool access_may_write_by_key(struct request *request)
{
    struct slice key;
    char plain[PLAIN_SIZE], text[UUID_TEXT_SIZE];
    int count = find_key(request, plain, &key);
    if (count > 1) return deny(request, 401, "multiple authorization payloads detected");
    if (count == 0) {
        request->asks_for_login = true;
        return deny(request, 401,
                    "the key of a project is needed: as a Bearer token, as the password of Basic "
                    "authentication, or as sentry_key");
    }
    if (uuid_parse(key, text)) request->project = store_project_of_key(request->server->store, slice_of_text(text));
    return check_key(request, key);
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

bool access_may_read(struct request *request, enum store_role role, uint64_t project)
{
    char plain[PLAIN_SIZE], token[UUID_TEXT_SIZE];
    const char *given = find_credential(request, plain);
    if (!given) {
        request->asks_for_login = true;
        return deny(request, 401,
                    "a read token is needed: as a Bearer token, or as the password of Basic authentication");
    }
    request->is_known = uuid_parse(slice_of_text(given), token) &&
                        store_may_read(request->server->store, slice_of_text(token), role, project) == STORE_ACCESS;
    if (request->is_known) return true;
    return deny(request, 403, "the token is unknown or may not read this");
}

bool access_may_administer(struct request *request)
{
    if (request->is_local) {
        request->is_known = true;
        return true;
    }
    /* A browser adds a password that it knows to the requests of other sites' pages, too. */
    if (!begins_with(request->authorization, "bearer "))
        return deny(request, 401, "a token with the role admin is needed, as a Bearer token");
    return access_may_read(request, STORE_ROLE_ADMIN, 0);
}

/* --- Uploading ---------------------------------------------------------------------------------------------------- */

struct project_search {
    struct slice name;
    uint64_t id;
};

/* A number, or else a name; the first of several. */
static bool compare_project(void *context, const struct store_project *project)
{
    struct project_search *search = context;
    char number[24];
    (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)project->id);
    if (!slice_equals_text(search->name, number) && !slice_equals_text(search->name, project->name)) return true;
    search->id = project->id;
    return false;
}

/* False if the path names a project that does not exist. */
static bool find_project(struct request *request)
{
    static const char start[] = "/api/0/projects/";
    if (strncmp(request->path, start, strlen(start)) != 0) return true;
    const char *name = strchr(request->path + strlen(start), '/'); /* after the organization: any */
    if (!name) return false;
    name++;
    struct project_search search = {.name = slice_of(name, strcspn(name, "/"))};
    (void)store_each_project(request->server->store, compare_project, &search, NULL);
    request->project = search.id;
    return search.id != 0;
}

bool access_may_upload(struct request *request)
{
    char plain[PLAIN_SIZE], token[UUID_TEXT_SIZE];
    const char *given = find_credential(request, plain);
    if (!given) return deny(request, 401, "an upload token is needed, as a Bearer token");
    if (!uuid_parse(slice_of_text(given), token) ||
        !store_may_upload(request->server->store, slice_of_text(token), &request->upload_scope))
        return deny(request, 403, "the token is unknown or may not upload debug files");
    bool has_project = find_project(request);
    bool may_see = request->upload_scope == 0 || request->project == 0 || request->upload_scope == request->project;
    if (!may_see) return deny(request, 403, "the token may not upload to this project");
    if (!has_project) return deny(request, 404, "there is no such project");
    if (!request->server->assembler) return deny(request, 503, "this server accepts no debug files");
    request->has_key = request->is_known = true;
    return true;
}
