/* The disasters of `rankquake try`: when each fires, what it must come to and what it costs. */
#include "harness/scenario/generate.h"

#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Which share of the job must have passed before it is disturbed: late enough for a checkpoint to
 * be there, early enough for what follows. By time it also waits for imports and the like, and a
 * run that is twice as quick as the control run must not be over. */
enum { STEPS_SHARE = 2, TIME_SHARE = 1, STEPS_OF = 5, TIME_OF = 2 };
enum { STEPS_MIN = 5 };

static const int64_t second = 1000000000;

const struct generate_fault generate_faults[GENERATE_FAULTS] = {
    {"worker-killed", "One worker is killed.", "a worker is killed", "kill",
     "fault: worker-kill, on: random of workers", .outcome = RESTARTS},
    {"worker-hangs", "One worker is stopped for ten seconds, and then goes on.",
     "a worker hangs for 10 s", "hang", "fault: worker-hang, on: random of workers, for: 10s",
     .lasts_ns = 10000000000},
    {"node-killed", "Every process of one node dies at once; its peers see a FIN or a RST.",
     "a node is killed", "loss", "fault: node-kill, on: n%", .outcome = LOSES_NODE},
    {"node-powered-off", "One node loses its power; its peers hear nothing more.",
     "a node loses power", "dark", "fault: node-poweroff, on: n%", .outcome = LOSES_NODE},
    {"node-joins", "A node is switched on while the others train.", "a node joins", "join",
     "fault: node-start, on: n%", .outcome = TAKES_NODE},
};

bool generate_has(const char *fault) {
    bool has = false;
    for (int i = 0; i < GENERATE_FAULTS; i++) {
        const char *name = generate_faults[i].entry + strlen("fault: ");
        size_t len = strcspn(name, ",");
        has |= strncmp(name, fault, len) == 0 && !fault[len];
    }
    return has;
}

/* ---- when ---- */

static int64_t steps_of(const struct generate_run *r) {
    return r->first_step < 0 ? 0 : r->last_step - r->first_step + 1;
}

/* For how long there is something to disturb: behind the last step nothing is left but the end. */
static int64_t work_of(const struct generate_run *r) {
    return steps_of(r) > 1 ? r->steps_ns : r->train_ns;
}

static const char *what_would_help(const struct generate_run *r) {
    int64_t steps = steps_of(r);
    if (r->train_ns < second / 2 && !steps)
        return "A program that goes into the background is over for its launcher: start it in the "
               "foreground";
    if (!r->told && steps && r->start_ns > 4 * work_of(r))
        return "Its steps were read only near its end: if they are printed all at once, let it "
               "print without delay (PYTHONUNBUFFERED=1, flush=True); else give it more to do, 2 s "
               "between the first and the last step at least";
    return "Give it more to do, 2 s at least and better 20; should it have found a finished "
           "checkpoint of an earlier run, take that away";
}

bool generate_moment(const struct generate_run *r, struct generate_moment *ret, struct err *err) {
    int64_t steps = steps_of(r), work_ns = work_of(r);
    bool long_enough = work_ns >= 2 * second;
    if (steps >= STEPS_MIN && (r->told || long_enough)) {
        *ret = (struct generate_moment){.by_step = true,
                                        .hold = r->told,
                                        .step = r->first_step + steps * STEPS_SHARE / STEPS_OF};
        return true;
    }
    if (long_enough) {
        *ret = (struct generate_moment){
            .few_steps = (int)steps, .time_ns = work_ns / 1000000 * TIME_SHARE / TIME_OF * 1000000};
        return true;
    }
    err_say(err, -ERANGE,
            "in the control run its workers %s %.1f s%s: too short to be hit surely. %s",
            steps > 1 ? "made their steps in" : "lived for", (double)work_ns / 1e9,
            steps && steps < STEPS_MIN ? " and made fewer than 5 steps" : "", what_would_help(r));
    return false;
}

