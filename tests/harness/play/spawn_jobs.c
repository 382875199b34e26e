/* Three jobs, one after the other: the first has ended when the deadline comes, the second never
 * ends by itself. Prints what became of each. As a job, `spawn_jobs run FILE --seed SEED ...`, it
 * is the first or the second. `spawn_jobs order`: in which order jobs are run that take different times. */
#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/play/jobs.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static int be_job(const char *seed) {
    if (str_eq(seed, "1"))
        return 7;
    for (;;)
        pause(); /* until the deadline ends it */
}

static void on_ended(void *arg, struct job *j) {
    (void)arg;
    printf("%s ", j->file);
}

static int print_order(void) {
    static const char *const none[1];
    struct job jobs[] = {
        {.file = "unknown", .seed = 1, .code = -1},
        {.file = "alone", .seed = 1, .code = -1, .alone = true, .expected_ns = 9},
        {.file = "short", .seed = 1, .code = -1, .expected_ns = 2},
        {.file = "long", .seed = 1, .code = -1, .expected_ns = 5},
        {.file = "as-short", .seed = 1, .code = -1, .expected_ns = 2},
    };
    struct jobs_spec spec = {.at_once = 1, .options = none, .ended = on_ended};
    return jobs_run(jobs, sizeof(jobs) / sizeof(*jobs), &spec, NULL) < 0;
}

int main(int argc, char **argv) {
    static const char *const none[1];
    struct job jobs[] = {{.file = "a", .seed = 1, .code = -1},
                         {.file = "b", .seed = 2, .code = -1},
                         {.file = "c", .seed = 3, .code = -1}};
    struct jobs_spec spec = {.at_once = 1, .options = none};
    struct err err = {0};
    if (argc > 4 && str_eq(argv[1], "run"))
        return be_job(argv[4]);
    if (argc > 1)
        return print_order();
    if (jobs_run(jobs, 1, &spec, &err) < 0)
        return 1;
    spec.until_ns = clock_monotonic_ns() + 100000000;
    if (jobs_run(jobs, 3, &spec, &err) < 0)
        return 1;
    printf("%d %s, %d %s, %s\n", jobs[0].code, jobs[0].late ? "late" : "in time", jobs[1].code,
           jobs[1].late ? "late" : "in time", jobs[2].code < 0 ? "not started" : "started");
    return 0;
}
