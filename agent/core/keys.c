#include "agent/core/keys.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

size_t value_size(enum key_kind kind) {
    static const size_t sizes[] = {
        [KEY_CUR] = sizeof(struct cur_value),         [KEY_MEMBER] = sizeof(struct member_value),
        [KEY_SESSION] = sizeof(struct session_value), [KEY_GONE] = sizeof(struct gone_value),
        [KEY_LEAD] = sizeof(struct lead_value),       [KEY_PLAN] = sizeof(struct plan_value),
        [KEY_HEAD] = sizeof(struct head_value),       [KEY_ACK] = sizeof(struct ack_value),
        [KEY_DONE] = sizeof(struct done_value),       [KEY_INCARNATION] = 0,
    };
    return sizes[kind];
}

/* The part of a key after the incarnation; NULL: it has none. */
static const char *folder_of(enum key_kind kind) {
    static const char *const names[] = {
        [KEY_MEMBER] = "m",  [KEY_SESSION] = "s", [KEY_GONE] = "gone",
        [KEY_LEAD] = "lead", [KEY_PLAN] = "plan", [KEY_HEAD] = "head",
        [KEY_ACK] = "ack",   [KEY_DONE] = "done", [KEY_INCARNATION] = NULL,
    };
    return names[kind];
}

/* Writes text behind what is there; *at never passes the end. */
static void append(char *out, size_t *at, const char *text) {
    size_t n = strlen(text);
    assert(*at + n < KEY_SIZE);
    memcpy(out + *at, text, n + 1);
    *at += n;
}

static void append_run_id(char *out, size_t *at, const char *run_id) {
    static const char digits[] = "0123456789abcdef";
    for (const unsigned char *p = (const unsigned char *)run_id; *p; p++) {
        char text[4] = {(char)*p, 0, 0, 0};
        if (*p == '/' || *p == '%' || *p < 0x20 || *p >= 0x7f) {
            text[0] = '%';
            text[1] = digits[*p >> 4];
            text[2] = digits[*p & 15];
        }
        append(out, at, text);
    }
}

static void append_round(char *out, size_t *at, int64_t round) {
    char text[24];
    snprintf(text, sizeof(text), "%010lld", (long long)round);
    append(out, at, text);
}

/* Up to and without what KEYS_ALL leaves open; a folder ends in '/'. */
static void append_scope(char *out, size_t *at, const struct key *key) {
    const char *folder = folder_of(key->kind);
    if (!folder)
        return;
    append(out, at, folder);
    if (key->kind == KEY_LEAD || key->kind == KEY_HEAD)
        return;
    append(out, at, "/");
    if (key->kind == KEY_PLAN)
        append(out, at, key->pid);
    else if (key->kind == KEY_ACK || key->kind == KEY_DONE)
        append_round(out, at, key->scope == KEYS_BELOW ? 0 : key->round);
    else
        return;
    if (key->scope != KEYS_BELOW)
        append(out, at, "/");
}

void key_format(const struct key *key, const char *run_id, char text[KEY_SIZE],
                char range_end[KEY_SIZE]) {
    size_t at = 0, base;
    append(text, &at, "/rankrun/");
    append_run_id(text, &at, run_id);
    append(text, &at, "/");
    range_end[0] = '\0';
    if (key->kind == KEY_CUR) {
        append(text, &at, "cur");
        return;
    }
    append(text, &at, key->inc);
    append(text, &at, "/");
    base = at;
    append_scope(text, &at, key);
    if (key->scope == KEYS_ONE) {
        append(text, &at, key->uid);
        return;
    }
    memcpy(range_end, text, at + 1);
    if (key->scope == KEYS_BELOW) {
        size_t end = base;
        append(range_end, &end, folder_of(key->kind));
        append(range_end, &end, "/");
        append_round(range_end, &end, key->round);
    } else {
        range_end[at - 1]++; /* '/' + 1: the end of a prefix */
    }
}

/* Takes "part/" (or the last part) off the front; false when it is empty or does not fit. */
static bool take_part(const char **p, char *out, size_t size) {
    const char *slash = strchr(*p, '/');
    size_t n = slash ? (size_t)(slash - *p) : strlen(*p);
    if (!n || n >= size)
        return false;
    memcpy(out, *p, n);
    out[n] = '\0';
    *p += n + (slash != NULL);
    return true;
}

static bool take_round(const char **p, int64_t *ret) {
    char text[16];
    if (!take_part(p, text, sizeof(text)) || strlen(text) != 10 || strspn(text, "0123456789") != 10)
        return false;
    *ret = 0;
    for (const char *d = text; *d; d++)
        *ret = *ret * 10 + (*d - '0');
    return true;
}

static bool take_rest(const char *p, enum key_kind kind, struct key *ret) {
    ret->kind = kind;
    if (kind == KEY_LEAD || kind == KEY_HEAD)
        return !*p;
    if (kind == KEY_PLAN && !take_part(&p, ret->pid, sizeof(ret->pid)))
        return false;
    if ((kind == KEY_ACK || kind == KEY_DONE) && !take_round(&p, &ret->round))
        return false;
    return take_part(&p, ret->uid, sizeof(ret->uid)) && !*p;
}

bool key_parse(const char *text, size_t len, const char *run_id, struct key *ret) {
    char copy[KEY_SIZE], head[KEY_SIZE], folder[8];
    size_t at = 0;
    struct key key = {0};
    if (len >= sizeof(copy))
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    append(head, &at, "/rankrun/");
    append_run_id(head, &at, run_id);
    append(head, &at, "/");
    const char *p = copy + at;
    if (strncmp(copy, head, at) != 0 || strlen(copy) != len)
        return false;
    if (strcmp(p, "cur") == 0) {
        *ret = key;
        return true;
    }
    if (!take_part(&p, key.inc, sizeof(key.inc)) || !take_part(&p, folder, sizeof(folder)))
        return false;
    for (enum key_kind kind = KEY_MEMBER; kind < KEY_INCARNATION; kind++) {
        if (strcmp(folder, folder_of(kind)) != 0)
            continue;
        if (!take_rest(p, kind, &key))
            return false;
        *ret = key;
        return true;
    }
    return false;
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
