#include "faults/mechanism/resolver.h"
#include "faults/mechanism/packets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

enum { IP_AT = 14, UDP_AT = 34, DNS_AT = 42, TYPE_A = 1, TYPE_PTR = 12, TYPE_AAAA = 28 };
enum { NO_ERROR, FORMAT_ERROR, SERVFAIL, NXDOMAIN, NOT_IMPLEMENTED, REFUSED };
static const uint32_t SERVER = 0xc6120009, N0 = 0xc612000a, N1 = 0xc612000b, OTHER = 0xc61200fa;

static const struct resolver resolver = {.mac = {2, 0, 0xc6, 0x12, 0, 9},
                                         .address = 0xc6120009,
                                         .names = {{"n0", 0xc612000a}, {"n1", 0xc612000b}},
                                         .n = 2};
static unsigned char asked[300], made[RESOLVER_ANSWER_MAX];
static size_t asked_n, made_n;
static const unsigned char *const answer = made + PACKETS_HEADER;

static void put32(unsigned char *p, uint32_t v) {
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(v >> (24 - 8 * i));
}

static uint32_t be32(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Labels as they are sent: "\2n0". */
static void question(const char *labels, unsigned type) {
    size_t n = strlen(labels) + 1;
    memset(asked, 0, sizeof(asked));
    memcpy(asked, resolver.mac, 6);
    memcpy(asked + 6, "\2\0\xc6\x12\0\x0b\x08\0\x45", 9);
    asked_n = DNS_AT + 12 + n + 4;
    asked[IP_AT + 3] = (unsigned char)(asked_n - IP_AT);
    asked[IP_AT + 9] = 17;
    put32(asked + IP_AT + 12, N1);
    put32(asked + IP_AT + 16, SERVER);
    memcpy(asked + UDP_AT, "\x90\x01\0\x35", 4);
    asked[UDP_AT + 5] = (unsigned char)(asked_n - UDP_AT);
    memcpy(asked + DNS_AT, "\xab\xcd\1\0\0\1", 6);
    memcpy(asked + DNS_AT + 12, labels, n);
    memcpy(asked + DNS_AT + 12 + n, (const char[]){0, (char)type, 0, 1}, 4);
}

static struct resolver_question read_it(struct frame *f) {
    struct resolver_question q;
    assert_true(frame_parse(asked, asked_n, f));
    assert_true(resolver_is_meant(&resolver, asked, f));
    assert_true(resolver_reads(&resolver, asked, f, &q));
    return q;
}

static unsigned ask(const char *labels, unsigned type, enum names_fate fate) {
    struct frame f;
    question(labels, type);
    const struct resolver_question q = read_it(&f);
    made_n = resolver_answer(&resolver, asked, &f, &q, fate, OTHER, made) - PACKETS_HEADER;
    assert_memory_equal(answer, asked + 6, 6);
    assert_memory_equal(answer + UDP_AT, "\0\x35\x90\x01", 4);
    assert_int_equal(be32(answer + IP_AT + 16), N1);
    assert_memory_equal(answer + DNS_AT, "\xab\xcd", 2);
    assert_true(answer[DNS_AT + 2] & 0x80);
    assert_memory_equal(answer + DNS_AT + 12, asked + DNS_AT + 12, asked_n - DNS_AT - 12);
    return answer[DNS_AT + 3] & 15;
}

static unsigned records(void) {
    return answer[DNS_AT + 7];
}

static void test_a_node_is_found_by_its_name_in_either_case(void **state) {
    (void)state;
    assert_int_equal(ask("\2n0", TYPE_A, NAMES_RIGHT), NO_ERROR);
    assert_int_equal(records(), 1);
    assert_int_equal(be32(answer + made_n - 4), N0);
    assert_int_equal(ask("\2N0", TYPE_A, NAMES_RIGHT), NO_ERROR);
    assert_int_equal(be32(answer + made_n - 4), N0);
}

static void test_a_node_has_no_address_of_ipv6(void **state) {
    (void)state;
    assert_int_equal(ask("\2n0", TYPE_AAAA, NAMES_RIGHT), NO_ERROR);
    assert_int_equal(records(), 0);
}

static void test_an_address_is_found_back(void **state) {
    (void)state;
    assert_int_equal(ask("\00211\0010\00218\003198\7in-addr\4arpa", TYPE_PTR, NAMES_RIGHT),
                     NO_ERROR);
    assert_int_equal(records(), 1);
    assert_memory_equal(answer + made_n - 4, "\2n1", 4);
    assert_int_equal(ask("\00299\0010\00218\003198\7in-addr\4arpa", TYPE_PTR, NAMES_RIGHT),
                     NXDOMAIN);
}

static void test_names_of_nobody_do_not_exist(void **state) {
    (void)state;
    assert_int_equal(ask("\2n2", TYPE_A, NAMES_RIGHT), NXDOMAIN);
    assert_int_equal(ask("\2n0\7example", TYPE_A, NAMES_RIGHT), NXDOMAIN);
    assert_int_equal(records(), 0);
}

static void test_a_fault_is_what_the_server_says(void **state) {
    static const struct {
        enum names_fate fate;
        unsigned rcode;
    } rows[] = {{NAMES_UNKNOWN, NXDOMAIN}, {NAMES_SERVFAIL, SERVFAIL}, {NAMES_REFUSED, REFUSED}};
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ask("\2n0", TYPE_A, rows[i].fate), rows[i].rcode);
        assert_int_equal(records(), 0);
    }
    assert_int_equal(ask("\2n0", TYPE_A, NAMES_WRONG), NO_ERROR);
    assert_int_equal(be32(answer + made_n - 4), OTHER);
}

