/* What an agent of the legacy rendezvous does at its end, in every state in which it may come there, also in those that no
 * drawn world comes to: all that leave.c asks for is played and written down. leave.txt has a letter for each state, and each
 * word once; `make transcripts` writes it anew. */
#include "agent/legacy/state.h"
#include "tests/agent/on_record.h"

#include <assert.h>
#include <stdio.h>

#define legacy_claim         played_claim
#define legacy_exit          played_exit
#define legacy_wake_at       played_wake_at
#define call_may             played_may
#define flow_edit            played_edit
#define flow_send            played_send
#define alive_forget         played_forget
#define barrier_finish       played_barrier
#define gang_end             played_gang_end
#define failure_text         played_failure_text
#define document_end         played_document_end
#define document_is_pure     played_is_pure
#define legacy_leave_begin   played_leave_begin
#define legacy_leave_closed  played_leave_closed
#define legacy_leave_advance played_leave_advance

static void played_claim(struct legacy *l, const char *what, int64_t round);
static void played_exit(struct legacy *l, int code, const struct failure *f, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static void played_wake_at(struct legacy *l, int64_t at_ns);
static bool played_may(struct legacy *l, enum call_slot slot);
static void played_edit(struct legacy *l, const struct document_edit *e, int64_t ttl_s);
static void played_send(struct legacy *l, enum legacy_flow flow, const struct tree_request *q);
static void played_forget(struct legacy *l);
static bool played_barrier(struct legacy *l);
static const char *played_gang_end(struct legacy *l, const char *node);
static const char *played_failure_text(struct arena *a, const struct failure *f);
static const char *played_document_end(const struct document *d);
static bool played_is_pure(const struct document *d);
static void played_leave_begin(struct legacy *l, enum part_why why);
static void played_leave_closed(struct legacy *l);
static void played_leave_advance(struct legacy *l);
#include "agent/legacy/leave.c"

static const char path[] = "tests/agent/legacy/leave.txt";

static struct legacy l;
static struct buf *told;
static const char *end_of_document;
static bool pure, may, barrier, key_lives;
static char did; /* the last thing that was asked for; '.': nothing */

static void played_claim(struct legacy *of, const char *what, int64_t round) {
    assert_ptr_equal(of, &l);
    buf_printf(told, "claims \"%s\" of round %lld\n", what, (long long)round);
}

static void played_exit(struct legacy *of, int code, const struct failure *f, const char *fmt,
                        ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    assert_ptr_equal(of, &l);
    assert_true(!f || f == &l.group.failure);
    assert_true(did == '.' || did == 'b'); /* once, and not beside a request */
    did = 'x';
    buf_printf(told, "exits with %d%s: \"%s\"\n", code, f ? " and the failure" : "", text);
}

static void played_wake_at(struct legacy *of, int64_t at_ns) {
    assert_ptr_equal(of, &l);
    buf_printf(told, "wakes at %lld\n", (long long)at_ns);
}

static bool played_may(struct legacy *of, enum call_slot slot) {
    assert_ptr_equal(of, &l);
    assert_int_equal(slot, CALL_FLOW);
    return may;
}

static void asked_for(char what) {
    assert_true(may && did == '.');
    did = what;
}

static void put_text(const char *name, const char *text) {
    if (text)
        buf_printf(told, " %s=\"%s\"", name, text);
}

static void played_edit(struct legacy *of, const struct document_edit *e, int64_t ttl_s) {
    assert_ptr_equal(of, &l);
    asked_for(e->status ? 'c' : 'w');
    buf_puts(told, "edits");
    put_text("status", e->status);
    put_text("end", e->end);
    buf_printf(told, " add_rank=%d waiting=%d ttl=%lld\n", e->add_rank, e->waiting,
               (long long)ttl_s);
    assert_true(!e->uid && !e->node && !e->host && !e->begin_keep_alives && !e->add_keep_alive);
}

static void played_send(struct legacy *of, enum legacy_flow flow, const struct tree_request *q) {
    assert_ptr_equal(of, &l);
    assert_false(key_lives); /* it is given up first */
    asked_for('d');
    buf_printf(told, "sends %d: verb %d, key %s\n", (int)flow, (int)q->verb, q->key);
    assert_true(!q->value && !q->compare && !q->exist && !q->ttl_s && !q->dir && !q->refresh);
    assert_true(!q->from_index && !q->timeout_ms);
}

/* The text of the key is not the agent's any more. */
static void played_forget(struct legacy *of) {
    assert_ptr_equal(of, &l);
    memset(of->alive.key, 'x', strlen(of->alive.key));
    of->alive.key = NULL;
    key_lives = false;
}

static bool played_barrier(struct legacy *of) {
    assert_ptr_equal(of, &l);
    if (barrier)
        asked_for('b');
    return barrier;
}

static const char *played_gang_end(struct legacy *of, const char *node) {
    return arena_printf(&of->arena, "%s is lost", node);
}

static const char *played_failure_text(struct arena *a, const struct failure *f) {
    assert_ptr_equal(a, &l.arena);
    return arena_printf(a, "%s failed", f->node);
}

static const char *played_document_end(const struct document *d) {
    assert_ptr_equal(d, &l.doc);
    return end_of_document;
}

static bool played_is_pure(const struct document *d) {
    assert_ptr_equal(d, &l.doc);
    return pure;
}

static void begin(enum part_why why) {
    static char key[16];
    arena_fini(&l.arena);
    memset(&l, 0, sizeof(l));
    l.config.run_id = "r";
    l.config.node = "own";
    strcpy(l.round.lost_node, "other");
    strcpy(l.group.failure.node, "n3");
    strcpy(key, "/v_4/rank_1");
    l.alive.key = key;
    l.stage = STAGE_PART;
    l.part = why;
    l.part_ns = 7000;
    l.signo = 15;
    l.now.monotonic_ns = 6999;
    did = '.';
    end_of_document = NULL;
    pure = barrier = false;
    may = key_lives = true;
}

/* ---- what is written, in each state ---- */

/* A choice of each pair, by the bits of n. */
static void choose(unsigned n) {
    key_lives = n & 1;
    if (!key_lives)
        l.alive.key = NULL;
    l.round.n = n & 2 ? 2 : 1;
    l.doc.waiting = n & 4 ? 3 : 0;
    l.announced_version = n & 8 ? l.round.version : 3;
    pure = n & 16;
    barrier = n & 32;
}

static void put_states(struct buf *out, const char *name, struct buf *seen) {
    buf_puts(out, name);
    for (unsigned n = 0; n < 64; n++) {
        enum part_why why = l.part;
        int64_t version = l.round.version, of_state = l.doc.version;
        enum node_loss loss = l.config.on_node_loss;
        enum document_status status = l.doc.status;
        begin(why);
        l.round.version = version;
        l.doc.version = of_state;
        l.config.on_node_loss = loss;
        l.doc.status = status;
        choose(n);
        int64_t announced = l.announced_version;
        buf_clear(told);
        played_leave_advance(&l);
        buf_putc(out, did);
        assert_int_equal(l.announced_version, did == 'w' ? version : announced);
        if (!strstr(buf_str(seen), buf_str(told)))
            buf_puts(seen, buf_str(told));
    }
    buf_putc(out, '\n');
}

static void say_states(struct buf *out, struct buf *seen) {
    static const char *const whys[] = {"done", "failed", "left", "lost"};
    static const int64_t versions[][2] = {{4, 4}, {4, 5}, {0, 5}, {0, 0}};
    for (int why = PART_DONE; why <= PART_LOST; why++)
        for (int loss = 0; loss < 2; loss++)
            for (int status = DOCUMENT_ABSENT; status <= DOCUMENT_STRANGE; status++)
                for (int k = 0; k < 4; k++) {
                    char name[64];
                    begin((enum part_why)why);
                    l.config.on_node_loss = (enum node_loss)loss;
                    l.doc.status = (enum document_status)status;
                    l.round.version = versions[k][0];
                    l.doc.version = versions[k][1];
                    snprintf(
                        name, sizeof(name), "%s%s, state %d, round %d, its version %d: ", whys[why],
                        loss ? " in a gang" : "", status, (int)l.round.version, (int)l.doc.version);
                    put_states(out, name, seen);
                }
}

/* ---- when, and with which words ---- */

/* Nothing is asked for while the state is not known, or a request is under way; what is too late is not asked for. */
static void say_times(struct buf *out) {
    for (int why = PART_DONE; why <= PART_LOST; why++)
        for (int late = -1; late <= 1; late++)
            for (int n = 0; n < 4; n++) {
                begin((enum part_why)why);
                l.doc.status = DOCUMENT_FINAL;
                l.now.monotonic_ns = 7000 + late;
                l.doc_due = n & 1;
                may = !(n & 2);
                buf_clear(told);
                played_leave_advance(&l);
                buf_printf(out, "-- %d, %d ns late%s%s\n%s", why, late,
                           l.doc_due ? ", the state is not known" : "",
                           may ? "" : ", a request is under way", buf_str(told));
            }
}

static void say_exits(struct buf *out) {
    for (int max = 0; max < 3; max++)
        for (int spent = 0; spent < 3; spent++) {
            begin(PART_FAILED);
            l.config.max_restarts = max;
            l.spent = spent;
            l.now.monotonic_ns = 7000;
            buf_clear(told);
            played_leave_advance(&l);
            buf_printf(out, "-- %d of %d restarts are spent\n%s", spent, max, buf_str(told));
        }
}

static void say_closed(struct buf *out) {
    static const char *const ends[] = {NULL, "", "out of memory"};
    for (int i = 0; i < 3; i++)
        for (int version = 0; version < 2; version++) {
            begin(PART_DONE);
            end_of_document = ends[i];
            l.round.version = version;
            buf_clear(told);
            played_leave_closed(&l);
            buf_printf(out, "-- closed%s%s%s, round %d\n%s", ends[i] ? " with \"" : "",
                       ends[i] ? ends[i] : "", ends[i] ? "\"" : "", version, buf_str(told));
        }
}

static void say_begins(struct buf *out) {
    for (int why = PART_DONE; why <= PART_LOST; why++) {
        begin(PART_DONE);
        l.stage = STAGE_ROUND;
        l.round.version = 6;
        buf_clear(told);
        played_leave_begin(&l, (enum part_why)why);
        buf_printf(out, "-- begins for %d: stage %d, part %d, until %lld\n%s", why, (int)l.stage,
                   (int)l.part, (long long)l.part_ns, buf_str(told));
    }
}

static void say(struct buf *out) {
    BUF_FINI struct buf words = {0}, seen = {0};
    told = &words;
    say_states(out, &seen);
    buf_printf(out, "-- all that was asked for there:\n%s", buf_str(&seen));
    say_times(out);
    say_exits(out);
    say_closed(out);
    say_begins(out);
    arena_fini(&l.arena);
}

static void test_what_an_agent_does_at_its_end_is_on_record(void **state) {
    (void)state;
    on_record_same(path, say, "an agent ends otherwise");
}

int main(int argc, char **argv) {
    const struct CMUnitTest test =
        cmocka_unit_test(test_what_an_agent_does_at_its_end_is_on_record);
    return on_record_main(argc, argv, path, say, &test);
}
