#include "harness/plan/features.h"

#include "base/str.h"
#include "base/sys/namespace.h"
#include "base/sys/process.h"
#include "faults/need.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t COMMAND_NS = 10000000000;

static int check_machine(const char *name, struct err *err) {
    struct utsname u;
    if (uname(&u) == 0 && str_eq(u.machine, name))
        return 0;
    return err_say(err, -ENOTSUP, "this host is %s", u.machine);
}

static int check_arm64(const struct plan *p, const char *argument, struct err *err) {
    return check_machine("aarch64", err);
}

static int check_x86_64(const struct plan *p, const char *argument, struct err *err) {
    return check_machine("x86_64", err);
}

/* What it prints is nobody's business, how it ends is. */
static int check_command(const struct plan *p, const char *argument, struct err *err) {
    const char *const argv[] = {"/bin/sh", "-c", argument, NULL};
    struct process child = PROCESS_NONE;
    char text[64];
    int status = 0, null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct process_spawn s = {.argv = argv,
                              .fds = (const int[]){null, null, null},
                              .group = true,
                              .death_signal = SIGKILL};
    int r = process_spawn(&s, &child, err);
    if (null >= 0)
        close(null);
    if (r < 0)
        return r;
    r = process_reap(&child, COMMAND_NS, &status);
    if (r == -ETIME) {
        kill(-child.pid, SIGKILL);
        process_reap(&child, -1, NULL);
    }
    process_close(&child);
    if (r == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return r == 0 ? err_say(err, -ENOTSUP, "it ends with %s",
                            process_status_text(status, text, sizeof(text)))
                  : err_say(err, -ENOTSUP, "it has not ended within 10 s");
}

static int check_cpus(const struct plan *p, const char *argument, struct err *err) {
    int64_t want;
    long have = sysconf(_SC_NPROCESSORS_ONLN);
    if (!str_to_i64(argument, 1, 100000, &want))
        return err_say(err, -EINVAL, "write a whole number, as in cpus 4");
    return have >= want ? 0
                        : err_say(err, -ENOTSUP, "this host has %ld processor%s", have,
                                  have == 1 ? "" : "s");
}

static int check_program(const struct plan *p, const char *argument, struct err *err) {
    ARENA_FINI struct arena a = {0};
    const char *path = plan_path(&p->scenario->job),
               *found = plan_find_program(p, &a, argument, path);
    return found ? 0
                 : err_say(err, -ENOTSUP, "there is no program %s in PATH (%s)", argument, path);
}

static int check_etcd(const struct plan *p, const char *argument, struct err *err) {
    return check_program(p, "etcd", err) == 0
               ? 0
               : err_say(err, -ENOTSUP, "it is not installed here; apt install etcd-server");
}

static int check_gpu(const struct plan *p, const char *argument, struct err *err) {
    return p->devices_n ? 0
                        : err_say(err, -ENOTSUP, "this host has none that can be used: %s",
                                  p->no_devices ? p->no_devices : "the driver lists none");
}

static int check_namespaces(const struct plan *p, const char *argument, struct err *err) {
    if (p->scenario->cluster.isolation == ISOLATION_PROCESSES)
        return err_say(err, -ENOTSUP, "nodes are to be processes (cluster.isolation)");
    struct err why;
    return namespace_check(&why) == 0 ? 0 : err_say(err, -ENOTSUP, "%s", why.msg);
}

static int check_ptrace(const struct plan *p, const char *argument, struct err *err) {
    struct err why;
    return fault_needs_check(FAULT_NEEDS_TRACE, &why) == 0 ? 0
                                                           : err_say(err, -ENOTSUP, "%s", why.msg);
}

static int check_root(const struct plan *p, const char *argument, struct err *err) {
    return geteuid() == 0 ? 0 : err_say(err, -ENOTSUP, "you are another user; use sudo");
}

static int check_torchrun(const struct plan *p, const char *argument, struct err *err) {
    return check_program(p, "torchrun", err);
}

const struct feature features[] = {
    {"arm64", NULL, "a processor of this kind", check_arm64},
    {"command", "COMMAND", "a command of yours, run by sh within 10 s, ends with 0", check_command},
    {"cpus", "N", "at least this many processors", check_cpus},
    {"etcd", NULL, "an etcd that can be started", check_etcd},
    {"gpu", NULL, "an NVIDIA GPU that can be used", check_gpu},
    {"namespaces", NULL, "nodes can be made of namespaces", check_namespaces},
    {"program", "NAME", "a program in the PATH of the job", check_program},
    {"ptrace", NULL, "one process may control another", check_ptrace},
    {"root", NULL, "the user is root", check_root},
    {"torchrun", NULL, "torchrun in the PATH of the job", check_torchrun},
    {"x86-64", NULL, "a processor of this kind", check_x86_64},
    {0},
};

const char *features_command(const char *text) {
    static const char name[] = "command ";
    return str_starts(text, name) ? text + strlen(name) + strspn(text + strlen(name), " ") : NULL;
}

/* "cpus 4": the feature, and what stands behind its name; NULL: there is none of that name. */
static const struct feature *find(const char *text, const char **ret_argument) {
    size_t n = strcspn(text, " ");
    *ret_argument = text[n] ? text + n + 1 + strspn(text + n + 1, " ") : "";
    for (const struct feature *f = features; f->name; f++)
        if (strlen(f->name) == n && strncmp(f->name, text, n) == 0)
            return f;
    return NULL;
}

static void unknown(struct plan *p, const char *text, struct diagnostics *d) {
    const char *names[32];
    BUF_FINI struct buf list = {0};
    size_t n = 0;
    for (const struct feature *f = features; f->name; f++) {
        buf_printf(&list, "%s%s", n ? ", " : "", f->name);
        names[n++] = f->name;
    }
    names[n] = NULL;
    const char *near = str_nearest(text, names);
    diagnostics_add(d, p->scenario->features_place,
                    "feature: there is no feature \"%s\"; %s%s%sthey are %s", text,
                    near ? "did you mean \"" : "", near ? near : "", near ? "\"? Or else " : "",
                    buf_str(&list));
}

void features_make(struct plan *p, struct diagnostics *d) {
    const struct scenario *s = p->scenario;
    for (size_t i = 0; i < s->features_n; i++) {
        const char *argument;
        const struct feature *f = find(s->features[i], &argument);
        struct err err;
        if (!f)
            unknown(p, s->features[i], d);
        else if (f->argument && !*argument)
            diagnostics_add(d, s->features_place, "feature: %s needs a word behind it: %s %s",
                            f->name, f->name, f->argument);
        else if (!f->argument && *argument)
            diagnostics_add(d, s->features_place, "feature: %s takes no word behind it, not \"%s\"",
                            f->name, argument);
        else if (f->check == check_cpus && check_cpus(p, argument, &err) == -EINVAL)
            diagnostics_add(d, s->features_place, "feature: %s: %s", s->features[i], err.msg);
    }
}

/* What a scheduler in the nodes is made of. */
static int check_scheduler(const struct plan *p, struct err *err) {
    ARENA_FINI struct arena a = {0};
    const char *path = arena_printf(&a, "%s:" FAULT_SCHEDULER_PATH, plan_path(&p->scenario->job));
    struct err why = {0};
    if (check_root(p, "", &why) < 0 || check_namespaces(p, "", &why) < 0)
        return err_say(err, -ENOTSUP, "cluster.scheduler: %s", why.msg);
    for (const char *const *name = fault_scheduler_programs; *name; name++)
        if (!plan_find_program(p, &a, *name, path))
            return err_say(err, -ENOTSUP,
                           "cluster.scheduler: %s is not installed here; " FAULT_SCHEDULER_FIX,
                           *name);
    return 0;
}

int features_check(const struct plan *p, struct err *err) {
    const struct scenario *s = p->scenario;
    int r = s->cluster.scheduler ? check_scheduler(p, err) : 0;
    if (r)
        return r;
    for (size_t i = 0; i < s->features_n; i++) {
        const char *argument;
        struct err why = {0};
        const struct feature *f = find(s->features[i], &argument);
        if (f && f->check == check_command && p->untrusted)
            continue; /* it is started, and may do anything */
        if (f && f->check(p, argument, &why) != 0)
            return err_say(err, -ENOTSUP, "feature %s: %s", s->features[i], why.msg);
    }
    return 0;
}
