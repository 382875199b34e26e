/* What moves the clocks of a node. */
#include "harness/doctor/host_question.h"

#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/namespace.h"
#include "faults/mechanism/clock_page.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const int64_t day_s = 86400;

/* A page by which it is tomorrow, for whoever is started from here on. */
static int be_ahead(char *path, struct err *err) {
    char object[4096], folder[4000];
    const struct clock_shift tomorrow = {.by_ns = day_s * 1000000000};
    FILE_CLOSE int fd = mkstemp(path);
    int r = clock_page_make(fd, err);
    r = r ? r : clock_page_set(fd, &tomorrow, err);
    snprintf(object, sizeof(object), "%s/" CLOCK_PRELOAD, file_own_folder(folder, sizeof(folder)));
    setenv("LD_PRELOAD", object, 1);
    setenv(CLOCK_PAGE_VARIABLE, path, 1);
    return r;
}

/* A program of this host, which asks the C library as a job does. */
static int64_t ask_date(void) {
    char said[64] = "";
    FILE *p = popen("exec date +%s", "re");
    if (p && !fgets(said, sizeof(said), p))
        said[0] = '\0';
    if (p)
        pclose(p);
    return atoll(said) - clock_realtime_ns() / 1000000000;
}

static bool look_clock(struct question_result *r) {
    const char *tmp = getenv("TMPDIR");
    char path[4096];
    struct err err = {0};
    snprintf(path, sizeof(path), "%.4000s/rankquake-clock-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    int code = be_ahead(path, &err);
    int64_t ahead_s = code ? 0 : ask_date();
    unlink(path);
    if (code)
        return question_lacks(r, "let TMPDIR name a folder that you may write to", "%.200s",
                              err.msg);
    if (ahead_s > day_s - 60 && ahead_s < day_s + 3600)
        return question_works(r, "date was told that it is tomorrow");
    return question_lacks(r, "type make, or make install: " CLOCK_PRELOAD " lies beside rankquake",
                          "the wall clock of a program was set and did not move (date says %lld s)",
                          (long long)ahead_s);
}

const struct host_question host_question_clock = {
    .name = "clock",
    .gives = "wall clocks that jump, drift and strobe",
    .need = FAULT_NEEDS_PRELOAD,
    .look = look_clock,
};

static bool look_uptime(struct question_result *r) {
    struct err err;
    if (namespace_check_uptime(&err) == 0)
        return question_works(r, "a process was given an uptime of its own");
    return question_lacks(
        r,
        "a kernel with CONFIG_TIME_NS (5.6 or newer); in a container, --cap-add SYS_TIME "
        "--cap-add SYS_ADMIN",
        "%.200s", err.msg);
}

const struct host_question host_question_uptime = {
    .name = "uptime",
    .gives = "nodes whose uptime is not the host's",
    .need = FAULT_NEEDS_UPTIME,
    .part = QUESTION_FOR_NAMESPACES,
    .look = look_uptime,
};
