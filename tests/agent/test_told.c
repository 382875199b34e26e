/* What an agent tells people and programs of rounds, failures and its end, and what `rankrun status` tells of a job: of hundreds
 * of drawn ones, to the last word. told.txt has the first of each kind as they are, to be read, and a number for each hundred more;
 * `make transcripts` writes it anew. */
#include "agent/core/rendezvous.h"
#include "agent/event_log.h"
#include "agent/job_status.h"
#include "agent/neighbours.h"
#include "agent/options.h"
#include "agent/root_cause.h"
#include "agent/round_line.h"
#include "agent/status.h"
#include "agent/store/codec.h"
#include "agent/workers/guard.h"
#include "base/rand.h"
#include "base/str.h"
#include "base/sys/line.h"
#include "tests/agent/captured.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/agent/on_record.h"

static const char path[] = "tests/agent/told.txt";

enum { SHOWN = 12, GROUPS = 6, DRAWS = 100 };

static struct rand chance;

/* Once in a list of arguments: compilers differ in which of several comes first. */
static int draw(int n) {
    return (int)rand_below(&chance, (uint64_t)n);
}

#define ONE_OF(list) list[draw((int)(sizeof(list) / sizeof(*(list))))]

/* ---- the host ---- */

static bool nameless;

int __wrap_gethostname(char *name, size_t size);
int __wrap_gethostname(char *name, size_t size) {
    snprintf(name, size, "the-host, %zu bytes of its name", size);
    return nameless ? -1 : 0;
}

int64_t __wrap_clock_realtime_ns(void);
int64_t __wrap_clock_realtime_ns(void) {
    return 1700000000123456789;
}

/* The guard's half of handing on is its own. */
int guard_hand_on_error(const struct guard *g, int local_rank, int code, const char *to,
                        struct err *err) {
    printf("guard %d hands on: local rank %d, code %d, to %s\n", g != NULL, local_rank, code, to);
    return draw(3) ? 0 : err_set(err, -ENOENT, "open %s", to);
}

/* ---- round lines ---- */

static const char *const claims[] = {
    CLAIM_JOIN,   CLAIM_LEAD,  CLAIM_LAST_CALL,    CLAIM_FORM,  CLAIM_ACK,
    CLAIM_RUN,    CLAIM_START, CLAIM_STARTED,      CLAIM_STOP,  CLAIM_END,
    CLAIM_FENCED, CLAIM_LOST,  CLAIM_EXIT_BARRIER, CLAIM_LEAVE, CLAIM_CLOSED};

static void tell_rounds(void) {
    struct round_line l = {.own_count = draw(2)};
    int64_t now = 1, round = draw(3);
    for (int i = 0; i < 14; i++) {
        now += draw(4) * 1000000 + draw(3) * 499999;
        if (draw(4)) {
            const char *what = draw(2) ? ONE_OF(claims) : draw(2) ? CLAIM_STARTED : CLAIM_ACK;
            printf("%" PRId64 " %s\n", now, what);
            round_line_claim(&l, what, now);
            continue;
        }
        round += 1 + draw(2);
        struct round_spec r = {.round = round,
                               .restart_count = draw(3),
                               .max_restarts = draw(4),
                               .group_world = 1 + draw(3),
                               .world = 10 + draw(9),
                               .group_rank = draw(4) == 0};
        printf("%" PRId64 " round %" PRId64 " of %d, restart %d, rank %d\n", now, round,
               r.group_world, r.restart_count, r.group_rank);
        round_line_start(&l, &r, now);
    }
    printf("due %d\n", l.due);
}

/* ---- the events of --event-log-handler ---- */

#define TEN   "0123456789"
#define FIFTY TEN TEN TEN TEN TEN
static const char *const errors[] = {
    "", "", "e", "exit 3", "a \"quoted\"\ntext", FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY};
static const int statuses[] = {0, 0, 256, 9, 139, 77 << 8};

