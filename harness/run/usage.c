/* What the host lets all of the run have, and whether that may have been in its way. */
#include "harness/run/engine.h"

#include "base/sys/limits.h"

#include <errno.h>

enum scarcity { SCARCE_MEMORY_LIMIT, SCARCE_PROCESSES, SCARCE_MEMORY, SCARCE_NEIGHBOURS };

struct usage {
    unsigned scarce;        /* a bit per kind that has been told */
    int64_t killed_before;  /* processes, for want of memory; -1: nobody knows */
    int64_t refused_before; /* neighbours, for want of room in their table; -1: nobody knows */
};

/* Below that not even the harness's own programs and a small job run. */
static const int64_t MEMORY_LEAST = (int64_t)1 << 30;

/* As few as it can be: the wire, and of each node its first process, its program, the guard and the
 * workers. Threads, and what else a job starts, come on top. */
static int64_t processes_wanted(const struct plan *p) {
    int64_t n = p->isolation != ISOLATION_PROCESSES;
    for (size_t i = 0; i < p->nodes_n; i++)
        if (p->nodes[i].on_at_start)
            n += p->nodes[i].is_store ? 2 : 3 + p->scenario->job.workers_per_node;
    return n;
}

/* A channel, a socket and the ends of processes for each node, a connection and an end for each
 * worker, and what the harness needs for itself. */
static int64_t files_wanted(const struct plan *p) {
    int64_t n = 10;
    for (size_t i = 0; i < p->nodes_n; i++)
        n += p->nodes[i].is_store ? 3 : 3 + 2 * p->scenario->job.workers_per_node;
    return n;
}

/* Names the limit under which not even the cluster can be. */
static int check(struct engine *e, struct err *err) {
    const struct plan *p = e->plan;
    int64_t memory = limits_memory(), files = limits_files(), processes = limits_processes();
    int64_t used = processes >= 0 ? limits_processes_used() : 0;
    if (memory >= 0 && memory < MEMORY_LEAST)
        return err_say(err, -ENOMEM,
                       "a process may have %lld kB of memory here, and all of the cluster is under "
                       "that limit: lift it (ulimit -v unlimited; ulimit -d unlimited)",
                       (long long)memory / 1024);
    if (files >= 0 && files < files_wanted(p))
        return err_say(err, -EMFILE,
                       "a process may open %lld files here, and the harness needs more than %lld "
                       "for this cluster: raise it (ulimit -n 4096)",
                       (long long)files, (long long)files_wanted(p));
    if (processes >= 0 && processes < used + processes_wanted(p))
        return err_say(err, -EAGAIN,
                       "this user may have %lld processes and threads and has %lld, and the "
                       "cluster needs %lld more besides the threads of the job: raise it (ulimit "
                       "-u)",
                       (long long)processes, (long long)used, (long long)processes_wanted(p));
    return 0;
}

static void record_scarce(struct engine *e, enum scarcity what, int64_t limit, int64_t used,
                          const char *why) {
    static const char *const names[] = {"memory-limit", "processes", "memory", "neighbours"};
    if (own(e, usage)->scarce & 1u << what)
        return;
    own(e, usage)->scarce |= 1u << what;
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "scarce");
    json_put_string(w, "what", names[what]);
    json_put_i64(w, "limit", limit);
    json_put_i64(w, "used", used);
    json_put_string(w, "why", why);
    engine_recorded(e);
}

/* Nobody tells whether a fork was refused. When more than half of what may be is there, it may have
 * been: what fails has gone by the time somebody looks. */
static void look_for_processes(struct engine *e, int64_t more) {
    char why[160];
    int64_t limit = limits_processes();
    if (limit < 0 || own(e, usage)->scarce & 1u << SCARCE_PROCESSES)
        return;
    int64_t used = limits_processes_used() + more;
    snprintf(why, sizeof(why),
             "this user may have %lld processes and threads and had %lld: more may have been "
             "refused (ulimit -u)",
             (long long)limit, (long long)used);
    if (used > limit / 2)
        record_scarce(e, SCARCE_PROCESSES, limit, used, why);
}

static void look_for_killed(struct engine *e) {
    char why[160];
    int64_t killed = limits_killed_for_memory() - own(e, usage)->killed_before;
    snprintf(why, sizeof(why),
             "the kernel has killed %lld process%s of this host for want of memory since the run "
             "began",
             (long long)killed, killed == 1 ? "" : "es");
    if (own(e, usage)->killed_before >= 0 && killed > 0)
        record_scarce(e, SCARCE_MEMORY, 0, killed, why);
}

/* A node that finds no room for the address of a peer neither reaches it nor answers it. */
static void look_for_neighbours(struct engine *e) {
    char why[160];
    int64_t before = own(e, usage)->refused_before, limit = limits_neighbours();
    int64_t refused = limits_neighbours_refused() - before;
    snprintf(why, sizeof(why),
             "the kernel had no room for %lld addresses of neighbours, so nodes may not have "
             "reached each other (sysctl net.ipv4.neigh.default.gc_thresh3=%lld)",
             (long long)refused, (long long)(limit > 0 ? 16 * limit : 16384));
    if (before >= 0 && refused > 0)
        record_scarce(e, SCARCE_NEIGHBOURS, limit, refused, why);
}

static void begin(struct engine *e) {
    char why[160];
    int64_t memory = limits_memory();
    own(e, usage)->killed_before = limits_killed_for_memory();
    own(e, usage)->refused_before = e->plan->isolation == ISOLATION_PROCESSES
                                        ? -1 /* they meet on the loopback */
                                        : limits_neighbours_refused();
    snprintf(why, sizeof(why),
             "a process may have %lld kB of memory here: more may have been refused (ulimit -v, "
             "ulimit -d)",
             (long long)memory / 1024);
    /* A limit beyond what the machine has is the usual one of a batch system, and in nobody's
     * way. */
    if (memory >= 0 && memory < limits_host_memory())
        record_scarce(e, SCARCE_MEMORY_LIMIT, memory, 0, why);
    look_for_processes(e, processes_wanted(e->plan));
}

static bool ended_badly(const struct record *r) {
    bool exit = record_is(r, "worker-exit") || record_is(r, "agent-exit");
    return exit && r->source == SOURCE_KERNEL && record_i64(r, "code", 1);
}

static void record(struct engine *e, const struct record *r) {
    if (ended_badly(r))
        look_for_killed(e);
    if (ended_badly(r) || (record_is(r, "limit") && r->source == SOURCE_HARNESS))
        look_for_neighbours(e);
    bool late = record_is(r, "lag") && r->source == SOURCE_HARNESS && !*record_text(r, "why");
    if (ended_badly(r) || late)
        look_for_processes(e, 0);
}

const struct run_part run_part_usage = {
    .size = sizeof(struct usage),
    .open = check,
    .begin = begin,
    .record = record,
};
