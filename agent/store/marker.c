#include "agent/store/marker.h"

#include "agent/core/keys.h"
#include "agent/core/kv.h"
#include "agent/store/codec.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOLD_S = 600, BOOT_SIZE = 64, TEXT_MAX = 4096 };

/* ---- the decision ---- */

bool marker_owes(const char *quarantine, enum marker_found found) {
    if (!str_eq(quarantine, "auto"))
        return str_eq(quarantine, "always");
    return found == MARKER_LEFT || found == MARKER_UNKNOWN;
}

/* One that was cut short says nothing of its boot. */
enum marker_found marker_judge(const char *text, const char *boot) {
    if (!text)
        return MARKER_NONE;
    size_t n = strcspn(text, "\n");
    bool whole = text[n] == '\n', same = strlen(boot) == n && memcmp(text, boot, n) == 0;
    return whole && n && !same ? MARKER_OF_EARLIER_BOOT : MARKER_LEFT;
}

/* "/rankrun/<run id>/<inc>/s/<uid>"; a run id in a key holds no '/'. */
static bool is_session(struct kv_bytes key) {
    static const char folder[] = "/s/";
    const char *at = key.data, *end = key.data + key.len;
    for (int slashes = 0; at < end; at++)
        if (*at == '/' && ++slashes == 4)
            break;
    return (size_t)(end - at) > strlen(folder) && memcmp(at, folder, strlen(folder)) == 0;
}

static void see(void *arg, const struct kv_pair *pair) {
    struct kv_bytes own = kv_string(KEY_QUARANTINE_TEXT);
    bool quarantine = pair->key.len == own.len && memcmp(pair->key.data, own.data, own.len) == 0;
    *(bool *)arg |= quarantine || is_session(pair->key);
}

bool marker_needed(const struct kv *kv) {
    bool needed = false;
    kv_each(kv, see, &needed);
    return needed;
}

/* ---- the file ---- */

/* Under /tmp anybody may have made a folder of this name. */
static bool is_own(const char *dir) {
    struct stat st;
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return false;
    return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           !(st.st_mode & 022) && access(dir, W_OK | X_OK) == 0;
}

static int find_dir(char *ret, size_t size, struct err *err) {
    const char *given = getenv("XDG_RUNTIME_DIR");
    if (given && given[0] == '/') {
        int n = snprintf(ret, size, "%s/rankrun", given);
        if (n > 0 && (size_t)n < size && is_own(ret))
            return 0;
    }
    snprintf(ret, size, "/run/rankrun");
    if (is_own(ret))
        return 0;
    snprintf(ret, size, "/tmp/rankrun-%u", (unsigned)geteuid());
    if (is_own(ret))
        return 0;
    return err_say(err, -EACCES,
                   "no folder for the store's marker: neither $XDG_RUNTIME_DIR/rankrun nor "
                   "/run/rankrun nor %s can be made and is this user's alone",
                   ret);
}

static int find_path(struct marker *m, const char *host, uint16_t port, struct err *err) {
    char dir[sizeof(m->path) - 512], name[256];
    int rc = find_dir(dir, sizeof(dir), err);
    if (rc < 0)
        return rc;
    str_copy(name, sizeof(name), host);
    for (char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr(".:-_", *p))
            *p = '_';
    snprintf(m->path, sizeof(m->path), "%s/store-%s-%u", dir, name, port);
    return 0;
}

static int read_boot(char ret[BOOT_SIZE], struct err *err) {
    BUF_FINI struct buf text = {0};
    int rc = file_read("/proc/sys/kernel/random/boot_id", TEXT_MAX, &text, err);
    snprintf(ret, BOOT_SIZE, "%.*s", (int)strcspn(buf_str(&text), "\n"), buf_str(&text));
    return rc;
}

/* Finds what an earlier life left, and leaves this one's. */
static enum marker_found replace(const char *path, struct err *err) {
    BUF_FINI struct buf text = {0};
    struct err unread = {0};
    char boot[BOOT_SIZE];
    enum marker_found found = MARKER_UNKNOWN;
    if (read_boot(boot, err) < 0)
        return found;
    int rc = file_read(path, TEXT_MAX, &text, &unread);
    if (rc == 0 || rc == -ENOENT)
        found = marker_judge(rc == 0 ? buf_str(&text) : NULL, boot);
    else
        *err = unread;
    buf_clear(&text);
    buf_printf(&text, "%s\n", boot);
    if (!err->code)
        file_write(path, text.data, text.len, err);
    return found;
}

/* ---- the whole ---- */

static void hold(struct kv *kv) {
    ARENA_FINI struct arena a = {0};
    BUF_FINI struct buf text = {0};
    struct kv_txn_result result;
    union value value = {.quarantine = {.owed = 1}};
    struct kv_op put = {.kind = KV_PUT, .key = kv_string(KEY_QUARANTINE_TEXT)};
    struct kv_txn txn = {.success = &put, .n_success = 1};
    kv_lease_grant(kv, 0, HOLD_S, clock_monotonic_ns(), &put.lease, NULL);
    codec_put(&text, KEY_QUARANTINE, &value);
    put.value = (struct kv_bytes){text.data, text.len};
    kv_txn(kv, &txn, &a, &result, NULL);
}

bool marker_open(struct marker *m, const char *host, uint16_t port, const char *quarantine,
                 struct kv *kv, struct err *err) {
    enum marker_found found = MARKER_UNKNOWN;
    *err = (struct err){0};
    m->path[0] = '\0';
    if (find_path(m, host, port, err) == 0)
        found = replace(m->path, err);
    bool owed = marker_owes(quarantine, found);
    if (owed)
        hold(kv);
    return owed;
}

void marker_close(struct marker *m, const struct kv *kv) {
    if (m->path[0] && !marker_needed(kv))
        unlink(m->path);
    m->path[0] = '\0';
}
