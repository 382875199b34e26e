#include "harness/run/hand.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/line.h"
#include "faults/fault.h"
#include "faults/need.h"
#include "harness/cluster/mark.h"
#include "harness/run/entry.h"
#include "harness/run/limits.h"
#include "harness/run/nodes.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

const char hand_socket[] = "hand.sock";

enum { LINE_MAX_BYTES = 4096, CLIENTS_MAX = 16 };

struct hand_client {
    struct engine *engine;
    struct loop_source *source;
    int fd, answers; /* answers: where they go */
    struct buf held;
};

struct hand {
    int listener; /* -1: nobody is listened to */
    struct loop_source *on_listener;
    struct hand_client *clients[CLIENTS_MAX];
    struct scenario **grown; /* each with one fault more; entries of all of them are played */
    struct plan **plans;     /* of these */
    size_t n, plans_n, breaks_n;
    bool paused, started;
    int64_t paused_ns;
    struct run_entry *at; /* of the break at which it stands; NULL: at its start */
};

/* ---- standing still ---- */

static void record_paused(struct engine *e, int64_t step) {
    struct hand *h = own(e, hand);
    h->paused = true;
    h->paused_ns = clock_monotonic_ns();
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "paused");
    if (step >= 0)
        json_put_i64(w, "step", step);
    engine_recorded(e);
}

bool hand_holds_start(struct engine *e) {
    struct hand *h = own(e, hand);
    if (!e->spec->paused || h->started)
        return false;
    if (!h->paused)
        record_paused(e, -1);
    return true;
}

void hand_stopped(struct run_entry *a) {
    struct hand *h = own(a->owner->engine, hand);
    a->state = ENTRY_DONE;
    loop_timer_off(a->within);
    if (h->paused) { /* at another one */
        entry_release(a);
        return;
    }
    h->at = a;
    limits_stop(a->owner->engine);
    record_paused(a->owner->engine, a->entry->when.step);
}

static int go_on(struct engine *e, struct buf *out, struct err *err) {
    struct hand *h = own(e, hand);
    struct run_entry *at = h->at;
    if (!h->paused && e->spec->paused && !h->started) {
        h->started = true; /* a script may say so before it has come to its start */
        buf_puts(out, "it will not stand still at its start");
        return 0;
    }
    if (!h->paused)
        return err_say(err, -EALREADY, "it does not stand still");
    h->paused = false;
    h->started = true;
    h->at = NULL;
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "resumed");
    json_put_i64(w, "ns", clock_monotonic_ns() - h->paused_ns);
    engine_recorded(e);
    if (at) {
        limits_go_on(e);
        entry_release(at);
    } else {
        nodes_look_ready(e);
    }
    buf_puts(out, "it goes on");
    return 0;
}

static int add_break(struct engine *e, const char *words, struct buf *out, struct err *err) {
    struct hand *h = own(e, hand);
    int64_t step;
    if (!str_to_i64(words, 0, INT64_MAX, &step))
        return err_say(err, -EINVAL, "break %.60s: write the number of a step, as in break 20",
                       words);
    if (h->breaks_n++ >= HAND_FAULTS_MAX)
        return err_say(err, -E2BIG, "there are %d breaks already", HAND_FAULTS_MAX);
    struct timeline_entry *entry = arena_new(&e->arena, struct timeline_entry);
    struct planned_entry *pa = arena_new(&e->arena, struct planned_entry);
    *entry = (struct timeline_entry){
        .id = arena_printf(&e->arena, "break-%zu", h->breaks_n),
        .heal = -1,
        .when = {.has_step = true, .step = step, .hold = true, .after = -1, .nth = 1},
        .on = {.what = TARGET_NODES, .local_rank = -1},
        .times_n = 1};
    entry->when.ends = true; /* whoever comes there first */
    pa->entry = entry;
    timeline_add(e, pa, true);
    buf_printf(out, "it stands still when a worker comes to step %" PRId64, step);
    return 0;
}

/* ---- a fault ---- */

static void put_now(const struct engine *e, struct buf *out) {
    int64_t steady_ns = timeline_steady_ns(e);
    int64_t after = steady_ns ? clock_monotonic_ns() - steady_ns : 0;
    buf_printf(out, "when: {time: %" PRId64 "ms}, ", after / 1000000);
}

