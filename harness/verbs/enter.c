/* rankquake enter: a shell inside a node of a run that goes on. */
#include "base/buf.h"
#include "base/str.h"
#include "base/sys/namespace.h"
#include "base/sys/process.h"
#include "harness/run/presence.h"
#include "harness/verbs.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static int say(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fputs("rankquake enter: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    return EXIT_USAGE_ERROR;
}

/* ---- which process ---- */

static const struct presence_process *find_node(const struct presence *p, const char *name) {
    for (size_t i = 0; i < p->nodes_n; i++)
        if (str_eq(p->nodes[i].name, name))
            return &p->nodes[i];
    return NULL;
}

static int refuse_node(const struct presence *p, const char *name) {
    BUF_FINI struct buf names = {0};
    for (size_t i = 0; i < p->nodes_n; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", p->nodes[i].name);
    int code = names.len ? say("no node %s is on in this run; there are %s", name, buf_str(&names))
                         : say("no node is on in this run yet");
    return code;
}

/* ---- going there ---- */

/* A node that is processes of this host is not gone into: what is started is its neighbour. */
static bool is_here(pid_t pid) {
    return namespace_is_shared(pid, "pid");
}

static int go(const struct presence *run, const struct presence_process *node, struct err *err) {
    struct process p;
    int flags = CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC;
    int r = process_open(node->pid, &p, err);
    if (r)
        return r;
    if (!presence_lives(run, node))
        r = err_say(err, -ESRCH, "%s has just been switched off", node->name);
    else if (!presence_is_node(run, node))
        r = err_say(err, -EPERM,
                    "process %d does not carry the mark of this run, whatever presence.json says: "
                    "it is none of its nodes, or another user's",
                    (int)node->pid);
    /* Without root a run lives in a user namespace of its own. */
    if (!namespace_is_shared(node->pid, "user"))
        flags |= CLONE_NEWUSER;
    if (r == 0 && !is_here(node->pid) && setns(p.pidfd, flags) != 0)
        r = err_set(err, -errno, "go into %s (only who started the run may, and root)", node->name);
    process_close(&p);
    return r;
}

static void become(const char *node, const char *cwd, char **command) __attribute__((noreturn));
static void become(const char *node, const char *cwd, char **command) {
    const char *shell = getenv("SHELL");
    char *plain[] = {(char *)(uintptr_t)(shell && *shell ? shell : "/bin/sh"), NULL};
    namespace_die_with_parent();
    setenv("RANKQUAKE_NODE", node, 1);
    if (chdir(cwd) != 0 && chdir("/") != 0)
        _exit(126);
    if (command)
        execvp(command[0], command);
    else
        execvp(plain[0], plain);
    if (!command && errno == ENOENT) { /* a root file system without the caller's shell */
        plain[0] = "/bin/sh";
        execvp(plain[0], plain);
    }
    fprintf(stderr, "rankquake enter: cannot execute %s in %s: %s\n",
            command ? command[0] : plain[0], node, strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

/* Only a child is in the new pid namespace. Ctrl-C is for what runs in there. */
static int run_inside(const char *node, const char *cwd, char **command) {
    int status;
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGINT, SIG_DFL);
        signal(SIGQUIT, SIG_DFL);
        become(node, cwd, command);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        say("cannot start a process in %s", node);
        return EXIT_BROKEN;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int enter_node(const char *run, const char *node, char **command) {
    ARENA_FINI struct arena a = {0};
    struct presence p;
    struct folder dir = FOLDER_NONE;
    struct err err = {0};
    char cwd[4096];
    int code;
    const struct presence_process *where;
    if (!getcwd(cwd, sizeof(cwd)))
        str_copy(cwd, sizeof(cwd), "/");
    if (presence_find_run(&dir, run, &err) < 0) {
        code = say("%s; give the directory of a run that goes on", err.msg);
    } else if (presence_read_living(&dir, &a, &p) != 0) {
        code = say("%s does not run any more, and its nodes have ended with it; the disk of %s is "
                   "left with run --keep",
                   run, node);
    } else if (!(where = find_node(&p, node))) {
        code = refuse_node(&p, node);
    } else if (go(&p, where, &err) != 0) {
        code = verb_broken(&verb_enter, &err);
    } else {
        if (!command && is_here(where->pid))
            fprintf(stderr,
                    "%s is processes of this host, below process %d: the shell sees what they see, "
                    "and is none of them\n",
                    node, (int)where->pid);
        else if (!command)
            fprintf(stderr,
                    "in %s now, until exit or the node's end; what stays in there when its agent "
                    "ends counts as left behind\n",
                    node);
        code = run_inside(node, cwd, command);
    }
    folder_close(&dir);
    return code;
}

static int enter(const struct arguments *a) {
    if (a->files_n != 2)
        return verb_usage_error(a->verb, "name the directory of a run and a node of it");
    return enter_node(a->files[0], a->files[1], a->rest && a->rest[0] ? a->rest : NULL);
}

const struct verb verb_enter = {
    .name = "enter",
    .usage = "enter RUN NODE [-- COMMAND...]",
    .summary = "open a shell, or run a command, inside a node of a run that goes on",
    .example = "enter runs/tour-1-20260105-093000 n0 -- hostname",
    .operands = "RUN",
    .options = (const struct verb_option[]){{0}},
    .run = enter,
};
