#include "harness/run/timeline.h"

#include "agent/base/str.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* What shows that a fault was felt: the kernel's word about a process, or the wire's counters. */

/* Frames that a cut has dropped, by pair of nodes: at the first count after the fault fired, which
 * was asked for before it was brought in force, and at the newest. */
struct links {
    int group[CLUSTER_NODES_MAX];
    bool answers[CLUSTER_NODES_MAX]; /* of a group: stores alone, which say nothing unasked */
    bool counted[CLUSTER_NODES_MAX]; /* there is a first count of this sender */
    int64_t first[CLUSTER_NODES_MAX][CLUSTER_NODES_MAX],
        newest[CLUSTER_NODES_MAX][CLUSTER_NODES_MAX];
};

/* ---- a process that stands still ---- */

/* The third field of stat, behind a name that may hold anything. */
static char state_of(const char *path) {
    char line[512];
    FILE *f = fopen(path, "re");
    const char *got = f ? fgets(line, sizeof(line), f) : NULL;
    const char *after = got ? strrchr(line, ')') : NULL;
    if (f)
        fclose(f);
    return after && after[1] == ' ' ? after[2] : 0;
}

/* T: every thread has been stopped, and the kernel says so. */
static bool stands_still(pid_t pid) {
    char path[300];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    bool any = false, all = true;
    for (struct dirent *d; tasks && (d = readdir(tasks));) {
        if (atoi(d->d_name) <= 0)
            continue;
        snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)pid, d->d_name);
        any = true;
        all &= state_of(path) == 'T';
    }
    if (tasks)
        closedir(tasks);
    return any && all;
}

/* ---- links that are cut ---- */

/* The groups of stores, and of those the ones in which nobody else is. */
static void find_stores(const struct engine *e, struct links *l) {
    struct node **nodes;
    size_t n = cluster_nodes(e->cluster, &nodes);
    for (int store = 1; store >= 0; store--)
        for (size_t i = 0; i < n && i < CLUSTER_NODES_MAX; i++)
            if (l->group[i] >= 0 && node_plan(nodes[i])->is_store == store)
                l->answers[l->group[i]] = store;
}

static struct links *links_new(struct act *a, const struct bound *b) {
    struct engine *e = a->owner->engine;
    struct links *l = arena_new(&e->arena, struct links);
    char groups[FAULT_GROUPS_MAX];
    fault_groups(&b->target, &a->plan->args, groups, sizeof(groups));
    if (cluster_groups(e->cluster, groups, l->group, NULL) != 0)
        return NULL; /* then it does not come in force either */
    find_stores(e, l);
    return l;
}

static bool links_learn(struct act *a, struct links *l, const struct record *r) {
    struct node **nodes;
    size_t n = cluster_nodes(a->owner->engine->cluster, &nodes), from = 0;
    while (from < n && !str_eq(node_plan(nodes[from])->name, r->node))
        from++;
    if (from >= n || from >= CLUSTER_NODES_MAX)
        return false;
    for (size_t to = 0; to < n && to < CLUSTER_NODES_MAX; to++) {
        int64_t frames = json_get_i64(json_get(r->fields, "cut_to"), node_plan(nodes[to])->name, 0);
        l->newest[from][to] = frames;
        if (!l->counted[from])
            l->first[from][to] = frames;
    }
    l->counted[from] = true;
    return true;
}

static int64_t frames_between(const struct links *l, int g, int h) {
    int64_t frames = 0;
    for (size_t from = 0; from < CLUSTER_NODES_MAX; from++)
        for (size_t to = 0; to < CLUSTER_NODES_MAX; to++)
            if (l->group[from] == g && l->group[to] == h)
                frames += l->newest[from][to] - l->first[from][to];
    return frames;
}

/* The fewest frames that were dropped in any direction the cut covers, except from a store to those
 * who ask it: once nobody's questions reach it there is nothing that it would say. */
static int64_t fewest_frames(const struct links *l) {
    int groups = 0;
    int64_t fewest = -1;
    for (size_t i = 0; i < CLUSTER_NODES_MAX; i++)
        groups = l->group[i] >= groups ? l->group[i] + 1 : groups;
    for (int g = 0; g < groups; g++)
        for (int h = 0; h < groups; h++) {
            bool silent = l->answers[g] && !l->answers[h];
            int64_t frames = g == h || silent ? fewest : frames_between(l, g, h);
            fewest = fewest < 0 || frames < fewest ? frames : fewest;
        }
    return fewest;
}

static int group_of(const struct act *a, const struct links *l, const char *node, bool store) {
    struct node **nodes;
    size_t n = cluster_nodes(a->owner->engine->cluster, &nodes);
    for (size_t i = 0; i < n && i < CLUSTER_NODES_MAX; i++)
        if (store ? node_plan(nodes[i])->is_store : str_eq(node_plan(nodes[i])->name, node))
            return l->group[i];
    return -1;
}

bool act_cuts_off(const struct act *a, const char *node) {
    for (size_t i = 0; a->lasts && i < a->bound_n; i++) {
        const struct links *l = a->bound[i].links;
        int own = l ? group_of(a, l, node, false) : -1, stores = l ? group_of(a, l, "", true) : -1;
        if (own >= 0 && stores >= 0 && own != stores)
            return true;
    }
    return false;
}

/* ---- one firing ---- */

