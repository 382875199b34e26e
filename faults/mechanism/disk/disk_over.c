#include "faults/mechanism/disk/disk_over.h"

#include "base/sys/file.h"
#include "base/sys/mount.h"
#include "base/sys/namespace.h"
#include "base/sys/process.h"
#include "faults/mechanism/disk/fuse_port.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- where it can be had ---- */

static int enter(struct err *err) {
    int r = namespace_enter_as_oneself(err);
    if (r == 0 && unshare(CLONE_NEWNS) != 0)
        r = err_set(err, -errno, "make a mount namespace");
    return r ? r : mount_make_private(err);
}

static int try_mount(void *arg, struct err *err) {
    (void)arg;
    struct fuse_port port = FUSE_PORT_NONE;
    int r = enter(err);
    r = r ? r : fuse_port_open(&port, 040000, err);
    r = r ? r : fuse_port_attach(port.mount, "/", err);
    fuse_port_close(&port);
    return r;
}

int disk_check(struct err *err) {
    int r = namespace_try(0, try_mount, NULL, err);
    if (r == 0 || r == -ENOTSUP)
        return r;
    if (err)
        err->code = -ENOTSUP;
    return -ENOTSUP;
}

/* ---- the process that serves ---- */

/* What it says: that it is mounted, and at its end what became of the record. */
struct word {
    int code;
    struct err err;
};

static void say(int control, int code, const struct err *err) {
    struct word w = {.code = code};
    if (code)
        w.err = *err;
    if (send(control, &w, sizeof(w), MSG_NOSIGNAL) < 0)
        return; /* nobody is there any more */
}

static int hear(int control, struct err *err) {
    struct word w;
    if (recv(control, &w, sizeof(w), 0) != (ssize_t)sizeof(w))
        return err_say(err, -EPIPE, "the process that serves the disk has died");
    if (w.code && err)
        *err = w.err;
    return w.code;
}

static int serve_begin(const struct disk_over *o, struct disk **ret, struct err *err) {
    int mount;
    size_t slot;
    int r = disk_open(ret, o->dir, &o->disk, err);
    r = r ? r : disk_mount(*ret, "", &mount, &slot, err);
    if (r)
        return r;
    r = fuse_port_attach(mount, o->dir, err);
    file_close(&mount);
    return r;
}

/* Holds nothing of the caller's: who reads what the command writes waits for nobody else. */
static void leave_descriptors(int control) {
    int null = open("/dev/null", O_RDWR);
    dup2(control, 3);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    process_close_from(4);
}

static _Noreturn void serve(const struct disk_over *o, int control) {
    struct disk *d = NULL;
    struct err err = {0};
    sigset_t all;
    char byte;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    umask(0);
    leave_descriptors(control);
    int r = serve_begin(o, &d, &err);
    say(3, r, &err);
    if (r)
        _exit(1);
    while (recv(3, &byte, 1, 0) < 0 && errno == EINTR)
        ;
    umount2(o->dir, MNT_DETACH);
    r = disk_close(d, &err);
    say(3, r, &err);
    _exit(0);
}

static int start_server(const struct disk_over *o, pid_t *ret_pid, int *ret_control,
                        struct err *err) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return err_set(err, -errno, "make a socket");
    *ret_pid = fork();
    if (*ret_pid == 0)
        serve(o, pair[1]);
    close(pair[1]);
    *ret_control = pair[0];
    return *ret_pid < 0 ? err_set(err, -errno, "fork") : hear(pair[0], err);
}

/* ---- the command ---- */

static volatile sig_atomic_t command;

static void pass_on(int signo) {
    if (command)
        kill(command, signo);
}

static _Noreturn void execute(char *const *argv, pid_t parent) {
    sigset_t none;
    namespace_die_with_parent();
    if (getppid() != parent)
        _exit(125);
    for (int s = 1; s < NSIG; s++)
        if (s == SIGINT || s == SIGQUIT || s == SIGTERM || s == SIGHUP)
            signal(s, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(argv[0], argv);
    int code = errno;
    dprintf(2, "rankquake disk: start %s: %s\n", argv[0], strerror(code));
    _exit(code == ENOENT ? 127 : 126);
}

/* Its parent, to which comes what it leaves behind; ends when there is nothing left. Ends by the
 * command's status. */
static _Noreturn void keep(char *const *argv, pid_t caller, int report) {
    int status, of_command = 0;
    pid_t pid;
    struct sigaction passes = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
    namespace_die_with_parent();
    if (getppid() != caller)
        _exit(125);
    process_adopt_orphans();
    pid_t self = getpid(), child = fork();
    if (child == 0)
        execute(argv, self);
    command = child;
    sigaction(SIGTERM, &passes, NULL);
    sigaction(SIGHUP, &passes, NULL);
    signal(SIGINT, SIG_IGN); /* the terminal tells the command itself */
    signal(SIGQUIT, SIG_IGN);
    while ((pid = waitpid(-1, &status, 0)) > 0 || errno == EINTR)
        if (pid > 0 && pid == child) {
            of_command = status;
            command = 0;
        }
    if (child < 0 || write(report, &of_command, sizeof(of_command)) != sizeof(of_command))
        _exit(125);
    _exit(0);
}

static int run_command(char *const *argv, int *ret_status, struct err *err) {
    int report[2], status;
    if (pipe2(report, O_CLOEXEC) != 0)
        return err_set(err, -errno, "make a pipe");
    pid_t self = getpid(), keeper = fork();
    if (keeper == 0)
        keep(argv, self, report[1]);
    close(report[1]);
    if (keeper < 0) {
        close(report[0]);
        return err_set(err, -errno, "fork");
    }
    struct sigaction passes = {.sa_handler = pass_on, .sa_flags = SA_RESTART}, term, hup, quit, in;
    struct sigaction ignores = {.sa_handler = SIG_IGN};
    command = keeper;
    sigaction(SIGTERM, &passes, &term);
    sigaction(SIGHUP, &passes, &hup);
    sigaction(SIGINT, &ignores, &in);
    sigaction(SIGQUIT, &ignores, &quit);
    while (waitpid(keeper, &status, 0) < 0 && errno == EINTR)
        ;
    command = 0;
    sigaction(SIGTERM, &term, NULL);
    sigaction(SIGHUP, &hup, NULL);
    sigaction(SIGINT, &in, NULL);
    sigaction(SIGQUIT, &quit, NULL);
    bool told = read(report[0], ret_status, sizeof(*ret_status)) == (ssize_t)sizeof(*ret_status);
    close(report[0]);
    return told ? 0 : err_say(err, -EPIPE, "the process that waits for %s has died", argv[0]);
}

int disk_run_over(const struct disk_over *o, int *ret_status, struct err *err) {
    char dir[PATH_MAX], cwd[PATH_MAX];
    struct disk_over absolute = *o;
    absolute.disk.alone = true;
    int control = -1;
    pid_t server = -1;
    if (!realpath(o->dir, dir))
        return err_set(err, -errno, "open %s", o->dir);
    if (!getcwd(cwd, sizeof(cwd)))
        return err_set(err, -errno, "find the current directory");
    absolute.dir = dir;
    int r = enter(err);
    r = r ? r : start_server(&absolute, &server, &control, err);
    if (r == 0 && chdir(cwd) != 0) /* which may lie on the disk */
        r = err_set(err, -errno, "go to %s", cwd);
    r = r ? r : run_command(o->argv, ret_status, err);
    if (r == 0) {
        shutdown(control, SHUT_WR);
        r = hear(control, err);
    }
    file_close(&control);
    if (server > 0)
        waitpid(server, NULL, 0);
    return r;
}
