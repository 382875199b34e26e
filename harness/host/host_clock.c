#include "harness/host/host_clock.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "base/sys/random.h"
#include "harness/carrier/host_record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_LONGEST = 192, SAID_MAX = 4096 };

static const int64_t TRY_WAIT_NS = 10000000000;

/* ---- the file ---- */

/* What the names of an owner's begin with; "": of all on this host. */
static void begin_of(const char *owner, char ret[NAME_LONGEST]) {
    char host[HOST_RECORD_NAME_MAX];
    host_record_host(host);
    snprintf(ret, NAME_LONGEST, "%s.clock.%.96s%s", host, owner, *owner ? "." : "");
}

/* Others may reach a file whose name they know, and find none that they do not know. */
static int make_file(const char *name, struct err *err) {
    FILE_CLOSE int dir = host_record_folder(err);
    if (dir < 0)
        return dir;
    int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(err, -errno, "make the page of a clock, %s", name);
    int r = fchmod(dir, 0711) != 0 || fchmod(fd, 0666) != 0
                ? err_set(err, -errno, "let programs write into %s", name)
                : clock_page_make(fd, err);
    if (r == 0)
        return fd;
    close(fd);
    unlinkat(dir, name, 0);
    return r;
}

int host_clock_make(struct host_clock *ret, const char *owner, const char *programs,
                    struct err *err) {
    char begin[NAME_LONGEST], name[NAME_LONGEST + 17], path[HOST_RECORD_NAME_MAX];
    begin_of(owner, begin);
    snprintf(name, sizeof(name), "%s%016llx", begin, (unsigned long long)random_u64());
    *ret = HOST_CLOCK_NONE;
    ret->page = make_file(name, err);
    if (ret->page < 0)
        return ret->page;
    snprintf(ret->path, sizeof(ret->path), "%s/%.185s", host_record_path(path), name);
    snprintf(ret->object, sizeof(ret->object), "%.4000s/" CLOCK_PRELOAD, programs);
    return 0;
}

int host_clock_end(struct host_clock *c) {
    if (c->page < 0)
        return 0;
    clock_page_set(c->page, NULL, NULL);
    file_close(&c->page);
    c->shifted = false;
    return unlink(c->path) == 0 || errno == ENOENT ? 0 : -errno;
}

/* ---- of whom there are ---- */

static void list(const char *begin, struct texts *ret) {
    FILE_CLOSE int dir = host_record_folder(NULL);
    FILE_CLOSE_DIR DIR *d = dir < 0 ? NULL : fdopendir(dir);
    if (!d)
        return;
    dir = -1;
    for (struct dirent *e; (e = readdir(d));)
        if (str_starts(e->d_name, begin))
            texts_add(ret, "%s", e->d_name);
}

int host_clock_clear(const char *owner) {
    char begin[NAME_LONGEST];
    TEXTS_FINI struct texts names = {0};
    int stay = 0;
    begin_of(owner, begin);
    list(begin, &names);
    FILE_CLOSE int dir = names.n ? host_record_folder(NULL) : -1;
    for (size_t i = 0; i < names.n; i++)
        stay += unlinkat(dir, names.v[i], 0) != 0 && errno != ENOENT;
    return stay;
}

void host_clock_owners(struct texts *ret) {
    char begin[NAME_LONGEST];
    TEXTS_FINI struct texts names = {0};
    begin_of("", begin);
    list(begin, &names);
    for (size_t i = 0; i < names.n; i++) {
        const char *owner = names.v[i] + strlen(begin), *end = strrchr(owner, '.');
        if (end)
            texts_add(ret, "%.*s", (int)(end - owner), owner);
    }
}

/* ---- its clock ---- */

int host_clock_shift(struct host_clock *c, const struct clock_shift *shift, struct err *err) {
    if (c->page < 0)
        return err_say(err, -ENOENT, "its programs have no clock of their own here");
    if (shift && c->shifted)
        return err_say(err, -EBUSY,
                       "its clock is wrong already, by an earlier fault: end that one first "
                       "(for, heal)");
    int r = clock_page_set(c->page, shift, err);
    if (r == 0)
        c->shifted = shift != NULL;
    return r;
}

/* ---- what its programs were told ---- */

static void put_reading(struct json_writer *w, const char *key, const struct clock_reading *r) {
    json_array(w, key);
    json_put_i64(w, NULL, r->real_ns);
    json_put_i64(w, NULL, r->said_ns);
    json_end_array(w);
}

void host_clock_put(const struct host_clock *c, struct json_writer *w) {
    struct clock_setting s;
    struct clock_told t;
    if (!c->shifted || clock_page_setting(c->page, &s) != 0 ||
        clock_page_told(c->page, s.shift.since_ns, &t) != 0)
        return;
    json_object(w, "clock");
    json_put_i64(w, "generation", s.generation);
    json_put_i64(w, "since", s.shift.since_ns);
    json_put_i64(w, "by", s.shift.by_ns);
    json_put_i64(w, "period", s.shift.period_ns);
    json_put_i64(w, "drift", s.shift.drift_ppb);
    if (t.any) {
        json_put_string(w, "program", t.program);
        put_reading(w, "first", &t.first);
        put_reading(w, "last", &t.last);
        put_reading(w, "least", &t.least);
        put_reading(w, "most", &t.most);
    }
    json_end_object(w);
}

