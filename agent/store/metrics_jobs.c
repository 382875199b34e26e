/* The part of /metrics that tells of each run in the store. */
#include "agent/core/keys.h"
#include "agent/core/kv.h"
#include "agent/store/codec.h"
#include "agent/store/metrics.h"
#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* So many runs are told of; a store has a few, as a run that has ended is forgotten. */
enum { JOBS_MAX = 256 };

struct metrics_jobs_job {
    char label[KEY_SIZE]; /* the run id as its keys have it: escaped, and so a label as it stands */
    char run_id[RUN_ID_MAX + 1];
    struct cur_value cur;
    struct head_value head;
    int64_t sessions;
};

struct jobs_counted {
    struct metrics_jobs_job *list;
    size_t n;
};

static int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

_Static_assert(3 * RUN_ID_MAX < KEY_SIZE, "what unescape takes fits into a label");

/* What key_format escaped. False: it was none of a run id. */
static bool unescape(const char *text, size_t n, char *ret, size_t size) {
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        bool escape = text[i] == '%' && i + 2 < n;
        int high = escape ? hex_digit(text[i + 1]) : 0, low = escape ? hex_digit(text[i + 2]) : 0;
        if (high < 0 || low < 0 || k + 1 >= size)
            return false;
        ret[k++] = escape ? (char)(high << 4 | low) : text[i];
        i += escape ? 2 : 0;
    }
    ret[k] = '\0';
    return k > 0 && strlen(ret) == k;
}

/* "/rankrun/<run>/cur" begins a run. */
static void see_key(void *arg, const struct kv_pair *p) {
    static const char root[] = "/rankrun/", last[] = "/cur";
    const size_t begin = sizeof(root) - 1, end = sizeof(last) - 1;
    struct jobs_counted *jobs = arg;
    struct metrics_jobs_job *j = &jobs->list[jobs->n];
    struct store_key k;
    union value v;
    if (jobs->n == JOBS_MAX || p->key.len <= begin + end || memcmp(p->key.data, root, begin) != 0 ||
        memcmp(p->key.data + p->key.len - end, last, end) != 0)
        return;
    size_t n = p->key.len - begin - end;
    if (!unescape(p->key.data + begin, n, j->run_id, sizeof(j->run_id)) ||
        !key_parse(p->key.data, p->key.len, j->run_id, &k) || k.kind != KEY_CUR ||
        codec_take(KEY_CUR, p->value.data, p->value.len, &v, NULL) < 0)
        return;
    memcpy(j->label, p->key.data + begin, n);
    j->label[n] = '\0';
    j->cur = v.cur;
    jobs->n++;
}

/* The head, and how many sessions there are. */
static void read_job(struct metrics_jobs_job *j, struct kv *kv) {
    char head[KEY_SIZE], sessions[KEY_SIZE], end[KEY_SIZE], none[KEY_SIZE];
    struct store_key k = {.kind = KEY_HEAD};
    ARENA_FINI struct arena arena = {0};
    struct kv_txn_result r;
    union value v;
    memcpy(k.inc, j->cur.inc, sizeof(k.inc));
    key_format(&k, j->run_id, head, none);
    k.kind = KEY_SESSION;
    k.scope = KEYS_ALL;
    key_format(&k, j->run_id, sessions, end);
    const struct kv_op ops[] = {{.kind = KV_RANGE, .key = kv_string(head)},
                                {.kind = KV_RANGE,
                                 .key = kv_string(sessions),
                                 .range_end = kv_string(end),
                                 .count_only = true}};
    const struct kv_txn txn = {.success = ops, .n_success = 2};
    if (kv_txn(kv, &txn, &arena, &r, NULL) == KV_OK) {
        const struct kv_op_result *found = &r.results[0];
        if (found->n_pairs && codec_take(KEY_HEAD, found->pairs[0].value.data,
                                         found->pairs[0].value.len, &v, NULL) == 0)
            j->head = v.head;
        j->sessions = r.results[1].count;
    }
}

/* The failure that was one too many is counted by the head, and used up nothing. */
static int64_t restarts_of(const struct metrics_jobs_job *j) {
    return j->head.restarts < j->cur.max_restarts ? j->head.restarts : j->cur.max_restarts;
}

/* Name, what it is of a job j, and what is said of it. */
#define GAUGES(X)                                                                                  \
    X("rankrun_job_round", j->head.round, "Number of the round.")                                  \
    X("rankrun_job_world_size", j->head.world, "Workers of the last round that ran.")              \
    X("rankrun_job_nodes", j->head.n, "Nodes of the round.")                                       \
    X("rankrun_job_nodes_min", j->cur.min, "Nodes that the job needs.")                            \
    X("rankrun_job_nodes_max", j->cur.max, "Nodes that the job takes.")                            \
    X("rankrun_job_agents", j->sessions, "Agents that are there, spares among them.")              \
    X("rankrun_job_restarts", restarts_of(j), "Restarts that were used.")                          \
    X("rankrun_job_restarts_max", j->cur.max_restarts, "Restarts that the job may use.")

static void put_label(struct buf *out, const struct metrics_jobs_job *j) {
    buf_puts(out, "{run_id=\"");
    for (const char *p = j->label; *p; p++) {
        if (*p == '\\' || *p == '"')
            buf_putc(out, '\\');
        buf_putc(out, *p);
    }
    buf_putc(out, '"');
}

static void put_gauges(struct buf *out, const struct jobs_counted *all) {
#define PUT(name, value, help)                                                                     \
    metrics_head(out, name, "gauge", help);                                                        \
    for (const struct metrics_jobs_job *j = all->list; j < all->list + all->n; j++) {              \
        buf_puts(out, name);                                                                       \
        put_label(out, j);                                                                         \
        buf_printf(out, "} %" PRId64 "\n", (int64_t)(value));                                      \
    }
    GAUGES(PUT)
#undef PUT
}

/* One of its words is 1, as Prometheus' users know states. */
static void put_phase(struct buf *out, const struct metrics_jobs_job *j) {
    static const char *const words[] = {"joining",  "forming",   "running",
                                        "stopping", "succeeded", "failed"};
    enum { WORDS = sizeof(words) / sizeof(*words) };
    int now = (int)j->head.phase;
    if (j->head.phase == HEAD_CLOSED)
        now = j->head.outcome == OUTCOME_SUCCEEDED ? 4 : 5;
    for (int i = 0; i < WORDS; i++) {
        buf_puts(out, "rankrun_job_phase");
        put_label(out, j);
        buf_printf(out, ",phase=\"%s\"} %d\n", words[i], i == now);
    }
}

void metrics_put_jobs(struct buf *out, struct kv *kv) {
    struct jobs_counted jobs = {.list = mem_array(struct metrics_jobs_job, JOBS_MAX + 1)};
    kv_each(kv, see_key, &jobs);
    for (size_t i = 0; i < jobs.n; i++)
        read_job(&jobs.list[i], kv);
    if (jobs.n)
        put_gauges(out, &jobs);
    if (jobs.n)
        metrics_head(out, "rankrun_job_phase", "gauge", "1 for the phase that the job is in.");
    for (size_t i = 0; i < jobs.n; i++)
        put_phase(out, &jobs.list[i]);
    free(jobs.list);
}
