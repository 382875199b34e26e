#include "harness/cluster/node_program.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/rights.h"
#include "faults/mechanism/clock_page.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- what it is given ---- */

const char *const *node_program_strings(struct arena *a, const struct json *list) {
    size_t n = 0;
    const char **v = arena_array(a, const char *, (list ? list->length : 0) + 1);
    json_each(it, list) v[n++] = json_string(it, "");
    return v;
}

static bool is_said(const char *const *env, const char *entry) {
    size_t name = strcspn(entry, "=") + 1;
    for (; *env; env++)
        if (strncmp(*env, entry, name) == 0)
            return true;
    return false;
}

/* Of a batch system's step, which the helper is and its program is not. */
static bool is_of_step(const char *entry) {
    return str_starts(entry, "SLURM") || str_starts(entry, "PMI") || str_starts(entry, "SRUN_");
}

const char *const *node_program_env_of_host(struct arena *a, const struct json *list,
                                            const struct host_clock *wall) {
    const char *const *said = node_program_strings(a, list);
    size_t n = 0, own = 0;
    while (said[n])
        n++;
    while (environ[own])
        own++;
    const char **v = arena_array(a, const char *, n + own + 1);
    memcpy(v, said, n * sizeof(*v));
    for (size_t i = 0; i < own; i++)
        if (!is_said(said, environ[i]) && !is_of_step(environ[i]))
            v[n++] = environ[i];
    return wall->page < 0 ? v : clock_page_env(a, v, wall->object, wall->path);
}

/* ---- its start ---- */

/* argv[0] is looked for where the program's own PATH says. */
static void take_path(const char *const *env) {
    for (; *env; env++)
        if (str_starts(*env, "PATH="))
            setenv("PATH", *env + strlen("PATH="), 1);
}

/* Last of all: what is done in the child before may need them. */
static int give_up_rights(void *arg) {
    const struct process_spawn *inner = arg;
    int r = inner->in_child ? inner->in_child(inner->in_child_arg) : 0;
    return r ? r : rights_drop(rights_of_programs);
}

/* The very last: from here on the child waits for whoever watches it. */
struct watched_child {
    const struct process_spawn *inner;
    int to;
    const struct call_watch *watch;
};

static int begin_watched(void *arg) {
    const struct watched_child *w = arg;
    int r = w->inner->in_child ? w->inner->in_child(w->inner->in_child_arg) : 0;
    r = r ? r : call_watch_install(w->to, w->watch);
    close(w->to);
    return r;
}

/* Its exec, and the report of one that fails, are calls like others: they are let go on here. */
static int spawn_attended(const struct process_spawn *s, int ends[2], struct process *ret,
                          int *ret_watch, struct err *err) {
    int report[2] = {-1, -1};
    struct process_failure failure = {0};
    int r = process_report_pipe(report);
    if (r)
        return err_set(err, r, "make a pipe");
    r = process_spawn_reporting(s, report[1], 0, ret, err);
    file_close(&report[1]);
    file_close(&ends[1]);
    if (r == 0) {
        struct pollfd sent = {.fd = ends[0], .events = POLLIN};
        while (poll(&sent, 1, -1) < 0 && errno == EINTR)
            ;
        *ret_watch = call_watch_take(ends[0]);
        call_watch_attend(*ret_watch, report[0]);
    }
    if (r == 0 && read(report[0], &failure, sizeof(failure)) == sizeof(failure)) {
        process_reap(ret, -1, NULL);
        process_close(ret);
        file_close(ret_watch);
        r = err_set(err, failure.code, "execute %s", s->argv[0]);
    }
    file_close(&report[0]);
    return r;
}

static int spawn_watched(struct process_spawn *s, const struct call_watch *watch,
                         struct process *ret, int *ret_watch, struct err *err) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return err_set(err, -errno, "make a socket pair");
    const struct process_spawn inner = *s;
    struct watched_child child = {.inner = &inner, .to = ends[1], .watch = watch};
    s->in_child = begin_watched;
    s->in_child_arg = &child;
    s->keep = &ends[1];
    s->keep_n = 1;
    int r = spawn_attended(s, ends, ret, ret_watch, err);
    file_close(&ends[0]);
    file_close(&ends[1]);
    return r;
}

int node_program_start(const struct process_spawn *spawn, bool privileged,
                       const struct call_watch *watch, struct process *ret, int *ret_watch,
                       struct err *err) {
    struct process_spawn s = *spawn;
    take_path(s.envp);
    if (!privileged) {
        s.in_child = give_up_rights;
        s.in_child_arg = (void *)(uintptr_t)spawn;
    }
    return watch->kinds || watch->numbers_n ? spawn_watched(&s, watch, ret, ret_watch, err)
                                            : process_spawn(&s, ret, err);
}
