#include "harness/run/engine.h"

#include "agent/base/str.h"
#include "agent/sys/clock.h"
#include "agent/sys/file.h"
#include "agent/sys/process.h"
#include "harness/run/programs.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A command of the user's, again and again. It is not waited for: it is a child beside the loop,
 * and its end or its deadline is an event as any other. */

enum { ANSWER_MAX = 1 << 16, VALUE_SHOWN = 160 };

struct asked {
    struct probes *owner;
    const struct own_probe *probe;
    struct node *node; /* NULL: on the host */
    struct process process;
    int out;
    bool late;
    int64_t since_ns;
    struct buf answer;
    struct loop_source *on_time, *on_out, *on_end;
};

struct probes {
    struct engine *engine;
    struct asked *v;
    size_t n;
    int64_t steady_ns;
    char cwd[4096];
};

/* ---- an answer ---- */

static void stop_watching(struct asked *a) {
    a->on_out = loop_source_free(a->on_out);
    a->on_end = loop_source_free(a->on_end);
    process_close(&a->process);
    file_close(&a->out);
}

static void record(struct asked *a, bool ok, const char *error) {
    struct engine *e = a->owner->engine;
    struct json_writer *w = engine_record(e, SOURCE_USER, "answer");
    const char *said = buf_str(&a->answer);
    size_t n = strlen(said);
    while (n && strchr(" \t\r\n", said[n - 1]))
        n--;
    if (a->node)
        json_put_string(w, "node", a->probe->on);
    json_put_string(w, "probe", a->probe->name);
    json_put_bool(w, "ok", ok);
    json_put_stringn(w, "value", said, n < VALUE_SHOWN ? n : VALUE_SHOWN);
    if (error)
        json_put_string(w, "error", error);
    json_put_i64(w, "took_ns", clock_monotonic_ns() - a->since_ns);
    engine_recorded(e);
}

static void next(struct asked *a) {
    loop_timer_at(a->on_time, a->since_ns + a->probe->every_ns);
}

static bool read_out(struct asked *a) {
    char block[4096];
    ssize_t n = read(a->out, block, sizeof(block));
    if (n > 0 && a->answer.len < ANSWER_MAX)
        buf_put(&a->answer, block, (size_t)n);
    if (n == 0)
        a->on_out = loop_source_free(a->on_out);
    return n > 0;
}

static void on_out(void *arg, int fd, int what) {
    (void)fd, (void)what;
    read_out(arg);
}

static void on_end(void *arg, int fd, int what) {
    (void)fd, (void)what;
    struct asked *a = arg;
    char text[64], why[160] = "";
    int status = 0;
    kill(-a->process.pid, SIGKILL); /* what it leaves running; the number is its own until reaped */
    while (a->answer.len < ANSWER_MAX && read_out(a))
        ;
    int r = process_reap(&a->process, 0, &status);
    if (a->late)
        snprintf(why, sizeof(why), "no answer within %lld ms",
                 (long long)(a->probe->within_ns / 1000000));
    else if (r < 0)
        snprintf(why, sizeof(why), "nobody knows how it ended");
    else if (status)
        snprintf(why, sizeof(why), "it ended with %s",
                 process_status_text(status, text, sizeof(text)));
    stop_watching(a);
    while (a->answer.len && strchr(" \t\r\n", a->answer.data[a->answer.len - 1]))
        a->answer.data[--a->answer.len] = '\0';
    bool fits = !*why && tolerance_fits(a->probe->tolerance, buf_str(&a->answer));
    if (!*why && !fits)
        snprintf(why, sizeof(why), "not within %.100s", a->probe->tolerance);
    next(a); /* before the record, whose listener may end it all */
    record(a, fits, *why ? why : NULL);
}

/* ---- a question ---- */

struct place_to_be {
    int pidfd;
    const char *cwd;
};

/* In the child: into the node, but for its pids, which only a further child could have. */
static int go(void *arg) {
    const struct place_to_be *to = arg;
    if (to->pidfd < 0)
        return 0;
    if (setns(to->pidfd, CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC) != 0)
        return -errno;
    return chdir(to->cwd) != 0 && chdir("/") != 0 ? -errno : 0;
}