static void tell_events(void) {
    const char *const command[] = {"/opt/job/train.py", "x", NULL};
    const char *const plain[] = {"train", NULL};
    struct options o = {.event_log = draw(8) != 0,
                        .command = draw(2) ? command : plain,
                        .run_id = "job",
                        .role = "r",
                        .node_rank = draw(4) - 2,
                        .backend = (enum options_backend)draw(4)};
    nameless = draw(6) == 0;
    struct event_log *e = event_log_new(&o, 5);
    for (int rounds = draw(3); rounds; rounds--) {
        struct round_spec r = {.local_world = 1 + draw(3),
                               .group_rank = 20 + draw(3),
                               .group_world = 30 + draw(3),
                               .rank_base = 40 + draw(3),
                               .role_rank_base = 50 + draw(3),
                               .role_world = 60 + draw(3),
                               .restart_count = draw(4)};
        event_log_round(e, &r);
        for (int i = 0; i <= r.local_world; i++) {
            if (draw(6))
                event_log_started(e, i, 100 + i);
            int status = ONE_OF(statuses);
            const char *error = ONE_OF(errors);
            if (draw(4))
                event_log_ended(e, i, status, error, draw(3) != 0);
        }
    }
    static const int codes[] = {0, 1, 1, 64, 143};
    struct action exit = {.kind = ACTION_EXIT,
                          .exit = {.code = ONE_OF(codes), .text = draw(2) ? "a sentence" : "s"}};
    static const int64_t times[] = {5, 1000000004, 1000000005, 61000000004};
    event_log_print(e, &exit, ONE_OF(times));
    event_log_free(e);
}

/* ---- the first failure ---- */

static void tell_failure(void) {
    static const char *const nodes[] = {"n0", "n1"};
    static const char *const files[] = {NULL, "", "f", "/error.json"};
    struct root_cause c = {0};
    struct failure f = {.rank = draw(4) - 1, .local_rank = draw(2), .pid = 100 + draw(2)};
    str_copy(f.node, sizeof(f.node), ONE_OF(nodes));
    static const int64_t times[] = {0, 1700000000999999999, 1};
    f.realtime_ns = ONE_OF(times);
    const char *file = ONE_OF(files);
    if (file)
        setenv("TORCHELASTIC_ERROR_FILE", file, 1);
    int round = draw(3), local_rank = draw(2), pid = 100 + draw(2), status = statuses[2 + draw(4)];
    if (draw(5))
        root_cause_note(&c, round, local_rank, pid, status, ONE_OF(errors));
    root_cause_print(&f, round, draw(2));
    root_cause_hand_on(&c, &f, ONE_OF(nodes), (const struct guard *)&c);
    unsetenv("TORCHELASTIC_ERROR_FILE");
}

/* ---- a job ---- */

enum { PAIRS_MAX = 64 };

static struct arena arena;
static struct kv_pair pairs[PAIRS_MAX];
static size_t n_pairs;
static const char *const incs[] = {"0123456789abcdef", "fedcba9876543210"};
static const char *const uids[] = {
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
    "cccccccccccccccccccccccccccccccc", "dddddddddddddddddddddddddddddddd",
    "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"};
static const char *const pids[] = {"2-7-1", "3-9-1"};

static void put(struct store_key key, const union value *v) {
    char text[KEY_SIZE], end[KEY_SIZE];
    BUF_FINI struct buf value = {0};
    str_copy(key.inc, sizeof(key.inc), incs[draw(16) == 0]);
    key_format(&key, draw(24) ? "job" : "job2", text, end);
    codec_put(&value, key.kind, v);
    if (draw(32) == 0)
        buf_puts(&value, "!");
    pairs[n_pairs++] = (struct kv_pair){.key = kv_string(arena_strdup(&arena, text)),
                                        .value = kv_string(arena_strdup(&arena, buf_str(&value)))};
}

