#include "agent/status.h"

#include "agent/job_status.h"
#include "agent/options.h"
#include "agent/store/store.h"
#include "base/sys/clock.h"
#include "base/sys/line.h"

#include <errno.h>
#include <string.h>

enum { ANSWER_MS = 5000 };

struct status {
    const struct options *options;
    struct arena arena;
    struct loop *loop;
    struct store *store;
    struct loop_source *timer;
    struct job_status job;
    int64_t read_ns;
    size_t awaited; /* members whose next beat has not been heard */
    int code;
};

static void finish(struct status *s, int code) {
    s->code = code;
    loop_stop(s->loop);
}

static void on_timer(void *arg, int64_t now_ns) {
    finish(arg, STATUS_FOUND);
}

static void hear(struct status *s, const struct kv_event *e) {
    struct store_key k;
    if (!key_parse(e->pair.key.data, e->pair.key.len, s->options->run_id, &k))
        return;
    struct job_member *m = job_status_member(&s->job, k.uid);
    if (!m || !m->session || m->beat_ns >= 0 || m->ended)
        return;
    m->ended = e->deleted;
    if (!e->deleted)
        m->beat_ns = clock_monotonic_ns() - s->read_ns;
    s->awaited--;
}

/* A watch that ends early leaves those that were not heard as they are: unknown. */
static void on_news(void *arg, const struct store_news *news) {
    struct status *s = arg;
    for (size_t i = 0; i < news->n_events; i++)
        hear(s, &news->events[i]);
    if (news->ended)
        line_say(LINE_WARNING, "store", "the store at %s ended the watch for beats: %s",
                 s->options->endpoints, news->why ? news->why : "");
    if (news->ended || s->awaited == 0)
        finish(s, STATUS_FOUND);
}

/* The store knows no times: whether a member lives is seen by its next beat. */
static void listen_for_beats(struct status *s) {
    char text[KEY_SIZE], end[KEY_SIZE];
    struct store_key sessions = {.kind = KEY_SESSION, .scope = KEYS_ALL};
    memcpy(sessions.inc, s->job.cur.inc, sizeof(sessions.inc));
    key_format(&sessions, s->options->run_id, text, end);
    store_watch(s->store, kv_string(text), kv_string(end), s->job.revision + 1, ANSWER_MS, on_news,
                s);
    loop_timer_at(s->timer, s->read_ns + 2 * s->job.cur.timing.hb_ns);
}

static void on_read(void *arg, const struct store_reply *r) {
    struct status *s = arg;
    const struct options *o = s->options;
    if (r->outcome != STORE_ANSWERED) {
        line_say(LINE_ERROR, "store", "the store at %s: %s", o->endpoints, r->why ? r->why : "");
        finish(s, STATUS_NO_STORE);
        return;
    }
    s->read_ns = clock_monotonic_ns();
    job_status_read(&s->arena, o->run_id, r->txn->revision, r->txn->results[0].pairs,
                    r->txn->results[0].n_pairs, &s->job);
    if (!s->job.found) {
        line_say(LINE_ERROR, "run", "the store at %s has no run %s%s", o->endpoints, o->run_id,
                 s->job.unread_cur ? " that this rankrun can read: its value is none" : "");
        finish(s, STATUS_NO_RUN);
        return;
    }
    for (size_t i = 0; i < s->job.n; i++)
        s->awaited += s->job.members[i].session;
    if (s->awaited == 0 || s->job.head.phase == HEAD_CLOSED)
        finish(s, STATUS_FOUND);
    else
        listen_for_beats(s);
}

static void ask(struct status *s) {
    char key[KEY_SIZE], end[KEY_SIZE];
    job_status_range(s->options->run_id, key, end);
    struct kv_op read = {.kind = KV_RANGE, .key = kv_string(key), .range_end = kv_string(end)};
    struct kv_txn txn = {.success = &read, .n_success = 1};
    store_txn(s->store, &txn, ANSWER_MS, on_read, s);
}

int status_run(const struct options *o) {
    if (o->backend == BACKEND_ETCD_LEGACY)
        return status_run_legacy(o);
    struct err err = {0};
    struct status s = {.options = o, .code = STATUS_NO_STORE};
    s.loop = loop_new(&err);
    s.store = s.loop ? store_client_new(s.loop, o->endpoints, &o->rdzv.access, &err) : NULL;
    if (s.store) {
        s.timer = loop_timer(s.loop, on_timer, &s);
        ask(&s);
        loop_run(s.loop, &err);
    }
    if (err.code)
        line_say(LINE_ERROR, "error", "%s", err.msg);
    if (err.code == -EINVAL) /* endpoints that are none, or too many */
        s.code = OPTIONS_USAGE;
    if (s.code == STATUS_FOUND && o->status_json)
        status_print_json(&s.job);
    else if (s.code == STATUS_FOUND)
        status_print_text(&s.job);
    store_free(s.store);
    loop_source_free(s.timer);
    loop_free(s.loop);
    arena_fini(&s.arena);
    return s.code;
}
