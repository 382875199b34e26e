/* Shows a run as it goes on, or one that has ended: a lane for each rank, faults, what happened last. */
#include "harness/verbs.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/loop.h"
#include "harness/run/presence.h"
#include "harness/verbs/watch/door.h"
#include "harness/verbs/watch/pursuit.h"
#include "harness/verbs/watch/say.h"
#include "harness/verbs/watch/screen.h"
#include "harness/verbs/watch/serve.h"
#include "reports/lanes.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct watching {
    struct folder run;
    struct loop *loop;
    struct pursuit *pursuit;
    struct lanes *lanes;
    struct screen *screen; /* NULL: lines are printed */
    bool strict;
    char why[400]; /* it ended without an end, "" */
    int signo;
};

static void on_begin(void *arg) {
    struct watching *w = arg;
    lanes_free(w->lanes);
    w->lanes = lanes_new(w->strict);
    if (!w->screen)
        lanes_print_to(w->lanes, stdout);
}

static void on_record(void *arg, const struct record *r) {
    struct watching *w = arg;
    lanes_record(w->lanes, r);
}

static void on_rest(void *arg) {
    struct watching *w = arg;
    fflush(stdout);
    if (w->screen)
        screen_changed(w->screen);
}

static void on_end(void *arg, const char *why) {
    struct watching *w = arg;
    str_copy(w->why, sizeof(w->why), why ? why : "");
    loop_stop(w->loop);
}

static void on_frame(void *arg, const struct report_style *style, int rows, struct buf *out) {
    struct watching *w = arg;
    lanes_frame(w->lanes, style, rows, out);
}

static void on_signal(void *arg, int signo) {
    struct watching *w = arg;
    w->signo = signo;
    loop_stop(w->loop);
}

/* Whether rounds are told apart by the restart count, too, stands in the scenario. */
static bool is_strict(const struct folder *run) {
    ARENA_FINI struct arena a = {0};
    struct diagnostics d = {0};
    struct scenario *s = scenario_load(arena_printf(&a, "%s/scenario.yaml", run->path), NULL, &d);
    bool strict = !s || !s->torchrun_semantics;
    scenario_free(s);
    diagnostics_fini(&d);
    return strict;
}

/* Elsewhere than on a terminal it was printed as it came, and the lanes follow it. */
static void print_last(const struct watching *w) {
    BUF_FINI struct buf text = {0};
    struct report_style style = report_style_of(stdout);
    if (w->screen || !w->lanes)
        return;
    lanes_frame(w->lanes, &style, LANES_MAX, &text);
    fputs(buf_str(&text), stdout);
}

static int show(struct watching *w, struct err *err) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct pursuit_calls calls = {on_begin, on_record, on_rest, on_end, w};
    w->loop = loop_new(err);
    if (!w->loop)
        return err->code;
    for (size_t i = 0; i < 3; i++)
        loop_signal(w->loop, signals[i], on_signal, w);
    w->strict = is_strict(&w->run);
    if (screen_has_frames(stdout))
        w->screen = screen_new(w->loop, stdout, on_frame, w);
    w->pursuit = pursuit_new(w->loop, &w->run, &calls, err);
    int r = w->pursuit ? loop_run(w->loop, err) : err->code;
    if (r == 0)
        print_last(w);
    w->screen = w->lanes ? screen_free(w->screen) : w->screen;
    return r;
}

/* Each line is said, in order; the first that is refused is the last. */
static int say_all(const struct folder *run, const char *const *lines) {
    struct err err = {0};
    char answer[1024];
    int r = 0, fd = say_connect(run, &err);
    if (fd < 0) {
        fprintf(stderr, "rankquake watch: %s\n", err.msg);
        return fd == -ENOENT ? EXIT_USAGE_ERROR : EXIT_BROKEN;
    }
    for (; *lines && r == 0; lines++) {
        r = say_line(fd, *lines, answer, sizeof(answer), &err);
        if (r == 0)
            printf("%s: %s\n", *lines, *answer ? answer : "done");
        else
            fprintf(stderr, "rankquake watch: %s: %s\n", *lines, r < 0 ? err.msg : answer);
    }
    close(fd);
    return r < 0 ? EXIT_BROKEN : r ? EXIT_FAIL : EXIT_PASS;
}

