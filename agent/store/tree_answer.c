#include "agent/store/tree_answer.h"

#include "base/json.h"
#include "base/str.h"

#include <string.h>

enum { MISSING = 100, CHANGED = 101, EXISTS = 105, RAFT = 300, CLEARED = 401, NODES_MAX = 1 << 20 };

static enum tree_result result_of(int64_t code) {
    switch (code) {
    case MISSING:
        return TREE_MISSING;
    case CHANGED:
        return TREE_CHANGED;
    case EXISTS:
        return TREE_EXISTS;
    case CLEARED:
        return TREE_CLEARED;
    default: /* 300 to 399: etcd's members have not agreed, or have no leader */
        return code >= RAFT && code < CLEARED ? TREE_LOST : TREE_REFUSED;
    }
}

static size_t count_nodes(const struct json *node) {
    size_t n = 1;
    json_each(child, json_get(node, "nodes")) n += count_nodes(child);
    return n;
}

static void take_nodes(const struct json *node, struct tree_node *to, size_t *n) {
    struct tree_node *t = &to[(*n)++];
    t->key = json_get_string(node, "key", "/");
    t->value = json_get_string(node, "value", "");
    t->dir = json_get_bool(node, "dir", false);
    t->modified = json_get_i64(node, "modifiedIndex", 0);
    json_each(child, json_get(node, "nodes")) take_nodes(child, to, n);
}

static void take_done(struct arena *a, const struct json *top, enum tree_verb verb,
                      struct tree_answer *ret) {
    const struct json *node = json_get(top, "node");
    const char *action = json_get_string(top, "action", "");
    size_t n = 0;
    ret->result = TREE_DONE;
    if (!node || count_nodes(node) > NODES_MAX)
        return;
    struct tree_node *nodes = arena_array(a, struct tree_node, count_nodes(node));
    take_nodes(node, nodes, &n);
    if (verb == TREE_WAIT && str_eq(action, "expire"))
        nodes[0].value = action;
    if (verb == TREE_WAIT)
        nodes[0].gone = str_eq(action, "delete") || str_eq(action, "expire") ||
                        str_eq(action, "compareAndDelete");
    ret->nodes = nodes;
    ret->n = verb == TREE_WAIT ? 1 : n;
}

static void take_version(struct arena *a, const struct json *top, struct tree_answer *ret) {
    const char *version = json_get_string(top, "etcdserver", NULL);
    ret->result = version ? TREE_DONE : TREE_STRANGE;
    ret->text = version ? version : arena_strdup(a, "it does not say which etcd it is");
}

static void take_error(struct arena *a, const struct json *top, long status,
                       struct tree_answer *ret) {
    int64_t code = json_get_i64(top, "errorCode", 0);
    const char *message = json_get_string(top, "message", "");
    const char *cause = json_get_string(top, "cause", "no cause given");
    if (code) {
        /* etcd 3.5 can renew no folder, and says so as if its members had not agreed. */
        ret->result = strstr(cause, "Not a file") ? TREE_REFUSED : result_of(code);
        ret->index = json_get_i64(top, "index", ret->index);
        ret->text = arena_printf(a, "%s (%s)", message, cause);
    } else {
        ret->result = status == 404 ? TREE_NO_V2 : status < 500 ? TREE_REFUSED : TREE_LOST;
        ret->text = arena_printf(a, "HTTP status %ld %s", status, message);
    }
}

struct tree_answer tree_answer_read(struct arena *a, enum tree_verb verb, long status,
                                    const struct buf *body, const char *index) {
    struct tree_answer answer = {.text = ""};
    struct err err = {0};
    bool good = status == 200 || status == 201;
    str_to_i64(index, 0, INT64_MAX, &answer.index);
    const struct json *top = body->len ? json_parse(a, buf_str(body), body->len, &err) : NULL;
    if (verb == TREE_VERSION && (status < 500 || top))
        take_version(a, good ? top : NULL, &answer);
    else if (good && !top && verb == TREE_WAIT && !body->len)
        answer.result = TREE_DONE; /* etcd is going away, or has closed the wait */
    else if (good && !top)
        answer.text = arena_printf(a, "its answer cannot be read: %s", err.msg);
    else if (good)
        take_done(a, top, verb, &answer);
    else
        take_error(a, top, status, &answer);
    return answer;
}
