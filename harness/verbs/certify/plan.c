/* What a certification will do: which runs, within what is permitted, and whether that is accepted. */
#include "harness/verbs/certify/certifying.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/host/host_self.h"
#include "harness/play/budget.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

void certify_leave_out(struct certification *c, const char *what, const char *why) {
    mem_push(c->left, c->left_n) =
        (struct left_out){arena_strdup(&c->arena, what), arena_strdup(&c->arena, why)};
}

/* ---- which runs ---- */

static void add_point(struct certification *c, const struct selected *l, const char *name,
                      const char *set) {
    const char *const own[] = {set, NULL};
    mem_push(c->points, c->points_n) = (struct certified_point){
        .of = l,
        .name = name,
        .sets = set ? (const char *const *)sets_join(&c->arena, l->sets, own) : l->sets,
    };
}

/* The first entry whose victim is one node, or something on one: it may be any other. */
static const struct timeline_entry *movable(const struct scenario *s) {
    for (size_t i = 0; i < s->timeline_n; i++) {
        const struct timeline_entry *e = &s->timeline[i];
        bool one = e->on.pick == PICK_NAMED || e->on.pick == PICK_RANK ||
                   (e->on.pick == PICK_RANDOM && e->on.count == 1);
        bool of_node = e->on.what == TARGET_NODES || e->on.what == TARGET_AGENTS ||
                       e->on.what == TARGET_WORKERS;
        if (e->fault && one && of_node)
            return e;
    }
    return NULL;
}

static const char *victim(struct arena *a, const struct timeline_entry *e, const char *node) {
    if (e->on.what == TARGET_WORKERS)
        return arena_printf(a, "%s/%d", node, e->on.local_rank > 0 ? e->on.local_rank : 0);
    return e->on.what == TARGET_AGENTS ? arena_printf(a, "agent of %s", node) : node;
}

/* Once for each node that is on from the beginning; a scenario without such a victim once. */
static void add_every_node(struct certification *c, const struct selected *l) {
    const struct timeline_entry *e = movable(l->scenario);
    if (!e) {
        certify_leave_out(c, l->scenario->name,
                          "--every-node: its faults strike no single node, so it runs as it is");
        add_point(c, l, l->scenario->name, NULL);
        return;
    }
    for (size_t i = 0; i < l->plan->nodes_n; i++) {
        const struct plan_node *n = &l->plan->nodes[i];
        if (n->is_store || !n->on_at_start)
            continue;
        const char *on = victim(&c->arena, e, n->name);
        add_point(c, l, arena_printf(&c->arena, "%s on %s", l->scenario->name, n->name),
                  arena_printf(&c->arena, "timeline.%s.on=%s", e->id, on));
    }
}

/* A victim that the file does not allow (a rank where the node matters) is found before anything is
 * done. */
static int check_point(const struct certification *c, const struct certified_point *p) {
    struct diagnostics d = {0};
    struct scenario *s = plan_load(p->of->file, p->sets, &d);
    struct plan *plan = s ? plan_make(s, c->seed, &d) : NULL;
    int code = plan ? 0 : EXIT_USAGE_ERROR;
    if (code)
        fprintf(stderr, "rankquake certify: --every-node: %s:\n%s", p->name, buf_str(&d.out));
    plan_free(plan);
    scenario_free(s);
    diagnostics_fini(&d);
    return code;
}

static int choose_points(struct certification *c) {
    int code = 0;
    for (size_t i = 0; i < c->selection.n; i++) {
        const struct selected *l = &c->selection.v[i];
        if (c->every_node)
            add_every_node(c, l);
        else
            add_point(c, l, l->scenario->name, NULL);
    }
    for (size_t i = 0; i < c->points_n && code == 0 && c->every_node; i++)
        code = check_point(c, &c->points[i]);
    return code;
}

/* ---- whether it is permitted ---- */

static int check_host_allowed(struct certification *c) {
    const char *by, *host = host_self_name(&c->arena), *user = host_self_user(&c->arena);
    if (!c->here || permit_allows_host(&c->permit, host, user, host_self_addresses(&c->arena), &by))
        return 0;
    return verb_usage_error(c->arguments->verb,
                            "host %s (user %s) is on the list of what nothing may be done on, by "
                            "%s; nothing was done",
                            host, user, by);
}

