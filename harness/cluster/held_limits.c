#include "harness/cluster/held_limits.h"

#include "harness/cluster/cgroups.h"

#include <errno.h>
#include <unistd.h>

/* Who cannot have a group here was not offered such a fault: there is nothing to do instead. */
int held_limits_set(struct held_limits *h, enum node_limit what, int64_t value, struct err *err) {
    struct limit_group *g = &h->v[what];
    char owner[LIMIT_OWNER_MAX];
    if (g->path)
        return err_say(err, -EBUSY, "this host has such a limit already");
    limit_group_owner(getpid(), owner);
    int r = limit_group_name(what, owner, g, err);
    r = r ? r : limit_group_begin(g, "this host", getpid(), value, err);
    if (r && g->path && limit_group_end(g, NULL) != 0)
        limit_group_fini(g); /* our keeper takes it away */
    return r == -ENOTSUP ? -EACCES : r;
}

int held_limits_lift(struct held_limits *h, enum node_limit what, struct err *err) {
    return limit_group_end(&h->v[what], err);
}

static void put(const struct limit_group *g, struct json_writer *w) {
    BUF_FINI struct buf text = {0};
    if (!g->path)
        return;
    limit_group_count(g, &text);
    json_object(w, NULL);
    json_put_i64(w, "limit", g->what);
    json_put_string(w, "text", buf_str(&text));
    json_end_object(w);
}

void held_limits_put(const struct held_limits *h, struct json_writer *w) {
    bool any = false;
    for (int i = 0; i < NODE_LIMITS_N; i++)
        any |= h->v[i].path != NULL;
    if (!any)
        return;
    json_array(w, "limits");
    for (int i = 0; i < NODE_LIMITS_N; i++)
        put(&h->v[i], w);
    json_end_array(w);
}

void held_limits_end(struct held_limits *h, struct texts *left) {
    for (int i = 0; i < NODE_LIMITS_N; i++) {
        struct limit_group *g = &h->v[i];
        if (limit_group_end(g, NULL) == 0)
            continue;
        int r = cgroups_clear(g->path);
        if (r && r != -ENOENT && left)
            texts_add(left, "the control group %s", g->path);
        limit_group_fini(g);
    }
}