static void put_head(void) {
    union value v = {.head = {.round = draw(4),
                              .phase = (enum head_phase)draw(5),
                              .n = draw(5),
                              .last_round = draw(4),
                              .last_n = draw(5),
                              .restarts = draw(6),
                              .world = draw(2) ? 0 : 8 + draw(3),
                              .master_port = 29500,
                              .outcome = (enum head_outcome)draw(3)}};
    struct failure *f = &v.head.failure;
    str_copy(v.head.pid, PID_SIZE, ONE_OF(pids));
    str_copy(v.head.last_pid, PID_SIZE, ONE_OF(pids));
    if (draw(2))
        str_copy(v.head.master_addr, NAME_SIZE, draw(2) ? "m" : "10.0.0.9");
    f->rank = f->local_rank = -1;
    if (draw(2)) {
        str_copy(f->uid, UID_SIZE, draw(3) ? uids[0] : draw(2) ? "u" : "");
        str_copy(f->node, NAME_SIZE, draw(3) ? "n0" : draw(2) ? "n" : "");
        str_copy(f->error, ERROR_SIZE, ONE_OF(errors));
        if (draw(3))
            f->rank = draw(3), f->local_rank = draw(2), f->pid = 4711, f->wait_status = 9;
    }
    put((struct store_key){.kind = KEY_HEAD}, &v);
}

static void put_member(const char *uid, int place) {
    static const char *const nodes[] = {"n0", "n1", "n2", "n"};
    union value v;
    struct store_key k = {.kind = KEY_MEMBER};
    str_copy(k.uid, UID_SIZE, uid);
    v = (union value){.member = {.slots = 1 + draw(3), .want = (enum member_want)draw(2)}};
    str_copy(v.member.node, NAME_SIZE, ONE_OF(nodes));
    str_copy(v.member.addr, NAME_SIZE, "10.0.0.1");
    str_copy(v.member.role, ROLE_SIZE, draw(2) ? "default" : "trainer");
    if (draw(8))
        put(k, &v);
    k.kind = KEY_SESSION;
    v = (union value){.session = {3}};
    if (draw(4))
        put(k, &v);
    k.kind = KEY_PLAN;
    v = (union value){.plan = {.group_rank = place, .rank_base = 3 * place, .world = 9 + draw(2)}};
    str_copy(k.pid, PID_SIZE, ONE_OF(pids));
    if (draw(3))
        put(k, &v);
    k.kind = KEY_GONE;
    v = (union value){.gone = {(enum gone_why)draw(2)}};
    if (draw(6) == 0)
        put(k, &v);
    k.round = draw(4);
    k.kind = KEY_ACK;
    v = (union value){.ack = {.why = (enum ack_why)draw(3)}};
    if (draw(3) == 0)
        put(k, &v);
    k.round = draw(4);
    k.kind = KEY_DONE;
    v = (union value){.done = {k.round}};
    if (draw(4) == 0)
        put(k, &v);
}

static void put_job(void) {
    union value v = {.cur = {.min = 1 + draw(2),
                             .max = 3 + draw(2),
                             .max_restarts = draw(5),
                             .timing = {.hb_ns = (1 + draw(2)) * 250000000LL}}};
    n_pairs = 0;
    str_copy(v.cur.inc, INC_SIZE, incs[0]);
    if (draw(24))
        put((struct store_key){.kind = KEY_CUR}, &v);
    if (draw(16))
        put_head();
    v = (union value){0};
    str_copy(v.lead.uid, UID_SIZE, ONE_OF(uids));
    if (draw(3))
        put((struct store_key){.kind = KEY_LEAD}, &v);
    for (int i = 0, places = draw(5), backwards = draw(2); i < 5; i++)
        if (draw(4))
            put_member(uids[backwards ? 4 - i : i], (places + 2 * i) % 5);
}

static void print_fields(const struct job_status *s) {
    printf("found %d, revision %" PRId64 ", unread %zu (cur %zu), round %" PRId64 " %s, nodes %d, "
           "world %d, restarts %d, lead %.4s, %s\n",
           s->found, s->revision, s->unread, s->unread_cur, s->round, s->pid, s->nodes, s->world,
           s->restarts, s->lead, job_status_phase(s));
    for (size_t i = 0; i < s->n; i++) {
        const struct job_member *m = &s->members[i];
        printf("%.4s: session %d, planned %d, gone %d %d, acked %d %d, done %d, beat %" PRId64
               ": %s, found again %d\n",
               m->uid, m->session, m->planned, m->gone, m->gone_why, m->acked, m->ack_why, m->done,
               m->beat_ns, job_member_state(s, m), job_status_member(s, m->uid) == m);
    }
}

