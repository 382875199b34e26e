/* The srun that started a step, among all processes of this host: some of them are called as it is, and are this program. */
#include "agent/hosts/srun.h"

#include "base/str.h"
#include "base/sys/process.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[] = "/tmp/test_srun_XXXXXX", job[64];

/* So called, with these words and variables, for as long as a question is asked. */
struct given {
    const char *name;
    const char *words[6], *variables[4];
    const char *const *all; /* variables, if they are more; NULL: they are not */
};

static struct process start(const struct given *g) {
    char path[PATH_MAX], self[PATH_MAX];
    struct process p = PROCESS_NONE;
    struct err err = {0};
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n > 0 ? n : 0] = '\0';
    snprintf(path, sizeof(path), "%s/%s", folder, g->name);
    assert_int_equal(symlink(self, path), 0);
    struct process_spawn s = {.argv = g->words,
                              .file = path,
                              .envp = g->all ? g->all : g->variables,
                              .death_signal = SIGKILL};
    if (process_spawn(&s, &p, &err) < 0)
        fail_msg("%s", err.msg);
    unlink(path);
    return p;
}

static void end(struct process *p) {
    process_signal(p, SIGKILL);
    assert_int_equal(process_reap(p, -1, NULL), 0);
    process_close(p);
}

static enum srun_keeps asked(const struct given *g) {
    struct process p = start(g);
    enum srun_keeps ret = srun_find(job);
    end(&p);
    return ret;
}

/* Another's job, one whose number begins as ours does, and the other way round. */
static char ours[80], longer[80], shorter[80], no_kill[] = "SLURM_NO_KILL=1";

