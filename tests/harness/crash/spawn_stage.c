/* The body of test_stage: spawn_stage KIND DIR, KIND namespaces or processes. Starts jobs on stages whose
 * directory is DIR/ckpt, and prints a line for what came of each; "skip" with the reason where there can be none. */
#include "base/str.h"
#include "base/sys/file.h"
#include "harness/crash/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[PATH_MAX], cwd[PATH_MAX];
static bool namespaces;

static int fill(void *arg, const char *path, struct err *err) {
    char file[PATH_MAX];
    if (arg)
        return err_say(err, -ENOSPC, "no room");
    snprintf(file, sizeof(file), "%s/there", path);
    return close(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

/* Which of the two files are there; a file `unreadable` in it: it cannot be said. */
static int sum(void *arg, const char *path, char ret[65]) {
    char there[PATH_MAX], made[PATH_MAX];
    (void)arg;
    snprintf(there, sizeof(there), "%s/there", path);
    snprintf(made, sizeof(made), "%s/made", path);
    char unreadable[PATH_MAX];
    snprintf(unreadable, sizeof(unreadable), "%s/unreadable", path);
    if (file_exists(unreadable))
        return snprintf(ret, 65, "half of it"), -EIO;
    snprintf(ret, 65, "%s%s", file_exists(there) ? "there " : "", file_exists(made) ? "made" : "");
    return 0;
}

static struct stage_spec spec(const char *const *argv, int output) {
    return (struct stage_spec){.argv = argv,
                               .cwd = cwd,
                               .dir = dir,
                               .namespaces = namespaces,
                               .network = namespaces,
                               .output = output,
                               .fill = fill,
                               .sum = sum};
}

static void tell(const char *what, const struct stage_end *e, int output) {
    char said[200] = "";
    ssize_t n = pread(output, said, sizeof(said) - 1, 0);
    said[n > 0 ? n : 0] = '\0';
    said[strcspn(said, "\n")] = '\0';
    if (e->err.code)
        printf("%s: not started: %s\n", what, e->err.msg);
    else if (e->late)
        printf("%s: late; %s\n", what, e->sum);
    else if (WIFEXITED(e->status))
        printf("%s: exit %d, \"%s\"; %s\n", what, WEXITSTATUS(e->status), said, e->sum);
    else
        printf("%s: signal %d; %s\n", what, WTERMSIG(e->status), e->sum);
    if (file_exists(dir))
        printf("%s: %s is left\n", what, dir);
}

/* kill: once it has said something. */
static void play(const char *what, const char *script, int64_t limit_ns, bool full, bool kill) {
    const char *const argv[] = {"sh", "-c", script, dir, NULL};
    struct crash_stage stage;
    struct stage_end end;
    struct err err = {0};
    int ends[2] = {-1, -1}, output = memfd_create("output", MFD_CLOEXEC);
    char byte;
    struct stage_spec s = spec(argv, output);
    s.limit_ns = limit_ns;
    s.arg = full ? &end : NULL;
    if (kill && pipe2(ends, O_CLOEXEC) != 0)
        exit(1);
    s.output = kill ? ends[1] : output;
    if (stage_start(&s, &stage, &err) != 0) {
        printf("%s: no stage: %s\n", what, err.msg);
        return;
    }
    if (kill) {
        close(ends[1]);
        if (read(ends[0], &byte, 1) == 1)
            stage_kill(&stage);
    }
    process_wait_end(&stage.process, INT64_C(30000000000));
    stage_take(&stage, &end);
    if (kill) /* all that could still say something has gone */
        printf("%s: %s\n", what, read(ends[0], &byte, 1) == 0 ? "nobody is left" : "somebody is");
    else
        tell(what, &end, output);
    close(output);
    if (kill)
        close(ends[0]);
}

/* ---- what goes wrong ---- */

/* A stage of this spec from its start to its end. */
static struct stage_end run(struct stage_spec *s) {
    struct crash_stage stage;
    struct stage_end end = {0};
    int output = memfd_create("output", MFD_CLOEXEC);
    s->output = output;
    if (stage_start(s, &stage, &end.err) == 0) {
        process_wait_end(&stage.process, INT64_C(30000000000));
        stage_take(&stage, &end);
    }
    close(output);
    return end;
}

static void play_program(const char *what, const char *program) {
    const char *const argv[] = {program, NULL};
    struct stage_spec s = spec(argv, -1);
    struct stage_end end = run(&s);
    printf("%s: %s %d\n", what, WIFEXITED(end.status) ? "exit" : "signal",
           WIFEXITED(end.status) ? WEXITSTATUS(end.status) : WTERMSIG(end.status));
}

/* The directory is to lie below a file of ours. */
static void play_below_a_file(void) {
    const char *const argv[] = {"true", NULL};
    char file[PATH_MAX + 8], below[PATH_MAX + 16];
    snprintf(file, sizeof(file), "%s/file", cwd);
    snprintf(below, sizeof(below), "%s/ckpt", file);
    close(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    struct stage_spec s = spec(argv, -1);
    s.dir = below;
    struct stage_end end = run(&s);
    printf("below a file: %s, %s\n", end.err.code == -ENOTDIR ? "refused" : "not refused",
           strstr(end.err.msg, file) ? "named" : end.err.msg);
    unlink(file);
}

static void play_result(const char *what, const char *script) {
    const char *const argv[] = {"sh", "-c", script, dir, NULL};
    struct stage_spec s = spec(argv, -1);
    s.result = "ckpt/result";
    struct stage_end end = run(&s);
    printf("%s: %.8s\n", what, *end.result ? end.result : "none");
}

static void play_sum(void) {
    const char *const argv[] = {"sh", "-c", "echo x >$0/unreadable", dir, NULL};
    struct stage_spec s = spec(argv, -1);
    struct stage_end end = run(&s);
    printf("cannot be summed: exit %d, \"%s\"\n", WEXITSTATUS(end.status), end.sum);
}

/* A job that says something, ignores what it can, and stays. */
static const char *const stays[] = {
    "sh", "-c", "(trap '' TERM HUP; tail -f /dev/null) & printf u; exec tail -f /dev/null", NULL};

/* Nobody holds the pipe any more. */
static const char *left(int end) {
    char byte;
    return read(end, &byte, 1) == 0 ? "nobody is left" : "somebody is left";
}

/* Who is above the job is killed by somebody else. Among processes that is the keeper, and nobody is left to end
 * what it has kept. */
static void play_killed_from_outside(void) {
    struct crash_stage stage;
    struct stage_end end;
    struct err err;
    int ends[2];
    char byte;
    if (pipe2(ends, O_CLOEXEC) != 0)
        exit(1);
    struct stage_spec s = spec(stays, ends[1]);
    if (stage_start(&s, &stage, &err) != 0)
        exit(1);
    close(ends[1]);
    if (read(ends[0], &byte, 1) == 1)
        process_signal(&stage.process, SIGKILL);
    process_wait_end(&stage.process, INT64_C(30000000000));
    stage_take(&stage, &end);
    printf("killed from outside: %s; %s\n", end.err.msg, left(ends[0]));
    close(ends[0]);
}

/* All that it leaves comes to this process. */
static void play_starter_dies(void) {
    int ends[2];
    char byte;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (pipe2(ends, O_CLOEXEC) != 0)
        exit(1);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct crash_stage stage;
        struct err err;
        struct stage_spec s = spec(stays, ends[1]);
        if (stage_start(&s, &stage, &err) != 0)
            _exit(1);
        for (;;)
            pause();
    }
    close(ends[1]);
    if (read(ends[0], &byte, 1) == 1)
        kill(pid, SIGKILL);
    const char *who = left(ends[0]);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
    printf("who has started it dies: %s, %s\n", who,
           file_exists(dir) ? "its directory is" : "nor its directory");
    close(ends[0]);
}

static void play_unwatched(void) {
    const char *const argv[] = {"true", NULL};
    static const struct call_watch watch = {.kinds = CALL_RENAME};
    struct crash_stage none = STAGE_NONE, stage;
    struct stage_end end;
    struct err err = {0};
    printf("nothing to watch: %s\n", stage_take_dir(&none) < 0 ? "said" : "a directory");
    struct stage_spec s = spec(argv, -1);
    s.watch = &watch;
    s.arg = &end; /* it cannot be filled */
    if (stage_start(&s, &stage, &err) != 0)
        exit(1);
    printf("nobody to watch: %s\n", stage_take_dir(&stage) < 0 ? "said" : "a directory");
    process_wait_end(&stage.process, INT64_C(30000000000));
    stage_take(&stage, &end);
    s.arg = NULL;
    s.recorded = "/nowhere/at/all";
    if (stage_start(&s, &stage, &err) != 0)
        exit(1);
    printf("what is recorded is not there: %s, ", stage_take_dir(&stage) < 0 ? "said" : "there");
    process_wait_end(&stage.process, INT64_C(30000000000));
    stage_take(&stage, &end);
    printf("%s\n", end.err.msg);
}

/* What the job has of its own: none of it is seen here. */
static void play_own(void) {
    play("has a network of its own",
         "tail -n +3 /proc/net/dev | tr -d ' ' | cut -d: -f1 | tr '\n' ' '", 0, false, false);
    play("has memory of its own",
         "echo x >/dev/shm/of-a-stage-of-ours && echo x >$TMPDIR/y && echo ${TMPDIR#/dev/shm/}", 0,
         false, false);
    printf("%s in /dev/shm\n",
           file_exists("/dev/shm/of-a-stage-of-ours") ? "something is left" : "nothing is left");
    play("is alone", "set -- /proc/[0-9]*; [ $# -le 4 ] && echo few", 0, false, false);
}

static void write_to(const char *path, const char *text) {
    FILE_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, text, strlen(text)) < 0)
        printf("skip: %s cannot be written\n", path);
}

