#include "harness/run/pause.h"

#include <signal.h>
#include <unistd.h>

struct pause {
    struct loop_source *enter; /* NULL: there is no pause */
};

static void go_on(struct engine *e) {
    struct pause *p = own(e, pause);
    if (!p->enter)
        return;
    p->enter = loop_source_free(p->enter);
    engine_take_down(e);
}

static void on_enter(void *arg, int fd, int what) {
    char line[256];
    if (read(fd, line, sizeof(line)) >= 0) /* 0: the terminal is gone */
        go_on(arg);
}

static bool wanted(struct engine *e) {
    return e->spec->keep && e->spec->control && !e->failure.code &&
           !history_newest(e->rec.history, SOURCE_HARNESS, "interrupted") && isatty(STDIN_FILENO) &&
           isatty(STDOUT_FILENO);
}

bool pause_begin(struct engine *e) {
    struct pause *p = own(e, pause);
    if (p->enter)
        return true;
    if (!wanted(e))
        return false;
    p->enter = loop_fd(e->loop, STDIN_FILENO, LOOP_READ, on_enter, e);
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "kept");
    json_put_string(w, "dir", e->spec->folder->path);
    engine_recorded(e);
    return true;
}

static void on_signal(void *arg, int signo) {
    struct engine *e = arg;
    if (e->phase < ENGINE_ENDING) {
        struct json_writer *w = engine_record(e, SOURCE_HARNESS, "interrupted");
        json_put_i64(w, "signal", signo);
        engine_recorded(e);
        engine_end(e, "interrupted");
    }
    go_on(e);
}

static int open_pause(struct engine *e, struct err *err) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
        loop_signal(e->loop, signals[i], on_signal, e);
    return 0;
}

const struct run_part run_part_pause = {
    .size = sizeof(struct pause),
    .open = open_pause,
};
