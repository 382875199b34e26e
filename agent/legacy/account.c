#include "agent/legacy/account.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MEMBERS_MAX = 100000 };

struct account_reading {
    struct arena *arena;
    const char *folder;
    const struct tree_answer *answer;
    struct account *account;
};

const char *account_folder(struct arena *a, const char *prefix, const char *run_id) {
    return arena_printf(a, "%s/run_%s/rdzv", prefix ? prefix : "/torchelastic/p2p", run_id);
}

static const struct tree_node *find(const struct account_reading *r, const char *key) {
    for (size_t i = 0; i < r->answer->n; i++)
        if (str_eq(r->answer->nodes[i].key, key))
            return &r->answer->nodes[i];
    return NULL;
}

/* What the members of this version have told each other under that name; NULL: nothing yet. */
static const char *told(const struct account_reading *r, const char *name) {
    const struct tree_node *node =
        find(r, arena_printf(r->arena, "%s/v_%" PRId64 "/kv/%s", r->folder, r->account->version,
                             base64_coded(r->arena, name)));
    return node ? base64_plain(r->arena, node->value) : NULL;
}

/* A torch from 2.4 on has a slash before the rank. */
static const char *told_by(const struct account_reading *r, const char *name, int rank) {
    const char *value = told(r, arena_printf(r->arena, "torchelastic/%s%d", name, rank));
    return value ? value : told(r, arena_printf(r->arena, "torchelastic/%s/%d", name, rank));
}

static void read_info(const struct account_reading *r, int rank, struct account_member *m) {
    const char *text = told_by(r, "role_info", rank);
    struct err err = {0};
    const struct json *info = text ? json_parse(r->arena, text, strlen(text), &err) : NULL;
    int64_t slots = json_get_i64(info, "local_world_size", 0);
    if (slots < 1 || slots > MEMBERS_MAX)
        return;
    m->slots = (int)slots;
    m->role = json_get_string(info, "role", "");
}

static void read_member(const struct account_reading *r, int rank, struct account_member *m) {
    const struct account *c = r->account;
    char number[16];
    snprintf(number, sizeof(number), "%d", rank);
    const char *key =
        arena_printf(r->arena, "%s/v_%" PRId64 "/rank_%d", r->folder, c->version, rank);
    m->uid = json_get_string(json_get(c->doc.top, "rankrun"), number, NULL);
    m->alive = find(r, key) != NULL;
    m->confirmed = document_has_keep_alive(&c->doc, key);
    m->done = told_by(r, "agent/terminal_state", rank) != NULL;
    read_info(r, rank, m);
}

/* Where the workers of each begin, as far as all before have told. */
static void place(struct account *c) {
    int base = 0;
    for (int i = 0; i < c->n; i++) {
        c->members[i].rank_base = base;
        if (base >= 0)
            base = c->members[i].slots ? base + c->members[i].slots : -1;
    }
    c->world = base > 0 ? base : 0;
}

/* A closed state still has the parts of the one that it was. */
static void read_state(struct account *c) {
    const struct json *people = json_get(c->doc.top, "participants");
    c->version = c->doc.version;
    c->n = c->doc.n;
    if (c->doc.status == DOCUMENT_CLOSED && c->version && people && people->type == JSON_ARRAY &&
        people->length <= MEMBERS_MAX)
        c->n = (int)people->length;
}

void account_read(struct arena *a, const char *folder, const struct tree_answer *answer,
                  struct account *ret) {
    struct account_reading r = {a, folder, answer, ret};
    *ret = (struct account){.index = answer->index};
    const struct tree_node *active = find(&r, arena_printf(a, "%s/active_version", folder));
    document_read(&ret->doc, active ? active->value : NULL, active ? active->modified : 0);
    read_state(ret);
    ret->members = arena_array(a, struct account_member, (size_t)ret->n + 1);
    for (int i = 0; i < ret->n; i++)
        read_member(&r, i, &ret->members[i]);
    place(ret);
    if (ret->version) {
        ret->addr = told(&r, "MASTER_ADDR");
        ret->port = told(&r, "MASTER_PORT");
    }
}

void account_fini(struct account *c) {
    document_fini(&c->doc);
    *c = (struct account){0};
}

const char *account_phase(const struct account *c) {
    switch (c->doc.status) {
    case DOCUMENT_FROZEN:
        return "forming";
    case DOCUMENT_FINAL:
        return "running";
    case DOCUMENT_CLOSED:
        return "closed";
    case DOCUMENT_ABSENT:
    case DOCUMENT_SETUP:
    case DOCUMENT_JOINABLE:
    case DOCUMENT_STRANGE:
        break;
    }
    return "joining";
}

const char *account_member_state(const struct account *c, const struct account_member *m) {
    switch (c->doc.status) {
    case DOCUMENT_CLOSED:
        return m->done ? "done" : m->alive ? "ending" : "gone";
    case DOCUMENT_FINAL:
        return m->done ? "done" : m->alive ? "running" : "gone";
    case DOCUMENT_FROZEN:
        return m->confirmed ? "forming" : "joining";
    case DOCUMENT_ABSENT:
    case DOCUMENT_SETUP:
    case DOCUMENT_JOINABLE:
    case DOCUMENT_STRANGE:
        break;
    }
    return "joining";
}
