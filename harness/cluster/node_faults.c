#include "harness/cluster/node_faults.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/process.h"
#include "faults/fault.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- a message ---- */

static struct fault_args args_of(struct message *m) {
    const struct json *list = json_get(m->json, "args");
    struct fault_arg *v = arena_array(&m->arena, struct fault_arg, (list ? list->length : 0) + 1);
    struct fault_args a = {.v = v, .seed = (uint64_t)json_get_i64(m->json, "seed", 0)};
    json_each(it, list) v[a.n++] = (struct fault_arg){it->key, json_string(it, "")};
    return a;
}

/* What is held to a limit is all that descends from here, whether the program still lives or not. */
static struct target target_of(const struct node_faults *f, const struct fault *fault,
                               const struct message *m, int program) {
    struct target t = {
        .kind = (enum target_kind)json_get_i64(m->json, "kind", 0), .ops = f->ops, .node = f->node};
    const struct json *store = json_get(m->json, "store");
    str_copy(t.name, sizeof(t.name), json_get_string(m->json, "name", ""));
    t.pidfd = t.kind == TARGET_NODE ? program : m->fds[0];
    t.pid = fault->limits ? getpid() : t.pidfd < 0 ? 0 : process_pid_of(t.pidfd);
    t.keep = m->fds[1] < 0 ? 0 : m->fds[1];
    str_copy(t.store.address, sizeof(t.store.address), json_get_string(store, "address", ""));
    t.store.port = (int)json_get_i64(store, "port", 0);
    str_copy(t.store.token, sizeof(t.store.token), json_get_string(store, "token", ""));
    t.store.number = json_get_i64(store, "number", 0);
    return t;
}

static const struct fault *fault_of(const struct node_faults *f, const struct message *m) {
    const struct fault *fault = fault_find(json_get_string(m->json, "fault", ""));
    bool here = fault && (fault->where == FAULT_IN_NODE || (f->ops && fault_is_of_helper(fault)));
    return here ? fault : NULL;
}

/* Of a disk several of one kind may be in force, each with arguments of its own. */
static bool has_the_same_arguments(const struct message *a, const struct message *b) {
    const struct json *x = json_first(json_get(a->json, "args")),
                      *y = json_first(json_get(b->json, "args"));
    while (x && y && str_eq(x->key, y->key) && str_eq(json_string(x, ""), json_string(y, ""))) {
        x = x->next;
        y = y->next;
    }
    return !x && !y;
}

static bool is_about_the_same(const struct fault *fault, const struct message *a,
                              const struct message *b) {
    return str_eq(json_get_string(a->json, "fault", ""), fault->name) &&
           str_eq(json_get_string(b->json, "fault", ""), fault->name) &&
           str_eq(json_get_string(a->json, "name", ""), json_get_string(b->json, "name", "")) &&
           (!fault->rule || has_the_same_arguments(a, b));
}

/* ---- what is in force ---- */

static void keep(struct node_faults *f, struct message *m) {
    mem_push(f->in_force, f->n) = *m;
    *m = (struct message){0};
    for (size_t i = 0; i < CHANNEL_FDS_MAX; i++)
        m->fds[i] = -1;
}

static void forget(struct node_faults *f, size_t at) {
    message_fini(&f->in_force[at]);
    f->in_force[at] = f->in_force[--f->n];
}

static int inject(struct node_faults *f, const struct fault *fault, struct message *m, int program,
                  struct err *err) {
    struct target t = target_of(f, fault, m, program);
    struct fault_args a = args_of(m);
    int r = fault->inject(&t, &a, err);
    if (r == 0 && fault->recover && fault_has(fault, EFFECT_LASTING))
        keep(f, m);
    return r;
}

static int recover(const struct node_faults *f, const struct fault *fault, struct message *m,
                   int program, struct err *err) {
    struct target t = target_of(f, fault, m, program);
    struct fault_args a = args_of(m);
    int r = fault->recover(&t, &a, err);
    return r == -ESRCH ? 0 : r;
}

int node_faults_do(struct node_faults *f, struct message *m, int program, struct err *err) {
    const struct fault *fault = fault_of(f, m);
    if (!fault)
        return err_say(err, -ENOSYS, "%s is no fault that runs in a node",
                       json_get_string(m->json, "fault", ""));
    if (!json_get_bool(m->json, "recover", false))
        return inject(f, fault, m, program, err);
    if (!fault->recover)
        return err_say(err, -ENOSYS, "%s has nothing to undo", fault->name);
    for (size_t i = f->n; i-- > 0;)
        if (is_about_the_same(fault, &f->in_force[i], m))
            forget(f, i);
    return recover(f, fault, m, program, err);
}

void node_faults_undo(struct node_faults *f, int program, struct json_writer *w) {
    while (f->n) {
        struct message *m = &f->in_force[f->n - 1];
        struct err err;
        int r = recover(f, fault_of(f, m), m, program, &err);
        json_object(w, NULL);
        json_put_string(w, "fault", json_get_string(m->json, "fault", ""));
        json_put_string(w, "name", json_get_string(m->json, "name", ""));
        json_put_string(w, "error", r ? err.msg : NULL);
        json_end_object(w);
        forget(f, f->n - 1);
    }
}

void node_faults_fini(struct node_faults *f) {
    while (f->n)
        forget(f, f->n - 1);
    free(f->in_force);
    f->in_force = NULL;
}
