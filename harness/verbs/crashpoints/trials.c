/* Starts the command again and again, each time with another state of its directory. */
#include "harness/verbs/crashpoints/crashing.h"

#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/unix_address.h"
#include "harness/crash/folder.h"
#include "harness/crash/told.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct running_trial {
    struct crashing *c;
    struct trial_ask ask;
    struct resumption *ret;
    struct crash_stage stage;
    int output; /* -1: nothing is on */
    struct told_events *told;
    struct attempt_told heard;
};

/* ---- inside the stage ---- */

/* In its own process: what it changes of the states is forgotten. */
static int fill(void *arg, const char *path, struct err *err) {
    struct running_trial *t = arg;
    char disks[PATH_MAX];
    crashing_disks(t->c, path, disks);
    if (!t->ask.removed)
        return crashing_make_disks(t->c, path, err);
    if (t->c->scenario && mkdir(disks, 0755) != 0)
        return err_set(err, -errno, "make %s", disks);
    int r = t->ask.copy ? crashing_copy(t->ask.copy, disks, err)
                        : crash_folder_write(&t->c->states, t->ask.state, disks, err);
    if (r || !*t->ask.removed)
        return r;
    char *doomed = mem_printf("%s/%s", disks, t->ask.removed);
    r = file_remove_tree(doomed, err);
    if (r == -ENOTDIR)
        r = unlink(doomed) == 0 ? 0 : -errno;
    free(doomed);
    return r;
}

int crashing_sum(const struct crashing *c, const char *path, char ret[65]) {
    struct sha256 whole;
    char one[65];
    if (!c->finals || !*c->finals)
        return crash_folder_hash(path, ret, NULL);
    sha256_init(&whole);
    for (const char **f = c->finals; *f; f++) {
        BUF_FINI struct buf bytes = {0};
        char *file = mem_printf("%s/%s", path, *f);
        int r = file_read_plain(file, (size_t)4 << 30, &bytes, NULL);
        free(file);
        sha256_of(bytes.data ? bytes.data : "", bytes.len, one);
        sha256_update(&whole, r ? "-" : one, r ? 1 : 64);
    }
    sha256_hex(&whole, ret);
    return 0;
}

static int sum(void *arg, const char *path, char ret[65]) {
    const struct running_trial *t = arg;
    char disks[PATH_MAX];
    return crashing_sum(t->c, crashing_disks(t->c, path, disks), ret);
}

/* ---- one trial ---- */

static const char *put_dir(struct arena *a, const char *word, const char *dir) {
    static const char place[] = "{dir}";
    const char *at;
    while ((at = strstr(word, place)))
        word = arena_printf(a, "%.*s%s%s", (int)(at - word), word, dir, at + strlen(place));
    return word;
}

const char *crashing_events(const struct crashing *c, struct arena *arena, const char *name) {
    const char *path = arena_printf(arena, "%s/scratch/told/%s", c->out.path, name);
    char drawn[UNIX_ADDRESS_MAX];
    if (c->namespaces || unix_address_fits(path))
        return path;
    unix_address_draw(name, drawn);
    return arena_strdup(arena, drawn);
}

struct stage_spec crashing_stage(const struct crashing *c) {
    return (struct stage_spec){.argv = c->argv,
                               .cwd = c->cwd,
                               .dir = c->dir,
                               .namespaces = c->namespaces,
                               .network = c->network && c->namespaces,
                               .result = c->result};
}

