/* A copied core goes on exactly as the first one would. This file stands between the simulator and
 * the core: at some step of every agent it makes a copy, and from then on both take every step. */
#define rendezvous_step core_step
#define rendezvous_free core_free
#include "agent/core/rendezvous.c"
#undef rendezvous_step
#undef rendezvous_free
#include "agent/core/canonical.h"
#include "agent/core/kv.h"
#include "base/buf.h"
#include "harness/sim/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

const struct action *rendezvous_step(struct rendezvous *r, const struct event *event,
                                     struct now now, size_t *ret_n);
struct rendezvous *rendezvous_free(struct rendezvous *r);

enum { PAIRS_MAX = 64 };

static struct pair {
    struct rendezvous *first, *second;
    int steps_before;
} pairs[PAIRS_MAX];
static uint64_t chance;
static uint64_t copies, compared;

static struct pair *pair_of(const struct rendezvous *r) {
    struct pair *spare = NULL;
    for (int i = 0; i < PAIRS_MAX; i++) {
        if (pairs[i].first == r)
            return &pairs[i];
        if (!pairs[i].first)
            spare = &pairs[i];
    }
    assert_non_null(spare);
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    *spare = (struct pair){(struct rendezvous *)r, NULL, (int)(chance >> 33) % 120};
    return spare;
}

static void see_txn(struct canonical *c, const struct txn *t) {
    for (size_t i = 0; i < t->n_compares; i++) {
        canonical_key(c, &t->compares[i].key);
        canonical_bytes(c, &t->compares[i].target, sizeof(t->compares[i].target));
        canonical_bytes(c, &t->compares[i].number, sizeof(t->compares[i].number));
    }
    for (size_t i = 0; i < t->n_ops; i++) {
        canonical_key(c, &t->ops[i].key);
        if (t->ops[i].put)
            canonical_bytes(c, t->ops[i].value, value_size(t->ops[i].key.kind));
    }
}

static uint64_t seen(const struct action *a, size_t n) {
    struct canonical c = {0};
    for (size_t i = 0; i < n; i++) {
        canonical_bytes(&c, &a[i].kind, sizeof(a[i].kind));
        if (a[i].kind == ACTION_TXN)
            see_txn(&c, &a[i].txn.txn);
        else if (a[i].kind == ACTION_BEAT)
            see_txn(&c, &a[i].beat.txn);
        else if (a[i].kind == ACTION_SNAPSHOT)
            for (size_t k = 0; k < a[i].snapshot.n; k++)
                canonical_key(&c, &a[i].snapshot.keys[k]);
        else if (a[i].kind == ACTION_TIMER)
            canonical_bytes(&c, &a[i].timer.at_ns, sizeof(a[i].timer.at_ns));
        else if (a[i].kind == ACTION_LOG)
            canonical_bytes(&c, a[i].log, strlen(a[i].log));
        else if (a[i].kind == ACTION_EXIT)
            canonical_bytes(&c, a[i].exit.text, strlen(a[i].exit.text));
        else if (a[i].kind == ACTION_DEADLINE)
            canonical_bytes(&c, &a[i].deadline, sizeof(a[i].deadline));
    }
    canonical_fini(&c);
    return c.hash;
}

static void same_state(const struct rendezvous *a, const struct rendezvous *b) {
    struct canonical x = {0}, y = {0};
    rendezvous_canonical(a, 1, &x);
    rendezvous_canonical(b, 1, &y);
    assert_true(x.hash == y.hash);
    assert_int_equal(x.n, y.n);
    assert_memory_equal(x.numbers, y.numbers, x.n * sizeof(*x.numbers));
    canonical_fini(&x);
    canonical_fini(&y);
}

const struct action *rendezvous_step(struct rendezvous *r, const struct event *event,
                                     struct now now, size_t *ret_n) {
    struct pair *p = pair_of(r);
    size_t n = 0;
    if (!p->second && p->steps_before-- == 0) {
        p->second = rendezvous_copy(r);
        rendezvous_rest(p->second);
        same_state(r, p->second);
        copies++;
    }
    const struct action *a = core_step(r, event, now, ret_n);
    if (p->second) {
        const struct action *b = core_step(p->second, event, now, &n);
        assert_int_equal(*ret_n, n);
        assert_true(seen(a, n) == seen(b, n));
        compared++;
    }
    return a;
}

struct rendezvous *rendezvous_free(struct rendezvous *r) {
    for (int i = 0; r && i < PAIRS_MAX; i++) {
        if (pairs[i].first != r)
            continue;
        if (pairs[i].second)
            same_state(r, pairs[i].second);
        core_free(pairs[i].second);
        pairs[i] = (struct pair){0};
    }
    return core_free(r);
}

