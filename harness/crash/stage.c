#include "harness/crash/stage.h"

#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/descriptors.h"
#include "base/sys/file.h"
#include "base/sys/mount.h"
#include "base/sys/namespace.h"
#include "base/sys/netlink.h"
#include "base/sys/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char shm[] = "/dev/shm", own_events[] = STAGE_EVENTS, own_tmp[] = "/dev/shm/.tmp";
static const int64_t end_ns = INT64_C(10000000000);

/* ---- inside: what the job sees ---- */

static int mount_memory(const char *path, mode_t mode, struct err *err) {
    char options[32];
    snprintf(options, sizeof(options), "mode=%o", (unsigned)mode);
    if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options) != 0)
        return err_set(err, -errno, "mount a tmpfs on %s", path);
    return 0;
}

/* The socket's folder is shown where nothing is laid over it. */
static int arrange_shm(const struct stage_spec *s, int events, struct err *err) {
    char source[64];
    if (!file_exists(shm))
        return 0;
    int r = mount_memory(shm, 01777, err);
    if (r == 0 && (mkdir(own_tmp, 01777) != 0 || mkdir(own_events, 0755) != 0))
        r = err_set(err, -errno, "make %s", own_tmp);
    if (r == 0) {
        snprintf(source, sizeof(source), "/proc/self/fd/%d", events);
        setenv("TMPDIR", own_tmp, 1);
        r = events < 0 ? 0 : mount_bind(source, own_events, err);
    }
    if (r == 0 && s->events) {
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%s/%s", own_events, str_base(s->events));
        setenv("RANKQUAKE_EVENTS", path, 1);
    }
    return r;
}

/* Below it, with the layer, the job may do what it likes. Where there can be none, in the root for
 * example, the job works where it is. */
static void lay_over(const char *dir) {
    struct err ignored;
    if (!str_eq(dir, "/"))
        mount_layer(dir, &ignored);
}

/* The nearest folder above it that is there. */
static void find_above(const char *path, char ret[PATH_MAX]) {
    snprintf(ret, PATH_MAX, "%s", path);
    do {
        char *slash = strrchr(ret, '/');
        slash[slash == ret] = '\0';
    } while (!file_exists(ret));
}

static int arrange_dir(const struct stage_spec *s, struct err *err) {
    char above[PATH_MAX];
    lay_over(s->cwd);
    if (!file_exists(s->dir)) {
        find_above(s->dir, above);
        size_t n = strlen(s->cwd);
        if (strncmp(above, s->cwd, n) != 0 || (above[n] && above[n] != '/'))
            lay_over(above);
        int r = file_make_dirs(s->dir, 0755, err);
        if (r)
            return err_wrap(err, "make it yourself, it may stay empty: ");
    }
    return mount_memory(s->dir, 0755, err);
}

static int arrange(const struct stage_spec *s, struct err *err) {
    char folder[PATH_MAX] = "";
    if (s->events)
        snprintf(folder, sizeof(folder), "%.*s", (int)(str_base(s->events) - s->events), s->events);
    FILE_CLOSE int events = *folder ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    int r = mount_make_private(err);
    if (r == 0)
        r = mount_proc(err);
    if (r == 0 && s->network) {
        FILE_CLOSE int nl = netlink_open_route(err);
        r = nl < 0 ? nl : netlink_link_up(nl, 1, err);
    }
    if (r == 0)
        r = arrange_shm(s, events, err);
    return r ? r : arrange_dir(s, err);
}

/* ---- inside: the job ---- */

struct watch_install {
    int to;
    const struct call_watch *watch;
};

static int install_watch(void *arg) {
    const struct watch_install *w = arg;
    if (!w->watch)
        return 0;
    fcntl(w->to, F_SETFD, FD_CLOEXEC);
    return call_watch_install(w->to, w->watch);
}

