#include "faults/mechanism/impairer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <math.h>

enum { DATA = 8, STORE = 1, ALL = 15, FRAMES = 10000, MS = 1000000, SECOND = 1000 * MS };

static struct impairer *impairer;
static struct frame segment, request;

static int begin(void **state) {
    (void)state;
    impairer = impairer_new();
    segment = (struct frame){
        .kind = FRAME_TCP, .tcp_flags = TCP_ACK, .transport = 34, .data = 54, .end = 1514};
    segment.source_port = 7000;
    segment.destination_port = 29500;
    request = segment;
    request.tcp_flags = TCP_SYN;
    request.end = request.data;
    return 0;
}

static int end(void **state) {
    (void)state;
    impairer = impairer_free(impairer);
    return 0;
}

/* Of three ports the first two are parted, the third is in no group. */
static struct impaired impaired(int64_t id, struct impairment how) {
    struct impaired ret = {.id = id, .how = how};
    if (!how.planes)
        ret.how.planes = ALL;
    for (int i = 0; i < IMPAIRER_PORTS_MAX; i++)
        ret.group[i] = i < 2 ? i : -1;
    return ret;
}

static void set(struct impairment how) {
    struct impaired one = impaired(1, how);
    assert_true(impairer_set(impairer, &one, 1, 0));
}

static struct fate pass(int from, int to, unsigned plane, const struct frame *f, int64_t now_ns) {
    return impairer_decide(impairer, &(struct passage){from, to, plane, f, now_ns});
}

static bool did(struct fate f, enum impairment_deed deed) {
    return f.deeds & 1U << deed;
}

/* To how many of so many segments it was done. */
static int count(enum impairment_deed deed) {
    int n = 0;
    for (int i = 0; i < FRAMES; i++)
        n += did(pass(0, 1, DATA, &segment, i), deed);
    return n;
}

static void assert_within(int n, int wanted, int percent) {
    assert_in_range(n, wanted - wanted * percent / 100, wanted + wanted * percent / 100);
}

static void test_without_impairments_everything_passes_at_once(void **state) {
    (void)state;
    struct fate f = pass(0, 1, DATA, &segment, 0);
    assert_true(!f.dropped && !f.deeds && !f.late_ns);
    assert_false(impairer_touches(impairer, 0, 1));
}

static void test_a_delay_is_between_groups_and_of_its_planes(void **state) {
    (void)state;
    struct impaired both[] = {impaired(1, (struct impairment){.planes = DATA, .delay_ns = 100}),
                              impaired(2, (struct impairment){.planes = ALL, .delay_ns = 30})};
    impairer_set(impairer, both, 1, 0);
    assert_int_equal(pass(0, 1, DATA, &segment, 0).late_ns, 100);
    assert_int_equal(pass(1, 0, DATA, &segment, 0).late_ns, 100);
    assert_int_equal(pass(0, 1, STORE, &segment, 0).late_ns, 0);
    assert_int_equal(pass(0, 1, 0, &segment, 0).late_ns, 0); /* ARP */
    assert_int_equal(pass(0, 2, DATA, &segment, 0).late_ns, 0);
    assert_true(impairer_touches(impairer, 0, 1) && !impairer_touches(impairer, 0, 2));
    assert_false(impairer_wants_packets(impairer, 0, 1));
    impairer_set(impairer, both, 2, 0);
    assert_int_equal(pass(0, 1, DATA, &segment, 0).late_ns, 130);
    assert_int_equal(pass(0, 1, 0, &segment, 0).late_ns, 30);
    impairer_set(impairer, NULL, 0, 0);
    assert_int_equal(pass(0, 1, DATA, &segment, 0).late_ns, 0);
}

