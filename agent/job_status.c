#include "agent/job_status.h"

#include "agent/store/codec.h"
#include "base/str.h"

#include <stdlib.h>

void job_status_range(const char *run_id, char key[KEY_SIZE], char range_end[KEY_SIZE]) {
    struct store_key cur = {.kind = KEY_CUR};
    size_t n = key_format(&cur, run_id, key, range_end) - strlen("cur");
    key[n] = '\0';
    struct kv_bytes end = kv_prefix_end((struct kv_bytes){key, n}, range_end);
    range_end[end.len] = '\0';
}

struct job_member *job_status_member(const struct job_status *s, const char *uid) {
    for (size_t i = 0; i < s->n; i++)
        if (str_eq(s->members[i].uid, uid))
            return &s->members[i];
    return NULL;
}

/* The array has room for as many members as there are keys. */
static struct job_member *member_of(struct job_status *s, const char *uid) {
    struct job_member *m = job_status_member(s, uid);
    if (m)
        return m;
    m = &s->members[s->n++];
    *m = (struct job_member){.beat_ns = -1};
    str_copy(m->uid, sizeof(m->uid), uid);
    return m;
}

static void take_mark(struct job_status *s, const struct store_key *k, const union value *v) {
    struct job_member *m = member_of(s, k->uid);
    if (k->kind == KEY_GONE) {
        m->gone = true;
        m->gone_why = v->gone.why;
    } else if (k->kind == KEY_ACK && k->round == s->head.last_round) {
        m->acked = true;
        m->ack_why = v->ack.why;
    } else if (k->kind == KEY_DONE && k->round == s->head.last_round) {
        m->done = true;
    }
}

static void take_value(struct job_status *s, const struct store_key *k, const union value *v) {
    if (k->kind == KEY_LEAD)
        str_copy(s->lead, sizeof(s->lead), v->lead.uid);
    else if (k->kind == KEY_MEMBER)
        member_of(s, k->uid)->value = v->member;
    else if (k->kind == KEY_SESSION)
        member_of(s, k->uid)->session = true;
    else if (k->kind == KEY_PLAN && str_eq(k->pid, s->pid)) {
        member_of(s, k->uid)->planned = true;
        member_of(s, k->uid)->plan = v->plan;
    } else if (k->kind == KEY_GONE || k->kind == KEY_ACK || k->kind == KEY_DONE)
        take_mark(s, k, v);
}

/* Calls take for the keys of this kind; with KEY_INCARNATION for all but cur and head, which the
 * others are read by. */
static void read_kind(struct job_status *s, const struct kv_pair *pairs, size_t n,
                      enum key_kind kind) {
    for (size_t i = 0; i < n; i++) {
        struct store_key k;
        union value v;
        const struct kv_pair *p = &pairs[i];
        bool rest = kind == KEY_INCARNATION;
        if (!key_parse(p->key.data, p->key.len, s->run_id, &k) ||
            (rest ? k.kind == KEY_CUR || k.kind == KEY_HEAD : k.kind != kind) ||
            (kind != KEY_CUR && !str_eq(k.inc, s->cur.inc)))
            continue;
        if (codec_take(k.kind, p->value.data, p->value.len, &v, NULL) < 0) {
            s->unread++;
            s->unread_cur += k.kind == KEY_CUR;
        } else if (k.kind == KEY_CUR) {
            s->cur = v.cur;
            s->found = true;
        } else if (k.kind == KEY_HEAD) {
            s->head = v.head;
        } else {
            take_value(s, &k, &v);
        }
    }
}

static void choose_round(struct job_status *s) {
    const struct head_value *h = &s->head;
    bool last = h->phase == HEAD_CLOSED && h->last_round;
    int max = s->cur.max_restarts;
    s->round = last ? h->last_round : h->round;
    str_copy(s->pid, sizeof(s->pid), last ? h->last_pid : h->pid);
    s->nodes = last ? h->last_n : h->n;
    s->restarts = h->restarts < max ? h->restarts : max;
}

/* The head's is of the round that was proposed, and not known yet. */
static void choose_world(struct job_status *s) {
    s->world = s->head.world;
    for (size_t i = 0; i < s->n && s->head.phase == HEAD_CLOSED && !s->world; i++)
        if (s->members[i].planned)
            s->world = s->members[i].plan.world;
}

static int by_place(const void *a, const void *b) {
    const struct job_member *x = a, *y = b;
    if (x->planned != y->planned)
        return x->planned ? -1 : 1;
    if (x->planned && x->plan.group_rank != y->plan.group_rank)
        return x->plan.group_rank < y->plan.group_rank ? -1 : 1;
    int order = strcmp(x->value.node, y->value.node);
    return order ? order : strcmp(x->uid, y->uid);
}

void job_status_read(struct arena *a, const char *run_id, int64_t revision,
                     const struct kv_pair *pairs, size_t n, struct job_status *ret) {
    struct job_status s = {.run_id = run_id, .revision = revision};
    s.members = arena_array(a, struct job_member, n + 1);
    read_kind(&s, pairs, n, KEY_CUR);
    if (s.found) {
        read_kind(&s, pairs, n, KEY_HEAD);
        choose_round(&s);
        read_kind(&s, pairs, n, KEY_INCARNATION);
        choose_world(&s);
    }
    size_t kept = 0;
    for (size_t i = 0; i < s.n; i++)
        if (s.members[i].session || s.members[i].planned)
            s.members[kept++] = s.members[i];
    s.n = kept;
    qsort(s.members, s.n, sizeof(*s.members), by_place);
    *ret = s;
}

const char *job_status_phase(const struct job_status *s) {
    switch (s->head.phase) {
    case HEAD_NONE:
        return "joining";
    case HEAD_FORM:
        return "forming";
    case HEAD_RUN:
        return "running";
    case HEAD_END:
        return "stopping";
    case HEAD_CLOSED:
        return "closed";
    }
    return "joining";
}

static const char *ack_state(enum ack_why why) {
    return why == ACK_FAILED ? "failed" : why == ACK_FENCED ? "fenced" : "stopped";
}

const char *job_member_state(const struct job_status *s, const struct job_member *m) {
    enum head_phase phase = s->head.phase;
    if (m->gone)
        return m->gone_why == GONE_LEFT ? "left" : "lost";
    if (!m->planned && (phase == HEAD_NONE || phase == HEAD_FORM))
        return m->value.want == WANT_STANDBY ? "spare" : "joining";
    if (!m->planned)
        return phase == HEAD_CLOSED ? "ending" : "spare";
    if (phase == HEAD_FORM)
        return "forming";
    if (m->done)
        return "done";
    if (m->acked)
        return ack_state(m->ack_why);
    return phase == HEAD_RUN ? "running" : phase == HEAD_END ? "stopping" : "ending";
}
