#include "faults/mechanism/clock_page.h"

#include "base/str.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static int put(int fd, const void *data, size_t n, off_t at, struct err *err) {
    ssize_t done = pwrite(fd, data, n, at);
    return done == (ssize_t)n ? 0
                              : err_set(err, done < 0 ? -errno : -EIO, "write the page of a clock");
}

static bool get(int fd, void *data, size_t n, off_t at) {
    return pread(fd, data, n, at) == (ssize_t)n;
}

int clock_page_make(int fd, struct err *err) {
    const struct clock_setting right = {.version = CLOCK_PAGE_VERSION};
    if (ftruncate(fd, CLOCK_READERS_AT + (off_t)sizeof(struct clock_readers)) != 0)
        return err_set(err, -errno, "make the page of a clock");
    return put(fd, &right, sizeof(right), 0, err);
}

int clock_page_setting(int fd, struct clock_setting *ret) {
    if (!get(fd, ret, sizeof(*ret), 0) || ret->version != CLOCK_PAGE_VERSION)
        return -EIO;
    return 0;
}

static int put_seq(int fd, struct clock_setting *s, struct err *err) {
    s->seq++;
    return put(fd, &s->seq, sizeof(s->seq), offsetof(struct clock_setting, seq), err);
}

/* The places of readers are given away anew: who has one of an earlier setting asks again. */
int clock_page_set(int fd, const struct clock_shift *shift, struct err *err) {
    static const struct clock_shift right = {0};
    const uint32_t none = 0;
    struct clock_setting s;
    int r = clock_page_setting(fd, &s);
    if (r)
        return err_say(err, r,
                       "the page of the clock is not what it was: a program has changed it");
    if (shift && !clock_shift_is_none(&s.shift))
        return err_say(err, -EBUSY, "the clock is wrong already");
    r = put(fd, &none, sizeof(none), CLOCK_READERS_AT + offsetof(struct clock_readers, taken), err);
    r = r ? r : put_seq(fd, &s, err);
    s.generation++;
    s.shift = shift ? *shift : right;
    r = r ? r : put(fd, &s, sizeof(s), 0, err);
    return r ? r : put_seq(fd, &s, err);
}

/* Whoever writes it makes seq odd before and even after: read twice alike it is whole. */
static bool read_reader(int fd, size_t i, uint32_t generation, struct clock_reader *ret) {
    off_t at = CLOCK_READERS_AT +
               (off_t)(offsetof(struct clock_readers, v) + i * sizeof(struct clock_reader));
    struct clock_reader again;
    if (!get(fd, ret, sizeof(*ret), at) || !get(fd, &again, sizeof(again), at))
        return false;
    ret->busy = again.busy;
    ret->program[CLOCK_PROGRAM_MAX - 1] = again.program[CLOCK_PROGRAM_MAX - 1] = '\0';
    return memcmp(ret, &again, sizeof(again)) == 0 && ret->seq % 2 == 0 &&
           ret->generation == generation;
}

int clock_page_witness(int fd, struct clock_witness *ret) {
    struct clock_setting s;
    uint32_t head[2];
    if (clock_page_setting(fd, &s) != 0 || !get(fd, head, sizeof(head), CLOCK_READERS_AT))
        return -EIO;
    ret->loaded = head[0];
    ret->asked = head[1];
    ret->n = 0;
    for (size_t i = 0; i < head[1] && i < CLOCK_READERS_MAX; i++)
        ret->n += read_reader(fd, i, s.generation, &ret->v[ret->n]);
    return 0;
}

/* A coarse clock of the kernel's lags by one of its ticks. */
static const int64_t lag_ns = 20000000;

static void add_told(struct clock_told *c, const struct clock_reader *r) {
    if (!c->any || r->first.real_ns < c->first.real_ns)
        c->first = r->first;
    if (!c->any || r->last.real_ns > c->last.real_ns)
        c->last = r->last;
    if (!c->any || clock_ahead_by(&r->least) < clock_ahead_by(&c->least))
        c->least = r->least;
    if (!c->any || clock_ahead_by(&r->most) > clock_ahead_by(&c->most))
        c->most = r->most;
    memcpy(c->program, r->program, sizeof(c->program));
    c->any = true;
}

int clock_page_told(int fd, int64_t since_ns, struct clock_told *ret) {
    static struct clock_witness w; /* large */
    int r = clock_page_witness(fd, &w);
    if (r)
        return r;
    *ret = (struct clock_told){0};
    for (size_t i = 0; i < w.n; i++)
        if (w.v[i].first.real_ns >= since_ns - lag_ns)
            add_told(ret, &w.v[i]);
    return 0;
}

/* ---- who reads it ---- */

const char *const *clock_page_env(struct arena *a, const char *const *env, const char *object,
                                  const char *path) {
    static const char preload[] = "LD_PRELOAD=";
    const char *users = preload;
    size_t given = 0, kept = 0;
    while (env[given])
        given++;
    const char **more = arena_array(a, const char *, given + 3);
    for (size_t i = 0; i < given; i++)
        if (str_starts(env[i], preload))
            users = env[i];
        else
            more[kept++] = env[i];
    more[kept++] = arena_printf(a, "%s%s%s", users, users[strlen(preload)] ? ":" : "", object);
    more[kept++] = arena_printf(a, CLOCK_PAGE_VARIABLE "=%s", path);
    more[kept] = NULL;
    return more;
}
