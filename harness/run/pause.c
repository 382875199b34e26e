#include "harness/run/engine.h"

#include <unistd.h>

/* `run --keep` at a terminal: the job has ended, or was stopped, and the cluster stays up to be
 * looked at until somebody types Enter or Ctrl-C. */

static void on_enter(void *arg, int fd, int what) {
    char line[256];
    (void)what;
    if (read(fd, line, sizeof(line)) >= 0) /* 0: the terminal is gone */
        pause_end(arg);
}

static bool wanted(struct engine *e) {
    return e->spec->keep && e->spec->control && !e->failure.code &&
           !history_newest(e->rec.history, SOURCE_HARNESS, "interrupted") && isatty(STDIN_FILENO) &&
           isatty(STDOUT_FILENO);
}

bool pause_begin(struct engine *e) {
    if (e->pause)
        return true;
    if (!wanted(e))
        return false;
    e->pause = loop_fd(e->loop, STDIN_FILENO, LOOP_READ, on_enter, e);
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "kept");
    json_put_string(w, "dir", e->spec->folder->path);
    engine_recorded(e);
    return true;
}

void pause_end(struct engine *e) {
    if (!e->pause)
        return;
    e->pause = loop_source_free(e->pause);
    engine_take_down(e);
}
