#include "harness/preflight/slurm_settings.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { VALUE_MAX = 200, SENTENCE_MAX = 320, BOOT_LEAST_S = 300, MESSAGES_LEAST = 5 };

/* ---- what is there ---- */

/* KEY = VALUE, each on a line of its own. False: it is not there. */
static bool find(const char *config, const char *key, char ret[VALUE_MAX]) {
    size_t n = strlen(key);
    for (const char *line = config; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) != 0)
            continue;
        const char *at = line + n + strspn(line + n, " \t");
        if (*at != '=')
            continue;
        at += 1 + strspn(at + 1, " \t");
        snprintf(ret, VALUE_MAX, "%.*s", (int)strcspn(at, "\n"), at);
        return true;
    }
    return false;
}

/* "30 sec", "unlimited" */
static bool find_seconds(const char *config, const char *key, int64_t *ret) {
    char value[VALUE_MAX];
    if (!find(config, key, value))
        return false;
    value[strcspn(value, " ")] = '\0';
    return str_to_i64(value, 0, INT32_MAX, ret);
}

static bool is_set(const char *config, const char *key) {
    char value[VALUE_MAX];
    return find(config, key, value) && *value && !str_eq(value, "(null)") &&
           strcasecmp(value, "none") != 0;
}

static bool has_word(const char *list, const char *word) {
    return strcasestr(list, word) != NULL;
}

/* KEY=VALUE in a line of words. */
static bool find_word(const char *line, const char *key, char ret[VALUE_MAX]) {
    size_t n = strlen(key), end = strcspn(line, "\n");
    for (const char *at = line; at < line + end; at += strcspn(at, " \n") + 1)
        if (strncmp(at, key, n) == 0 && at[n] == '=') {
            snprintf(ret, VALUE_MAX, "%.*s", (int)strcspn(at + n + 1, " \n"), at + n + 1);
            return true;
        }
    return false;
}

/* ---- what follows ---- */

struct saying {
    const struct slurm_settings *s;
    slurm_betrayal_fn *fn;
    void *arg;
    int n;
};

static void say(struct saying *y, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct saying *y, const char *fmt, ...) {
    char sentence[SENTENCE_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, ap);
    va_end(ap);
    y->fn(y->arg, sentence);
    y->n++;
}

static void kill_wait(struct saying *y) {
    int64_t s, grace = y->s->grace_s;
    if (find_seconds(y->s->config, "KillWait", &s) && s < grace)
        say(y,
            "KillWait is %" PRId64 " s: at a time limit, scancel or preemption what has not saved "
            "by then is killed, and a save may take %" PRId64 " s (--grace); set KillWait=%" PRId64,
            s, grace, grace + 5);
}

static void requeue(struct saying *y) {
    int64_t is;
    if (find_seconds(y->s->config, "JobRequeue", &is) && is == 0)
        say(y, "JobRequeue is 0: a job whose node fails or that is preempted is over; set "
               "JobRequeue=1, or submit with --requeue");
}

static void unkillable(struct saying *y) {
    int64_t is, message;
    if (find_seconds(y->s->config, "UnkillableStepTimeout", &is) &&
        find_seconds(y->s->config, "MessageTimeout", &message) && is < MESSAGES_LEAST * message)
        say(y,
            "UnkillableStepTimeout is %" PRId64
            " s: where a killed process lingers longer, as on a "
            "storage that hangs, its node is drained, and the job's next attempt lacks it; set "
            "%" PRId64 " or more, five times MessageTimeout",
            is, MESSAGES_LEAST * message);
}

static void resume(struct saying *y) {
    int64_t is;
    if (is_set(y->s->config, "ResumeProgram") && find_seconds(y->s->config, "ResumeTimeout", &is) &&
        is < BOOT_LEAST_S)
        say(y,
            "ResumeTimeout is %" PRId64
            " s: a node that is not up again by then is taken for down, "
            "and the job that waits for it is requeued; set it above the time of a boot, %d or "
            "more",
            is, BOOT_LEAST_S);
}

static void return_to_service(struct saying *y) {
    int64_t is;
    if (find_seconds(y->s->config, "ReturnToService", &is) && is == 0)
        say(y,
            "ReturnToService is 0: a node that was down stays so when it is back, so a job never "
            "grows again; set ReturnToService=1");
}

static void proctrack(struct saying *y) {
    char value[VALUE_MAX];
    if (!find(y->s->config, "ProctrackType", value) || has_word(value, "cgroup"))
        return;
    say(y,
        "ProctrackType is %s: a worker %s is not ended with its step, and holds its port and GPU "
        "in "
        "the next attempt; set proctrack/cgroup",
        value,
        has_word(value, "pgid") ? "that leads a group of its own" : "whose agent has died first");
}

static void task_plugin(struct saying *y) {
    char value[VALUE_MAX];
    if (find(y->s->config, "TaskPlugin", value) && !has_word(value, "cgroup"))
        say(y,
            "TaskPlugin is %s: nothing keeps a job to its own memory, processors and GPUs, so one "
            "that leaks takes its neighbours along; set task/cgroup,task/affinity",
            value);
}

static void prolog_flags(struct saying *y) {
    char value[VALUE_MAX];
    if (find(y->s->config, "PrologFlags", value) && !has_word(value, "Contain"))
        say(y,
            "PrologFlags lack Contain: what ssh starts on a node of the job is not the job's, and "
            "outlives it%s; set PrologFlags=Alloc,Contain",
            is_set(y->s->config, "Prolog") && !has_word(value, "Alloc")
                ? ", and the prolog runs when a step begins, so agents start one after the other"
                : "");
}

/* A job in there that another one drives out. */
static void preempt(struct saying *y) {
    char name[VALUE_MAX], mode[VALUE_MAX], grace[VALUE_MAX];
    if (!is_set(y->s->config, "PreemptType") || !y->s->partitions)
        return;
    for (const char *line = y->s->partitions; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!find_word(line, "PartitionName", name) || !find_word(line, "PreemptMode", mode))
            continue;
        if (has_word(mode, "CANCEL"))
            say(y,
                "PreemptMode of partition %.60s is %.40s: a job that is preempted is over; set "
                "PreemptMode=REQUEUE",
                name, mode);
        else if (has_word(mode, "REQUEUE") && find_word(line, "GraceTime", grace) &&
                 !str_eq(grace, "0"))
            say(y,
                "GraceTime of partition %.60s is %.20s s: a job that ends within it, as one does "
                "that "
                "saves and exits, is not requeued; set GraceTime=0, or have scripts wait when they "
                "are told to leave",
                name, grace);
    }
}

/* ---- all of it ---- */

int slurm_settings_judge(const struct slurm_settings *s, slurm_betrayal_fn *fn, void *arg) {
    static void (*const rules[])(struct saying * y) = {
        kill_wait, requeue,     proctrack,    unkillable,        resume,
        preempt,   task_plugin, prolog_flags, return_to_service,
    };
    struct saying y = {.s = s, .fn = fn, .arg = arg};
    char version[VALUE_MAX];
    if (!find(s->config, "SLURM_VERSION", version))
        return -1;
    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
        rules[i](&y);
    return y.n;
}