static int say_to(const char *path, const char *const *lines) {
    struct folder run;
    struct err err = {0};
    for (const char *const *l = lines; *l; l++)
        if (strpbrk(*l, "\n\r"))
            return verb_usage_error(&verb_watch, "--say: one line at a time");
    if (presence_find_run(&run, path, &err) < 0) {
        fprintf(stderr, "rankquake watch: %s; give the directory of a run\n", err.msg);
        return EXIT_USAGE_ERROR;
    }
    int code = say_all(&run, lines);
    folder_close(&run);
    return code;
}

static int watch_run(const char *path) {
    struct watching *w = mem_new(struct watching);
    struct err err = {0};
    int code = EXIT_PASS;
    w->run = FOLDER_NONE;
    if (presence_find_run(&w->run, path, &err) < 0) {
        fprintf(stderr, "rankquake watch: %s; give the directory of a run\n", err.msg);
        code = EXIT_USAGE_ERROR;
    } else if (show(w, &err) < 0) {
        fprintf(stderr, "rankquake watch: %s\n", err.msg);
        code = err.code == -ENOENT || err.code == -EBADMSG ? EXIT_USAGE_ERROR : EXIT_BROKEN;
    } else if (w->signo) {
        code = EXIT_INTERRUPTED;
    } else if (*w->why) {
        fprintf(stderr, "rankquake watch: %s: %s\n", w->run.path, w->why);
        code = EXIT_BROKEN;
    }
    pursuit_free(w->pursuit);
    lanes_free(w->lanes);
    loop_free(w->loop);
    folder_close(&w->run);
    free(w);
    return code;
}

static int serve(const struct arguments *a) {
    const char *at = arguments_value(a, "--at");
    struct serve_wish wish = {.beyond = arguments_value(a, "--beyond-this-host")};
    struct folder run;
    struct err err = {0};
    if (door_address(at ? at : "127.0.0.1", wish.beyond, &wish.at, &err) < 0)
        return verb_usage_error(a->verb, "--at %s", err.msg);
    if (presence_find_run(&run, a->files[0], &err) < 0) {
        fprintf(stderr, "rankquake watch: %s; give the directory of a run\n", err.msg);
        return EXIT_USAGE_ERROR;
    }
    wish.strict = is_strict(&run);
    int code = serve_history(&run, &wish);
    folder_close(&run);
    return code;
}

static int watch(const struct arguments *a) {
    bool serves = arguments_value(a, "--serve");
    if (a->files_n != 1)
        return verb_usage_error(a->verb, "name the directory of one run");
    if (serves && arguments_value(a, "--say"))
        return verb_usage_error(a->verb, "--serve and --say are two ways to say a line: take one");
    if (!serves && (arguments_value(a, "--at") || arguments_value(a, "--beyond-this-host")))
        return verb_usage_error(a->verb, "--at and --beyond-this-host say where the page of "
                                         "--serve is; add --serve");
    if (serves)
        return serve(a);
    const char **lines = arguments_all(a, "--say");
    int code = *lines ? say_to(a->files[0], lines) : watch_run(a->files[0]);
    free(lines);
    return code;
}

const struct verb verb_watch = {
    .name = "watch",
    .usage = "watch RUN [--say LINE]... [--serve [--at ADDR:PORT] [--beyond-this-host]]",
    .summary = "show a run as it goes on: its workers, its faults, what happened last",
    .example = "watch runs/tour-1-20260105-093000",
    .operands = "RUN",
    .options =
        (const struct verb_option[]){
            {"--say", "LINE",
             "do this in a run that is --interactive or --paused: 'worker-kill n1/0', 'heal ID', "
             "'break STEP', go; may be repeated"},
            {"--serve", NULL,
             "show it as a page on this host, with buttons where the run takes faults by hand; "
             "prints "
             "its address, which is for whoever may press them"},
            {"--at", "ADDR:PORT", "where to serve it (127.0.0.1, a free port)"},
            {"--beyond-this-host", NULL,
             "allow an address in --at that other hosts reach: who sees the page's address on "
             "its way can break the run"},
            {0}},
    .run = watch,
};
