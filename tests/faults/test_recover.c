/* recover may be called whenever somebody is in doubt: of what was never injected, twice, and of who
 * has ended. Asked of every fault of the table that has one, with the arguments of its example. */
#include "base/arena.h"
#include "base/str.h"
#include "base/sys/process.h"
#include "faults/fault.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- a node that does what it is asked ---- */

static int done; /* so often was it asked to do something */

static int op_silence(void *node, bool on, struct err *err) {
    return done++, 0;
}
static int op_part(void *node, const char *groups, const struct impairment *how, bool on,
                   struct err *err) {
    return done++, 0;
}

static int op_impair(void *node, const char *groups, const struct impairment *how, size_t n,
                     bool on, struct err *err) {
    return done++, 0;
}
static int op_none(void *node, struct err *err) {
    return done++, 0;
}
static int op_forget(void *node, unsigned planes, struct err *err) {
    return done++, 1;
}
static int op_start(void *node, bool fresh, struct err *err) {
    return done++, 0;
}
static int op_shift(void *node, const struct clock_shift *shift, struct err *err) {
    return done++, 0;
}
static int op_limit(void *node, enum node_limit what, int64_t value, struct err *err) {
    return done++, 0;
}
static int op_unlimit(void *node, enum node_limit what, struct err *err) {
    return done++, 0;
}

static int op_disk_rule(void *node, const struct disk_rule *rule, enum node_place place, bool on,
                        struct err *err) {
    return done++, 0;
}

static const struct node_ops ops = {.kill = op_none,
                                    .silence = op_silence,
                                    .part = op_part,
                                    .impair = op_impair,
                                    .forget_connections = op_forget,
                                    .destroy_sockets = op_none,
                                    .start = op_start,
                                    .shift_clock = op_shift,
                                    .limit = op_limit,
                                    .unlimit = op_unlimit,
                                    .disk_rule = op_disk_rule};

/* ---- one fault ---- */

/* The place of the brace that is not within quotes. */
static size_t end_of_map(const char *text) {
    size_t i = 0;
    for (bool quoted = false; text[i] && (quoted || text[i] != '}'); i++)
        quoted ^= text[i] == '"';
    return i;
}

/* "with: {a: b, c: d}" of an example, and the groups that the harness makes of `on`. */
static struct fault_args args_of(const struct fault *f, struct arena *arena) {
    struct fault_arg *v = arena_array(arena, struct fault_arg, 16);
    struct fault_args a = {.v = v};
    const char *with = strstr(f->example, "with: {");
    char *text = arena_printf(arena, "%s", with ? with + strlen("with: {") : ""), *save = NULL;
    text[end_of_map(text)] = '\0';
    for (char *one = strtok_r(text, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
        char *colon = strchr(one, ':'), *value = colon + 2;
        *colon = '\0';
        value += *value == '"';
        value[strcspn(value, "\"")] = '\0';
        v[a.n++] = (struct fault_arg){one + strspn(one, " "), value};
    }
    v[a.n++] = (struct fault_arg){"groups", "n1|*"};
    return a;
}

static bool is_undone(const struct fault *f, int r, const struct err *err) {
    if (r && r != -ESRCH)
        fprintf(stderr, "%s: %s\n", f->name, err->msg);
    return !r || r == -ESRCH;
}

static void recover_twice(const struct fault *f, const struct target *t,
                          const struct fault_args *a) {
    struct err err = {0};
    assert_true(is_undone(f, f->recover(t, a, &err), &err));
    assert_true(is_undone(f, f->recover(t, a, &err), &err));
}

static void assert_runs(const struct fault *f, pid_t pid) {
    int status;
    siginfo_t info = {0};
    if (waitpid(pid, &status, WNOHANG) != 0)
        fail_msg("%s: its target has ended", f->name);
    waitid(P_PID, (id_t)pid, &info, WSTOPPED | WCONTINUED | WNOHANG);
    if (info.si_pid && info.si_code == CLD_STOPPED)
        fail_msg("%s: its target stands still", f->name);
}

static void try(const struct fault *f) {
    struct arena arena = {0};
    struct fault_args a = args_of(f, &arena);
    struct err err = {0};
    struct process p;
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (write(ready[1], "x", 1) == 1)
            for (;;)
                pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(process_open(pid, &p, NULL), 0);
    struct target t = {.kind = (enum target_kind)(f->targets & -f->targets),
                       .name = "it",
                       .pid = pid,
                       .pidfd = p.pidfd,
                       .ops = &ops};
    recover_twice(f, &t, &a);
    assert_runs(f, pid);
    if (f->inject(&t, &a, &err) >= 0)
        recover_twice(f, &t, &a);
    assert_runs(f, pid);
    kill(pid, SIGKILL);
    process_wait_end(&p, INT64_C(5000000000));
    recover_twice(f, &t, &a);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    process_close(&p);
    close(ready[0]);
    close(ready[1]);
    arena_fini(&arena);
}

/* What makes room in an etcd asks it: tests/live/poor_etcd.sh. */
static bool asks_somebody(const struct fault *f) {
    return fault_has(f, EFFECT_HINDERS_STORE) && f->suits && f->where == FAULT_IN_NODE;
}

static void test_every_fault_can_be_undone_at_any_time(void **state) {
    (void)state;
    size_t n = 0;
    for (size_t i = 0; faults[i]; i++)
        if (faults[i]->recover && !asks_somebody(faults[i])) {
            try(faults[i]);
            n++;
        }
    assert_true(n > 30);
    assert_true(done > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_fault_can_be_undone_at_any_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