/* "FAULT [TARGET] [KEY=VALUE...]", or a map in braces, as an entry. */
static int put_entry(const struct engine *e, const char *line, size_t number, struct buf *out,
                     bool *ret_now, struct err *err) {
    ARENA_FINI struct arena a = {0};
    *ret_now = *line != '{' || !strstr(line, "when:");
    buf_printf(out, "  - {id: hand-%zu, ", number);
    if (*ret_now)
        put_now(e, out);
    if (*line == '{') {
        buf_printf(out, "%s\n", line + 1);
        return 0;
    }
    size_t n, with = 0;
    char **words = str_split(&a, line, ' ', &n);
    struct json_writer w = {.out = out};
    buf_puts(out, "fault: ");
    json_put_string(&w, NULL, words[0]);
    for (size_t i = 1; i < n; i++) {
        char *equals = strchr(words[i], '=');
        if (!*words[i])
            continue;
        if (!equals && i > 1)
            return err_say(err, -EINVAL, "%.60s: write FAULT TARGET KEY=VALUE...", words[i]);
        buf_puts(out, !equals ? ", on: " : with++ ? ", " : ", with: {");
        if (equals)
            buf_printf(out, "%.*s: ", (int)(equals - words[i]), words[i]);
        w.comma = false;
        json_put_string(&w, NULL, equals ? equals + 1 : words[i]);
    }
    buf_puts(out, with ? "}}\n" : "}\n");
    return 0;
}

/* Behind the last entry of the timeline, so that those before it are drawn as they were. */
static void put_scenario(const struct scenario *s, const char *entry, struct buf *out) {
    BUF_FINI struct buf text = {0};
    scenario_print(s, &text);
    const char *all = buf_str(&text), *at = strstr(all, "\ntimeline:\n");
    if (!at) {
        buf_printf(out, "%s\ntimeline:\n%s", all, entry);
        return;
    }
    at += strlen("\ntimeline:\n");
    while (*at == ' ' || *at == '\n')
        at += strcspn(at, "\n") + (at[strcspn(at, "\n")] == '\n');
    buf_put(out, all, (size_t)(at - all));
    buf_printf(out, "%s%s", entry, at);
}

/* "FILE:12:3: there is no fault ...": the sentence, without the file that nobody has written. */
static int refuse(const struct diagnostics *d, struct err *err) {
    const char *text = buf_str(&d->out), *at = strstr(text, ": ");
    at = at ? at + 2 : text;
    return err_say(err, -EINVAL, "%.*s", (int)strcspn(at, "\n"), at);
}

/* What had to be made before the job was started cannot be had now. */
static int check_needs(struct engine *e, const struct plan *p, const struct planned_entry *pa,
                       struct err *err) {
    const struct trigger *w = &pa->entry->when;
    unsigned has = plan_needs(e->plan) | FAULT_NEEDS_TRACE;
    if (e->plan->isolation == ISOLATION_NAMESPACES)
        has |= FAULT_NEEDS_WIRE | FAULT_NEEDS_SILENCE;
    if (!pa->fault || pa->entry->heal >= 0)
        return err_say(err, -EINVAL, "no fault is named; to end one write: heal ID");
    if (w->after >= 0 || w->log || w->file || w->syscall || w->store || pa->entry->until)
        return err_say(
            err, -EINVAL,
            "by hand a fault comes at a step, a time, an event or a phase: what listens to "
            "output, calls or the store is there from the start of a run, or not at all");
    unsigned lacks = plan_entry_needs(p, pa) & ~has;
    if (lacks)
        return err_say(err, -ENOTSUP,
                       "%s needs what is made before nodes are switched on (%s); write it into the "
                       "timeline, with a `when` that is late",
                       pa->fault->name,
                       lacks & FAULT_NEEDS_DISK      ? "a disk of ours"
                       : lacks & FAULT_NEEDS_CALLS   ? "watched system calls"
                       : lacks & FAULT_NEEDS_WIRE    ? "a wire between nodes, in namespaces"
                       : lacks & FAULT_NEEDS_SILENCE ? "a wire between nodes, in namespaces"
                                                     : "a clock or a name server of its own");
    return plan_entry_needs(p, pa) & FAULT_NEEDS_TRACE ? fault_needs_check(FAULT_NEEDS_TRACE, err)
                                                       : 0;
}

