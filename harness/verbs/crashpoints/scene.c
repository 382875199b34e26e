/* A scenario: its job is started by its launcher, in its cluster, on a stage of its own each time. In
 * there {shared} and the disks of all nodes lie side by side in one folder: one record tells of all
 * of them, in one order, and a state is a state of all. */
#include "harness/verbs/crashpoints/crashing.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* ---- what it says ---- */

static int take_words(struct crashing *c) {
    const struct crash_points_spec *s = &c->scenario->job.crash;
    static const char place[] = "{shared}";
    struct err err;
    for (size_t i = 0; i < s->deaths_n; i++)
        for (int d = 0; d < CRASH_DEATHS_N; d++)
            if (str_eq(s->deaths[i], crash_death_names[d]))
                c->deaths |= 1U << d;
    for (size_t i = 0; i < s->fs_n; i++) {
        unsigned models = 0;
        if (disk_models_parse(s->fs[i], &models, &err) != 0)
            return verb_broken(c->arguments->verb, &err);
        c->models |= models;
    }
    unsigned shared = 0;
    if (disk_models_parse(s->shared_fs ? s->shared_fs : "nfs", &shared, &err) != 0)
        return verb_broken(c->arguments->verb, &err);
    c->shared_model = (unsigned)__builtin_ffs((int)shared);
    c->result_asked = s->result;
    if (s->result && str_starts(s->result, place))
        c->result_asked =
            arena_printf(&c->arena, "{dir}/disks/shared%s", s->result + strlen(place));
    if (s->loss_band)
        c->band = s->loss_band / 100.0;
    c->states_max = s->max_states;
    c->budget_ns = s->budget_ns;
    return 0;
}

static int load(struct crashing *c, const char *file) {
    const char **sets = arguments_sets(c->arguments, &c->arena);
    struct diagnostics d = {0};
    struct sweep *points = scenario_sweep(file, (const char *const *)sets, NULL);
    size_t runs = points->n;
    sweep_free(points);
    c->scenario = plan_load(file, (const char *const *)sets, &d);
    if (c->scenario)
        c->plan = plan_make(c->scenario, c->scenario->seed, &d);
    fputs(buf_str(&d.out), stderr);
    diagnostics_fini(&d);
    if (!c->plan)
        return EXIT_USAGE_ERROR;
    if (runs > 1)
        return verb_usage_error(c->arguments->verb,
                                "%s makes %zu runs of its sweep: choose one, with --set KEY=VALUE",
                                file, runs);
    return 0;
}

static int check_host(struct crashing *c, const char *file) {
    struct err err;
    int r = plan_check_host(c->plan, &err);
    if (r == 0)
        return 0;
    fprintf(stderr, "rankquake crashpoints: %s: %s\n", file, err.msg);
    return r == -ENOENT ? EXIT_USAGE_ERROR : EXIT_SKIPPED;
}

int crashing_take_scenario(struct crashing *c) {
    static const char *const not_here[] = {"--dir", "--copy", NULL};
    const struct arguments *a = c->arguments;
    char bin[PATH_MAX];
    for (const char *const *o = not_here; *o; o++)
        if (arguments_value(a, *o))
            return verb_usage_error(a->verb,
                                    "%s is about a command; of a scenario {shared} and "
                                    "each {disk} are recorded",
                                    *o);
    if (a->files_n > 1)
        return verb_usage_error(a->verb, "one scenario at a time, not %s and %s", a->files[0],
                                a->files[1]);
    int code = load(c, a->files[0]);
    code = code ? code : check_host(c, a->files[0]);
    if (code)
        return code;
    const char **v = arena_array(&c->arena, const char *, 6);
    v[0] = arena_printf(&c->arena, "%s/rankquake", file_own_folder(bin, sizeof(bin)));
    v[1] = "start";
    v[2] = "--run";
    v[3] = "{dir}";
    c->words = v;
    c->placed = true;
    return take_words(c);
}

/* What was made of its file, its includes and what was set: each start loads that. */
int crashing_write_scenario(struct crashing *c) {
    BUF_FINI struct buf text = {0};
    struct err err;
    scenario_print(c->scenario, &text);
    if (folder_write(&c->out, "scenario.yaml", text.data, text.len, &err) != 0)
        return verb_broken(c->arguments->verb, &err);
    ((const char **)(uintptr_t)c->words)[4] =
        arena_printf(&c->arena, "%s/scenario.yaml", c->out.path);
    return 0;
}

/* ---- its disks ---- */

const char *crashing_disks(const struct crashing *c, const char *dir, char ret[PATH_MAX]) {
    snprintf(ret, PATH_MAX, "%s%s", dir, c->scenario ? "/disks" : "");
    return ret;
}

static int make(const char *path, mode_t mode, struct err *err) {
    if (mkdir(path, mode) != 0 || chmod(path, mode) != 0)
        return err_set(err, -errno, "make %s", path);
    return 0;
}

/* As a cluster makes them. The store's disk is no node's, and not looked at. */
int crashing_make_disks(const struct crashing *c, const char *dir, struct err *err) {
    char disks[PATH_MAX];
    if (!c->scenario)
        return 0;
    int r = make(crashing_disks(c, dir, disks), 0755, err);
    for (size_t i = 0; i <= c->plan->nodes_n && r == 0; i++) {
        const struct plan_node *n = i ? &c->plan->nodes[i - 1] : NULL;
        char *path = mem_printf("%s/%s", disks, n ? n->name : "shared");
        r = n && n->is_store ? 0 : make(path, 0777, err);
        free(path);
    }
    return r;
}

/* ---- how it ended ---- */

void crashing_read_end(struct resumption *o) {
    int code = WIFEXITED(o->status) ? WEXITSTATUS(o->status) : -1;
    if (o->how == ATTEMPT_FAILED && code == EXIT_INCONCLUSIVE)
        o->how = ATTEMPT_HUNG; /* by the scenario's own limits */
    if (o->how == ATTEMPT_FAILED && (code == EXIT_BROKEN || code == EXIT_SKIPPED) &&
        strstr(o->why, "rankquake start: "))
        o->how = ATTEMPT_BROKEN;
}
