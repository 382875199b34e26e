/* Asks whether this host has what a plan needs: programs, Python, devices, an etcd. */
#include "base/http/tls_client.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "harness/plan/features.h"
#include "harness/plan/building.h"
#include "harness/plan/etcd.h"
#include "harness/plan/interpreter.h"
#include "harness/plan/plan.h"
#include "harness/plan/rootfs.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* As the worker's exec will look for it: our folder, then the PATH. */
static enum found look_in_path(const struct plan *p, struct arena *a, const char *name,
                               const char *path, const char **ret_near) {
    char own[PATH_MAX];
    file_own_folder(own, sizeof(own));
    enum found found = rootfs_look(NULL, arena_printf(a, "%s/%s", own, name));
    char **dirs = str_split(a, path, ':', NULL);
    for (size_t i = 0; found != FOUND && dirs[i]; i++) {
        const char *candidate = arena_printf(a, "%s/%s", *dirs[i] ? dirs[i] : ".", name);
        enum found here = rootfs_look(p, candidate);
        if (here < found) {
            found = here;
            *ret_near = candidate;
        }
    }
    return found;
}

/* As job.env has it, else the harness's own environment; NULL: neither. */
static const char *variable(const struct job_spec *j, const char *name) {
    for (size_t i = j->env_n; i-- > 0;)
        if (str_eq(j->env[i].key, name))
            return j->env[i].value;
    return getenv(name);
}

const char *plan_path(const struct job_spec *j) {
    const char *path = variable(j, "PATH");
    return path ? path : "/usr/local/bin:/usr/bin:/bin";
}

const char *plan_python(const struct job_spec *j, const char *absent) {
    const char *python = variable(j, "PYTHON_EXEC");
    return python && *python ? python : absent;
}

const char *plan_find_program(const struct plan *p, struct arena *a, const char *name,
                              const char *path) {
    if (strchr(name, '/'))
        return rootfs_look(p, name) == FOUND ? arena_strdup(a, name) : NULL;
    for (char **dir = str_split(a, path, ':', NULL); *dir; dir++) {
        const char *file = arena_printf(a, "%s/%s", **dir ? *dir : ".", name);
        if (rootfs_look(p, file) == FOUND)
            return file;
    }
    return NULL;
}

/* A script is given to Python as it stands, so it must be there, and need not be executable. */
static int check_script(const struct plan *p, const char *name, struct err *err) {
    FILE_CLOSE int at = rootfs_open(p, name, 0);
    if (at >= 0)
        return 0;
    return err_say(err, -ENOENT,
                   "job.run: there is no script %s (looked for from the directory "
                   "you are in)",
                   name);
}

static int check_job(const struct plan *p, struct arena *a, struct err *err) {
    const char *name = p->scenario->job.run[0], *near = name, *path = plan_path(&p->scenario->job);
    if (p->scenario->cluster.scheduler)
        return check_script(p, name, err);
    if (strchr(name, '{') || str_eq(name, "-m"))
        return 0; /* a directory that does not exist yet; a module that Python looks for */
    const struct build_spec *build = &p->scenario->job.build;
    if (build->run) {
        TEXTS_FINI struct texts inputs = {0};
        int r = building_inputs(build, &inputs, err);
        if (r || building_makes(build, name))
            return r;
    }
    if (str_ends(name, ".py"))
        return check_script(p, name, err);
    enum found found =
        strchr(name, '/') ? rootfs_look(p, name) : look_in_path(p, a, name, path, &near);
    if (found == FOUND)
        return 0;
    if (found == NOT_EXECUTABLE)
        return err_say(err, -ENOENT,
                       "job.run: %s is not executable; chmod +x it, or put its "
                       "interpreter in front",
                       near);
    const char *where = p->rootfs ? arena_printf(a, " of the nodes, %s", p->rootfs) : "";
    if (strchr(name, '/'))
        return err_say(err, -ENOENT, "job.run: there is no program %s%s%s", name,
                       *where ? " in the root file system" : "", where);
    return err_say(err, -ENOENT,
                   "job.run: there is no program \"%s\" beside rankquake or in PATH (%s)%s%s", name,
                   path, *where ? " in the root file system" : "", where);
}

static int check_own_programs(struct arena *a, struct err *err) {
    static const char *const own[] = {"rankrun", "rankprobe", NULL};
    char folder[PATH_MAX];
    file_own_folder(folder, sizeof(folder));
    for (size_t i = 0; own[i]; i++) {
        const char *path = arena_printf(a, "%s/%s", folder, own[i]);
        if (rootfs_look(NULL, path) != FOUND)
            return err_say(err, -ENOENT, "there is no program %s; `make` builds it", path);
    }
    return 0;
}

/* What the scenario asks for by name; without a word there is nothing to miss. */
static int check_devices(const struct plan *p, struct err *err) {
    const struct cluster_spec *c = &p->scenario->cluster;
    if (!c->has_gpus || (size_t)c->gpus_per_node <= p->devices_n)
        return 0;
    if (p->devices_n)
        return err_say(err, -ENOTSUP,
                       "cluster.gpus_per_node: %d: every node wants %d, this host has %zu (%s)%s%s",
                       c->gpus_per_node, c->gpus_per_node, p->devices_n, p->devices[0].name,
                       p->no_devices ? "; " : "", p->no_devices ? p->no_devices : "");
    return err_say(
        err, -ENOTSUP,
        "cluster.gpus_per_node: %d: this host has no GPU that can be used: %s; leave the "
        "key out to run without",
        c->gpus_per_node, p->no_devices);
}

/* Several processes compute on a device that nodes share. */
static int check_modes(const struct plan *p, struct err *err) {
    for (size_t i = 0; p->scenario->cluster.has_gpus && i < p->devices_n; i++)
        if (p->devices[i].nodes > 1 && !p->devices[i].shareable)
            return err_say(err, -ENOTSUP,
                           "GPU %d (%s) is to be shared by %d nodes, but its compute mode lets one "
                           "process in: nvidia-smi -i %d -c DEFAULT (as root), or "
                           "cluster: {gpus_per_node: 0}",
                           p->devices[i].index, p->devices[i].name, p->devices[i].nodes,
                           p->devices[i].index);
    return 0;
}

static int check_probes(const struct plan *p, struct err *err) {
    struct err why = {0};
    for (size_t i = 0; i < p->scenario->probes_n; i++) {
        const struct own_probe *o = &p->scenario->probes[i];
        if (o->url && str_starts(o->url, "https:") && tls_client_load(&why) < 0)
            return err_say(err, -ENOTSUP, "probe.%s asks by https: %s", o->name, why.msg);
    }
    return 0;
}

int plan_check_host(struct plan *p, struct err *err) {
    ARENA_FINI struct arena a = {0};
    plan_find_commands(p);
    int r = rootfs_check(p, err);
    if (r == 0)
        r = features_check(p, err);
    if (r == 0)
        r = check_job(p, &a, err);
    if (r == 0)
        r = needs_check(p, err);
    if (r == 0)
        r = check_devices(p, err);
    if (r == 0)
        r = check_modes(p, err);
    if (r == 0)
        r = plan_find_launcher(p, err);
    if (r == 0)
        r = etcd_check(p, err);
    if (r == 0)
        r = check_probes(p, err);
    if (r == 0)
        r = check_own_programs(&a, err);
    if (r == 0)
        r = plan_settle(p, err);
    if (r == 0)
        r = rootfs_try(p, err);
    return r;
}
