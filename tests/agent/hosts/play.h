/* play: one command on several hosts, which are this one: its far ends, an ssh and the agents are the test's own program,
 * started anew (actor.h). Time, and what is to be watched, are the test's. */
#pragma once

#include "agent/hosts/fleet.h"
#include "tests/agent/hosts/actor.h"
#include "tests/agent/hosts/calls.h"
#include "tests/agent/hosts/stage.h"

#include <dlfcn.h>
#include <event2/event.h>
#include <sys/time.h>

enum { WORDS_MAX = 24, HOSTS_AT_ONCE = 4 };

struct given {
    const char *name;
    const char *words[WORDS_MAX];
};

#define HERE   "127.0.0.1"
#define HERE_2 "127.0.0.2"
#define HOST(name, ...)                                                                            \
    {                                                                                              \
        name, {                                                                                    \
            "rankrun", "agent", __VA_ARGS__, NULL                                                  \
        }                                                                                          \
    }

static char self[PATH_MAX], an_ssh[PATH_MAX + 16];
static struct fleet_spec spec;
static struct err err;
static int terminal; /* 1, 2; 0: neither is one */

/* ---- time ---- */

static int watched;  /* so often something was to be watched */
static int fails;    /* the one that cannot be, there being no room; 0: none */
static bool hurries; /* what a timer waits for is there at once */
static double waited_s;

int event_add(struct event *ev, const struct timeval *timeout) {
    static int (*add)(struct event *, const struct timeval *);
    static const struct timeval at_once;
    if (!add)
        *(void **)&add = dlsym(RTLD_NEXT, "event_add");
    if (!timeout && ++watched == fails) {
        errno = ENOSPC;
        return -1;
    }
    if (!timeout)
        return add(ev, NULL);
    waited_s = (double)timeout->tv_sec + (double)timeout->tv_usec / 1e6;
    return add(ev, hurries ? &at_once : timeout);
}

static bool no_loop;

struct event_base *event_base_new_with_config(const struct event_config *config) {
    static struct event_base *(*make)(const struct event_config *);
    if (!make)
        *(void **)&make = dlsym(RTLD_NEXT, "event_base_new_with_config");
    errno = EMFILE;
    return no_loop ? NULL : make(config);
}

/* ---- a fleet ---- */

static int fresh(void **state) {
    (void)state;
    char pid[16];
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("LAUNCHER", pid, 1);
    setenv("HEARD", stage.paths[1], 1);
    unsetenv("SHOWN");
    spec = (struct fleet_spec){.min = 1, .ssh = an_ssh};
    calls = (struct calls){0};
    hurries = no_loop = false;
    watched = fails = 0;
    terminal = 0;
    waited_s = 0;
    memset(&err, 0, sizeof(err));
    line_as_json(false);
    return 0;
}

static int play(const struct given *given, size_t n) {
    struct host hosts[HOSTS_AT_ONCE];
    const char *argv[HOSTS_AT_ONCE][WORDS_MAX];
    const char *const *all[HOSTS_AT_ONCE];
    for (size_t i = 0; i < n; i++) {
        hosts[i] = (struct host){given[i].name, 0};
        memcpy(argv[i], given[i].words, sizeof(argv[i]));
        argv[i][0] = spec.plain ? self : argv[i][0];
        all[i] = argv[i];
    }
    spec.hosts = (struct hosts){hosts, n};
    spec.argv = all;
    stage_begin();
    if (terminal)
        stage_as_terminal(terminal);
    int code = fleet_run(&spec, &err);
    calls = (struct calls){0};
    stage_end(terminal);
    if (n > 1)
        stage_sort(stage.said[0]);
    return code;
}

static void expect(const struct given *given, size_t n, int code, const char *out,
                   const char *said) {
    int is = play(given, n);
    stage_assert("standard output", stage.said[0], out);
    stage_assert("standard error", stage.said[1], said);
    assert_int_equal(is, code);
}

#define ONE(...) (const struct given[]){HOST(__VA_ARGS__)}, 1

/* Of a test's main: true when there is nothing else to do, and *ret is the exit code. */
static bool play_begin(int argc, char **argv, int *ret) {
    *ret = actor_main(argc, argv);
    if (*ret >= 0)
        return true;
    alarm(100); /* who hangs is ended */
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n > 0 ? n : 0] = '\0';
    snprintf(an_ssh, sizeof(an_ssh), "%s an-ssh", self);
    stage_open();
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return false;
}
