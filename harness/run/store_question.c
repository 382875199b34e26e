#include "harness/run/store_question.h"

#include "base/sys/file.h"
#include "harness/run/token.h"

#include <fcntl.h>
#include <sched.h>

struct question *store_question_ask(struct engine *e, struct node *n, const char *const *argv,
                                    question_fn *fn, void *arg, struct err *err) {
    ARENA_FINI struct arena arena = {0};
    struct target first = {.pidfd = -1};
    if (e->plan->isolation == ISOLATION_NAMESPACES)
        node_target(n, &first);
    struct question_place to = {first.pidfd, CLONE_NEWNET, "/", false};
    FILE_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int fds[] = {null, -1, null};
    const struct question_spec spec = {.program = {.argv = argv,
                                                   .envp = token_env(e, &arena),
                                                   .file = "/proc/self/exe",
                                                   .fds = fds,
                                                   .keep = &to.pidfd,
                                                   .keep_n = to.pidfd >= 0,
                                                   .in_child = question_enter,
                                                   .in_child_arg = &to},
                                       .bytes_max = STORE_ANSWER_MAX,
                                       .within_ns = STORE_ANSWER_WITHIN_MS * INT64_C(1000000)};
    return question_ask(e->loop, &spec, fn, arg, err);
}