static int spawn(struct asked *a, struct err *err) {
    struct engine *e = a->owner->engine;
    struct target first = {.pidfd = -1};
    int ends[2];
    bool apart = e->plan->isolation != ISOLATION_PROCESSES;
    if (a->node && !node_is_on(a->node))
        return err_say(err, -ESRCH, "%s is off", a->probe->on);
    if (a->node && apart)
        node_target(a->node, &first);
    struct places places = {.shared = cluster_shared_dir(e->cluster),
                            .disk = a->node ? node_disk_dir(a->node) : "",
                            .out = e->spec->dir,
                            .node = a->node ? a->probe->on : "",
                            .tmp = a->node ? node_tmp_dir(a->node) : "/tmp"};
    struct arena arena = {0};
    struct place_to_be to = {first.pidfd, a->owner->cwd};
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(err, -errno, "make a pipe");
    FILE_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    FILE_CLOSE int out = ends[1];
    const int fds[] = {null, out, null};
    const struct process_spawn s = {
        .argv = placeholders_fill_all(&arena, a->probe->cmd, a->probe->cmd_n, &places),
        .fds = fds,
        .group = true,
        .death_signal = SIGKILL,
        .keep = &to.pidfd,
        .keep_n = to.pidfd >= 0,
        .in_child = go,
        .in_child_arg = &to};
    a->out = ends[0];
    fcntl(a->out, F_SETFL, O_NONBLOCK);
    int r = process_spawn(&s, &a->process, err);
    arena_fini(&arena);
    if (r < 0)
        file_close(&a->out);
    return r;
}

static void ask(struct asked *a) {
    struct err err = {0};
    struct loop *l = a->owner->engine->loop;
    buf_clear(&a->answer);
    a->late = false;
    a->since_ns = clock_monotonic_ns();
    if (spawn(a, &err) < 0) {
        next(a);
        record(a, false, err.msg);
        return;
    }
    a->on_out = loop_fd(l, a->out, LOOP_READ, on_out, a);
    a->on_end = loop_fd(l, a->process.pidfd, LOOP_READ, on_end, a);
    loop_timer_at(a->on_time, a->since_ns + a->probe->within_ns);
}

/* Its turn has come, or the answer is too late: then its end follows. */
static void on_time(void *arg, int64_t now) {
    struct asked *a = arg;
    if (a->on_end) {
        a->late = true;
        kill(-a->process.pid, SIGKILL);
    } else if (!a->probe->until_ns || now < a->owner->steady_ns + a->probe->until_ns) {
        ask(a);
    }
}

/* ---- the whole ---- */

struct probes *probes_new(struct engine *e) {
    const struct scenario *s = e->plan->scenario;
    if (!s->probes_n)
        return NULL;
    struct probes *p = calloc(1, sizeof(*p));
    struct asked *v = calloc(s->probes_n, sizeof(*v));
    if (!p || !v)
        abort(); /* out of memory */
    *p = (struct probes){.engine = e, .v = v, .n = s->probes_n, .steady_ns = clock_monotonic_ns()};
    if (!getcwd(p->cwd, sizeof(p->cwd)))
        str_copy(p->cwd, sizeof(p->cwd), "/");
    for (size_t i = 0; i < p->n; i++) {
        v[i] =
            (struct asked){.owner = p, .probe = &s->probes[i], .process = PROCESS_NONE, .out = -1};
        v[i].node = v[i].probe->on ? cluster_node(e->cluster, v[i].probe->on) : NULL;
        v[i].on_time = loop_timer(e->loop, on_time, &v[i]);
        loop_timer_at(v[i].on_time, p->steady_ns);
    }
    return p;
}

struct probes *probes_free(struct probes *p) {
    for (size_t i = 0; p && i < p->n; i++) {
        struct asked *a = &p->v[i];
        if (a->on_end) {
            kill(-a->process.pid, SIGKILL);
            process_reap(&a->process, 1000000000, NULL);
        }
        stop_watching(a);
        loop_source_free(a->on_time);
        buf_fini(&a->answer);
    }
    if (p)
        free(p->v);
    free(p);
    return NULL;
}