void generate_moment_text(const struct generate_run *r, const struct generate_moment *m,
                          struct buf *out) {
    if (m->by_step) {
        buf_printf(out, "step %" PRId64 " of %" PRId64, m->step, r->last_step);
        return;
    }
    buf_printf(out, "%.1f s of %.1f s", (double)m->time_ns / 1e9, (double)work_of(r) / 1e9);
    if (m->few_steps)
        buf_printf(out, " from the first step on (at a time, as %d step%s too few to choose one)",
                   m->few_steps, m->few_steps == 1 ? " is" : "s are");
}

/* ---- while it saves ---- */

const char *generate_below_known(const char *dir) {
    const char *end = *dir == '{' ? strchr(dir, '}') : NULL;
    dir = end ? end + 1 + (end[1] == '/') : dir;
    while (str_starts(dir, "./"))
        dir += 2;
    return dir;
}

static const char *save_trigger(struct arena *a, const struct scenario *base,
                                const struct generate_run *r) {
    const char *dir = base->job.checkpoint_dir;
    if (r->saves && *r->saves)
        return arena_printf(a, "{after: before, round: 2, event: %s%s}", r->saves,
                            r->saves_told ? "" : ", hold: false");
    if (!dir || strpbrk(dir, "'*?["))
        return NULL;
    dir = generate_below_known(dir);
    size_t n = strlen(dir);
    return arena_printf(a, "{after: before, round: 2, file: '%s%s', op: write}", dir,
                        !n                  ? "*"
                        : dir[n - 1] == '/' ? "**"
                                            : "/**");
}

bool generate_saving(struct arena *a, const struct scenario *base, const struct generate_run *r,
                     struct generate_fault *ret) {
    const char *when = save_trigger(a, base, r);
    if (!when)
        return false;
    *ret = (struct generate_fault){
        .name = "killed-in-save",
        .about = "One worker is killed, and in what follows rank 0 in the middle of a save.",
        .words = "a worker is killed, and then rank 0 while it saves",
        .id = "save",
        .entry = "fault: worker-kill, on: rank 0",
        .before = "fault: worker-kill, on: random of workers",
        .restarts = 2,
        .when = when,
        .outcome = MAY_RESTART,
    };
    return true;
}

/* ---- the entries of the timeline ---- */

static void put_when(const struct generate_moment *m, struct buf *out) {
    if (m->by_step)
        buf_printf(out, "{step: %" PRId64 "%s}", m->step, m->hold ? "" : ", hold: false");
    else if (m->time_ns % second == 0)
        buf_printf(out, "{time: %" PRId64 "s}", m->time_ns / second);
    else
        buf_printf(out, "{time: %" PRId64 "ms}", m->time_ns / 1000000);
}

/* Its own, or at the moment. */
static void put_trigger(const char *own, const struct generate_moment *m, struct buf *out) {
    if (own)
        buf_puts(out, own);
    else
        put_when(m, out);
}

void generate_timeline(const struct generate_fault *f, const struct generated *d,
                       const struct generate_moment *m, const char *indent, struct buf *out) {
    /* The last one: with torchrun the store is on n0. */
    int target = f->outcome == TAKES_NODE && d->spare ? d->nodes : d->nodes - 1;
    if (f->before) {
        buf_printf(out, "%s- {id: before, when: ", indent);
        put_trigger(f->before_when, m, out);
        buf_printf(out, ", %s}\n", f->before);
    }
    buf_printf(out, "%s- {id: %s, when: ", indent, f->id);
    put_trigger(f->when, m, out);
    buf_puts(out, ", ");
    for (const char *p = f->entry; *p; p++)
        if (*p == '%' && p > f->entry && p[-1] == 'n') /* else it is a share */
            buf_printf(out, "%d", target);
        else
            buf_putc(out, *p);
    buf_puts(out, "}\n");
    if (f->outcome == LOSES_NODE && d->spare)
        buf_printf(out, "%s- {id: spare, when: {after: %s}, fault: node-start, on: n%d}\n", indent,
                   f->id, d->nodes);
}

