/* Calls of a node's program that wait for us: connections for the cut, files for whoever asks. */
#include "base/sys/file.h"
#include "harness/cluster/cut.h"

static unsigned of_trigger(const struct trigger *t) {
    static const unsigned kinds[] = {[FILE_OP_OPEN] = CALL_OPEN,
                                     [FILE_OP_WRITE] = CALL_WRITE,
                                     [FILE_OP_RENAME] = CALL_RENAME,
                                     [FILE_OP_CLOSE] = CALL_CLOSE};
    return t && t->file ? kinds[t->op] : 0;
}

/* Who waits can be killed; whoever is to be stopped or traced must wait otherwise. */
static unsigned of_files(const struct plan *p) {
    unsigned kinds = 0, more = 0;
    for (size_t i = 0; i < p->entries_n; i++) {
        const struct fault *f = p->entries[i].fault;
        kinds |= of_trigger(&p->entries[i].entry->when) | of_trigger(p->entries[i].entry->until);
        if (f && (fault_has(f, EFFECT_STOPS_WORKER | EFFECT_STALLS_NODE) ||
                  f->needs & FAULT_NEEDS_TRACE))
            more = CALL_INTERRUPTIBLE;
    }
    return kinds ? kinds | more : 0;
}

unsigned calls_planned(const struct node *n) {
    bool cut = n->cluster->cut && cut_is_planned(n->cluster);
    return (cut ? CALL_CONNECT : 0) | (n->plan->is_store ? 0 : of_files(n->cluster->plan));
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
    if (call.kind == CALL_CONNECT)
        cut_call(c->cut, n, &call);
    else if (c->cb.called && c->cb.called(c->arg, n, &call))
        return;
    node_pass(n, call.id);
}

void node_pass(struct node *n, uint64_t id) {
    if (n->watch >= 0)
        call_watch_pass(n->watch, id);
}

void calls_watch(struct node *n, int fd) {
    n->on_watch = loop_source_free(n->on_watch);
    file_close(&n->watch);
    n->watch = fd;
    if (fd >= 0)
        n->on_watch = loop_fd(n->cluster->loop, fd, LOOP_READ, on_watch, n);
}
