#include "harness/cluster/far_calls.h"

#include "base/mem.h"
#include "harness/carrier/host_process.h"

#include <stdlib.h>

struct far_call {
    uint64_t id;
    char *from, *to;
    int64_t bytes; /* of `from`; -1: nobody knows */
};

/* ---- what is wanted ---- */

void far_calls_forget_wanted(struct cluster *c) {
    for (size_t i = 0; i < c->wanted_n; i++)
        free((char *)(uintptr_t)c->wanted[i].like);
    free(c->wanted);
    c->wanted = NULL;
    c->wanted_n = 0;
}

void cluster_want_calls(struct cluster *c, const struct wanted_call *v, size_t n) {
    far_calls_forget_wanted(c);
    for (size_t i = 0; i < n; i++) {
        struct wanted_call *w = &mem_push(c->wanted, c->wanted_n);
        *w = v[i];
        w->like = mem_strdup(v[i].like ? v[i].like : "");
    }
}

void far_calls_put_wanted(const struct cluster *c, struct json_writer *w) {
    json_array(w, "calls");
    for (size_t i = 0; i < c->wanted_n; i++) {
        const struct wanted_call *one = &c->wanted[i];
        json_object(w, NULL);
        json_put_i64(w, "number", one->number);
        json_put_i64(w, "kind", one->kind);
        json_put_string(w, "like", one->like);
        json_end_object(w);
    }
    json_end_array(w);
}

/* ---- those that wait ---- */

static void fini(struct far_call *c) {
    free(c->from);
    free(c->to);
}

void far_calls_forget(struct far_calls *f) {
    for (size_t i = 0; i < f->n; i++)
        fini(&f->v[i]);
    free(f->v);
    *f = (struct far_calls){0};
}

void far_calls_take(struct far_calls *f, const struct node *n, const struct json *m,
                    struct watched_call *ret) {
    int port = n->port;
    *ret = (struct watched_call){
        .id = (uint64_t)json_get_i64(m, "call", 0),
        .kind = (enum call_kind)json_get_i64(m, "kind", 0),
        .nr = (int)json_get_i64(m, "number", -1),
        .pid = host_process_number(port, json_get_i64(m, "pid", 0)),
        .thread = host_process_number(port, json_get_i64(m, "thread", 0)),
    };
    mem_push(f->v, f->n) = (struct far_call){.id = ret->id,
                                             .from = mem_strdup(json_get_string(m, "from", "")),
                                             .to = mem_strdup(json_get_string(m, "to", "")),
                                             .bytes = json_get_i64(m, "bytes", -1)};
}

const struct far_call *far_calls_find(const struct far_calls *f, uint64_t id) {
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].id == id)
            return &f->v[i];
    return NULL;
}

const char *far_call_from(const struct far_call *c) {
    return c->from;
}

const char *far_call_to(const struct far_call *c) {
    return c->to;
}

int64_t far_call_bytes(const struct far_call *c) {
    return c->bytes;
}

void far_calls_pass(struct far_calls *f, struct node *n, uint64_t id) {
    struct buf text = {0};
    struct json_writer w = node_say(&text, "pass");
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].id == id) {
            fini(&f->v[i]);
            f->v[i] = f->v[--f->n];
            break;
        }
    json_put_i64(&w, "call", (int64_t)id);
    node_say_send(n, &text, &w, NULL);
}