static void tell_job(void) {
    struct job_status s;
    put_job();
    job_status_read(&arena, "job", 7 + draw(3), pairs, n_pairs, &s);
    print_fields(&s);
    for (size_t i = 0; i < s.n; i++) {
        s.members[i].ended = draw(5) == 0;
        if (draw(2))
            s.members[i].beat_ns = draw(2) ? 0 : 123999999;
    }
    if (s.found) {
        status_print_text(&s);
        status_print_json(&s);
    }
    arena_fini(&arena);
}

/* ---- runs beside ours ---- */

static int by_key(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void tell_neighbours(void) {
    static const char *const runs[] = {"a", "ab", "b", "us", "c%2fd"};
    static const char *const rests[] = {"cur",    "1f/s/x",  "1f/s/y",   "1f/s/z", "1f/s/",
                                        "1f/m/x", "1f/head", "1f/headx", "1f",     "1f/gone/x"};
    char text[16][64];
    const char *keys[16];
    struct kv_pair found[16] = {0};
    struct neighbour other;
    size_t n = (size_t)draw(16);
    for (size_t i = 0; i < n; i++) {
        const char *folder = draw(24) ? "rankrun" : "else", *run = ONE_OF(runs);
        snprintf(text[i], sizeof(text[i]), "/%s/%s/%s", folder, run, ONE_OF(rests));
        keys[i] = text[i];
    }
    qsort(keys, n, sizeof(*keys), by_key);
    for (size_t i = 0; i < n; i++) {
        found[i].key = kv_string(keys[i]);
        printf("%s ", keys[i]);
    }
    bool is = neighbours_find(found, n, "us", &other);
    printf("\n%d: \"%.*s\", %zu nodes, %zu others\n", is, (int)other.run_id_len,
           other.run_id ? other.run_id : "", other.nodes, other.others);
}

/* ---- on record ---- */

static const struct {
    const char *name;
    void (*tell)(void);
} kinds[] = {{"lines of rounds", tell_rounds},
             {"events at the end", tell_events},
             {"first failures", tell_failure},
             {"jobs", tell_job},
             {"runs beside ours", tell_neighbours}};

static void told(struct buf *out, void (*tell)(void)) {
    struct captured to_out, to_err;
    BUF_FINI struct buf on_err = {0};
    line_as_json(draw(2));
    captured_begin(&to_out, stdout);
    captured_begin(&to_err, stderr);
    tell();
    captured_end(&to_err, &on_err);
    captured_end(&to_out, out);
    buf_puts(out, buf_str(&on_err));
    line_as_json(false);
}

static uint64_t sum_of(const char *text) {
    uint64_t sum = 0;
    for (; *text; text++) {
        sum = (sum ^ (unsigned char)*text) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 29;
    }
    return sum;
}

static void say(struct buf *out) {
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
        rand_init(&chance, 7 + k);
        buf_printf(out, "# %s\n", kinds[k].name);
        for (int i = 0; i < SHOWN; i++) {
            told(out, kinds[k].tell);
            buf_puts(out, "\n");
        }
        for (int group = 0; group < GROUPS; group++) {
            BUF_FINI struct buf all = {0};
            for (int i = 0; i < DRAWS; i++)
                told(&all, kinds[k].tell);
            buf_printf(out, "%d more: %016" PRIx64 "\n\n", DRAWS, sum_of(buf_str(&all)));
        }
    }
}

static void test_what_is_told_is_what_is_on_record(void **state) {
    (void)state;
    on_record_same(path, say, "what is drawn there");
}

int main(int argc, char **argv) {
    const struct CMUnitTest test = cmocka_unit_test(test_what_is_told_is_what_is_on_record);
    return on_record_main(argc, argv, path, say, &test);
}