/* Loads it as a file of a user's would be, and binds its fault. */
static int load(struct engine *e, const struct buf *text, struct scenario **ret,
                struct plan **ret_plan, struct err *err) {
    static const char name[] = "by-hand.yaml";
    const struct folder *run = e->spec->folder;
    ARENA_FINI struct arena a = {0};
    struct diagnostics d = {0};
    int r = folder_write(run, name, text->data, text->len, err);
    if (r < 0)
        return r;
    *ret = scenario_load(arena_printf(&a, "%s/%s", run->path, name), NULL, &d);
    *ret_plan = *ret ? plan_make(*ret, e->plan->seed, &d) : NULL;
    if (!*ret_plan) {
        r = refuse(&d, err);
        *ret = scenario_free(*ret);
    }
    diagnostics_fini(&d);
    folder_unlink(run, name);
    return r;
}

static int add_fault(struct engine *e, const char *line, struct buf *out, struct err *err) {
    struct hand *h = own(e, hand);
    const struct scenario *old = h->n ? h->grown[h->n - 1] : e->plan->scenario;
    BUF_FINI struct buf entry = {0}, text = {0};
    struct scenario *s = NULL;
    struct plan *p = NULL;
    bool now;
    if (h->n == HAND_FAULTS_MAX)
        return err_say(err, -E2BIG, "%d faults were given by hand, and no more are taken",
                       HAND_FAULTS_MAX);
    int r = put_entry(e, line, h->n + 1, &entry, &now, err);
    if (r < 0)
        return r;
    put_scenario(old, buf_str(&entry), &text);
    r = load(e, &text, &s, &p, err);
    if (r == 0 && s->timeline_n != old->timeline_n + 1)
        r = err_say(err, -EINVAL, "one fault a line");
    if (r == 0) {
        p->isolation = e->plan->isolation;
        r = check_needs(e, p, &p->entries[p->entries_n - 1], err);
    }
    if (r == 0)
        r = folder_write(e->spec->folder, "scenario.yaml", text.data, text.len, err);
    if (r < 0) {
        plan_free(p);
        scenario_free(s);
        return r;
    }
    mem_push(h->plans, h->plans_n) = p;
    mem_push(h->grown, h->n) = s;
    buf_printf(out, "%s", s->timeline[s->timeline_n - 1].id);
    timeline_add(e, &p->entries[p->entries_n - 1], false);
    if (now)
        timeline_fire(e);
    return 0;
}

/* ---- lines ---- */

static int do_line(struct engine *e, char *line, struct buf *out, struct err *err) {
    while (isspace((unsigned char)*line))
        line++;
    for (size_t n = strlen(line); n && isspace((unsigned char)line[n - 1]);)
        line[--n] = '\0';
    if (e->phase >= ENGINE_ENDING)
        return err_say(err, -ESHUTDOWN, "the job has ended");
    for (const char *c = line; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return err_say(err, -EINVAL, "there is a control character in it");
    if (str_eq(line, "go"))
        return go_on(e, out, err);
    if (str_starts(line, "break "))
        return add_break(e, line + strlen("break "), out, err);
    if (str_starts(line, "heal "))
        return timeline_heal(e, line + strlen("heal "), err);
    if (!*line)
        return err_say(err, -EINVAL, "write FAULT TARGET, heal ID, break STEP or go");
    return add_fault(e, line, out, err);
}

static void record_line(struct engine *e, const char *line, const struct err *err) {
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "by-hand");
    json_put_string(w, "line", line);
    if (err->code)
        json_put_string(w, "error", err->msg);
    engine_recorded(e);
}

