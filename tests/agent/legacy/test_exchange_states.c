/* What a member of a round tells the others, before its start and at the exit barrier, in rounds that are drawn: which keys are
 * there, what strangers have written into them, what is known of the host of rank 0. All that exchange.c and barrier.c ask for is
 * played and written down. exchange.txt has the first rounds in words and a number for each 200; `make transcripts` writes it
 * anew, and --show N says so many of them. */
#include "agent/legacy/state.h"
#include "base/base64.h"
#include "tests/agent/on_record.h"

#include <stdio.h>
#include <stdlib.h>

#define mirror_find      played_find
#define path_kv          played_path
#define flow_put         played_put
#define flow_send        played_send
#define legacy_exit      played_exit
#define legacy_add       played_add
#define legacy_claim     played_claim
#define call_may         played_may
#define exchange_get     own_get
#define exchange_put     own_put
#define exchange_add     own_add
#define exchange_advance own_advance
#define barrier_is_done  own_is_done
#define barrier_tell     own_tell
#define barrier_finish   own_finish

static const struct mirror_key *played_find(const struct mirror *m, const char *key);
static const char *played_path(struct legacy *l, int64_t version, const char *key);
static void played_put(struct legacy *l, const char *key, const char *value, int64_t ttl_s);
static void played_send(struct legacy *l, enum legacy_flow flow, const struct tree_request *q);
static void played_exit(struct legacy *l, int code, const struct failure *f, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static struct action *played_add(struct legacy *l, enum action_kind kind);
static void played_claim(struct legacy *l, const char *what, int64_t round);
static bool played_may(struct legacy *l, enum call_slot slot);
static const char *own_get(struct legacy *l, const char *key);
static void own_put(struct legacy *l, const char *key, const char *value);
static void own_add(struct legacy *l, const char *key, int64_t value);
static void own_advance(struct legacy *l);
static bool own_is_done(struct legacy *l);
static void own_tell(struct legacy *l);
static bool own_finish(struct legacy *l);
#include "agent/legacy/exchange.c"
#include "agent/legacy/barrier.c"

static const char path[] = "tests/agent/legacy/exchange.txt";

enum { KEYS_MAX = 64, ROUNDS = 8000, IN_WORDS = 60, TOGETHER = 200 };

static struct legacy l;
static struct buf said;
static struct rand chance;
static struct {
    struct mirror_key keys[KEYS_MAX];
    int n;
    struct action actions[4];
    int n_actions, requests;
    bool may;
} world;

static int draw(int n) {
    return (int)rand_below(&chance, (uint64_t)n);
}

/* ---- what is asked for ---- */

static const struct mirror_key *played_find(const struct mirror *m, const char *key) {
    assert_ptr_equal(m, &l.mirror);
    for (int i = 0; i < world.n; i++)
        if (strcmp(world.keys[i].key, key) == 0)
            return &world.keys[i];
    return NULL;
}

static const char *played_path(struct legacy *of, int64_t version, const char *key) {
    return arena_printf(&of->arena, "v_%lld/%s", (long long)version, key);
}

static void put_value(const char *value) {
    const char *plain = value ? base64_plain(&l.arena, value) : NULL;
    buf_printf(&said, " %s", plain ? plain : "none");
}

static void played_put(struct legacy *of, const char *key, const char *value, int64_t ttl_s) {
    assert_ptr_equal(of, &l);
    world.requests++;
    buf_printf(&said, "put %s for %lld:", key, (long long)ttl_s);
    put_value(value);
    buf_putc(&said, '\n');
}

static void played_send(struct legacy *of, enum legacy_flow flow, const struct tree_request *q) {
    assert_ptr_equal(of, &l);
    world.requests++;
    buf_printf(&said, "send %d: %d %s exist %d ttl %lld %d %d %lld %lld:", (int)flow, (int)q->verb,
               q->key, (int)q->exist, (long long)q->ttl_s, q->dir, q->refresh,
               (long long)q->from_index, (long long)q->timeout_ms);
    put_value(q->value);
    put_value(q->compare);
    buf_putc(&said, '\n');
}

static void played_exit(struct legacy *of, int code, const struct failure *f, const char *fmt,
                        ...) {
    va_list ap;
    va_start(ap, fmt);
    buf_printf(&said, "exit %d%s: ", code, f ? " by a failure" : "");
    buf_vprintf(&said, fmt, ap);
    buf_putc(&said, '\n');
    va_end(ap);
    of->over = true;
}

static struct action *played_add(struct legacy *of, enum action_kind kind) {
    assert_ptr_equal(of, &l);
    assert_true(world.n_actions < 4);
    struct action *a = &world.actions[world.n_actions++];
    *a = (struct action){.kind = kind};
    return a;
}

static void played_claim(struct legacy *of, const char *what, int64_t round) {
    assert_ptr_equal(of, &l);
    buf_printf(&said, "claim %s of %lld\n", what, (long long)round);
}

static bool played_may(struct legacy *of, enum call_slot slot) {
    assert_ptr_equal(of, &l);
    assert_int_equal(slot, CALL_FLOW);
    return world.may;
}

static void put_start(const struct round_spec *s) {
    buf_printf(&said, "start %s of %lld: group %d/%d, ranks %d+%d/%d, role %s %d/%d, master %s:%d",
               s->run_id, (long long)s->round, s->group_rank, s->group_world, s->rank_base,
               s->local_world, s->world, s->role, s->role_rank_base, s->role_world, s->master_addr,
               s->master_port);
    buf_printf(&said, ", restarts %d/%d, deadline %d %lld %lld\n", s->restart_count,
               s->max_restarts, s->deadline_required, (long long)s->fence_ns,
               (long long)s->hard_ns);
}

static void put_actions(void) {
    for (int i = 0; i < world.n_actions; i++) {
        const struct action *a = &world.actions[i];
        if (a->kind == ACTION_START)
            put_start(a->start);
        else if (a->kind == ACTION_LOOK_UP)
            buf_printf(&said, "look up %s for %lld\n", a->look_up.host,
                       (long long)a->look_up.round);
        else
            buf_printf(&said, "action %d\n", (int)a->kind);
    }
}

static void put_round(void) {
    const struct legacy_round *r = &l.round;
    const struct legacy_group *g = &l.group;
    buf_printf(&said, "round %d/%d: %d/%d, %d/%d%s%s%s%s%s; group%s%s %d of %d until %lld%s%s\n",
               r->rank, r->n, r->rank_base, r->world, r->role_rank_base, r->role_world,
               r->port_asked ? " port" : "", r->newer ? " newer" : "", r->added ? " added" : "",
               r->looks_up ? " looks" : "", r->looked_up ? " looked" : "", g->there ? " there" : "",
               g->ran ? " ran" : "", g->exited, g->workers, (long long)g->fence_ns,
               g->ok ? " ok" : "", g->failed ? " failed" : "");
}

/* ---- a round ---- */

static void add_key(const char *key, const char *value, bool coded) {
    assert_true(world.n < KEYS_MAX);
    struct mirror_key *k = &world.keys[world.n++];
    k->key = arena_printf(&l.strings, "v_%lld/%s", (long long)l.round.version, key);
    k->value = arena_strdup(&l.strings, coded ? base64_coded(&l.arena, value) : value);
    buf_printf(&said, "  %s = %s\n", k->key, value);
}

/* Of one member: sensible, most of the time. */
static const char *draw_info(int rank) {
    static const char *const strange[] = {"", "{", "[]", "{\"role\":7,\"local_world_size\":\"2\"}",
                                          "{\"role\":\"a\"}"};
    static const int slots[] = {0, 100000, 100001, -1, 1};
    if (draw(40) == 0)
        return strange[draw(5)];
    int n = draw(20) ? 1 + draw(4) : slots[draw(5)];
    const char *finds = draw(3)   ? ", \"finds_master\": true"
                        : draw(2) ? ", \"finds_master\": false"
                                  : "";
    return arena_printf(&l.arena, "{\"role\": \"%s\", \"rank\": %d, \"local_world_size\": %d%s}",
                        draw(3) ? "trainer" : "other", rank, n, finds);
}

/* Each key of the round, so often of eight times. */
static void draw_keys(int often) {
    static const char *const addrs[] = {"10.0.0.7", "host.example", ""};
    static const char *const ports[] = {"29500", "1", "65535", "65536", "0", "x", ""};
    char key[96], longest[NAME_SIZE + 2];
    bool newer = draw(3) == 0;
    for (int i = 0; i < l.round.n; i++) {
        snprintf(key, sizeof(key), "torchelastic/role_info%d", i);
        if (draw(8) < often)
            add_key(key, draw_info(i), true);
        snprintf(key, sizeof(key), "torchelastic/role_info/%d", i);
        if (newer && draw(8) < often)
            add_key(key, draw_info(i), true);
        snprintf(key, sizeof(key), "torchelastic/assigned_ranks/%d", i);
        if (draw(8) < often)
            add_key(key, "[0, 1, 0, 1]", true);
        snprintf(key, sizeof(key), "torchelastic/role_info%d.FIN", i);
        if (draw(8) < often)
            add_key(key, "FIN", true);
        snprintf(key, sizeof(key), "torchelastic/agent/terminal_state%d", i);
        if (draw(8) < often)
            add_key(key, "0", true);
        snprintf(key, sizeof(key), "torchelastic/agent/terminal_state%d.FIN", i);
        if (draw(8) < often)
            add_key(key, "FIN", true);
    }
    memset(longest, 'h', sizeof(longest));
    longest[NAME_SIZE - 1 + draw(2)] = '\0';
    if (draw(8) < often)
        add_key("MASTER_ADDR", draw(9) ? addrs[draw(12) ? draw(2) : 2] : longest, true);
    if (draw(8) < often)
        add_key("MASTER_PORT", ports[draw(3) ? 0 : draw(7)], draw(20) != 0);
    if (draw(8) < often)
        add_key("torchelastic/agent/terminal_state/last_member", "<val_ignored>", true);
    static const char *const counts[] = {"0", "1", "2", "3", "4", "1000000", "1000001", "-1", "x"};
    if (draw(8) < often)
        add_key("torchelastic/agent/terminal_state/num_members",
                counts[draw(4) ? draw(5) : draw(9)], true);
}

static void draw_round(void) {
    struct legacy_round *r = &l.round;
    static const char *const hosts[] = {"", "node-0", "node-0 node-0.cluster"};
    r->version = 1 + draw(12);
    r->n = 1 + draw(4);
    r->rank = draw(2) ? 0 : draw(r->n);
    strcpy(r->host, hosts[draw(3)]);
    r->looks_up = r->host[0] && draw(4);
    r->looked_up = r->looks_up && draw(4);
    r->is_found = draw(2);
    r->port_asked = draw(2);
    if (draw(4)) {
        strcpy(r->addr, "10.0.0.9");
        r->port = 1024 + draw(5);
    }
    r->newer = draw(4) == 0;
    r->added = draw(2);
    l.config.run_id = "r";
    l.config.role = draw(3) ? "trainer" : "a \"role\"";
    l.config.slots = 1 + draw(4);
    l.config.max_restarts = draw(4);
    l.spent = draw(3);
    l.alive.deadline_ns = 1000000 + draw(4);
    l.now.boottime_ns = l.alive.deadline_ns + (draw(2) ? -5 : draw(3) - 1);
    world.may = draw(10) != 0;
    buf_printf(&said, "-- version %lld, host \"%s\"%s, addr \"%s\" %d%s, %lld ns left, %s\n",
               (long long)r->version, r->host, r->is_found ? " is found" : "", r->addr, r->port,
               world.may ? "" : ", a request is under way",
               (long long)(l.alive.deadline_ns - l.now.boottime_ns), l.config.role);
    put_round();
}

static void play(uint64_t seed) {
    rand_init(&chance, seed);
    memset(&world, 0, sizeof(world));
    memset(&l, 0, sizeof(l));
    draw_round();
    draw_keys(draw(3) ? 8 - draw(2) : draw(9));
    buf_printf(&said, "done: %d\n", own_is_done(&l));
    struct legacy_round round = l.round;
    own_tell(&l);
    buf_puts(&said, "finish:\n");
    world.requests = 0;
    bool asked = own_finish(&l);
    assert_int_equal(world.requests, asked);
    assert_memory_equal(&l.round, &round, sizeof(round));
    buf_puts(&said, "advance:\n");
    world.requests = 0;
    own_advance(&l);
    assert_true(world.requests <= (world.may ? 1 : 0));
    put_actions();
    put_round();
    arena_fini(&l.arena);
    arena_fini(&l.strings);
}

static void say(struct buf *out) {
    uint64_t sum = 0;
    int starts = 0;
    for (int seed = 1; seed <= ROUNDS; seed++) {
        buf_clear(&said);
        play((uint64_t)seed);
        starts += strstr(buf_str(&said), "\nstart ") != NULL;
        if (seed <= IN_WORDS)
            buf_puts(out, buf_str(&said));
        sum = on_record_sum(sum, said.data, said.len);
        if (seed % TOGETHER == 0)
            buf_printf(out, "to %d: %d starts, %016llx\n", seed, starts, (unsigned long long)sum);
    }
    buf_fini(&said);
}

static void test_what_members_tell_each_other_is_on_record(void **state) {
    (void)state;
    on_record_same(path, say, "members tell each other something else");
}

int main(int argc, char **argv) {
    const struct CMUnitTest test = cmocka_unit_test(test_what_members_tell_each_other_is_on_record);
    if (argc == 3 && strcmp(argv[1], "--show") == 0) {
        for (int seed = 1; seed <= atoi(argv[2]); seed++)
            play((uint64_t)seed);
        int ret = fwrite(said.data, 1, said.len, stdout) == 0;
        buf_fini(&said);
        return ret;
    }
    return on_record_main(argc, argv, path, say, &test);
}