static void test_each_srun_is_asked_what_it_does(void **state) {
    (void)state;
    static const struct {
        struct given given;
        enum srun_keeps keeps;
    } rows[] = {
        {{"srun", {"srun", "rankrun"}, {ours}}, SRUN_ENDS},
        {{"srun", {"srun"}, {ours}}, SRUN_ENDS},
        {{"srun", {"srun", "-k", "rankrun"}, {ours}}, SRUN_GOES_ON},
        {{"srun", {"srun", "--no-kill", "rankrun"}, {ours}}, SRUN_GOES_ON},
        {{"srun", {"srun", "--no-kill=off", "rankrun"}, {ours}}, SRUN_GOES_ON},
        {{"srun", {"srun", "-n", "4", "-k", "rankrun"}, {ours}}, SRUN_GOES_ON},
        {{"srun", {"srun", "-kx", "x-k", "x--no-kill"}, {ours}}, SRUN_ENDS},
        {{"srun", {"srun", "rankrun", "-k", "--no-kill"}, {ours}}, SRUN_ENDS},
        {{"srun", {"srun", "/opt/bin/rankrun", "-k"}, {ours}}, SRUN_ENDS},
        {{"srun", {"srun", "rankrunner", "-k"}, {ours}}, SRUN_GOES_ON},
        {{"srun", {"srun", "rankrun"}, {ours, no_kill}}, SRUN_GOES_ON},
        {{"srun", {"srun", "rankrun"}, {no_kill, "A=1", ours}}, SRUN_GOES_ON},
        {{"srun", {"srun", "rankrun"}, {ours, "SLURM_NO_KILL"}}, SRUN_GOES_ON},
        {{"srun", {"srun", "rankrun"}, {ours, "SLURM_NO_KILLS=1"}}, SRUN_ENDS},
        {{"srun", {"srun", "rankrun"}, {ours, "A_SLURM_NO_KILL=1"}}, SRUN_ENDS},
        {{"srun", {"srun", "rankrun"}, {longer}}, SRUN_UNKNOWN},
        {{"srun", {"srun", "rankrun"}, {shorter}}, SRUN_UNKNOWN},
        {{"srun", {"srun", "rankrun"}, {"A=1"}}, SRUN_UNKNOWN},
        {{"srun", {"srun", "rankrun"}, {NULL}}, SRUN_UNKNOWN},
        {{"srun2", {"srun", "rankrun"}, {ours}}, SRUN_UNKNOWN},
        {{"sru", {"srun", "rankrun"}, {ours}}, SRUN_UNKNOWN},
        {{"asrun", {"srun", "rankrun"}, {ours}}, SRUN_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (asked(&rows[i].given) != rows[i].keeps)
            fail_msg("row %zu", i);
    assert_int_equal(srun_find(job), SRUN_UNKNOWN);
}

/* Those of others are passed by, before and behind it. */
static void test_ours_is_found_among_others(void **state) {
    (void)state;
    static const struct given another = {"srun", {"srun", "-k"}, {longer}},
                              own = {"srun", {"srun", "rankrun"}, {ours}},
                              goes_on = {"srun", {"srun", "-k"}, {ours}};
    struct process before = start(&another), it = start(&own), behind = start(&another);
    assert_int_equal(srun_find(job), SRUN_ENDS);
    end(&it);
    assert_int_equal(srun_find(job), SRUN_UNKNOWN);
    it = start(&goes_on);
    assert_int_equal(srun_find(job), SRUN_GOES_ON);
    end(&behind);
    end(&it);
    end(&before);
}

/* Variables that take so many bytes with their ends; the first is ours. */
static const char *const *variables_of(size_t bytes) {
    enum { EACH = 100 << 10, MANY = 32 };
    static char text[EACH];
    static const char *all[MANY + 1];
    size_t n = 1, left = bytes - strlen(ours) - 1;
    memset(text, 'v', EACH - 1);
    all[0] = ours;
    while (left > EACH) {
        all[n++] = text;
        left -= EACH;
    }
    all[n++] = text + EACH - left; /* its end alone takes one */
    all[n] = NULL;
    return all;
}

/* So much of it is read as a kernel takes by itself, and no more. */
static void test_variables_are_read_as_far_as_there_may_be(void **state) {
    (void)state;
    struct rlimit before, more;
    getrlimit(RLIMIT_STACK, &before);
    more = (struct rlimit){64 << 20, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_STACK, &more), 0);
    struct given g = {"srun", {"srun", "rankrun"}, {NULL}, variables_of(2 << 20)};
    assert_int_equal(asked(&g), SRUN_ENDS);
    g.all = variables_of((2 << 20) + 1);
    assert_int_equal(asked(&g), SRUN_UNKNOWN);
    setrlimit(RLIMIT_STACK, &before);
}

static bool closed;

DIR *opendir(const char *path) {
    static DIR *(*open_dir)(const char *);
    if (!open_dir)
        *(void **)&open_dir = dlsym(RTLD_NEXT, "opendir");
    return closed ? NULL : open_dir(path);
}

static void test_where_nobody_is_seen_nothing_is_known(void **state) {
    (void)state;
    static const struct given own = {"srun", {"srun", "rankrun"}, {ours}};
    struct process it = start(&own);
    closed = true;
    assert_int_equal(srun_find(job), SRUN_UNKNOWN);
    closed = false;
    assert_int_equal(srun_find(job), SRUN_ENDS);
    end(&it);
}

int main(int argc, char **argv) {
    if (str_starts(str_base(argv[0]), "srun"))
        for (;;)
            pause();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_srun_is_asked_what_it_does),
        cmocka_unit_test(test_ours_is_found_among_others),
        cmocka_unit_test(test_variables_are_read_as_far_as_there_may_be),
        cmocka_unit_test(test_where_nobody_is_seen_nothing_is_known),
    };
    snprintf(job, sizeof(job), "9%d", (int)getpid());
    snprintf(ours, sizeof(ours), "SLURM_JOB_ID=%s", job);
    snprintf(longer, sizeof(longer), "SLURM_JOB_ID=%s1", job);
    snprintf(shorter, sizeof(shorter), "SLURM_JOB_ID=9%d", (int)getpid() / 10);
    assert_non_null(mkdtemp(folder));
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    int code = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return code;
}