static void test_an_impairment_has_its_time(void **state) {
    (void)state;
    struct impaired both[] = {impaired(1, (struct impairment){.delay_ns = 1, .until_ns = SECOND}),
                              impaired(2, (struct impairment){.delay_ns = 7, .from_ns = SECOND})};
    impairer_set(impairer, both, 2, 5 * MS);
    assert_int_equal(pass(0, 1, DATA, &segment, 5 * MS).late_ns, 1);
    assert_int_equal(pass(0, 1, DATA, &segment, 5 * MS + SECOND - 1).late_ns, 1);
    assert_int_equal(pass(0, 1, DATA, &segment, 5 * MS + SECOND).late_ns, 7);
    impairer_set(impairer, &both[1], 1, 9 * MS); /* it is known already: its time goes on */
    assert_int_equal(pass(0, 1, DATA, &segment, 5 * MS + SECOND - 1).late_ns, 0);
    assert_int_equal(pass(0, 1, DATA, &segment, 5 * MS + SECOND).late_ns, 7);
}

static void test_a_direction_leaves_the_other_alone(void **state) {
    (void)state;
    set((struct impairment){.delay_ns = 5, .direction = DIRECTION_FROM});
    assert_int_equal(pass(0, 1, DATA, &segment, 0).late_ns, 5);
    assert_int_equal(pass(1, 0, DATA, &segment, 0).late_ns, 0);
    end(NULL);
    begin(NULL);
    set((struct impairment){.delay_ns = 5, .direction = DIRECTION_TO});
    assert_int_equal(pass(0, 1, DATA, &segment, 0).late_ns, 0);
    assert_int_equal(pass(1, 0, DATA, &segment, 0).late_ns, 5);
}

static void test_jitter_is_drawn_from_its_seed_and_stays_in_its_bounds(void **state) {
    int64_t first[64], least = INT64_MAX, most = 0;
    (void)state;
    for (int again = 0; again < 2; again++) {
        impairer_set(impairer, NULL, 0, 0);
        set((struct impairment){.delay_ns = 100, .jitter_ns = 100, .seed = 7});
        for (int i = 0; i < 64; i++) {
            int64_t late = pass(0, 1, DATA, &segment, 0).late_ns;
            assert_in_range(late, 0, 200);
            if (again)
                assert_int_equal(late, first[i]);
            first[i] = late;
            least = late < least ? late : least;
            most = late > most ? late : most;
        }
    }
    assert_true(least < 50 && most > 150);
}

/* Draws do not begin anew when another impairment comes or goes. */
static void test_what_stays_goes_on_with_its_draws(void **state) {
    (void)state;
    struct impaired list[] = {
        impaired(1, (struct impairment){.delay_ns = 1000, .jitter_ns = 1000, .seed = 7}),
        impaired(2, (struct impairment){.planes = STORE, .delay_ns = 1})};
    int64_t straight[8];
    impairer_set(impairer, list, 1, 0);
    for (int i = 0; i < 8; i++)
        straight[i] = pass(0, 1, DATA, &segment, 0).late_ns;
    impairer_set(impairer, NULL, 0, 0);
    impairer_set(impairer, list, 1, 0);
    for (int i = 0; i < 8; i++) {
        impairer_set(impairer, list, i % 2 ? 1 : 2, 0);
        assert_int_equal(pass(0, 1, DATA, &segment, 0).late_ns, straight[i]);
    }
}

static void test_as_many_frames_are_lost_as_was_said(void **state) {
    (void)state;
    set((struct impairment){.loss_ppm = 100000, .seed = 3});
    assert_true(impairer_wants_packets(impairer, 0, 1));
    assert_within(count(DEED_LOST), FRAMES / 10, 5);
    struct fate f;
    while (!did(f = pass(0, 1, DATA, &segment, 0), DEED_LOST))
        ;
    assert_true(f.dropped && !f.cut);
}

static void test_bursts_are_as_long_and_as_many_as_was_said(void **state) {
    int lost = 0, bursts = 0;
    bool before = false;
    (void)state;
    set((struct impairment){.loss_ppm = 100000, .burst = 5, .seed = 3});
    for (int i = 0; i < 10 * FRAMES; i++) {
        bool now = pass(0, 1, DATA, &segment, 0).dropped;
        lost += now;
        bursts += now && !before;
        before = now;
    }
    assert_within(lost, FRAMES, 5);
    assert_within(lost * 100 / bursts, 500, 5);
}

