/* The plan of a ring, played by all ranks at once in memory: what each sends is what the next gets, and in the end all
 * have what they must. */
#include "scenarios/jobs/ranktrain/net/ring_plan.h"

#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { WORLDS = 7, SEGMENT = 256 * 1024 };

struct stage {
    struct collective_call call;
    int world;
    size_t bounds[WORLDS + 1];
    int64_t *data[WORLDS];
};

static int64_t value(int rank, size_t i) {
    return (int64_t)(rank + 1) * 1000003 + (int64_t)i * 7;
}

static struct ring_plan plan_of(const struct stage *s, int rank) {
    return (struct ring_plan){.rank = rank, .world = s->world, .call = &s->call};
}

/* All that is sent in a phase goes before anything that comes is put anywhere. */
static void play_phase(struct stage *s, int phase) {
    char *sent[WORLDS];
    struct ring_move move[WORLDS];
    for (int r = 0; r < s->world; r++) {
        struct ring_plan p = plan_of(s, r);
        move[r] = ring_plan_move(&p, phase);
        sent[r] = malloc(move[r].out_bytes + 1);
        memcpy(sent[r], (char *)s->data[r] + move[r].out, move[r].sends ? move[r].out_bytes : 0);
        if (move[r].adds)
            assert_true(move[r].in_bytes <= ring_plan_staging(&p));
    }
    for (int r = 0; r < s->world; r++) {
        int before = (r + s->world - 1) % s->world;
        assert_int_equal(move[r].gets, move[before].sends);
        if (!move[r].gets)
            continue;
        assert_int_equal(move[r].in_bytes, move[before].out_bytes);
        assert_int_equal(move[r].in, move[before].out);
        int64_t *to = s->data[r] + move[r].in / 8, *from = (void *)sent[before];
        if (move[r].adds)
            for (size_t i = 0; i < move[r].in_bytes / 8; i++)
                to[i] += from[i];
        else
            memcpy(to, from, move[r].in_bytes);
    }
    for (int r = 0; r < s->world; r++)
        free(sent[r]);
}

static int owner_of(const struct stage *s, size_t i) {
    int r = 0;
    while (i * 8 >= s->bounds[r + 1])
        r++;
    return r;
}

static int64_t wanted(const struct stage *s, size_t i) {
    int64_t sum = 0;
    if (s->call.op == COLLECTIVE_BROADCAST)
        return value(s->call.peer, i);
    if (s->call.op == COLLECTIVE_ALL_GATHER)
        return value(owner_of(s, i), i);
    for (int r = 0; r < s->world; r++)
        sum += value(r, i);
    return sum;
}

static void judge(const struct stage *s) {
    for (int r = 0; r < s->world; r++)
        for (size_t i = 0; i < s->call.bytes / 8; i++)
            if (s->call.op != COLLECTIVE_REDUCE_SCATTER || owner_of(s, i) == r)
                assert_true(s->data[r][i] == wanted(s, i));
}

/* The last phase in which a rank sends is one in which it sends, and none comes after it. */
static void judge_ends(const struct stage *s, int phases) {
    for (int r = 0; r < s->world; r++) {
        struct ring_plan p = plan_of(s, r);
        int last = ring_plan_last_sent(&p);
        assert_int_equal(ring_plan_phases(&p), phases);
        assert_true(last >= -1 && last < phases);
        for (int i = last; i < phases; i++)
            if (i >= 0)
                assert_int_equal(ring_plan_move(&p, i).sends, i == last);
    }
}

static void play(enum collective_op op, int world, size_t numbers, int root) {
    struct stage s = {.world = world};
    s.call =
        (struct collective_call){.op = op, .bytes = numbers * 8, .bounds = s.bounds, .peer = root};
    for (int r = 0; r <= world; r++)
        s.bounds[r] = numbers * (size_t)(r * r) / (size_t)(world * world) * 8;
    for (int r = 0; r < world; r++) {
        s.data[r] = malloc(numbers * 8 + 1);
        for (size_t i = 0; i < numbers; i++)
            s.data[r][i] = value(r, i);
    }
    struct ring_plan first = plan_of(&s, 0);
    int phases = ring_plan_phases(&first);
    for (int i = 0; i < phases; i++)
        play_phase(&s, i);
    judge(&s);
    judge_ends(&s, phases);
    for (int r = 0; r < world; r++)
        free(s.data[r]);
}

