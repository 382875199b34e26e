/* How the nodes of a plan are kept apart, decided by trying. */
#include "base/sys/loopback.h"
#include "base/sys/namespace.h"
#include "faults/mechanism/call_watch.h"
#include "faults/need.h"
#include "harness/plan/entries.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *entry_text(const struct timeline_entry *a, const char *word, struct place p,
                       char ret[ENTRY_TEXT_MAX]) {
    int n = snprintf(ret, ENTRY_TEXT_MAX, "%.90s (%s)", a->id, word);
    if (p.line > 0 && !p.file)
        snprintf(ret + n, ENTRY_TEXT_MAX - (size_t)n, " in line %d, column %d", p.line, p.column);
    return ret;
}

/* What namespaces have by themselves, processes have only where the host allows it. */
static int check_faults(const struct plan *p, struct err *err) {
    struct err why;
    char text[ENTRY_TEXT_MAX];
    for (size_t i = 0; i < p->entries_n; i++) {
        const struct timeline_entry *a = p->entries[i].entry;
        const struct fault *f = p->entries[i].fault;
        if (f && fault_needs_check(plan_entry_needs(p, &p->entries[i]), &why) != 0)
            return err_say(err, -ENOTSUP, "%s, with nodes that are processes: %s",
                           entry_text(a, f->name, a->fault_place, text), why.msg);
    }
    return 0;
}

static int check_requests(const struct plan *p, struct err *err) {
    char text[ENTRY_TEXT_MAX];
    for (size_t i = 0; i < p->entries_n; i++) {
        const struct timeline_entry *a = p->entries[i].entry;
        const struct trigger *t = a->until && a->until->store ? a->until : &a->when;
        if (t->store)
            return err_say(err, -ENOTSUP,
                           "%s, with nodes that are processes: what the store is asked for is "
                           "read on the wire, which only nodes in namespaces have",
                           entry_text(a, "when.store", t->place, text));
    }
    return 0;
}

/* What the cluster itself asks for. */
static int check_disk(const struct plan *p, int (*check)(unsigned needs, struct err *err),
                      struct err *err) {
    struct err why;
    if (p->scenario->cluster.disk == DISK_SPEC_KEPT || check(FAULT_NEEDS_DISK, &why) == 0)
        return 0;
    return err_say(err, -ENOTSUP, "cluster.disk: %s: %s",
                   disk_spec_names[p->scenario->cluster.disk], why.msg);
}

static int use_processes(struct plan *p, struct err *err) {
    char prefix[LOOPBACK_PREFIX_MAX];
    if (p->rootfs)
        return err_say(err, -ENOTSUP,
                       "cluster.rootfs needs namespaces: nodes that are processes of this host see "
                       "its files%s%s",
                       p->isolation_why ? "; " : "", p->isolation_why ? p->isolation_why : "");
    int r = check_disk(p, fault_needs_check, err);
    r = r ? r : check_faults(p, err);
    r = r ? r : check_requests(p, err);
    if (r)
        return r;
    r = p->addresses = loopback_claim(PLAN_STORE_PORT, prefix, err);
    if (r < 0) {
        p->addresses = -1;
        struct err why = *err;
        return err_say(err, -ENOTSUP, "%s", why.msg);
    }
    p->isolation = ISOLATION_PROCESSES;
    topology_move(p, prefix);
    return 0;
}

static int check_namespaces(const struct plan *p, struct err *err) {
    struct err why;
    char text[ENTRY_TEXT_MAX];
    if (check_disk(p, fault_needs_check_namespaces, err) != 0)
        return -ENOTSUP;
    for (size_t i = 0; i < p->entries_n; i++) {
        const struct timeline_entry *a = p->entries[i].entry;
        const struct fault *f = p->entries[i].fault;
        if (f && fault_needs_check_namespaces(plan_entry_needs(p, &p->entries[i]), &why) != 0)
            return err_say(err, -ENOTSUP, "%s: %s", entry_text(a, f->name, a->fault_place, text),
                           why.msg);
    }
    return 0;
}

/* Whoever is about to write is held by the kernel, in whatever isolation. */
static int check_calls(const struct plan *p, struct err *err) {
    struct err why;
    char name[16], text[ENTRY_TEXT_MAX];
    for (size_t i = 0; i < p->entries_n; i++) {
        const struct timeline_entry *a = p->entries[i].entry;
        const struct trigger *t = a->until && trigger_is_call(a->until) ? a->until : &a->when;
        if (!trigger_is_call(t) || call_watch_check(&why) == 0)
            continue;
        snprintf(name, sizeof(name), "when.%s", t->file ? "file" : "syscall");
        return err_say(err, -ENOTSUP, "%s: %s", entry_text(a, name, t->place, text), why.msg);
    }
    return 0;
}

/* The sentence has said before that it is about nodes. */
static const char *reason_of(const struct err *err) {
    const char *colon = strstr(err->msg, "on this host: ");
    return colon ? colon + strlen("on this host: ") : err->msg;
}

int plan_settle(struct plan *p, struct err *err) {
    struct err why;
    if (p->isolation == ISOLATION_NAMESPACES || p->isolation == ISOLATION_HOSTS ||
        p->addresses >= 0)
        return 0;
    if (p->scenario->cluster.provider)
        return hosts_settle(p, err);
    enum isolation wanted = p->scenario->cluster.isolation;
    if (check_calls(p, &why) != 0) {
        if (err)
            *err = why;
        return -ENOTSUP;
    }
    int r = wanted == ISOLATION_PROCESSES ? -ENOTSUP : namespace_check(&why);
    if (r == 0) {
        p->isolation = ISOLATION_NAMESPACES;
        return check_namespaces(p, err);
    }
    if (wanted == ISOLATION_NAMESPACES) {
        if (err)
            *err = why;
        return r;
    }
    if (wanted == ISOLATION_AUTO)
        p->isolation_why = arena_strdup(&p->arena, reason_of(&why));
    return use_processes(p, err);
}
