#include "agent/core/keys.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

size_t value_size(enum key_kind kind) {
    static const size_t sizes[] = {
        [KEY_CUR] = sizeof(struct cur_value),
        [KEY_MEMBER] = sizeof(struct member_value),
        [KEY_SESSION] = sizeof(struct session_value),
        [KEY_GONE] = sizeof(struct gone_value),
        [KEY_LEAD] = sizeof(struct lead_value),
        [KEY_PLAN] = sizeof(struct plan_value),
        [KEY_HEAD] = sizeof(struct head_value),
        [KEY_ACK] = sizeof(struct ack_value),
        [KEY_DONE] = sizeof(struct done_value),
        [KEY_QUARANTINE] = sizeof(struct quarantine_value),
        [KEY_INCARNATION] = 0,
    };
    return sizes[kind];
}

static const char root[] = "/rankrun/", quarantine[] = KEY_QUARANTINE_TEXT;

/* The part of a key after the incarnation; KEY_CUR, KEY_QUARANTINE and KEY_INCARNATION have none.
 */
static const struct folder {
    const char *name;
    size_t len;
} folders[] = {
#define FOLDER(kind, name) [kind] = {name, sizeof(name) - 1}
    FOLDER(KEY_MEMBER, "m"),  FOLDER(KEY_SESSION, "s"), FOLDER(KEY_GONE, "gone"),
    FOLDER(KEY_LEAD, "lead"), FOLDER(KEY_PLAN, "plan"), FOLDER(KEY_HEAD, "head"),
    FOLDER(KEY_ACK, "ack"),   FOLDER(KEY_DONE, "done"), FOLDER(KEY_INCARNATION, ""),
#undef FOLDER
};

enum { ROUND_DIGITS = 10, ROOT_LEN = sizeof(root) - 1 };

/* All of these write behind *at and move it on. The longest key there can be fits: KEY_SIZE. */
static void append(char **at, const char *text, size_t n) {
    memcpy(*at, text, n);
    *at += n;
}

static void append_text(char **at, const char *text) {
    append(at, text, strlen(text));
}

static void append_run_id(char **at, const char *run_id) {
    static const char digits[] = "0123456789abcdef";
    for (const unsigned char *p = (const unsigned char *)run_id; *p; p++) {
        if (*p == '/' || *p == '%' || *p < 0x20 || *p >= 0x7f) {
            append(at, (const char[]){'%', digits[*p >> 4], digits[*p & 15]}, 3);
            continue;
        }
        *(*at)++ = (char)*p;
    }
}

static void append_round(char **at, int64_t round) {
    char text[ROUND_DIGITS];
    assert(round >= 0 && round < 10000000000);
    for (int i = ROUND_DIGITS; i--; round /= 10)
        text[i] = (char)('0' + round % 10);
    append(at, text, sizeof(text));
}

static void append_root(char **at, const char *run_id) {
    append(at, root, ROOT_LEN);
    append_run_id(at, run_id);
    append(at, "/", 1);
}

/* Up to and without what KEYS_ALL leaves open; a folder ends in '/'. */
static void append_scope(char **at, const struct store_key *key) {
    append(at, folders[key->kind].name, folders[key->kind].len);
    if (key->kind == KEY_INCARNATION || key->kind == KEY_LEAD || key->kind == KEY_HEAD)
        return;
    append(at, "/", 1);
    if (key->kind == KEY_PLAN)
        append_text(at, key->pid);
    else if (key->kind == KEY_ACK || key->kind == KEY_DONE)
        append_round(at, key->scope == KEYS_BELOW ? 0 : key->round);
    else
        return;
    if (key->scope != KEYS_BELOW)
        append(at, "/", 1);
}

/* The end of a scope: of a prefix that ends in '/', or the first key of the round. */
static void end_format(const struct store_key *key, const char *text, size_t len, char *range_end) {
    if (key->scope == KEYS_BELOW) {
        char *at = range_end + (len - ROUND_DIGITS);
        memcpy(range_end, text, len - ROUND_DIGITS);
        append_round(&at, key->round);
    } else {
        memcpy(range_end, text, len);
        range_end[len - 1]++;
    }
    range_end[len] = '\0';
}

size_t key_format(const struct store_key *key, const char *run_id, char text[KEY_SIZE],
                  char range_end[KEY_SIZE]) {
    char *at = text;
    range_end[0] = '\0';
    if (key->kind == KEY_QUARANTINE) {
        memcpy(text, quarantine, sizeof(quarantine));
        return sizeof(quarantine) - 1;
    }
    append_root(&at, run_id);
    if (key->kind == KEY_CUR) {
        append(&at, "cur", 3);
    } else {
        append_text(&at, key->inc);
        append(&at, "/", 1);
        append_scope(&at, key);
        if (key->scope == KEYS_ONE)
            append_text(&at, key->uid);
        else
            end_format(key, text, (size_t)(at - text), range_end);
    }
    *at = '\0';
    return (size_t)(at - text);
}

/* What of a key is still to be read. */
struct rest {
    const char *at, *end;
};

/* Takes "part/" (or the last part) off the front; false when it is empty or does not fit. */
static bool take_part(struct rest *r, char *out, size_t size) {
    size_t left = (size_t)(r->end - r->at);
    const char *slash = left ? memchr(r->at, '/', left) : NULL;
    size_t n = slash ? (size_t)(slash - r->at) : left;
    if (!n || n >= size)
        return false;
    memcpy(out, r->at, n);
    out[n] = '\0';
    r->at += n + (slash != NULL);
    return true;
}

