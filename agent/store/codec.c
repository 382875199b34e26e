#include "agent/store/codec.h"

#include "base/json.h"
#include "base/str.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

enum codec_field_type {
    TEXT,
    LINE, /* text for people: one that is too long is cut, not refused */
    INT,
    I64,
    WORD,
};

/* One member of a value struct. The same table writes and reads. */
struct field {
    const char *name;
    enum codec_field_type type;
    size_t offset, size;
    const char *const
        *words; /* of an enum, in its order, NULL-ended; the first is the absent one */
};

#define FIELD(type, of, member)                                                                    \
    { #member, type, offsetof(struct of, member), FIELD_SIZE(of, member) }
#define FIELD_SIZE(of, member) sizeof(((struct of *)0)->member)
#define FIELD_AS(name, type, of, member)                                                           \
    { name, type, offsetof(struct of, member), FIELD_SIZE(of, member) }
#define FIELD_WORD(of, member, words)                                                              \
    { #member, WORD, offsetof(struct of, member), sizeof(int), words }

static const char *const MODES[] = {"job", "node", NULL};
static const char *const LOSSES[] = {"replace", "gang", NULL};
static const char *const WANTS[] = {"member", "standby", NULL};
static const char *const GONES[] = {"left", "silent", NULL};
static const char *const PHASES[] = {"none", "form", "run", "end", "closed", NULL};
static const char *const CAUSES[] = {"none", "failure", "membership", NULL};
static const char *const OUTCOMES[] = {"none", "succeeded", "failed", NULL};
static const char *const ACKS[] = {"ok", "failed", "fenced", NULL};

static const struct field CUR[] = {
    FIELD(TEXT, cur_value, inc),
    FIELD(TEXT, cur_value, attempt),
    FIELD(TEXT, cur_value, former),
    FIELD(I64, cur_value, rounds_before),
    FIELD(INT, cur_value, hold),
    FIELD(INT, cur_value, min),
    FIELD(INT, cur_value, max),
    FIELD(INT, cur_value, max_restarts),
    FIELD(INT, cur_value, max_free_rounds),
    FIELD_WORD(cur_value, restart_mode, MODES),
    FIELD_WORD(cur_value, on_node_loss, LOSSES),
    FIELD_AS("hb_ns", I64, cur_value, timing.hb_ns),
    FIELD_AS("fence_ns", I64, cur_value, timing.fence_ns),
    FIELD_AS("hard_ns", I64, cur_value, timing.hard_ns),
    FIELD_AS("suspect_ns", I64, cur_value, timing.suspect_ns),
    {0},
};

static const struct field MEMBER[] = {
    FIELD(TEXT, member_value, node),
    FIELD(TEXT, member_value, addr),
    FIELD(INT, member_value, slots),
    FIELD(TEXT, member_value, role),
    FIELD_WORD(member_value, want, WANTS),
    FIELD(INT, member_value, seat),
    FIELD(I64, member_value, last_round),
    FIELD_AS("past_inc", TEXT, member_value, past.inc),
    FIELD_AS("past_round", I64, member_value, past.round),
    FIELD_AS("past_n", INT, member_value, past.n),
    FIELD_AS("past_restarts", INT, member_value, past.restarts),
    FIELD_AS("past_member", INT, member_value, past.member),
    FIELD(I64, member_value, stop_ns),
    {0},
};

static const struct field SESSION[] = {FIELD(I64, session_value, seq), {0}};
static const struct field GONE[] = {FIELD_WORD(gone_value, why, GONES), {0}};
static const struct field LEAD[] = {FIELD(TEXT, lead_value, uid), {0}};
static const struct field DONE[] = {FIELD(I64, done_value, round), {0}};

static const struct field QUARANTINE[] = {FIELD(INT, quarantine_value, owed), {0}};

static const struct field PLAN[] = {
    FIELD(INT, plan_value, group_rank), FIELD(INT, plan_value, rank_base),
    FIELD(INT, plan_value, world),      FIELD(INT, plan_value, role_rank_base),
    FIELD(INT, plan_value, role_world), {0},
};

static const struct field HEAD[] = {
    FIELD(I64, head_value, round),
    FIELD_WORD(head_value, phase, PHASES),
    FIELD(TEXT, head_value, pid),
    FIELD(INT, head_value, n),
    FIELD(I64, head_value, last_round),
    FIELD(TEXT, head_value, last_pid),
    FIELD(INT, head_value, last_n),
    FIELD(INT, head_value, restarts),
    FIELD(I64, head_value, charged_round),
    FIELD(INT, head_value, free_rounds),
    FIELD(I64, head_value, free_age_ms),
    FIELD(INT, head_value, brief_rounds),
    FIELD_WORD(head_value, cause, CAUSES),
    FIELD_AS("failure_uid", TEXT, head_value, failure.uid),
    FIELD_AS("failure_node", TEXT, head_value, failure.node),
    FIELD_AS("failure_rank", INT, head_value, failure.rank),
    FIELD_AS("failure_local_rank", INT, head_value, failure.local_rank),
    FIELD_AS("failure_pid", I64, head_value, failure.pid),
    FIELD_AS("failure_wait_status", INT, head_value, failure.wait_status),
    FIELD_AS("failure_error", LINE, head_value, failure.error),
    FIELD_AS("failure_realtime_ns", I64, head_value, failure.realtime_ns),
    FIELD(INT, head_value, world),
    FIELD(TEXT, head_value, master_addr),
    FIELD(INT, head_value, master_port),
    FIELD(TEXT, head_value, token),
    FIELD_WORD(head_value, outcome, OUTCOMES),
    {0},
};

static const struct field ACK[] = {
    FIELD_WORD(ack_value, why, ACKS),
    FIELD(LINE, ack_value, error),
    FIELD(TEXT, ack_value, addr),
    FIELD(INT, ack_value, port),
    {0},
};

static const struct field *const FIELDS[] = {
    [KEY_CUR] = CUR,         [KEY_MEMBER] = MEMBER,
    [KEY_SESSION] = SESSION, [KEY_GONE] = GONE,
    [KEY_LEAD] = LEAD,       [KEY_PLAN] = PLAN,
    [KEY_HEAD] = HEAD,       [KEY_ACK] = ACK,
    [KEY_DONE] = DONE,       [KEY_QUARANTINE] = QUARANTINE,
};

static const struct field *fields_of(enum key_kind kind) {
    assert((size_t)kind < sizeof(FIELDS) / sizeof(*FIELDS));
    return FIELDS[kind];
}

static int64_t number_of(const struct field *f, const void *member) {
    int small;
    int64_t big;
    if (f->type == I64)
        return memcpy(&big, member, sizeof(big)), big;
    return memcpy(&small, member, sizeof(small)), small;
}

void codec_put(struct buf *out, enum key_kind kind, const union value *v) {
    struct json_writer w = {.out = out};
    json_object(&w, NULL);
    for (const struct field *f = fields_of(kind); f->name; f++) {
        const char *member = (const char *)v + f->offset;
        bool text = f->type == TEXT || f->type == LINE;
        int64_t n = text ? *member : number_of(f, member);
        if (!n)
            continue;
        if (text)
            json_put_string(&w, f->name, member);
        else if (f->type == WORD)
            json_put_string(&w, f->name, f->words[n]);
        else
            json_put_i64(&w, f->name, n);
    }
    json_end_object(&w);
}

struct kv_bytes codec_bytes(struct arena *a, enum key_kind kind, const union value *v) {
    struct buf text = {0};
    codec_put(&text, kind, v);
    struct kv_bytes bytes = {arena_strndup(a, text.data, text.len), text.len};
    buf_fini(&text);
    return bytes;
}

static bool take_word(const struct field *f, const char *text, char *member) {
    for (int i = 0; text && f->words[i]; i++) {
        if (strcmp(text, f->words[i]) != 0)
            continue;
        memcpy(member, &i, sizeof(i));
        return true;
    }
    return false;
}

static bool take_number(const struct field *f, const struct json *j, char *member) {
    int64_t n = j->integer;
    if (j->type != JSON_INT || (f->type == INT && (n < INT_MIN || n > INT_MAX)))
        return false;
    int small = (int)n;
    memcpy(member, f->type == INT ? (void *)&small : (void *)&n, f->size);
    return true;
}

static bool take_field(const struct field *f, const struct json *j, char *member) {
    const char *text = json_string(j, NULL);
    if (f->type == TEXT)
        return text && strlen(text) == j->length && str_copy(member, f->size, text);
    if (f->type == LINE)
        return text && (str_copy(member, f->size, text) || true);
    return f->type == WORD ? take_word(f, text, member) : take_number(f, j, member);
}

int codec_take(enum key_kind kind, const char *text, size_t n, union value *ret, struct err *err) {
    ARENA_FINI struct arena arena = {0};
    union value v;
    memset(&v, 0, sizeof(v));
    const struct json *object = json_parse(&arena, text, n, err);
    int rc = !object                       ? -EPROTO
             : object->type != JSON_OBJECT ? err_say(err, -EPROTO, "not a JSON object")
                                           : 0;
    for (const struct field *f = fields_of(kind); f->name && rc == 0; f++) {
        const struct json *j = json_get(object, f->name);
        if (j && !take_field(f, j, (char *)&v + f->offset))
            rc = err_say(err, -EPROTO, "\"%s\" has the wrong type or does not fit", f->name);
    }
    if (rc == 0)
        *ret = v;
    return rc;
}