static void test_a_copied_core_asks_for_what_the_first_one_does(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        struct sim_config config;
        struct sim_result result;
        sim_config_default(&config);
        config.seed = chance = seed;
        sim_run(&config, &result);
        assert_string_equal(result.text, "");
    }
    print_message("%llu copies, %llu steps taken by both\n", (unsigned long long)copies,
                  (unsigned long long)compared);
    assert_true(copies > 1000 && compared > 40 * copies);
}

/* --- the store --- */

static void put(struct kv *kv, uint64_t draw, struct arena *arena) {
    char key[32], value[32];
    struct kv_txn_result result;
    snprintf(key, sizeof(key), "k%llu", (unsigned long long)(draw % 13));
    snprintf(value, sizeof(value), "v%llu", (unsigned long long)(draw % 101));
    struct kv_op op = {.kind = draw % 5 ? KV_PUT : KV_DELETE,
                       .key = kv_string(arena_strdup(arena, key)),
                       .lease = draw % 5 && draw % 7 == 0 ? 9 : 0,
                       .value = kv_string(draw % 5 ? arena_strdup(arena, value) : "")};
    kv_txn(kv, &(struct kv_txn){.success = &op, .n_success = 1}, arena, &result, NULL);
}

static void see_pair(void *arg, const struct kv_pair *p) {
    buf_printf(arg, "%.*s=%.*s %lld %lld %lld %lld\n", (int)p->key.len, p->key.data,
               (int)p->value.len, p->value.data, (long long)p->create_revision,
               (long long)p->mod_revision, (long long)p->version, (long long)p->lease);
}

static void see_event(void *arg, const struct kv_event *e) {
    buf_printf(arg, "%d ", e->deleted);
    see_pair(arg, &e->pair);
}

static void same_store(const struct kv *a, const struct kv *b) {
    struct buf x = {0}, y = {0};
    kv_each(a, see_pair, &x);
    kv_each(b, see_pair, &y);
    kv_each_event(a, 0, see_event, &x);
    kv_each_event(b, 0, see_event, &y);
    assert_int_equal(kv_revision(a), kv_revision(b));
    assert_int_equal(kv_compact_revision(a), kv_compact_revision(b));
    assert_int_equal(x.len, y.len);
    assert_memory_equal(x.data, y.data, x.len);
    buf_fini(&x);
    buf_fini(&y);
}

static void test_a_copied_store_holds_and_does_the_same(void **state) {
    (void)state;
    struct kv *kv = kv_new(1, 40);
    struct arena arena = {0};
    int64_t id;
    kv_lease_grant(kv, 9, 60, 0, &id, NULL);
    for (uint64_t i = 1; i < 400; i++) {
        uint64_t draw = i * 2654435761u >> 3;
        put(kv, draw, &arena);
        struct kv *copy = kv_copy(kv);
        same_store(kv, copy);
        put(kv, draw / 7, &arena);
        put(copy, draw / 7, &arena);
        same_store(kv, copy);
        kv_lease_revoke(copy, 9, NULL);
        kv_free(copy);
    }
    kv_lease_expire(kv, INT64_MAX);
    arena_fini(&arena);
    kv_free(kv);
}

/* What only differs in names and in the time of day is the same state; what is waited for is not.
 */
static void test_ranks_and_distances_are_what_counts(void **state) {
    (void)state;
    struct canonical c = {0};
    canonical_order(&c, CANONICAL_REVISION, 17);
    canonical_time(&c, 1000, 5);
    assert_int_equal(c.n, 2);
    assert_true(c.hash == 0 && !c.numbers[0].is_time && c.numbers[1].is_time);
    struct store_key key = {.kind = KEY_PLAN, .pid = "2-17-1"};
    uint64_t first;
    canonical_clear(&c);
    canonical_key(&c, &key);
    first = c.hash;
    assert_int_equal(c.numbers[0].value, 17);
    memcpy(key.pid, "2-29-1", 7);
    canonical_clear(&c);
    canonical_key(&c, &key);
    assert_true(c.hash == first && c.numbers[0].value == 29);
    memcpy(key.pid, "3-29-1", 7);
    canonical_clear(&c);
    canonical_key(&c, &key);
    assert_true(c.hash != first);
    canonical_fini(&c);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_copied_core_asks_for_what_the_first_one_does),
        cmocka_unit_test(test_a_copied_store_holds_and_does_the_same),
        cmocka_unit_test(test_ranks_and_distances_are_what_counts),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