/* ---- what must come of it ---- */

static void add_world(struct expect *e, int *sizes, int n, bool ends) {
    e->has_world_sizes = true;
    e->world_sizes_ends = ends;
    e->world_sizes = sizes;
    e->world_sizes_n = (size_t)n;
}

/* What rankrun promises. Of others only what torchrun does promise: that workers which fail are
 * started again, and that a node which joins is taken in. */
static void expect_of(enum generate_outcome o, const struct generated *d, bool less_promised,
                      int max_restarts, int *sizes, struct expect *e) {
    int whole = d->nodes * d->workers, less = whole - d->workers;
    sizes[0] = sizes[1] = whole;
    if ((o == RESTARTS || o == MAY_RESTART) && !max_restarts) {
        e->outcome = OUTCOME_FAILED;
    } else if (o == RESTARTS) {
        add_world(e, sizes, less_promised ? 1 : 2, less_promised);
    } else if (o == TAKES_NODE) {
        sizes[0] = d->spare || less_promised ? whole : less;
        add_world(e, sizes, d->spare || less_promised ? 1 : 2, less_promised);
    } else if (o == LOSES_NODE && !less_promised) {
        sizes[0] = d->spare ? whole : less;
        add_world(e, sizes, 1, true);
    }
}

/* Up to a whole second. */
static int64_t at_least(int64_t ns, int64_t least_ns) {
    ns = (ns + second - 1) / second * second;
    return ns > least_ns ? ns : least_ns;
}

/* At their end torchrun's agents wait so long for one another. */
static const int64_t torchrun_exit_ns = 300 * 1000000000LL;

/* Generous: a job that recovers at all comes back within them, and one that stands still is ended
 * before anybody loses patience. */
static void limits_of(const struct generate_run *r, bool torchrun, struct limits *l) {
    int64_t whole = r->start_ns + r->train_ns, end_ns = torchrun ? torchrun_exit_ns : 0;
    if (!l->start_ns)
        l->start_ns = at_least(60 * second + 4 * r->start_ns, 60 * second);
    if (!l->stall_ns)
        l->stall_ns = at_least(60 * second + 4 * r->start_ns, 60 * second);
    if (!l->total_ns)
        l->total_ns = at_least(120 * second + end_ns + 4 * whole, 180 * second);
    if (!l->grace_ns)
        l->grace_ns = 30 * second;
}

void generate_scenario(const struct generate_fault *f, const struct generated *d,
                       const struct scenario *base, const struct generate_run *r,
                       const struct generate_moment *m, struct buf *out) {
    struct scenario s = *base;
    int sizes[2];
    s.name = f->name;
    s.about = f->about;
    s.timeline_n = 0;
    s.cluster.start = f->outcome == TAKES_NODE && !d->spare ? d->nodes - 1 : d->nodes;
    bool strict = str_eq(s.job.launcher, "rankrun") && !s.torchrun_semantics;
    if (!s.expect.has_world_sizes)
        expect_of(f->outcome, d, !strict, s.job.max_restarts, sizes, &s.expect);
    limits_of(r, s.torchrun_semantics, &s.limits);
    scenario_print(&s, out);
    buf_puts(out, "timeline:\n");
    generate_timeline(f, d, m, "  ", out);
}

/* ---- what it takes ---- */