/* Recorded with what came of it: a fault that was taken has fired by then. */
static void take_line(struct hand_client *c, char *line) {
    struct err err = {0};
    BUF_FINI struct buf out = {0}, answer = {0};
    char *asked = mem_strdup(line);
    int r = do_line(c->engine, line, &out, &err);
    record_line(c->engine, asked, &err);
    buf_printf(&answer, "%s %s\n", r < 0 ? "no" : "ok", r < 0 ? err.msg : buf_str(&out));
    ssize_t n = c->answers == c->fd
                    ? send(c->fd, answer.data, answer.len, MSG_DONTWAIT | MSG_NOSIGNAL)
                    : write(c->answers, answer.data, answer.len);
    (void)n; /* who does not read answers goes without */
    free(asked);
}

static void close_client(struct hand_client *c) {
    struct hand *h = own(c->engine, hand);
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        if (h->clients[i] == c)
            h->clients[i] = NULL;
    loop_source_free(c->source);
    if (c->fd != STDIN_FILENO)
        file_close(&c->fd);
    buf_fini(&c->held);
    free(c);
}

static void on_client(void *arg, int fd, int what) {
    struct hand_client *c = arg;
    char part[LINE_MAX_BYTES];
    ssize_t n = read(fd, part, sizeof(part));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        buf_put(&c->held, part, (size_t)n);
    for (char *end; c->held.len && (end = memchr(c->held.data, '\n', c->held.len));) {
        *end = '\0';
        size_t len = (size_t)(end + 1 - c->held.data);
        take_line(c, c->held.data);
        buf_consume(&c->held, len);
    }
    if (n <= 0 || c->held.len > LINE_MAX_BYTES)
        close_client(c);
}

static void add_client(struct engine *e, int fd, int answers) {
    struct hand *h = own(e, hand);
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        if (h->clients[i])
            continue;
        struct hand_client *c = h->clients[i] = mem_new(struct hand_client);
        *c = (struct hand_client){.engine = e, .fd = fd, .answers = answers};
        c->source = loop_fd(e->loop, fd, LOOP_READ, on_client, c);
        return;
    }
    file_close(&fd);
}

/* The job may see the run directory: it is not to strike itself. */
static bool may_press(int fd) {
    struct ucred who;
    socklen_t size = sizeof(who);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.pid > 0 &&
           (who.uid == geteuid() || who.uid == 0) && !mark_is_carried(mark_own(), who.pid);
}

static void on_listener(void *arg, int listener, int what) {
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    if (may_press(fd))
        add_client(arg, fd, fd);
    else
        file_close(&fd);
}

/* ---- the part ---- */

static int listen_there(struct engine *e, struct err *err) {
    struct hand *h = own(e, hand);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    /* A path of any length: by the descriptor of its folder. */
    snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", e->spec->folder->fd,
             hand_socket);
    h->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t before = umask(0177);
    int r = h->listener < 0 || bind(h->listener, (struct sockaddr *)&a, sizeof(a)) < 0 ||
                    listen(h->listener, CLIENTS_MAX) < 0
                ? -errno
                : 0;
    umask(before);
    if (r < 0)
        return err_set(err, r, "listen at %s/%s", e->spec->folder->path, hand_socket);
    h->on_listener = loop_fd(e->loop, h->listener, LOOP_READ, on_listener, e);
    return 0;
}

static int open_hand(struct engine *e, struct err *err) {
    struct hand *h = own(e, hand);
    struct stat st;
    h->listener = -1;
    if (!e->spec->interactive || !e->spec->control)
        return 0;
    if (fstat(STDIN_FILENO, &st) == 0 &&
        (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || isatty(STDIN_FILENO)))
        add_client(e, STDIN_FILENO, STDERR_FILENO);
    return listen_there(e, err);
}

static void close_hand(struct engine *e) {
    struct hand *h = own(e, hand);
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        if (h->clients[i])
            close_client(h->clients[i]);
    if (h->listener > 0) {
        loop_source_free(h->on_listener);
        file_close(&h->listener);
        folder_unlink(e->spec->folder, hand_socket);
    }
    for (size_t i = 0; i < h->plans_n; i++)
        plan_free(h->plans[i]);
    for (size_t i = 0; i + 1 < h->n; i++)
        scenario_free(h->grown[i]);
    if (h->n)
        *e->spec->ret_grown = h->grown[h->n - 1];
    free(h->plans);
    free(h->grown);
}

const struct run_part run_part_hand = {
    .size = sizeof(struct hand), .open = open_hand, .close = close_hand};