static void test_every_exchange_ends_with_what_it_is_for(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 3, 7, 64, 1001};
    for (enum collective_op op = COLLECTIVE_ALL_REDUCE; op <= COLLECTIVE_BROADCAST; op++)
        for (int world = 1; world <= WORLDS; world++)
            for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
                for (int root = 0; root < (op == COLLECTIVE_BROADCAST ? world : 1); root++)
                    play(op, world, sizes[s], root);
}

/* In segments, of which the last may be shorter. */
static void test_what_one_has_goes_in_segments(void **state) {
    (void)state;
    static const size_t whole = SEGMENT / 8;
    static const size_t sizes[] = {SEGMENT / 8 - 1, SEGMENT / 8, SEGMENT / 8 + 1, SEGMENT / 4 + 3};
    for (size_t s = 0; s < 4; s++)
        for (int world = 2; world <= 4; world++) {
            struct collective_call c = {.op = COLLECTIVE_BROADCAST, .bytes = sizes[s] * 8};
            struct ring_plan p = {.world = world, .call = &c};
            assert_int_equal(ring_plan_phases(&p), (sizes[s] + whole - 1) / whole + world - 2);
            play(COLLECTIVE_BROADCAST, world, sizes[s], world / 2);
        }
    struct collective_call nothing = {.op = COLLECTIVE_BROADCAST};
    struct ring_plan p = {.world = 3, .call = &nothing};
    assert_int_equal(ring_plan_phases(&p), 2);
}

static void test_as_many_phases_as_it_takes(void **state) {
    (void)state;
    static const size_t bounds[WORLDS + 1] = {0};
    for (int world = 1; world <= WORLDS; world++) {
        static const struct {
            enum collective_op op;
            int times;
        } rows[] = {
            {COLLECTIVE_ALL_REDUCE, 2}, {COLLECTIVE_REDUCE_SCATTER, 1}, {COLLECTIVE_ALL_GATHER, 1}};
        for (int i = 0; i < 3; i++) {
            struct collective_call c = {.op = rows[i].op, .bytes = 0, .bounds = bounds};
            struct ring_plan p = {.world = world, .call = &c};
            assert_int_equal(ring_plan_phases(&p), rows[i].times * (world - 1));
            assert_int_equal(ring_plan_staging(&p), 0);
            assert_int_equal(ring_plan_last_sent(&p), rows[i].times * (world - 1) - 1);
        }
    }
}

/* As much as comes at once, and no more. */
static void test_room_is_made_for_what_is_added(void **state) {
    (void)state;
    struct collective_call c = {.op = COLLECTIVE_ALL_REDUCE, .bytes = 8 * 10};
    struct ring_plan p = {.world = 3, .call = &c};
    static const size_t sums[] = {32, 32, 24};
    for (p.rank = 0; p.rank < 3; p.rank++)
        assert_int_equal(ring_plan_staging(&p), sums[p.rank]);
    /* Of reduce-scatter a rank adds every part but the one that it sends first, that of the one before it. */
    static const size_t bounds[] = {0, 8, 72, 80}, most[] = {64, 64, 8};
    c = (struct collective_call){.op = COLLECTIVE_REDUCE_SCATTER, .bytes = 80, .bounds = bounds};
    for (p.rank = 0; p.rank < 3; p.rank++)
        assert_int_equal(ring_plan_staging(&p), most[p.rank]);
    c.op = COLLECTIVE_ALL_GATHER;
    p.rank = 0;
    assert_int_equal(ring_plan_staging(&p), 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_exchange_ends_with_what_it_is_for),
        cmocka_unit_test(test_what_one_has_goes_in_segments),
        cmocka_unit_test(test_as_many_phases_as_it_takes),
        cmocka_unit_test(test_room_is_made_for_what_is_added),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