static void test_what_cannot_be_read_is_no_question(void **state) {
    struct frame f;
    struct resolver_question q;
    (void)state;
    question("\2n0", TYPE_A);
    asked[DNS_AT + 12] = 63; /* a label that goes beyond the end */
    q = read_it(&f);
    assert_int_equal(q.end, 0);
    made_n = resolver_answer(&resolver, asked, &f, &q, NAMES_RIGHT, 0, made);
    assert_int_equal(answer[DNS_AT + 3] & 15, FORMAT_ERROR);
    question("\2n0", TYPE_A);
    asked[DNS_AT + 2] = 0x81; /* an answer */
    assert_true(frame_parse(asked, asked_n, &f));
    assert_false(resolver_reads(&resolver, asked, &f, &q));
    question("\2n0", TYPE_A);
    asked[UDP_AT + 3] = 54;
    assert_true(frame_parse(asked, asked_n, &f));
    assert_false(resolver_reads(&resolver, asked, &f, &q));
}

static void test_no_cut_of_a_question_is_read_beyond_its_end(void **state) {
    struct frame f;
    struct resolver_question q;
    (void)state;
    question("\00211\0010\00218\003198\7in-addr\4arpa", TYPE_PTR);
    for (size_t n = DNS_AT; n < asked_n; n++) {
        unsigned char *cut = test_malloc(n);
        memcpy(cut, asked, n);
        cut[IP_AT + 3] = (unsigned char)(n - IP_AT);
        if (frame_parse(cut, n, &f) && resolver_reads(&resolver, cut, &f, &q))
            assert_int_equal(q.end, 0);
        test_free(cut);
    }
}

static void test_it_says_where_it_is(void **state) {
    struct frame f;
    (void)state;
    memset(asked, 0xff, 6);
    memcpy(asked + 6, "\2\0\xc6\x12\0\x0b\x08\x06\0\1\x08\0\6\4\0\1\2\0\xc6\x12\0\x0b", 22);
    put32(asked + 28, N1);
    memset(asked + 32, 0, 6);
    put32(asked + 38, SERVER);
    assert_true(frame_parse(asked, 42, &f));
    assert_true(resolver_is_meant(&resolver, asked, &f));
    assert_int_equal(resolver_arp(&resolver, asked, made), PACKETS_HEADER + 60);
    assert_memory_equal(answer + 20, "\0\2\2\0\xc6\x12\0\x09", 8);
    assert_int_equal(be32(answer + 28), SERVER);
    assert_int_equal(be32(answer + 38), N1);
    put32(asked + 38, N0); /* somebody else is looked for */
    assert_false(resolver_is_meant(&resolver, asked, &f));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_node_is_found_by_its_name_in_either_case),
        cmocka_unit_test(test_a_node_has_no_address_of_ipv6),
        cmocka_unit_test(test_an_address_is_found_back),
        cmocka_unit_test(test_names_of_nobody_do_not_exist),
        cmocka_unit_test(test_a_fault_is_what_the_server_says),
        cmocka_unit_test(test_what_cannot_be_read_is_no_question),
        cmocka_unit_test(test_no_cut_of_a_question_is_read_beyond_its_end),
        cmocka_unit_test(test_it_says_where_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