static int check_permitted(struct certification *c) {
    TEXTS_FINI struct texts beyond = {0};
    for (size_t i = 0; i < c->selection.n; i++)
        permit_check(&c->permit, c->selection.v[i].plan, &beyond);
    for (size_t i = 0; i < beyond.n; i++)
        fprintf(stderr, "rankquake certify: %s\n", beyond.v[i]);
    if (!beyond.n)
        return 0;
    return verb_usage_error(c->arguments->verb, "%s needs what is not permitted; nothing was done",
                            c->suite);
}

static int check_window(const struct certification *c) {
    int64_t left_ns;
    if (permit_is_open(&c->permit, clock_realtime_ns(), &left_ns))
        return 0;
    fprintf(stderr,
            "rankquake certify: no --window is open at this time of this host's clock; nothing was "
            "done\n");
    return EXIT_SKIPPED;
}

int certify_choose(struct certification *c) {
    int code = selection_read(&c->selection, &c->files);
    code = code ? code : check_permitted(c);
    code = code ? code : choose_points(c);
    code = code ? code : certify_hosts_find(c);
    code = code ? code : check_host_allowed(c);
    return code || c->plan_only ? code : check_window(c);
}

/* ---- the plan ---- */

static void put_faults(const struct selected *l, FILE *out) {
    const struct plan *p = l->plan;
    for (size_t i = 0; i < p->entries_n; i++) {
        const struct planned_entry *e = &p->entries[i];
        if (e->fault)
            fprintf(out, "      %-7s %s on %s\n", fault_reach_names[permit_reach_of(e)],
                    e->fault->name, e->entry->on.text ? e->entry->on.text : "its groups");
    }
}

static void put_permitted(const struct certification *c, FILE *out) {
    const struct permit *p = &c->permit;
    fprintf(out, "  permitted   faults of class %s%s", fault_reach_names[p->most],
            p->most > REACH_JOB ? " and below" : " alone");
    if (p->faults)
        fprintf(out, ", %lld in force at once", (long long)p->faults);
    if (p->fault_ns)
        fprintf(out, ", none longer than %.3g s", (double)p->fault_ns / 1e9);
    fputc('\n', out);
    for (size_t i = 0; i < p->deny.n; i++)
        fprintf(out, "  denied      %s\n", p->deny.v[i]);
    for (size_t i = 0; i < p->windows_n; i++)
        fprintf(out, "  window      %s\n", p->windows[i].text);
}

/* Where nodes are. */
static void put_hosts(const struct certification *c, FILE *out) {
    struct utsname u;
    uname(&u);
    if (c->here || !c->hosts_n)
        fprintf(out, "  host        %s: its nodes are emulated, and taken down after each run\n",
                u.nodename);
    for (size_t i = 0; i < c->hosts_n; i++) {
        const struct certified_host *h = &c->hosts[i];
        fprintf(out, "  %-12s%s, by %s: %s%s\n", i ? "" : "hosts", h->name, c->provider->name,
                h->node ? "node " : "asked, and no node of a scenario", h->node ? h->node : "");
    }
}

void certify_print_plan(const struct certification *c, FILE *out) {
    int64_t all_ns = 0;
    for (size_t i = 0; i < c->points_n; i++)
        all_ns += c->repeat * budget_estimate_ns(c->points[i].of);
    BUF_FINI struct buf took = {0};
    headway_put_time(&took, all_ns);
    fprintf(out, "certify %s\n", c->suite);
    fprintf(out, "  operator    %s, %s\n", c->operator_,
            c->key ? "who signs" : "and nobody signs (--key)");
    put_hosts(c, out);
    put_permitted(c, out);
    fprintf(out, "  runs        %zu, about %s\n", c->points_n * (size_t)c->repeat, buf_str(&took));
    for (size_t i = 0; i < c->points_n; i++) {
        fprintf(out, "    %s\n", c->points[i].name);
        put_faults(c->points[i].of, out);
    }
    for (size_t i = 0; i < c->left_n; i++)
        fprintf(out, "  left out    %s: %s\n", c->left[i].what, c->left[i].why);
    fflush(out);
}

int certify_accept(const struct certification *c) {
    char line[16] = "";
    if (c->yes)
        return 0;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return verb_usage_error(c->arguments->verb,
                                "nothing was done: read the plan above, and accept it with --yes");
    fputs("Do this? Type yes: ", stdout);
    fflush(stdout);
    if (fgets(line, sizeof(line), stdin) && str_eq(line, "yes\n"))
        return 0;
    puts("nothing was done");
    return EXIT_SKIPPED;
}
