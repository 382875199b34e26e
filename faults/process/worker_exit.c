/* Makes a worker call exit, whatever program it is. */
#include "faults/fault.h"

#include "base/str.h"
#include "faults/mechanism/seize.h"

#include <errno.h>
#include <sys/wait.h>

/* Returns the code, or -EINVAL. */
static int check(const struct fault_args *a, struct err *err) {
    const char *text = fault_arg(a, "code", "1");
    int64_t code;
    if (!str_to_i64(text, 0, 255, &code))
        return err_say(err, -EINVAL, "code: %s is not an exit code; write one from 0 to 255", text);
    return (int)code;
}

static int status(const struct fault_args *a) {
    int code = check(a, NULL);
    return code < 0 ? -1 : W_EXITCODE(code, 0);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    int code = check(a, err);
    if (code < 0)
        return code;
    if (t->pidfd < 0 || t->pid <= 0)
        return err_say(err, -ESRCH, "%s is not running", t->name);
    int r = seize_exit(t->pid, code, err);
    if (r)
        return err_wrap(err, "%s: ", t->name);
    return target_wait_end(t, err);
}

const struct fault fault_worker_exit = {
    .name = "worker-exit",
    .summary = "a worker exits with the exit code you name, whatever program it is",
    .effects = EFFECT_ENDS_WORKER | EFFECT_OWN_EXIT | EFFECT_LOUD,
    .targets = TARGET_WORKER,
    .needs = FAULT_NEEDS_TRACE,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(target_exit),
    .params = (const struct fault_param[]){{"code", "int", "1", "its exit code, 0 to 255"}, {0}},
    .undo = "nothing to undo: the launcher starts a new worker",
    .blast = "every worker of the job: the launcher restarts them all, from the last checkpoint",
    .example = "{when: {step: 20}, fault: worker-exit, with: {code: 3}, on: rank 1}",
    .check = check,
    .status = status,
    .inject = inject,
};