static int start_job(const struct stage_spec *s, int watch, struct process *ret, struct err *err) {
    struct watch_install w = {watch, s->watch};
    int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
    none = none >= 0 && none < 3 ? fcntl(none, F_DUPFD_CLOEXEC, 3) : none;
    const int fds[] = {none, s->output, s->output};
    struct process_spawn spawn = {.argv = s->argv,
                                  .dir = s->cwd,
                                  .fds = fds,
                                  .keep = &watch,
                                  .keep_n = s->watch ? 1 : 0,
                                  .session = true,
                                  .in_child = install_watch,
                                  .in_child_arg = &w};
    int r = process_spawn_reporting(&spawn, -1, 0, ret, err);
    file_close(&none);
    return r;
}

/* Ended: 1; the limit: 0; who has started the stage is gone: -1. */
static int wait_job(const struct process *job, int above, int64_t until_ns) {
    struct pollfd p[] = {{.fd = job->pidfd, .events = POLLIN}, {.fd = above, .events = POLLIN}};
    for (;;) {
        int64_t left_ns = until_ns ? until_ns - clock_monotonic_ns() : 1000000000;
        if (left_ns <= 0)
            return 0;
        int n = poll(p, 2, (int)(left_ns / 1000000) + 1);
        if (n > 0)
            return p[1].revents ? -1 : 1;
    }
}

static void sum_result(const struct stage_spec *s, char ret[65]) {
    BUF_FINI struct buf text = {0};
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s%s%s", *s->result == '/' ? "" : s->cwd,
             *s->result == '/' ? "" : "/", s->result);
    if (file_read_plain(path, (size_t)1 << 30, &text, NULL) == 0)
        sha256_of(text.data ? text.data : "", text.len, ret);
}

/* Who records needs the directory as it is seen here. */
static int send_dir(const struct stage_spec *s, int watch, struct err *err) {
    const char *path = s->recorded ? s->recorded : s->dir;
    FILE_CLOSE int dir = s->watch ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (!s->watch)
        return 0;
    int r = dir < 0 ? -errno : descriptors_send(watch, "D", 1, &dir, 1, 0);
    return r ? err_set(err, r, "hand on %s", path) : 0;
}

/* What did not exec says 127 or 126. */
static void play(const struct stage_spec *s, int watch, int above, struct stage_end *end) {
    struct process job = PROCESS_NONE;
    int64_t since_ns = clock_monotonic_ns();
    int r = s->fill ? s->fill(s->arg, s->dir, &end->err) : 0;
    if (r == 0)
        r = send_dir(s, watch, &end->err);
    if (r == 0)
        r = start_job(s, watch, &job, &end->err);
    if (r) {
        end->err.code = r;
        return;
    }
    int how = wait_job(&job, above, s->limit_ns ? since_ns + s->limit_ns : 0);
    end->late = how == 0;
    if (how == 1)
        process_reap(&job, -1, &end->status);
    end->ran_ns = clock_monotonic_ns() - since_ns;
    process_end_descendants(end_ns);
    process_close(&job);
    if (how < 0)
        return;
    if (s->sum && s->sum(s->arg, s->dir, end->sum) != 0)
        end->sum[0] = '\0';
    if (s->result)
        sum_result(s, end->result);
}

/* ---- the processes of a stage ---- */

struct stage_child {
    const struct stage_spec *spec;
    int report, watch, above;
};

static void tell(int report, const struct stage_end *end) {
    if (write(report, end, sizeof(*end)) != (ssize_t)sizeof(*end))
        _exit(1);
}

/* The first process of the namespaces: with it all ends. */
static void be_first(const struct stage_child *c) {
    struct stage_end end = {0};
    namespace_die_with_parent();
    int r = arrange(c->spec, &end.err);
    if (r)
        end.err.code = r;
    else
        play(c->spec, c->watch, c->above, &end);
    tell(c->report, &end);
    _exit(0);
}

