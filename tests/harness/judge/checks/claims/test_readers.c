/* Readers: what the judge understands of the lines of an agent and of answers of `rankrun status`, to the last field,
 * is what it understood before: as they are, cut behind each byte, without each word, with each word and each number
 * another one, and each byte another one. */
#include "harness/judge/checks/claims/said_line.h"
#include "harness/judge/checks/claims/status_answer.h"
#include "tests/agent/on_record.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define RECORD "tests/harness/judge/record/readers.txt"

static const char *const lines[] = {
    "rankrun: round 1 (start): world 2, 1 node, 0 of 3 restarts used; stop 0 ms, rendezvous 4 ms, "
    "start 9 ms",
    "rankrun: round 12 (membership): world 8, 2 nodes, 1 of 3 restarts used; stop 20 ms, "
    "rendezvous 31 ms, start 4 ms",
    "rankrun: round 2, local rank 1, pid 712: SIGKILL (core dumped)",
    "rankrun: round 3, local rank 0, pid 7: exit code 13",
    "rankrun: first failure of round 3: node n1, rank 5, pid 77: exit code 3",
    "rankrun: run \"tour\" succeeded",
    "rankrun: run \"tour\" failed: rank 3 (local rank 1 on node n1) was killed by signal 9; "
    "max_restarts 3 used up",
    "rankrun: run \"a b\" failed: rank 0 (local rank 0 on node n-2.x) exited with code 17; "
    "max_restarts 0 used up",
    "rankrun: run \"tour\" failed: too few nodes are left",
    "rankrun: waiting for 2 nodes",
    "round 1",
    "{\"what\":\"round\",\"level\":\"info\",\"text\":\"round 2 (failure): world 2, 1 node, 1 of 3 "
    "restarts used; stop 5 "
    "ms, rendezvous 6 ms, start 7 "
    "ms\",\"round\":2,\"cause\":\"failure\",\"world\":2,\"nodes\":1,\"restarts\":1,"
    "\"restarts_max\":3,\"stop_ms\":5,\"rendezvous_ms\":6,\"start_ms\":7}",
    "{\"what\":\"worker\",\"level\":\"error\",\"text\":\"round 2, local rank 1, pid 7: "
    "SIGSEGV\",\"round\":2,\"local_rank\":1,\"pid\":7}",
    "{\"what\":\"failure\",\"level\":\"error\",\"text\":\"first failure of round 3: node n1, rank "
    "5, pid 77: exit code "
    "3\",\"round\":3,\"node\":\"n1\",\"rank\":5,\"pid\":77}",
    "{\"what\":\"exit\",\"level\":\"info\",\"text\":\"run \\\"tour\\\" succeeded\"}",
    "{\"what\":\"exit\",\"level\":\"error\",\"text\":\"run \\\"tour\\\" failed: rank 3 (local rank "
    "1 on node n1) exited "
    "with code 4\"}",
    "{\"what\":\"note\",\"level\":\"info\",\"text\":\"it waits\"}",
};

static const char *const answers[] = {
    "{\"run_id\":\"tour\",\"revision\":4,\"phase\":\"running\",\"outcome\":null,\"round\":1,"
    "\"nodes\":3,\"nodes_min\":"
    "2,\"nodes_max\":5,\"waiting\":6,\"world\":7,\"restarts\":8,\"restarts_max\":9,\"restarts_"
    "left\":10,"
    "\"coordinator\":\"n0\",\"master_addr\":\"n4\",\"master_port\":29501,\"beat_ms\":100,\"not_"
    "read\":11,"
    "\"first_failure\":{\"node\":\"n1\",\"rank\":12,\"status\":\"SIGKILL\"},\"members\":[{\"node\":"
    "\"n0\",\"addr\":"
    "\"a0\",\"role\":\"default\",\"slots\":2,\"state\":\"running\",\"spare\":false,\"group_rank\":"
    "0,\"first_rank\":13,"
    "\"next_beat_ms\":14},{\"node\":\"n1\",\"state\":\"spare\",\"spare\":true}]}",
    "{\"phase\":\"done\",\"outcome\":\"succeeded\",\"first_failure\":null,\"members\":[]}",
    "{\"run_id\":\"x\"}",
    "job            tour, incarnation x, revision 4\nphase          running, round 1\nnodes        "
    "  3 in the round (2 to "
    "5), 6 waiting; world 7\nrestarts       8 of 9 used, 10 left\ncoordinator    n0\nmaster        "
    " "
    "n4:29501\nfirst failure  n1, rank 12, pid 5: SIGKILL: killed\n\nGROUP  NODE  ADDRESS  RANKS  "
    "SLOTS  ROLE  STATE  "
    "NEXT BEAT\n0      n0  a0  13-14  2  default  running    after 15 ms\n1      n1  a1  16  1  "
    "other  done\n-      n2  "
    "unknown  -  2  -  spare",
    "job            tour, incarnation x\nphase          done: succeeded, round 3\ncoordinator    "
    "none",
    "job            tour\nphase          forming\nnodes          0 in the round",
    "no job",
};

/* ---- what is understood ---- */

