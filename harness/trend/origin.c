#include "harness/trend/origin.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_MAX = 4096, CPUINFO_MAX = 1 << 22 };

/* Of a pull request the branch that it comes from, not the one that the server has made of it. */
static const char *const commits[] = {"GITHUB_SHA",       "CI_COMMIT_SHA", "GIT_COMMIT",
                                      "BUILDKITE_COMMIT", "CIRCLE_SHA1",   NULL};
static const char *const branches[] = {"GITHUB_HEAD_REF",
                                       "GITHUB_REF_NAME",
                                       "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME",
                                       "CI_COMMIT_BRANCH",
                                       "CHANGE_BRANCH",
                                       "BRANCH_NAME",
                                       "GIT_BRANCH",
                                       "BUILDKITE_BRANCH",
                                       "CIRCLE_BRANCH",
                                       NULL};

static const char *from_environment(const char *const *names) {
    for (; *names; names++) {
        const char *value = getenv(*names);
        if (value && *value)
            return value;
    }
    return NULL;
}

/* The first line that git prints; NULL: there is no git, or no repository here. */
static const char *ask_git(struct arena *a, const char *const *argv) {
    BUF_FINI struct buf answer = {0};
    struct process git = PROCESS_NONE;
    int fds[2], status = -1;
    if (process_report_pipe(fds) < 0)
        return NULL;
    FILE_CLOSE int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct process_spawn s = {.argv = argv, .fds = (const int[]){-1, fds[1], nowhere}};
    int r = process_spawn(&s, &git, NULL);
    close(fds[1]);
    if (r == 0) {
        if (file_read_fd(fds[0], ANSWER_MAX, &answer, NULL) < 0)
            process_signal(&git, SIGKILL);
        process_reap(&git, -1, &status);
        process_close(&git);
    }
    close(fds[0]);
    size_t len = strcspn(buf_str(&answer), "\n");
    return r == 0 && status == 0 && len ? arena_strndup(a, buf_str(&answer), len) : NULL;
}

int trend_origin_fill(struct trend_origin *o, struct arena *a, struct err *err) {
    if (!o->commit)
        o->commit = from_environment(commits);
    if (!o->commit)
        o->commit = ask_git(a, (const char *const[]){"git", "rev-parse", "HEAD", NULL});
    if (!o->branch)
        o->branch = from_environment(branches);
    if (!o->branch)
        o->branch =
            ask_git(a, (const char *const[]){"git", "symbolic-ref", "-q", "--short", "HEAD", NULL});
    if (!o->machine)
        o->machine = trend_origin_machine(a);
    if (!o->commit)
        return err_say(err, -ENODATA,
                       "the commit cannot be told: there is no git repository here, "
                       "and the environment of no CI server: give --commit");
    if (!o->branch)
        return err_say(err, -ENODATA,
                       "the branch cannot be told: no branch is checked out here, "
                       "and no CI server says one: give --branch");
    return 0;
}

const char *trend_origin_machine(struct arena *a) {
    BUF_FINI struct buf text = {0};
    cpu_set_t mine;
    int n = sched_getaffinity(0, sizeof(mine), &mine) == 0 ? CPU_COUNT(&mine) : 1;
    const char *model = NULL;
    if (file_read("/proc/cpuinfo", CPUINFO_MAX, &text, NULL) == 0)
        model = strstr(buf_str(&text), "model name");
    model = model ? strchr(model, ':') : NULL;
    if (!model)
        return arena_printf(a, "unknown processor x %d", n);
    model += 1 + strspn(model + 1, " \t");
    return arena_printf(a, "%.*s x %d", (int)strcspn(model, "\n"), model, n);
}