/* As on a host that lets nobody have namespaces: in a user namespace that allows none below it. */
static void play_refused(void) {
    struct err err = {0};
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        char map[64];
        unsigned uid = geteuid();
        if (unshare(CLONE_NEWUSER) != 0)
            _exit(puts("namespaces are refused: said") < 0 || fflush(NULL) != 0);
        snprintf(map, sizeof(map), "0 %u 1", uid);
        write_to("/proc/self/setgroups", "deny");
        write_to("/proc/self/uid_map", map);
        write_to("/proc/sys/user/max_user_namespaces", "0");
        write_to("/proc/sys/user/max_mnt_namespaces", "0");
        int r = stage_check(&err);
        printf("namespaces are refused: %s\n", r == -ENOTSUP && *err.msg ? "said" : "had");
        fflush(NULL);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

static void play_wrong(void) {
    play_program("no such program", "/nowhere/no-such-program");
    play_program("no program", "/");
    play_below_a_file();
    play_result("result", "printf abc >$0/result");
    play_result("no result", "true");
    play_result("result that is a pipe", "mkfifo $0/result");
    play_sum();
    play_starter_dies();
    play_unwatched();
    if (!namespaces)
        return;
    play_killed_from_outside();
    play_own();
    play_refused();
}

int main(int argc, char **argv) {
    struct err err = {0};
    if (argc != 3 || mkdir(argv[2], 0755) != 0 || !realpath(argv[2], cwd))
        return 2;
    if (snprintf(dir, sizeof(dir), "%s/ckpt", cwd) >= (int)sizeof(dir))
        return 2;
    namespaces = str_eq(argv[1], "namespaces");
    if (namespaces && stage_check(&err) != 0) {
        printf("skip: %s\n", err.msg);
        return 0;
    }
    play("ends", "ls $0; echo x >$0/made; exit 7", 0, false, false);
    play("again", "[ ! -e $0/made ] && echo fresh", 0, false, false);
    play("killed itself", "kill -9 $$", 0, false, false);
    play("late", "exec tail -f /dev/null", 50000000, false, false);
    play("leaves somebody", "tail -f /dev/null & echo off", 0, false, false);
    play("full", "true", 0, true, false);
    play("is ended", "(trap '' TERM HUP; tail -f /dev/null) & printf u; exec tail -f /dev/null", 0,
         false, true);
    if (namespaces)
        play("changes what lies beside it", "echo x >beside && echo done", 0, false, false);
    play_wrong();
    char beside[PATH_MAX + 8];
    snprintf(beside, sizeof(beside), "%s/beside", cwd);
    printf("%s\n", file_exists(beside) ? "something is left beside" : "nothing is left beside");
    return 0;
}