struct generate_cost generate_cost(const struct generate_fault *f, const struct scenario *base,
                                   const struct generate_run *r) {
    int64_t whole = r->start_ns + r->train_ns;
    int64_t soon_ns = r->start_ns + work_of(r) / STEPS_OF * STEPS_SHARE;
    int64_t again_ns = r->start_ns + work_of(r) / TIME_OF * TIME_SHARE;
    bool lost = f->outcome == LOSES_NODE;
    struct limits limits = base->limits;
    limits_of(r, base->torchrun_semantics, &limits);
    struct generate_cost c = {
        .least_ns = soon_ns,
        .usual_ns = f->outcome == COMES_BACK ? whole + f->lasts_ns : whole + again_ns,
        .most_ns = limits.total_ns,
    };
    c.long_ns = lost && base->torchrun_semantics ? c.usual_ns + torchrun_exit_ns : c.usual_ns;
    c.usual_ns = c.usual_ns < c.most_ns ? c.usual_ns : c.most_ns;
    c.long_ns = c.long_ns < c.most_ns ? c.long_ns : c.most_ns;
    return c;
}

/* ---- what cannot be learnt ---- */

/* How often torchrun's agents look for nodes that wait: 5 s before version 2.4, 0.1 s since. */
static double monitor_s(const struct generated *d) {
    for (size_t i = 0; d->command->args[i]; i++) {
        const char *s = d->command->args[i];
        if (!str_starts(s, "--monitor-interval") && !str_starts(s, "--monitor_interval"))
            continue;
        const char *value = strchr(s, '=') ? strchr(s, '=') + 1 : d->command->args[i + 1];
        return value ? atof(value) : 5;
    }
    return 5;
}

static const char *too_late_for_torchrun(struct arena *a, const struct generated *d, double start_s,
                                         double left_s) {
    double every_s = monitor_s(d);
    if (left_s > start_s + 2 * every_s)
        return NULL;
    return arena_printf(a,
                        "a new torchrun takes some %.0f s to start and is looked for every %g s, "
                        "and the job would end %.0f s later: make it longer",
                        start_s, every_s, left_s);
}

/* rankrun takes a node in when nobody else has come for `admit`: 1 s, with profile fast 50 ms. */
static const char *too_late_for_rankrun(struct arena *a, const struct job_spec *job, double start_s,
                                        double left_s) {
    const char *profile = job_rdzv_conf(job, "profile");
    double admit_s = profile && str_eq(profile, "fast") ? 0.05 : 1;
    if (left_s > start_s + 3 * admit_s)
        return NULL;
    return arena_printf(a,
                        "a node that comes is taken in after %g s of quiet, and the job would end "
                        "%.1f s later: make it longer",
                        admit_s, left_s);
}

static const char *too_late_for_second_part(struct arena *a, double follow_s, double left_s) {
    if (left_s > follow_s + 1)
        return NULL;
    return arena_printf(a,
                        "its second part comes %g s after its first, and the job would end %.1f s "
                        "after that: make it longer",
                        follow_s, left_s);
}

const char *generate_why_not(struct arena *a, const struct generate_fault *f,
                             const struct generated *d, const struct scenario *base,
                             const struct generate_run *r) {
    double left_s = (double)work_of(r) / 1e9 / 2, start_s = (double)r->start_ns / 1e9;
    if (f->on_disk)
        return "the job keeps nothing where a disk can be made to fail: let its command name "
               "{shared} "
               "or {disk}, as in --checkpoint-dir={shared}/ckpt";
    if (base->job.max_restarts < f->restarts)
        return arena_printf(a,
                            "it takes %s, and the job may be restarted %d time%s: "
                            "--max-restarts %d",
                            f->restarts == 1 ? "a restart" : "two restarts", base->job.max_restarts,
                            base->job.max_restarts == 1 ? "" : "s", f->restarts);
    if (f->follow_ns)
        return too_late_for_second_part(a, (double)f->follow_ns / 1e9, left_s);
    if (f->outcome != TAKES_NODE)
        return NULL;
    if (base->torchrun_semantics)
        return too_late_for_torchrun(a, d, start_s, left_s);
    return str_eq(base->job.launcher, "rankrun")
               ? too_late_for_rankrun(a, &base->job, start_s, left_s)
               : NULL;
}
