/* Whether earlier jobs have left workers, or processes that were killed and linger in the kernel. */
#include "harness/preflight/probe.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A worker says in its environment whose it is. One whose agent has gone was adopted by init, or by the
 * first process of a session. */
static bool is_worker(pid_t pid, bool *ret_orphan, const char **ret_run, struct arena *a) {
    BUF_FINI struct buf environment = {0};
    struct process_look look;
    static const char key[] = "TORCHELASTIC_RUN_ID=";
    char path[64];
    if (pid == getpid() || process_look(pid, &look) < 0 || look.state == 'Z')
        return false;
    *ret_orphan = look.parent == 1;
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    if (file_read(path, 1 << 20, &environment, NULL) < 0)
        return false;
    const char *end = environment.data + environment.len;
    for (const char *at = environment.data; at && at < end; at += strlen(at) + 1)
        if (str_starts(at, key)) {
            *ret_run = arena_strdup(a, at + strlen(key));
            return !str_eq(*ret_run, getenv("TORCHELASTIC_RUN_ID")); /* we are one of its own */
        }
    return false;
}

/* It has been killed, and waits in the kernel for something that does not come, as a storage does not
 * that hangs: it holds its ports, its memory and its GPU. */
static bool lingers(pid_t pid) {
    struct process_look look;
    return process_look(pid, &look) == 0 && look.state == 'D' &&
           (process_has_signal(pid, "SigPnd:", SIGKILL) ||
            process_has_signal(pid, "ShdPnd:", SIGKILL));
}

static void put_lingering(struct json_writer *w, const pid_t *all, size_t n) {
    char name[32];
    json_array(w, "lingering");
    for (size_t i = 0; i < n; i++) {
        if (!lingers(all[i]))
            continue;
        json_object(w, NULL);
        json_put_i64(w, "pid", all[i]);
        json_put_string(w, "name", process_name(all[i], name, sizeof(name)));
        json_end_object(w);
    }
    json_end_array(w);
}

static void put_worker(pid_t pid, const char *run, struct json_writer *w) {
    char name[32];
    json_object(w, NULL);
    json_put_i64(w, "pid", pid);
    json_put_string(w, "name", process_name(pid, name, sizeof(name)));
    json_put_string(w, "run", run);
    json_end_object(w);
}

/* Runs that have been told, so that each is told once. */
struct told_runs {
    struct arena arena;
    const char **v;
    size_t n;
};

/* Each that has lost its agent; then, of every other job, one. */
static void put_workers(struct json_writer *w, const pid_t *all, size_t n, bool orphans,
                        struct told_runs *told) {
    json_array(w, orphans ? "workers" : "jobs");
    for (size_t i = 0; i < n; i++) {
        const char *run;
        bool orphan;
        if (!is_worker(all[i], &orphan, &run, &told->arena) || orphan != orphans ||
            (!orphans && str_in(run, told->v)))
            continue;
        told->v[told->n++] = run;
        put_worker(all[i], run, w);
    }
    json_end_array(w);
}

static void look(const struct json *given, struct json_writer *w) {
    struct told_runs told = {0};
    pid_t *all = NULL;
    size_t n = process_list(&all);
    (void)given;
    told.v = arena_array(&told.arena, const char *, 2 * n + 1);
    put_workers(w, all, n, true, &told);
    put_workers(w, all, n, false, &told);
    put_lingering(w, all, n);
    arena_fini(&told.arena);
    free(all);
}

static void ask(struct probing *p) {
    const struct json **v = probe_look_all(p);
    for (size_t i = 0; i < p->n; i++) {
        json_each(x, json_get(v[i], "lingering"))
            probe_fail(p,
                       "%s: process %lld (%s) was killed and lingers in the kernel, with all that "
                       "it holds: look at the storage that it waits for (/proc/%lld/stack)",
                       p->v[i].host, (long long)json_get_i64(x, "pid", 0),
                       json_get_string(x, "name", "?"), (long long)json_get_i64(x, "pid", 0));
        json_each(x, json_get(v[i], "workers"))
            probe_fail(p, "%s: process %lld (%s) is a worker of job %s, and has lost its agent",
                       p->v[i].host, (long long)json_get_i64(x, "pid", 0),
                       json_get_string(x, "name", "?"), json_get_string(x, "run", "?"));
        json_each(x, json_get(v[i], "jobs")) probe_fail(
            p,
            "%s: job %s is at work there (process %lld, %s): two jobs on a host take each "
            "other's processors, ports and GPUs, and what is broken is broken for both",
            p->v[i].host, json_get_string(x, "run", "?"), (long long)json_get_i64(x, "pid", 0),
            json_get_string(x, "name", "?"));
    }
    probe_pass(p, "no worker of another job is there");
}

const struct probe probe_leftovers = {
    .name = "leftovers",
    .text =
        "no workers of other jobs, with an agent or without, and none that was killed and lingers",
    .within_ns = INT64_C(10) * 1000000000,
    .look = look,
    .ask = ask,
};