static bool take_reading(const struct json *clock, const char *key, struct clock_reading *ret) {
    const struct json *real = json_first(json_get(clock, key)), *said = real ? real->next : NULL;
    ret->real_ns = json_i64(real, 0);
    ret->said_ns = json_i64(said, 0);
    return said;
}

bool host_clock_take(const struct json *message, struct clock_setting *ret_setting,
                     struct clock_told *ret) {
    const struct json *c = json_get(message, "clock");
    if (!c || c->type != JSON_OBJECT)
        return false;
    *ret_setting = (struct clock_setting){.version = CLOCK_PAGE_VERSION,
                                          .generation = (uint32_t)json_get_i64(c, "generation", 0),
                                          .shift = {.since_ns = json_get_i64(c, "since", 0),
                                                    .by_ns = json_get_i64(c, "by", 0),
                                                    .period_ns = json_get_i64(c, "period", 0),
                                                    .drift_ppb = json_get_i64(c, "drift", 0)}};
    *ret = (struct clock_told){0};
    str_copy(ret->program, sizeof(ret->program), json_get_string(c, "program", ""));
    ret->any = take_reading(c, "first", &ret->first) && take_reading(c, "last", &ret->last) &&
               take_reading(c, "least", &ret->least) && take_reading(c, "most", &ret->most);
    return true;
}

/* ---- whether programs take the object ---- */

extern char **environ;

/* Ours, with nothing before the C library but the object; for free(). The two texts are the caller's. */
static const char **environment_with(const char *preload, const char *page) {
    size_t n = 0, own = 0;
    while (environ[own])
        own++;
    const char **env = mem_array(const char *, own + 3);
    for (size_t i = 0; i < own; i++)
        if (!str_starts(environ[i], "LD_PRELOAD="))
            env[n++] = environ[i];
    env[n++] = preload;
    env[n] = page;
    return env;
}

static int spawn(const struct host_clock *c, const char *const *argv, int said,
                 struct process *ret) {
    char preload[sizeof(c->object) + 16], page[HOST_CLOCK_PATH_MAX + 32];
    snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", c->object);
    snprintf(page, sizeof(page), CLOCK_PAGE_VARIABLE "=%s", c->path);
    const char **env = environment_with(preload, page);
    FILE_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const struct process_spawn s = {
        .argv = argv, .envp = env, .fds = (int[]){null, null, said}, .session = true};
    int r = process_spawn(&s, ret, NULL);
    free(env);
    return r;
}

/* What the loader has against the object is said on standard error. A program that cannot be started says
 * nothing. */
static void run(const struct host_clock *c, const char *const *argv, struct buf *said) {
    char bytes[SAID_MAX];
    struct process p;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    int r = spawn(c, argv, ends[1], &p);
    close(ends[1]);
    for (ssize_t n; r == 0 && (n = read(ends[0], bytes, sizeof(bytes))) > 0;)
        buf_put(said, bytes, (size_t)n);
    close(ends[0]);
    if (r)
        return;
    if (process_reap(&p, TRY_WAIT_NS, NULL) != 0)
        process_signal(&p, SIGKILL);
    process_close(&p);
}

static bool is_taken(const struct host_clock *c) {
    static struct clock_witness w; /* large */
    return clock_page_witness(c->page, &w) == 0 && w.loaded > 0;
}

/* A shell may be linked statically where what the job consists of is not. */
static int try_programs(const struct host_clock *c, const char *programs, struct err *err) {
    char probe[4096];
    BUF_FINI struct buf said = {0};
    snprintf(probe, sizeof(probe), "%.4000s/rankprobe", programs);
    const char *const tries[][4] = {{"/bin/sh", "-c", ":", NULL}, {probe, "--help", NULL}};
    for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
        run(c, tries[i], &said);
        if (is_taken(c))
            return 0;
    }
    const char *line = buf_str(&said);
    return err_say(err, -ENOTSUP, "neither sh nor rankprobe has taken %s along: %.*s", c->object,
                   *line ? (int)strcspn(line, "\n") : 24, *line ? line : "nothing was said of it");
}

int host_clock_try(const char *owner, const char *programs, struct err *err) {
    struct host_clock c;
    int r = host_clock_make(&c, owner, programs, err);
    if (r)
        return -ENOTSUP;
    r = access(c.object, R_OK) != 0
            ? err_set(err, -errno, "find %s, which is installed beside rankprobe", c.object)
            : try_programs(&c, programs, err);
    host_clock_end(&c);
    return r ? -ENOTSUP : 0;
}