static void put_text(struct buf *out, const char *text) {
    buf_printf(out, " [%s]", text ? text : "-");
}

static void put_number(struct buf *out, int64_t n) {
    buf_printf(out, " %" PRId64, n);
}

static void read_line(struct buf *out, const char *line) {
    ARENA_FINI struct arena a = {0};
    struct said_line l;
    memset(&l, 0x5a, sizeof(l));
    said_line_read(&a, line, &l);
    const int64_t numbers[] = {l.kind,         l.round,   l.world,         l.nodes,    l.restarts,
                               l.restarts_max, l.stop_ms, l.rendezvous_ms, l.start_ms, l.rank,
                               l.local_rank,   l.pid,     l.code,          l.signal,   l.succeeded};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        put_number(out, numbers[i]);
    put_text(out, l.cause);
    put_text(out, l.node);
    put_text(out, l.signal_name);
    put_text(out, l.run_id);
    put_text(out, l.differs);
}

static void put_member(struct buf *out, const struct status_member *m) {
    const int64_t numbers[] = {m->slots,     m->group_rank, m->first_rank,
                               m->last_rank, m->beat_ms,    m->spare};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        put_number(out, numbers[i]);
    put_text(out, m->node);
    put_text(out, m->addr);
    put_text(out, m->role);
    put_text(out, m->state);
}

static void read_answer(struct buf *out, const char *text) {
    ARENA_FINI struct arena a = {0};
    struct status_answer s;
    memset(&s, 0x5a, sizeof(s));
    put_number(out, status_answer_read(&a, text, &s));
    const int64_t numbers[] = {s.round,         s.nodes,        s.nodes_min,         s.nodes_max,
                               s.waiting,       s.world,        s.restarts,          s.restarts_max,
                               s.restarts_left, s.master_port,  s.beat_ms,           s.not_read,
                               s.failure,       s.failure_rank, (int64_t)s.members_n};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        put_number(out, numbers[i]);
    const char *const texts[] = {s.run_id,      s.phase,        s.outcome,       s.coordinator,
                                 s.master_addr, s.failure_node, s.failure_status};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        put_text(out, texts[i]);
    for (size_t i = 0; i < s.members_n; i++)
        put_member(out, &s.members[i]);
}

/* ---- other texts ---- */

/* What is understood of a text in every form, in one sum. */
struct reading {
    void (*read)(struct buf *out, const char *text);
    uint64_t sum;
    size_t n;
};

static void take(struct reading *r, const char *text) {
    BUF_FINI struct buf out = {0};
    r->read(&out, text);
    r->sum = on_record_sum(r->sum, out.data, out.len);
    r->n++;
}

/* `n` bytes of it are something else. */
static void take_with(struct reading *r, const char *text, size_t at, size_t n,
                      const char *instead) {
    BUF_FINI struct buf other = {0};
    buf_printf(&other, "%.*s%s%s", (int)at, text, instead, text + at + n);
    take(r, buf_str(&other));
}

static void take_cut(struct reading *r, const char *text) {
    for (size_t at = 0; text[at]; at++)
        take_with(r, text, at, strlen(text + at), "");
}

static void take_bytes(struct reading *r, const char *text) {
    for (size_t at = 0; text[at]; at++)
        take_with(r, text, at, 1, isdigit((unsigned char)text[at]) ? "x" : "1");
}

/* Each run of letters, and each of digits. */
static void take_words(struct reading *r, const char *text) {
    static const char *const words[] = {"", "none", "unknown", "-",
                                        "a-word-that-is-rather-long-for-a-column"};
    static const char *const numbers[] = {"", "0", "1", "-1", "99", "4294967296", "null"};
    for (size_t at = 0, n; text[at]; at += n) {
        bool digits = isdigit((unsigned char)text[at]);
        for (n = 0;
             digits ? isdigit((unsigned char)text[at + n]) : isalpha((unsigned char)text[at + n]);)
            n++;
        if (!n) {
            n = 1;
            continue;
        }
        for (size_t i = 0; i < (digits ? 7 : 5); i++)
            take_with(r, text, at, n, digits ? numbers[i] : words[i]);
    }
}

static void say_one(struct buf *out, void (*read)(struct buf *, const char *), const char *text) {
    struct reading r = {.read = read, .sum = UINT64_C(14695981039346656037)};
    take_cut(&r, text);
    take_bytes(&r, text);
    take_words(&r, text);
    read(out, text);
    buf_printf(out, " and of %zu others %016" PRIx64 "\n", r.n, r.sum);
}

static void say(struct buf *out) {
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
        say_one(out, read_line, lines[i]);
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
        say_one(out, read_answer, answers[i]);
}

/* ---- */

static void test_what_is_read_of_lines_and_answers_is_on_record(void **state) {
    (void)state;
    on_record_same(RECORD, say, "the readers of claims say it");
}

int main(int argc, char **argv) {
    const struct CMUnitTest test =
        cmocka_unit_test(test_what_is_read_of_lines_and_answers_is_on_record);
    return on_record_main(argc, argv, RECORD, say, &test);
}
