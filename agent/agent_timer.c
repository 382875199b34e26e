#include "agent/agent_timer.h"

#include "agent/workers/file_timer.h"
#include "agent/workers/guard.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/line.h"
#include "base/sys/random.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct agent_timer {
    struct guard *guard;
    struct file_timer *timer;
    char path[PATH_MAX];
    pid_t expired; /* the last one; 0: none */
    char why[FILE_TIMER_SCOPE + 64];
};

static void on_expired(void *arg, pid_t pid, int signo, const char *scope, int64_t late_ns) {
    struct agent_timer *t = arg;
    int code = guard_signal_one(t->guard, pid, signo);
    const struct line_field fields[] = {
        {"pid", NULL, pid}, {"signal", NULL, signo}, {.key = "scope", .text = scope}};
    const struct line line = {.level = code == 0 ? LINE_ERROR : LINE_WARNING,
                              .what = "timer",
                              .fields = fields,
                              .n_fields = 3};
    if (code == 0) {
        t->expired = pid;
        snprintf(t->why, sizeof(t->why), "its timer \"%s\" expired", scope);
        line_put(&line, "pid %d: its timer \"%s\" expired %lld ms ago, signal %d", (int)pid, scope,
                 (long long)(late_ns / 1000000), signo);
    } else {
        line_put(&line, "pid %d: its timer \"%s\" expired, but %s", (int)pid, scope,
                 code == -ESRCH ? "it is no process of this job (any more)" : strerror(-code));
    }
}

static void on_odd(void *arg, const char *what) {
    line_say(LINE_WARNING, "timer", "TORCHELASTIC_TIMER_FILE: %s; this is told once", what);
}

static const struct file_timer_events events = {.expired = on_expired, .odd = on_odd};

static void choose_path(struct agent_timer *t) {
    const char *given = getenv("TORCHELASTIC_TIMER_FILE");
    if (given && given[0])
        snprintf(t->path, sizeof(t->path), "%s", given);
    else
        snprintf(t->path, sizeof(t->path), "%s/watchdog_timer_%016" PRIx64 "%016" PRIx64,
                 file_temp_base(), random_u64(), random_u64());
}

int agent_timer_new(struct loop *l, struct guard *g, struct agent_timer **ret, struct err *err) {
    const char *wanted = getenv("TORCHELASTIC_ENABLE_FILE_TIMER");
    *ret = NULL;
    if (!str_eq(wanted, "1"))
        return 0;
    struct agent_timer *t = mem_new(struct agent_timer);
    t->guard = g;
    choose_path(t);
    t->timer = file_timer_new(l, t->path, &events, t, err);
    if (!t->timer) {
        free(t);
        return err_wrap(err, "TORCHELASTIC_TIMER_FILE: "), err->code;
    }
    *ret = t;
    return 0;
}

struct agent_timer *agent_timer_free(struct agent_timer *t) {
    if (!t)
        return NULL;
    file_timer_free(t->timer);
    free(t);
    return NULL;
}

const char *agent_timer_path(const struct agent_timer *t) {
    return t ? t->path : NULL;
}

void agent_timer_begin(struct agent_timer *t) {
    if (!t)
        return;
    t->expired = 0;
    file_timer_clear(t->timer);
}

const char *agent_timer_end(struct agent_timer *t, pid_t pid, const char *error) {
    if (!t)
        return error;
    file_timer_forget(t->timer, pid);
    return t->expired == pid && !error[0] ? t->why : error;
}