static bool take_round(struct rest *r, int64_t *ret) {
    char text[ROUND_DIGITS + 2];
    if (!take_part(r, text, sizeof(text)) || strlen(text) != ROUND_DIGITS)
        return false;
    *ret = 0;
    for (const char *d = text; *d; d++) {
        if (*d < '0' || *d > '9')
            return false;
        *ret = *ret * 10 + (*d - '0');
    }
    return true;
}

static bool take_folder(struct rest *r, enum key_kind *ret) {
    char name[8];
    if (!take_part(r, name, sizeof(name)))
        return false;
    for (enum key_kind kind = KEY_MEMBER; kind <= KEY_DONE; kind++) {
        if (strcmp(name, folders[kind].name) != 0)
            continue;
        *ret = kind;
        return true;
    }
    return false;
}

static bool take_rest(struct rest *r, struct store_key *ret) {
    enum key_kind kind = ret->kind;
    if (kind == KEY_LEAD || kind == KEY_HEAD)
        return r->at == r->end;
    if (kind == KEY_PLAN && !take_part(r, ret->pid, sizeof(ret->pid)))
        return false;
    if ((kind == KEY_ACK || kind == KEY_DONE) && !take_round(r, &ret->round))
        return false;
    return take_part(r, ret->uid, sizeof(ret->uid)) && r->at == r->end;
}

/* Takes "/rankrun/<run_id>/" off the front. */
static bool take_root(struct rest *r, const char *run_id) {
    char own[KEY_SIZE], *end = own;
    append_root(&end, run_id);
    size_t n = (size_t)(end - own);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, own, n) != 0)
        return false;
    r->at += n;
    return true;
}

static bool is_cur(const struct rest *r) {
    return r->end - r->at == 3 && memcmp(r->at, "cur", 3) == 0;
}

static bool is_quarantine(const char *text, size_t len) {
    return len == sizeof(quarantine) - 1 && memcmp(text, quarantine, len) == 0;
}

/* What is behind the root. It does not end in a slash, as if an empty part came behind that. */
static bool take_key(struct rest *r, struct store_key *ret) {
    if (r->end[-1] == '/')
        return false;
    return is_cur(r) || (take_part(r, ret->inc, sizeof(ret->inc)) && take_folder(r, &ret->kind) &&
                         take_rest(r, ret));
}

bool key_parse(const char *text, size_t len, const char *run_id, struct store_key *ret) {
    struct rest r = {text, text + len};
    struct store_key key = {0};
    if (is_quarantine(text, len)) {
        *ret = (struct store_key){.kind = KEY_QUARANTINE};
        return true;
    }
    if (len >= KEY_SIZE || memchr(text, '\0', len) || !take_root(&r, run_id) || !take_key(&r, &key))
        return false;
    *ret = key;
    return true;
}

size_t key_run_length(const char *text, size_t len) {
    bool rooted = len > ROOT_LEN && memcmp(text, root, ROOT_LEN) == 0;
    const char *slash = rooted ? memchr(text + ROOT_LEN, '/', len - ROOT_LEN) : NULL;
    return slash && slash > text + ROOT_LEN ? (size_t)(slash - text) + 1 : 0;
}

bool key_is_of_a_run(const char *text, size_t len) {
    size_t n = key_run_length(text, len);
    struct rest r = {text + n, text + len};
    struct store_key key = {0};
    if (is_quarantine(text, len))
        return true;
    return n && len < KEY_SIZE && !memchr(text, '\0', len) && take_key(&r, &key);
}

int key_run_id_check(const char *run_id, struct err *err) {
    size_t n = strlen(run_id);
    if (n && n <= RUN_ID_MAX)
        return 0;
    return err_say(err, -EINVAL, "the run id has %zu bytes; give --rdzv-id 1 to %d", n, RUN_ID_MAX);
}

int64_t key_lease(const char inc[INC_SIZE]) {
    uint64_t id = 0;
    for (const char *p = inc; *p; p++)
        id = id * 16 + (uint64_t)(*p <= '9' ? *p - '0' : *p - 'a' + 10);
    id &= INT64_MAX;
    return id ? (int64_t)id : 1;
}

/* --- failures --- */

enum { HOW_SIZE = 48 };

static const char *how_it_ended(int status, char how[HOW_SIZE]) {
    int signo = status & 0x7f;
    if (signo)
        snprintf(how, HOW_SIZE, "was killed by signal %d", signo);
    else
        snprintf(how, HOW_SIZE, "exited with code %d", status >> 8 & 0xff);
    return how;
}

const char *failure_text(struct arena *a, const struct failure *f) {
    char how[HOW_SIZE];
    if (!f->uid[0])
        return f->error;
    if (f->local_rank < 0)
        return arena_printf(a, "node %s: %s", f->node, f->error);
    return arena_printf(a, "rank %d (local rank %d on node %s) %s%s%s", f->rank, f->local_rank,
                        f->node, how_it_ended(f->wait_status, how), f->error[0] ? ": " : "",
                        f->error);
}

void failure_of_guard(struct failure *f, int64_t pid, int wait_status) {
    char how[HOW_SIZE];
    bool killed = wait_status & 0x7f;
    f->rank = f->local_rank = -1;
    f->pid = pid;
    f->wait_status = wait_status;
    snprintf(f->error, sizeof(f->error), "the workers' guard (pid %lld) %s, and they with it; %s",
             (long long)pid, how_it_ended(wait_status, how),
             killed ? "not by its own timer, so a worker, somebody on this node or the kernel (out "
                      "of memory?) has ended it"
                    : "it needs a timer, signals and memory: see ulimit -a");
}
