#include "harness/cluster/node_calls.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "faults/mechanism/call_file.h"
#include "harness/cluster/held_rules.h"
#include "harness/cluster/seen_process.h"
#include "harness/cluster/sighting.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* A call that the harness waits for: by its number, or on files of that name, whatever their
 * directory; which of these are meant is the harness's to say. */
struct called_for {
    int number;    /* -1: by kind and name */
    unsigned kind; /* CALL_* */
    char *like;    /* a pattern of names */
};

struct node_calls {
    struct loop *loop;
    struct carrier *to;
    struct host_cut *cut;
    void (*before)(void *arg);
    void *arg;
    int watch;
    struct loop_source *on_watch;
    struct called_for *wanted;
    size_t wanted_n;
    struct watched_call *waiting; /* those that the harness has been told of */
    size_t waiting_n;
    struct held_rules *rules; /* on the disks of the node */
};

/* ---- which calls ---- */

static void forget_wanted(struct node_calls *c) {
    for (size_t i = 0; i < c->wanted_n; i++)
        free(c->wanted[i].like);
    free(c->wanted);
    c->wanted = NULL;
    c->wanted_n = 0;
}

void node_calls_arm(struct node_calls *c, const struct json *order) {
    forget_wanted(c);
    json_each(it, json_get(order, "calls")) mem_push(c->wanted, c->wanted_n) =
        (struct called_for){.number = (int)json_get_i64(it, "number", -1),
                            .kind = (unsigned)json_get_i64(it, "kind", 0),
                            .like = mem_strdup(json_get_string(it, "like", ""))};
}

static bool is_like(const char *path, const char *like) {
    return *path && fnmatch(like, str_base(path), 0) == 0;
}

static bool is_wanted(const struct node_calls *c, const struct watched_call *call, const char *from,
                      const char *to) {
    for (size_t i = 0; i < c->wanted_n; i++) {
        const struct called_for *w = &c->wanted[i];
        if (w->number >= 0
                ? w->number == call->nr
                : w->kind & call->kind && (is_like(from, w->like) || is_like(to, w->like)))
            return true;
    }
    return false;
}

/* ---- a call ---- */

/* As its process sees it: what makes a torn file one. -1: nobody knows. */
static int64_t bytes_of(const struct watched_call *call, const char *file) {
    char path[CALL_FILE_MAX + 64];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%d/root%s", (int)call->thread, file);
    return *file && stat(path, &st) == 0 ? (int64_t)st.st_size : -1;
}

static void tell(struct node_calls *c, const struct watched_call *call, const char *from,
                 const char *to) {
    const struct sighting now = sighting_now(c->loop);
    struct buf text = {0};
    if (c->before)
        c->before(c->arg); /* that its worker has started */
    struct json_writer w = sighting_say(&now, &text, "called");
    json_put_i64(&w, "call", (int64_t)call->id);
    json_put_i64(&w, "kind", call->kind);
    json_put_i64(&w, "number", call->nr);
    json_put_i64(&w, "thread", call->thread);
    seen_process_put_line(&w, call->pid);
    json_put_string(&w, "from", from);
    json_put_string(&w, "to", to);
    json_put_i64(&w, "bytes", bytes_of(call, from));
    json_end_object(&w);
    mem_push(c->waiting, c->waiting_n) = *call;
    if (carrier_send(c->to, &text, NULL, 0, NULL) != 0)
        node_calls_release_all(c);
    buf_fini(&text);
}

/* Nobody waits for it, or not any more. */
static void pass(struct node_calls *c, const struct watched_call *call) {
    if (!held_rules_meet(c->rules, call))
        call_watch_pass(c->watch, call->id); /* one that has gone is no matter */
}

static void on_call(void *arg, int fd, int what) {
    struct node_calls *c = arg;
    struct watched_call call;
    char from[CALL_FILE_MAX] = "", to[CALL_FILE_MAX] = "";
    int r = call_watch_next(fd, &call);
    if (r < 0)
        node_calls_watch(c, -1);
    if (r <= 0)
        return;
    if (call.kind == CALL_CONNECT)
        host_cut_meet(c->cut, &call);
    if (c->wanted_n)
        call_file_paths(&call, from, to);
    if (is_wanted(c, &call, from, to))
        tell(c, &call, from, to);
    else
        pass(c, &call);
}

/* ---- what a rule has made of one ---- */

static void on_struck(void *arg, const struct disk_rule_state *rule, enum disk_verdict v,
                      const struct disk_strike *s) {
    struct node_calls *c = arg;
    const struct sighting now = sighting_now(c->loop);
    BUF_FINI struct buf text = {0};
    if (rule->done > HELD_TOLD_MAX)
        return;
    if (c->before)
        c->before(c->arg);
    struct json_writer w = sighting_say(&now, &text, "struck");
    held_rules_put(rule, &w, "rule");
    json_put_string(&w, "verdict", s->verdict);
    json_put_string(&w, "does", s->does);
    json_put_string(&w, "path", s->path);
    json_put_i64(&w, "errno", s->error);
    seen_process_put_line(&w, s->pid);
    json_end_object(&w);
    carrier_send(c->to, &text, NULL, 0, NULL); /* one that is broken ends the node */
}

/* ---- who waits ---- */

void node_calls_pass(struct node_calls *c, const struct json *order) {
    uint64_t id = (uint64_t)json_get_i64(order, "call", 0);
    for (size_t i = 0; i < c->waiting_n; i++)
        if (c->waiting[i].id == id) {
            const struct watched_call call = c->waiting[i];
            c->waiting[i] = c->waiting[--c->waiting_n];
            pass(c, &call);
            return;
        }
}

void node_calls_release_all(struct node_calls *c) {
    forget_wanted(c);
    while (c->waiting_n)
        pass(c, &c->waiting[--c->waiting_n]);
}

void node_calls_watch(struct node_calls *c, int watch) {
    c->on_watch = loop_source_free(c->on_watch);
    file_close(&c->watch);
    c->waiting_n = 0;
    c->watch = watch;
    held_rules_watch(c->rules, watch);
    host_cut_watches(c->cut, watch >= 0);
    if (watch >= 0)
        c->on_watch = loop_fd(c->loop, watch, LOOP_READ, on_call, c);
}

/* ---- its life ---- */

struct node_calls *node_calls_new(struct loop *l, struct carrier *to, struct host_cut *cut,
                                  void (*before)(void *arg), void *arg) {
    struct node_calls *c = mem_new(struct node_calls);
    *c = (struct node_calls){
        .loop = l, .to = to, .cut = cut, .before = before, .arg = arg, .watch = -1};
    c->rules = held_rules_new(l, on_struck, c);
    return c;
}

struct held_rules *node_calls_rules(struct node_calls *c) {
    return c->rules;
}

struct node_calls *node_calls_free(struct node_calls *c) {
    if (!c)
        return NULL;
    node_calls_watch(c, -1);
    held_rules_free(c->rules);
    forget_wanted(c);
    free(c->waiting);
    free(c);
    return NULL;
}
