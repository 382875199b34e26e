/* The body of test_stage: spawn_stage KIND DIR, KIND namespaces or processes. Starts jobs on stages whose
 * directory is DIR/ckpt, and prints a line for what came of each; "skip" with the reason where there can be none. */
#include "base/str.h"
#include "base/sys/file.h"
#include "harness/crash/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

/* Which of the two files are there. */
static int sum(void *arg, const char *path, char ret[65]) {
    char there[PATH_MAX], made[PATH_MAX];
    (void)arg;
    snprintf(there, sizeof(there), "%s/there", path);
    snprintf(made, sizeof(made), "%s/made", path);
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
    char beside[PATH_MAX + 8];
    snprintf(beside, sizeof(beside), "%s/beside", cwd);
    printf("%s\n", file_exists(beside) ? "something is left beside" : "nothing is left beside");
    return 0;
}
