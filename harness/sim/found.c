#include "harness/sim/found.h"

#include "base/sys/file.h"
#include "harness/sim/live.h"
#include "harness/sim/script.h"
#include "harness/sim/shrink.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t shrink_time_ns = INT64_C(60000000000);

static int write_script(const struct script *s, const char *head, const char *path,
                        struct err *err) {
    BUF_FINI struct buf text = {0};
    buf_printf(&text, "# %s\n# rankquake sim --scenario %s\n", head, path);
    script_write(s, &text);
    return file_write(path, buf_str(&text), text.len, err);
}

static void put_script(const struct script *s, struct buf *said) {
    BUF_FINI struct buf text = {0};
    script_write(s, &text);
    for (const char *p = buf_str(&text), *end; *p; p = end + (*end != 0)) {
        end = strchrnul(p, '\n');
        buf_printf(said, "    %.*s\n", (int)(end - p), p);
    }
}

static void describe(struct script *s, const struct sim_result *r, const char *name) {
    char invariant[32];
    s->name = name;
    s->breaks = arena_strdup(&s->arena, shrink_invariant(r->text, invariant));
    s->found = arena_strdup(&s->arena, r->text);
}

/* The same for rankquake run, when there is anything in it that can be done to real nodes. */
static int write_live(struct script *s, const struct sim_result *r, const char *dir,
                      struct buf *said, struct err *err) {
    BUF_FINI struct buf text = {0};
    const char *path = arena_printf(&s->arena, "%s/live.yaml", dir);
    buf_printf(&text, "# %s of the simulation, on real nodes.\n", s->name);
    int played = live_write(s, r, &text), rc = 0;
    bool any = played || !s->schedule.n_entries;
    if (any)
        rc = file_write(path, buf_str(&text), text.len, err);
    if (any && rc == 0)
        buf_printf(said, "live       rankquake run %s; %d of %d lines can be played\n", path,
                   played, s->schedule.n_entries);
    else if (rc == 0)
        buf_puts(said, "live       nothing of it can be played on real nodes\n");
    return rc;
}

static int tell_shrunk(const struct sim_schedule *before, const struct shrunk *small,
                       const char *name, const char *dir, struct buf *said, struct err *err) {
    struct script s = {.schedule = small->schedule};
    const char *path = arena_printf(&s.arena, "%s/shrunk.yaml", dir);
    describe(&s, &small->result, name);
    buf_printf(said, "shrunk     %d faults to %d, %d agents to %d, with %d runs%s\n",
               before->n_entries, small->schedule.n_entries, before->agents, small->schedule.agents,
               small->runs, small->cut_short ? "; there was no time for more" : "");
    put_script(&s, said);
    int r = write_script(&s, "A schedule that breaks an invariant, made as small as it goes.", path,
                         err);
    if (r == 0)
        buf_printf(said, "again      rankquake sim --scenario %s\n", path);
    if (r == 0)
        r = write_live(&s, &small->result, dir, said, err);
    arena_fini(&s.arena);
    return r;
}

/* In a process of its own: a run that is recorded goes on after its invariant is broken, and a core
 * that does what it must not may die of it. */
static int record(const struct sim_schedule *s, const char *dir, struct buf *said,
                  struct err *err) {
    struct sim_result result;
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(sim_record_into(s, dir, &result, NULL) ? 1 : 0);
    if (pid < 0)
        return err_set(err, -errno, "start a process");
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(status)) {
        buf_printf(said, "recorded   in part: behind what it broke the core dies on signal %d\n",
                   WTERMSIG(status));
        return 0;
    }
    return WEXITSTATUS(status) ? sim_record_into(s, dir, &result, err) : 0;
}

/* Of a schedule that breaks an invariant: both files. */
static int found(const struct sim_schedule *drawn, const char *name, const char *dir,
                 const volatile sig_atomic_t *stop, struct buf *said, struct err *err) {
    struct script s = {.schedule = *drawn};
    struct shrunk small;
    struct sim_result result = {0};
    int r = record(drawn, dir, said, err);
    sim_play(drawn, false, &result);
    describe(&s, &result, name);
    if (r == 0)
        r = write_script(&s, "A schedule that breaks an invariant, as it was drawn.",
                         arena_printf(&s.arena, "%s/schedule.yaml", dir), err);
    arena_fini(&s.arena);
    struct shrink_spec spec = {.runs = SHRINK_RUNS_USUAL, .time_ns = shrink_time_ns, .stop = stop};
    if (r || !shrink(drawn, &spec, &small))
        return r;
    r = tell_shrunk(drawn, &small, name, dir, said, err);
    sim_schedule_fini(&small.schedule);
    return r;
}

int found_write(const struct sim_config *config, const char *dir, const volatile sig_atomic_t *stop,
                struct buf *said, struct err *err) {
    ARENA_FINI struct arena a = {0};
    struct sim_schedule drawn;
    const char *name = arena_printf(&a, "seed-%" PRIu64, config->seed);
    sim_draw(config, &drawn);
    dir = dir ? dir : arena_printf(&a, "runs/sim-%" PRIu64, config->seed);
    int r = found(&drawn, name, dir, stop, said, err);
    sim_schedule_fini(&drawn);
    return r;
}