static void test_all_of_a_million_is_all(void **state) {
    (void)state;
    set((struct impairment){.loss_ppm = 1000000, .burst = 7});
    assert_int_equal(count(DEED_LOST), FRAMES);
}

static void test_frames_come_twice_or_behind_others_as_often_as_was_said(void **state) {
    (void)state;
    set((struct impairment){.duplicate_ppm = 50000, .seed = 5});
    assert_within(count(DEED_DUPLICATED), FRAMES / 20, 10);
    impairer_set(impairer, NULL, 0, 0);
    set((struct impairment){.reorder_ppm = 200000, .reorder_ns = 7, .seed = 5});
    assert_within(count(DEED_REORDERED), FRAMES / 5, 5);
    for (int i = 0; i < 100; i++) {
        struct fate f = pass(0, 1, DATA, &segment, 0);
        assert_int_equal(f.late_ns, did(f, DEED_REORDERED) ? 7 : 0);
    }
}

static void test_only_what_carries_something_is_corrupted(void **state) {
    (void)state;
    set((struct impairment){.corrupt_ppm = 1000000, .corrupt_mends = 1});
    struct fate f = pass(0, 1, DATA, &segment, 0);
    assert_true(did(f, DEED_CORRUPTED) && f.checksum_right && !f.dropped);
    assert_int_equal(pass(0, 1, DATA, &request, 0).deeds, 0);
}

static void test_a_link_passes_as_much_as_its_rate_says(void **state) {
    (void)state;
    int64_t last = 0;
    set((struct impairment){.rate_bit_s = 10000000, .queue_bytes = 60000000});
    for (int i = 0; i < FRAMES; i++)
        last = pass(0, 1, DATA, &segment, 0).late_ns;
    assert_within((int)(last / MS), FRAMES * 1514 / 1250, 1);
    /* The other direction is a link of its own, and one that is idle is as good as new. */
    assert_int_equal(pass(1, 0, DATA, &segment, 0).late_ns, 1514 * 800);
    assert_int_equal(pass(0, 1, DATA, &segment, 3600 * (int64_t)SECOND).late_ns, 1514 * 800);
}

static void test_what_does_not_fit_before_a_link_is_dropped(void **state) {
    (void)state;
    set((struct impairment){.rate_bit_s = 8000, .queue_bytes = 4000});
    assert_false(pass(0, 1, DATA, &segment, 0).dropped);
    assert_false(pass(0, 1, DATA, &segment, 0).dropped);
    struct fate f = pass(0, 1, DATA, &segment, 0);
    assert_true(f.dropped && did(f, DEED_THROTTLED));
    assert_false(pass(0, 1, DATA, &segment, 2 * (int64_t)SECOND).dropped);
}

static void test_a_long_packet_vanishes_and_one_that_just_fits_passes(void **state) {
    (void)state;
    set((struct impairment){.mtu_bytes = 1500});
    assert_false(pass(0, 1, DATA, &segment, 0).dropped);
    segment.end++;
    struct fate f = pass(0, 1, DATA, &segment, 0);
    assert_true(f.dropped && did(f, DEED_OVERSIZE));
}

static void test_connections_are_reset_refused_or_blocked(void **state) {
    static const struct {
        struct impairment how;
        int of_request, of_segment; /* DEED_*; -1: it passes */
    } rows[] = {{{.resets = 1}, -1, DEED_RESET},
                {{.refuses = 1}, DEED_REFUSED, -1},
                {{.blocks = 1}, DEED_BLOCKED, -1},
                {{.blocks = 1, .tcp_port = 29500}, DEED_BLOCKED, -1},
                {{.blocks = 1, .tcp_port = 29501}, -1, -1},
                {{.resets = 1, .tcp_port = 7000}, -1, DEED_RESET}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        impairer_set(impairer, NULL, 0, 0);
        set(rows[i].how);
        struct fate a = pass(0, 1, DATA, &request, 0), b = pass(0, 1, DATA, &segment, 0);
        assert_int_equal(a.deeds, rows[i].of_request < 0 ? 0 : 1U << rows[i].of_request);
        assert_int_equal(b.deeds, rows[i].of_segment < 0 ? 0 : 1U << rows[i].of_segment);
        assert_int_equal(a.dropped, a.deeds != 0);
        assert_int_equal(b.dropped, b.deeds != 0);
    }
    impairer_set(impairer, NULL, 0, 0);
    set((struct impairment){.resets = 1});
    segment.tcp_flags = TCP_RST; /* else two ends would answer each other without an end */
    assert_int_equal(pass(0, 1, DATA, &segment, 0).deeds, 0);
    segment.kind = FRAME_UDP;
    assert_int_equal(pass(0, 1, DATA, &segment, 0).deeds, 0);
}

