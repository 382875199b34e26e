/* whole_jobs: worlds of ranktrain in a folder of their own, started by spawn_world, and what they say. */
#pragma once

#include "tests/scenarios/jobs/ranktrain/ends.h"

#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

enum { STEPS = 12 };

static char output[1 << 16], place[PATH_MAX / 4];

/* A world that is struck at a step of rank 0's; before: what the shell does first. */
struct job {
    int world, round, signo, rank, step;
    const char *before;
};

static inline void vrun(const struct job *j, const char *arguments, va_list ap) {
    char here[PATH_MAX / 4] = {0}, command[2 * PATH_MAX];
    assert_true(readlink("/proc/self/exe", here, sizeof(here) - 1) > 0);
    *strrchr(here, '/') = 0;
    int n = snprintf(command, sizeof(command),
                     "cd %s; %s exec %s/spawn_world %d %d %d %d %d -- %s/spawn_train "
                     "--samples=960 --log-every=1 --width=2 ",
                     place, j->before ? j->before : "", here, j->world, j->round, j->signo, j->rank,
                     j->step, here);
    vsnprintf(command + n, sizeof(command) - (size_t)n, arguments, ap);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t got = fread(output, 1, sizeof(output) - 1, f);
    output[got] = 0;
    pclose(f);
}

__attribute__((format(printf, 2, 3))) static inline void run(const struct job *j,
                                                             const char *arguments, ...) {
    va_list ap;
    va_start(ap, arguments);
    vrun(j, arguments, ap);
    va_end(ap);
}

static inline void assert_said(const char *text) {
    if (!strstr(output, text))
        fail_msg("'%s' not found in:\n%s", text, output);
}

static inline const char *model(void) {
    static char hash[65];
    const char *at = strstr(output, "\nmodel ");
    if (!at)
        fail_msg("no model in:\n%s", output);
    assert_ended_well(output);
    snprintf(hash, sizeof(hash), "%s", at + 7);
    return hash;
}

/* Of a run alone and undisturbed, made once. */
static inline const char *right_model(void) {
    static char hash[65];
    char kept[sizeof(output)];
    if (*hash)
        return hash;
    memcpy(kept, output, sizeof(output));
    run(&(struct job){.world = 1}, "--steps=%d", STEPS);
    snprintf(hash, sizeof(hash), "%s", model());
    memcpy(output, kept, sizeof(output));
    return hash;
}

static inline void assert_right(void) {
    char ended[65];
    snprintf(ended, sizeof(ended), "%s", model());
    assert_string_equal(ended, right_model());
}

__attribute__((format(printf, 1, 2))) static inline int shell(const char *command, ...) {
    char text[PATH_MAX * 2];
    va_list ap;
    int n = snprintf(text, sizeof(text), "cd %s && ", place);
    va_start(ap, command);
    vsnprintf(text + n, sizeof(text) - (size_t)n, command, ap);
    va_end(ap);
    return system(text);
}

static inline int place_setup(void **state) {
    (void)state;
    snprintf(place, sizeof(place), "/tmp/test-saves-XXXXXX");
    return mkdtemp(place) ? 0 : -1;
}

static inline int place_teardown(void **state) {
    (void)state;
    return shell("rm -rf %s", place);
}
