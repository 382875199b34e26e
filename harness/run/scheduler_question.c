#include "harness/run/scheduler_question.h"

#include "base/sys/file.h"
#include "harness/launch/launchers.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>

enum { ANSWER_MAX = 1 << 14 };

struct question *scheduler_question_ask(struct engine *e, struct node *n, question_fn *fn,
                                        void *arg, struct err *err) {
    struct target first = {.pidfd = -1};
    node_target(n, &first);
    struct question_place to = {first.pidfd, QUESTION_IN_NODE, "/", false};
    FILE_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int fds[] = {null, -1, null};
    const char *const argv[] = {"scontrol", "--oneliner", "show", "node", node_plan(n)->name, NULL};
    const char *const env[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                               "SLURM_CONF=" LAUNCHER_SLURM_CONF, NULL};
    const struct question_spec spec = {.program = {.argv = argv,
                                                   .envp = env,
                                                   .fds = fds,
                                                   .keep = &to.pidfd,
                                                   .keep_n = to.pidfd >= 0,
                                                   .in_child = question_enter,
                                                   .in_child_arg = &to},
                                       .bytes_max = ANSWER_MAX,
                                       .within_ns = SCHEDULER_ANSWER_WITHIN_MS * INT64_C(1000000)};
    return question_ask(e->loop, &spec, fn, arg, err);
}

/* State=MIXED+DRAIN ThreadsPerCore=1 ...: the states of a node, with flags behind some. */
int scheduler_question_drains(const char *answer) {
    const char *at = strstr(answer, " State=");
    if (!at)
        return -1;
    at += strlen(" State=");
    size_t n = strcspn(at, " \n");
    const char *drains = memmem(at, n, "DRAIN", strlen("DRAIN"));
    return drains != NULL;
}