static bool felt_by(const struct bound *b, const struct fault *f) {
    switch (f->evidence) {
    case EVIDENCE_FRAMES_DROPPED:
        return b->dropped_in > 0 && b->dropped_out > 0 &&
               (!fault_has(f, EFFECTS_TAKE_AGENT) || b->exit_ns);
    case EVIDENCE_LINKS_CUT:
        return b->links && fewest_frames(b->links) > 0;
    case EVIDENCE_TARGET_STOPPED:
        return stands_still(b->target.pid);
    case EVIDENCE_TARGET_EXIT:
    case EVIDENCE_AGENT_START:
        break;
    }
    return b->exit_ns;
}

static const char *words(enum fault_evidence e) {
    static const char *const text[] = {
        [EVIDENCE_TARGET_EXIT] = "the target has ended",
        [EVIDENCE_TARGET_STOPPED] = "every thread of the target stands still",
        [EVIDENCE_LINKS_CUT] = "the wire dropped frames in every direction",
        [EVIDENCE_FRAMES_DROPPED] = "the wire dropped its frames",
        [EVIDENCE_AGENT_START] = "the agent has exec'ed",
    };
    return text[e];
}

static void record_felt(struct act *a) {
    enum fault_evidence e = a->plan->fault->evidence;
    bool drops = e == EVIDENCE_FRAMES_DROPPED || e == EVIDENCE_LINKS_CUT;
    bool wire = drops && a->owner->engine->plan->isolation != ISOLATION_PROCESSES;
    struct json_writer *w =
        engine_record(a->owner->engine, wire ? SOURCE_WIRE : SOURCE_KERNEL, "fault-evidence");
    json_put_string(w, "id", a->action->id);
    json_put_i64(w, "n", a->fired);
    json_put_string(w, "what",
                    drops && !wire ? "the kernel dropped what came to its sockets and its peers'"
                                   : words(e));
    if (e == EVIDENCE_FRAMES_DROPPED) {
        json_put_i64(w, "dropped_in", a->bound[0].dropped_in);
        json_put_i64(w, "dropped_out", a->bound[0].dropped_out);
    } else if (e == EVIDENCE_LINKS_CUT) {
        json_put_i64(w, "fewest", fewest_frames(a->bound[0].links));
    }
    engine_recorded(a->owner->engine);
}

void evidence_begin(struct act *a) {
    if (a->plan->fault->evidence != EVIDENCE_LINKS_CUT)
        return;
    for (size_t i = 0; i < a->bound_n; i++)
        a->bound[i].links = links_new(a, &a->bound[i]);
    engine_count(a->owner->engine);
}

void evidence_look(struct act *a) {
    if (a->felt || !a->fired || a->in_force < a->fired)
        return;
    for (size_t i = 0; i < a->bound_n; i++)
        if (!felt_by(&a->bound[i], a->plan->fault))
            return;
    a->felt = true;
    record_felt(a);
}

/* ---- what the records tell ---- */

/* Whether it ended as one does whom this fault has ended; nobody may know how it ended. */
static bool ended_so(const struct plan_action *pa, const struct record *r) {
    int status = pa->fault->status ? pa->fault->status(&pa->args) : -1;
    if (status < 0 || json_get_bool(r->fields, "unknown", false))
        return true;
    if (WIFSIGNALED(status))
        return json_get_i64(r->fields, "signal", 0) == WTERMSIG(status);
    return json_get_i64(r->fields, "code", -1) == WEXITSTATUS(status);
}

static bool starts_program(const struct record *r) {
    return record_is(r, "agent-start") || record_is(r, "store-start");
}

/* The record of a process that ended, or started, as this fault on this target wants it. */
static bool shows(const struct bound *b, const struct plan_action *pa, const struct record *r) {
    const struct fault *f = pa->fault;
    const char *node = node_plan(b->node)->name;
    if (f->evidence == EVIDENCE_AGENT_START)
        return starts_program(r) && str_eq(r->node, node);
    if (b->target.kind == TARGET_NODE)
        return record_is(r, "node-down") && str_eq(r->node, node);
    bool exit =
        record_is(r, "worker-exit") || record_is(r, "agent-exit") || record_is(r, "store-exit");
    return exit && r->source == SOURCE_KERNEL && r->pid == b->target.pid && ended_so(pa, r);
}

static bool learn(struct act *a, struct bound *b, const struct record *r) {
    bool wire = (r->source == SOURCE_WIRE && record_is(r, "wire")) ||
                (r->source == SOURCE_KERNEL && record_is(r, "socket-drops"));
    if (wire && b->links)
        return links_learn(a, b->links, r);
    if (wire && str_eq(r->node, node_plan(b->node)->name)) {
        b->dropped_in = json_get_i64(r->fields, "dropped_in", 0);
        b->dropped_out = json_get_i64(r->fields, "dropped_out", 0);
        return true;
    }
    if (b->exit_ns || !shows(b, a->plan, r))
        return false;
    b->exit_ns = r->t_ns;
    return true;
}

/* That somebody stands still is told by no event: whatever else is seen is an occasion to look. */
void act_seen(struct act *a, const struct record *r) {
    if (!a->fired || a->felt || !a->plan->fault)
        return;
    bool news = a->plan->fault->evidence == EVIDENCE_TARGET_STOPPED;
    for (size_t i = 0; i < a->bound_n; i++)
        if (learn(a, &a->bound[i], r)) {
            news = true;
            if (a->plan->fault->evidence == EVIDENCE_AGENT_START)
                act_answered(a, NULL);
        }
    if (news)
        evidence_look(a);
}