static void test_a_reset_is_hushed_by_what_it_answers(void **state) {
    static const struct {
        unsigned flags;
        uint32_t sequence;
        int hushed_at;                      /* with this and more; 3: never */
    } rows[] = {{TCP_RST | TCP_ACK, 77, 1}, /* a connection that is aborted */
                {TCP_RST, 77, 2},           /* in answer to a segment */
                {TCP_RST | TCP_ACK, 0, 3},  /* to who wants to connect */
                {TCP_ACK, 77, 3},
                {TCP_FIN | TCP_ACK, 77, 3}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (int hushes = 0; hushes < 3; hushes++) {
            struct frame f = {.kind = FRAME_TCP,
                              .tcp_flags = rows[i].flags,
                              .sequence = rows[i].sequence,
                              .source_port = 7000,
                              .destination_port = 29500};
            impairer_set(impairer, NULL, 0, 0);
            set((struct impairment){.hushes = hushes});
            struct fate a = pass(0, 1, DATA, &f, 0);
            assert_int_equal(a.dropped, hushes >= rows[i].hushed_at);
            assert_int_equal(did(a, DEED_HUSHED), a.dropped);
        }
}

/* Ten thousand delays of 100 ms with a jitter of 10 ms, in ms: mean, deviation, least, most. */
static void delays(enum jitter_kind kind, double ret[4]) {
    double sum = 0, squares = 0;
    impairer_set(impairer, NULL, 0, 0);
    set((struct impairment){
        .delay_ns = 100 * MS, .jitter_ns = 10 * MS, .jitter_kind = kind, .seed = 5});
    ret[2] = 1e9;
    ret[3] = 0;
    for (int i = 0; i < FRAMES; i++) {
        double ms = (double)pass(0, 1, DATA, &segment, i).late_ns / MS;
        sum += ms;
        squares += ms * ms;
        ret[2] = ms < ret[2] ? ms : ret[2];
        ret[3] = ms > ret[3] ? ms : ret[3];
    }
    ret[0] = sum / FRAMES;
    ret[1] = sqrt(squares / FRAMES - ret[0] * ret[0]);
}

static void test_jitter_is_distributed_as_was_said(void **state) {
    double uniform[4], normal[4], pareto[4];
    (void)state;
    delays(JITTER_UNIFORM, uniform);
    delays(JITTER_NORMAL, normal);
    delays(JITTER_PARETO, pareto);
    assert_true(fabs(uniform[0] - 100) < 0.3 && fabs(uniform[1] - 10 / sqrt(3)) < 0.2);
    assert_true(uniform[2] >= 90 && uniform[3] <= 110);
    assert_true(fabs(normal[0] - 100) < 0.4 && fabs(normal[1] - 10) < 0.3);
    assert_true(normal[2] < 75 && normal[3] > 125);
    assert_true(fabs(pareto[0] - 110) < 1 && pareto[2] >= 100 && pareto[3] > 200);
}

static void test_a_link_that_is_good_and_bad_in_turn_loses_its_share(void **state) {
    int lost = 0, after_loss = 0;
    bool before = false;
    (void)state;
    set((struct impairment){
        .loss_ppm = 100000, .burst = 50, .bad_ppm = 500000, .good_ppm = 10000, .seed = 3});
    for (int i = 0; i < 20 * FRAMES; i++) {
        bool now = did(pass(0, 1, DATA, &segment, i), DEED_LOST);
        lost += now;
        after_loss += now && before;
        before = now;
    }
    assert_within(lost, 20 * FRAMES / 10, 8);
    /* Behind a loss the link is most likely still bad, where half are lost. */
    assert_in_range(after_loss * 100 / lost, 40, 50);
}

static void test_each_direction_may_have_a_rate_of_its_own(void **state) {
    (void)state;
    set((struct impairment){.rate_bit_s = 8000000,
                            .rate_in_bit_s = 800000,
                            .rate_out_bit_s = 80000,
                            .queue_bytes = 60000000});
    assert_int_equal(pass(0, 1, DATA, &segment, 0).late_ns, (int64_t)1514 * 8 * SECOND / 80000);
    assert_int_equal(pass(1, 0, DATA, &segment, 0).late_ns, (int64_t)1514 * 8 * SECOND / 800000);
    impairer_set(impairer, NULL, 0, 0);
    set((struct impairment){.rate_out_bit_s = 80000, .rate_bit_s = 8000000, .queue_bytes = 60000});
    assert_true(impairer_wants_packets(impairer, 0, 1));
    assert_int_equal(pass(1, 0, DATA, &segment, 0).late_ns, (int64_t)1514 * 8 * SECOND / 8000000);
}

static void test_a_link_that_flaps_is_down_first_thing_in_each_period(void **state) {
    (void)state;
    struct impaired one =
        impaired(1, (struct impairment){.flap_period_ns = 100, .flap_down_ns = 30});
    impairer_set(impairer, &one, 1, 1000);
    static const struct {
        int64_t now_ns;
        bool cut;
    } rows[] = {{1000, true}, {1029, true}, {1030, false}, {1099, false}, {1100, true}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct fate f = pass(0, 1, DATA, &segment, rows[i].now_ns);
        assert_int_equal(f.cut, rows[i].cut);
        assert_int_equal(f.dropped, rows[i].cut);
        assert_int_equal(f.deeds, 0);
    }
}

static void test_one_more_than_there_is_room_for_is_refused(void **state) {
    static struct impaired list[IMPAIRER_MAX + 1];
    (void)state;
    for (int i = 0; i <= IMPAIRER_MAX; i++)
        list[i] = impaired(i, (struct impairment){.delay_ns = 1});
    assert_true(impairer_set(impairer, list, IMPAIRER_MAX, 0));
    assert_false(impairer_set(impairer, list, IMPAIRER_MAX + 1, 0));
    assert_int_equal(pass(0, 1, DATA, &segment, 0).late_ns, IMPAIRER_MAX);
}

#define T(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_without_impairments_everything_passes_at_once),
        T(test_a_delay_is_between_groups_and_of_its_planes),
        T(test_an_impairment_has_its_time),
        T(test_a_direction_leaves_the_other_alone),
        T(test_jitter_is_drawn_from_its_seed_and_stays_in_its_bounds),
        T(test_what_stays_goes_on_with_its_draws),
        T(test_as_many_frames_are_lost_as_was_said),
        T(test_bursts_are_as_long_and_as_many_as_was_said),
        T(test_all_of_a_million_is_all),
        T(test_frames_come_twice_or_behind_others_as_often_as_was_said),
        T(test_only_what_carries_something_is_corrupted),
        T(test_a_link_passes_as_much_as_its_rate_says),
        T(test_what_does_not_fit_before_a_link_is_dropped),
        T(test_a_long_packet_vanishes_and_one_that_just_fits_passes),
        T(test_connections_are_reset_refused_or_blocked),
        T(test_a_reset_is_hushed_by_what_it_answers),
        T(test_jitter_is_distributed_as_was_said),
        T(test_a_link_that_is_good_and_bad_in_turn_loses_its_share),
        T(test_each_direction_may_have_a_rate_of_its_own),
        T(test_a_link_that_flaps_is_down_first_thing_in_each_period),
        T(test_one_more_than_there_is_room_for_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