static void be_above(const struct stage_child *c) {
    struct stage_end end = {0};
    int pidfd = -1, flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC;
    namespace_die_with_parent();
    int r = namespace_enter(&end.err);
    namespace_die_with_parent();
    pid_t pid =
        r ? r : namespace_fork(flags | (c->spec->network ? CLONE_NEWNET : 0), &pidfd, &end.err);
    if (pid == 0)
        be_first(c);
    if (pid < 0) {
        end.err.code = (int)pid;
        tell(c->report, &end);
        _exit(1);
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    _exit(0);
}

/* Without namespaces: lives until all below it has ended, and removes the directory. */
static void be_keeper(const struct stage_child *c) {
    struct stage_end end = {0};
    process_adopt_orphans();
    file_remove_tree(c->spec->dir, NULL);
    int r = file_make_dirs(c->spec->dir, 0755, &end.err);
    if (c->spec->events)
        setenv("RANKQUAKE_EVENTS", c->spec->events, 1);
    if (r == 0)
        play(c->spec, c->watch, c->above, &end);
    file_remove_tree(c->spec->dir, NULL);
    tell(c->report, &end);
    _exit(0);
}

static void be_child(const struct stage_child *c) {
    signal_reset();
    signal(SIGINT, SIG_IGN); /* a stage ends as who has started it wants it to */
    setsid();
    if (c->spec->namespaces)
        be_above(c);
    be_keeper(c);
}

int stage_start(const struct stage_spec *s, struct crash_stage *ret, struct err *err) {
    int report[2], watch[2] = {-1, -1};
    *ret = STAGE_NONE;
    FILE_CLOSE int above = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (above < 0 || pipe2(report, O_CLOEXEC) != 0)
        return err_set(err, -errno, "make a pipe");
    if (s->watch && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, watch) != 0)
        return err_set(err, -errno, "make a socket pair");
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(report[0]);
        file_close(&watch[0]);
        be_child(&(struct stage_child){s, report[1], watch[1], above});
    }
    close(report[1]);
    file_close(&watch[1]);
    ret->report = report[0];
    ret->watch = watch[0];
    int r = pid < 0 ? err_set(err, -errno, "fork") : process_open(pid, &ret->process, err);
    if (r) {
        file_close(&ret->report);
        file_close(&ret->watch);
    }
    return r;
}

int stage_take_dir(const struct crash_stage *s) {
    return call_watch_take(s->watch);
}

void stage_take(struct crash_stage *s, struct stage_end *ret) {
    *ret = (struct stage_end){0};
    if (read(s->report, ret, sizeof(*ret)) != (ssize_t)sizeof(*ret)) {
        *ret = (struct stage_end){0};
        err_say(&ret->err, -ECHILD, "it was killed from outside");
    }
    process_reap(&s->process, end_ns, NULL);
    process_close(&s->process);
    file_close(&s->report);
    file_close(&s->watch);
}

/* Who is above the job sees its end, and leaves when nothing is left of it. */
void stage_kill(struct crash_stage *s) {
    process_signal_descendants(s->process.pid, SIGKILL);
    if (process_wait_end(&s->process, end_ns) != 0)
        process_signal(&s->process, SIGKILL);
}

/* ---- whether it can be had ---- */

static int fill_nothing(void *arg, const char *path, struct err *err) {
    (void)arg;
    return access(path, W_OK) == 0 ? 0 : err_set(err, -errno, "write into %s", path);
}

int stage_check(struct err *err) {
    static const char *const argv[] = {"true", NULL};
    struct crash_stage stage;
    struct stage_end end;
    struct stage_spec s = {.argv = argv,
                           .cwd = "/",
                           .dir = "/dev/shm/rankquake",
                           .namespaces = true,
                           .network = true,
                           .output = -1,
                           .fill = fill_nothing};
    int r = stage_start(&s, &stage, err);
    if (r)
        return r;
    process_wait_end(&stage.process, end_ns);
    stage_take(&stage, &end);
    if (end.err.code == 0)
        return 0;
    return err_say(err, -ENOTSUP, "%s", end.err.msg);
}
