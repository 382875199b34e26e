#include "harness/verbs/watch/serve.h"

#include "base/str.h"
#include "base/sys/loop.h"
#include "harness/run/presence.h"
#include "harness/verb.h"
#include "harness/verbs/watch/pursuit.h"
#include "harness/verbs/watch/web.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

struct serving {
    const struct folder *run;
    struct loop *loop;
    struct pursuit *pursuit;
    struct lanes *lanes;
    struct web *web;
    bool strict;
    bool went_on;  /* its harness lived when this began */
    char why[400]; /* it ended without an end, "" */
    int signo;
};

static void on_begin(void *arg) {
    struct serving *s = arg;
    web_changed(s->web, NULL);
    lanes_free(s->lanes);
    s->lanes = lanes_new(s->strict);
}

static void on_record(void *arg, const struct record *r) {
    struct serving *s = arg;
    lanes_record(s->lanes, r);
}

static void on_rest(void *arg) {
    struct serving *s = arg;
    web_changed(s->web, s->lanes);
}

static void on_end(void *arg, const char *why) {
    struct serving *s = arg;
    str_copy(s->why, sizeof(s->why), why ? why : "");
    web_end(s->web, s->why);
}

/* A run that had ended before is shown until somebody ends this. */
static void on_told(void *arg) {
    struct serving *s = arg;
    if (s->went_on)
        loop_stop(s->loop);
}

static void on_signal(void *arg, int signo) {
    struct serving *s = arg;
    s->signo = signo;
    loop_stop(s->loop);
}

static bool goes_on(const struct folder *run) {
    ARENA_FINI struct arena a = {0};
    struct presence p;
    return presence_read_living(run, &a, &p) == 0;
}

static void print_address(const struct serving *s) {
    char url[WEB_URL];
    web_url(s->web, url);
    printf("%s\n", url);
    fflush(stdout);
}

static int show(struct serving *s, const struct serve_wish *wish, struct err *err) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct pursuit_calls calls = {on_begin, on_record, on_rest, on_end, s};
    s->loop = loop_new(err);
    if (!s->loop)
        return err->code;
    for (size_t i = 0; i < 3; i++)
        loop_signal(s->loop, signals[i], on_signal, s);
    s->went_on = goes_on(s->run);
    s->web = web_new(s->loop, s->run, &wish->at, wish->beyond, on_told, s, err);
    s->pursuit = s->web ? pursuit_new(s->loop, s->run, &calls, err) : NULL;
    if (!s->pursuit)
        return err->code;
    print_address(s);
    return loop_run(s->loop, err);
}

int serve_history(const struct folder *run, const struct serve_wish *wish) {
    struct serving s = {.run = run, .strict = wish->strict};
    struct err err = {0};
    int code = EXIT_PASS;
    if (show(&s, wish, &err) < 0) {
        fprintf(stderr, "rankquake watch: %s\n", err.msg);
        code = err.code == -ENOENT || err.code == -EBADMSG ? EXIT_USAGE_ERROR : EXIT_BROKEN;
    } else if (s.signo) {
        code = EXIT_INTERRUPTED;
    } else if (*s.why) {
        fprintf(stderr, "rankquake watch: %s: %s\n", run->path, s.why);
        code = EXIT_BROKEN;
    }
    pursuit_free(s.pursuit);
    web_free(s.web);
    lanes_free(s.lanes);
    loop_free(s.loop);
    return code;
}