/* Where all see one tree each trial has a directory of its own. */
static void take_place(struct running_trial *t, size_t slot, struct arena *a,
                       struct stage_spec *s) {
    size_t n = 0;
    if (t->c->namespaces || !t->c->placed)
        return;
    s->dir = arena_printf(a, "%s/scratch/stage-%zu", t->c->out.path, slot);
    while (t->c->words[n])
        n++;
    const char **v = arena_array(a, const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        v[i] = put_dir(a, t->c->words[i], s->dir);
    s->argv = v;
    if (t->c->result_asked)
        s->result = put_dir(a, t->c->result_asked, s->dir);
}

static void hear(void *arg, const struct told_event *e) {
    struct running_trial *t = arg;
    attempt_heard(&t->heard, e->kind, e->step, e->text);
}

static void begin(struct running_trial *t, size_t slot) {
    ARENA_FINI struct arena arena = {0};
    struct stage_spec s = crashing_stage(t->c);
    struct err err = {0};
    const char *events = crashing_events(t->c, &arena, arena_printf(&arena, "%zu", slot));
    t->output = memfd_create("output", MFD_CLOEXEC);
    t->heard = (struct attempt_told){-1, -1, "", false};
    t->told = told_new(events, hear, t, NULL);
    take_place(t, slot, &arena, &s);
    s.events = t->told ? events : NULL;
    s.output = t->output;
    s.limit_ns = t->c->limit_ns;
    s.fill = fill;
    s.sum = sum;
    s.arg = t;
    if (t->output >= 0 && stage_start(&s, &t->stage, &err) == 0)
        return;
    *t->ret = (struct resumption){.how = ATTEMPT_BROKEN, .resumed = -1};
    str_copy(t->ret->why, sizeof(t->ret->why), err.msg);
    t->told = told_free(t->told);
    file_close(&t->output);
}

static void finish(struct running_trial *t) {
    struct stage_end end;
    stage_take(&t->stage, &end);
    told_take(t->told);
    attempt_read(t->c, &end, t->output, t->ret);
    attempt_take_told(t->ret, &t->heard);
    t->told = told_free(t->told);
    file_close(&t->output);
}

/* ---- side by side ---- */

struct trial_pool {
    struct running_trial *v;
    size_t n, next, of, running;
    const struct trial_ask *asks;
    struct resumption *ret;
    struct crashing *c;
    size_t ended;
    struct headway headway;
};

static bool may_go_on(const struct crashing *c) {
    return !*c->interrupted && (!c->until_ns || clock_monotonic_ns() < c->until_ns);
}

static void start_more(struct trial_pool *p) {
    for (size_t i = 0; i < p->n; i++)
        while (p->v[i].output < 0 && p->next < p->of && may_go_on(p->c)) {
            p->v[i] =
                (struct running_trial){.c = p->c, .ask = p->asks[p->next], .ret = &p->ret[p->next]};
            p->next++;
            begin(&p->v[i], i);
            p->running += p->v[i].output >= 0;
        }
}

/* The budget ends what is on, too. */
static void wait_any(struct trial_pool *p, struct pollfd *fds) {
    for (size_t i = 0; i < p->n; i++) {
        bool on = p->v[i].output >= 0;
        fds[2 * i] = (struct pollfd){.fd = on ? p->v[i].stage.process.pidfd : -1, .events = POLLIN};
        fds[2 * i + 1] = (struct pollfd){.fd = on && p->v[i].told ? told_fd(p->v[i].told) : -1,
                                         .events = POLLIN};
    }
    int64_t left_ns = p->c->until_ns ? p->c->until_ns - clock_monotonic_ns() : 1000000000;
    int n = poll(fds, 2 * p->n, left_ns < 0 ? 0 : (int)(left_ns / 1000000) + 1);
    for (size_t i = 0; i < p->n; i++) {
        if (n > 0 && fds[2 * i + 1].revents)
            told_take(p->v[i].told);
        if (n > 0 && fds[2 * i].revents) {
            finish(&p->v[i]);
            p->running--;
            headway_at(&p->headway, (int64_t)++p->ended, NULL);
        }
    }
}

static void end_all(struct trial_pool *p) {
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].output >= 0) {
            struct stage_end ignored;
            stage_kill(&p->v[i].stage);
            stage_take(&p->v[i].stage, &ignored);
            p->v[i].told = told_free(p->v[i].told);
            file_close(&p->v[i].output);
            *p->v[i].ret = (struct resumption){.resumed = -1};
        }
}

bool crashing_try(struct crashing *c, const struct trial_ask *asks, struct resumption *ret,
                  size_t n) {
    size_t at_once = (size_t)c->jobs < n ? (size_t)c->jobs : n;
    struct trial_pool p = {.n = at_once, .of = n, .asks = asks, .ret = ret, .c = c};
    struct pollfd *fds = mem_array(struct pollfd, 2 * at_once + 1);
    p.v = mem_array(struct running_trial, at_once + 1);
    for (size_t i = 0; i < at_once; i++)
        p.v[i].output = -1;
    headway_begin(&p.headway, &(struct headway_spec){.out = stdout,
                                                     .verb = "crashpoints",
                                                     .unit = "trials",
                                                     .total = (int64_t)n,
                                                     .until_ns = c->until_ns,
                                                     .wish = c->wish});
    start_more(&p);
    while (p.running && may_go_on(c)) {
        wait_any(&p, fds);
        start_more(&p);
    }
    headway_end(&p.headway);
    end_all(&p);
    free(p.v);
    free(fds);
    return !*c->interrupted;
}
