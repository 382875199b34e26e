/* Calls of a node's program that wait for us: connections for the cut, files for whoever asks. */
#include "base/str.h"
#include "base/sys/file.h"
#include "faults/mechanism/call_file.h"
#include "faults/mechanism/disk_call.h"
#include "harness/cluster/cut.h"
#include "harness/cluster/host_link.h"

#include <stdio.h>
#include <sys/stat.h>

static unsigned of_trigger(const struct trigger *t) {
    static const unsigned kinds[] = {[FILE_OP_OPEN] = CALL_OPEN,
                                     [FILE_OP_WRITE] = CALL_WRITE,
                                     [FILE_OP_RENAME] = CALL_RENAME,
                                     [FILE_OP_CLOSE] = CALL_CLOSE};
    return t && t->file ? kinds[t->op] : 0;
}

static void add_number(struct call_watch *w, const struct trigger *t) {
    bool has = !t || !t->syscall || t->syscall_number < 0 || w->numbers_n == CALL_NUMBERS_MAX;
    for (size_t i = 0; i < w->numbers_n && !has; i++)
        has = w->numbers[i] == t->syscall_number;
    if (!has)
        w->numbers[w->numbers_n++] = t->syscall_number;
}

/* Who waits can be killed; whoever is to be stopped or traced must wait otherwise. */
static void of_timeline(const struct plan *p, struct call_watch *w) {
    unsigned more = 0;
    for (size_t i = 0; i < p->entries_n; i++) {
        const struct timeline_entry *a = p->entries[i].entry;
        const struct fault *f = p->entries[i].fault;
        struct disk_rule rule;
        enum node_place place;
        if (f && f->rule && !plan_has_disks(p) &&
            f->rule(&p->entries[i].args, &rule, &place, NULL) == 0)
            disk_call_watch(w, rule.does);
        w->kinds |= of_trigger(&a->when) | of_trigger(a->until);
        add_number(w, &a->when);
        add_number(w, a->until);
        if (f && (fault_has(f, EFFECT_STOPS_WORKER | EFFECT_STALLS_NODE | EFFECT_SLOWS) ||
                  f->needs & FAULT_NEEDS_TRACE))
            more = CALL_INTERRUPTIBLE;
    }
    w->kinds |= w->kinds || w->numbers_n ? more : 0;
}

void calls_put(const struct node *n, struct json_writer *w) {
    struct call_watch watch = {0};
    if (!n->plan->is_store)
        of_timeline(n->cluster->plan, &watch);
    if ((n->cluster->cut || n->link) && cut_is_planned(n->cluster))
        watch.kinds |= CALL_CONNECT;
    json_put_i64(w, "watch", watch.kinds);
    json_array(w, "calls");
    for (size_t i = 0; i < watch.numbers_n; i++)
        json_put_i64(w, NULL, watch.numbers[i]);
    json_end_array(w);
}

static void on_watch(void *arg, int fd, int what) {
    struct node *n = arg;
    struct cluster *c = n->cluster;
    struct watched_call call;
    int r = call_watch_next(fd, &call);
    if (r < 0) {
        calls_watch(n, -1);
        return;
    }
    if (r == 0)
        return;
    if (!c->cb.called || !c->cb.called(c->arg, n, &call))
        node_pass(n, &call);
}

void node_call_paths(const struct node *n, const struct watched_call *call,
                     char from[CALL_FILE_MAX], char to[CALL_FILE_MAX]) {
    const struct far_call *far = n->link ? host_link_call(n->link, call->id) : NULL;
    if (!n->link) {
        call_file_paths(call, from, to);
        return;
    }
    str_copy(from, CALL_FILE_MAX, far ? far_call_from(far) : "");
    str_copy(to, CALL_FILE_MAX, far ? far_call_to(far) : "");
}

int64_t node_call_bytes(const struct node *n, const struct watched_call *call, const char *file) {
    const struct far_call *far = n->link ? host_link_call(n->link, call->id) : NULL;
    char path[CALL_FILE_MAX + 64];
    struct stat st;
    if (n->link)
        return far ? far_call_bytes(far) : -1;
    snprintf(path, sizeof(path), "/proc/%d/root%s", (int)call->thread, file);
    return stat(path, &st) == 0 ? (int64_t)st.st_size : -1;
}

/* A cut that came while it waited reaches it, too. */
void node_pass(struct node *n, const struct watched_call *call) {
    if (n->link && n->state == NODE_ON)
        host_link_pass(n->link, call->id);
    if (n->watch < 0)
        return;
    if (call->kind == CALL_CONNECT && n->cluster->cut)
        cut_call(n->cluster->cut, n, call);
    if (!node_disk_call(n, call))
        call_watch_pass(n->watch, call->id);
}

void calls_watch(struct node *n, int fd) {
    n->on_watch = loop_source_free(n->on_watch);
    file_close(&n->watch);
    n->watch = fd;
    node_disk_watch(n);
    if (fd >= 0)
        n->on_watch = loop_fd(n->cluster->loop, fd, LOOP_READ, on_watch, n);
}
