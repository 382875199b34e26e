#include "faults/mechanism/frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

enum { TCP = 6, UDP = 17, ICMP = 1 };

struct made {
    unsigned char bytes[2048];
    size_t len;
};

/* An Ethernet and IPv4 frame with `payload` bytes behind a transport header of `header` bytes. */
static struct made make(int protocol, size_t header, size_t payload) {
    struct made m = {.len = 14 + 20 + header + payload};
    unsigned char *ip = m.bytes + 14, *transport = ip + 20;
    size_t total = m.len - 14;
    memcpy(m.bytes, "\x02\x00\x00\x00\x00\x0a\x02\x00\x00\x00\x00\x0b\x08\x00", 14);
    ip[0] = 0x45;
    ip[2] = (unsigned char)(total >> 8);
    ip[3] = (unsigned char)total;
    ip[9] = (unsigned char)protocol;
    memcpy(transport, "\x1b\x58\x72\xd8", 4); /* 7000 -> 29400 */
    if (protocol == TCP)
        transport[12] = (unsigned char)(header / 4 << 4);
    return m;
}

static void test_a_segment_shows_ports_and_payload(void **state) {
    (void)state;
    struct made m = make(TCP, 32, 100);
    struct frame f;
    assert_true(frame_parse(m.bytes, m.len, &f));
    assert_int_equal(f.kind, FRAME_TCP);
    assert_int_equal(f.source_port, 7000);
    assert_int_equal(f.destination_port, 29400);
    assert_int_equal(f.payload, 100);
    assert_false(f.group);
    assert_int_equal(f.destination[5], 10);
    assert_int_equal(f.source[5], 11);
}

static void test_what_pads_a_short_frame_is_no_payload(void **state) {
    (void)state;
    struct made m = make(TCP, 20, 0);
    struct frame f;
    assert_true(frame_parse(m.bytes, 60, &f));
    assert_int_equal(f.kind, FRAME_TCP);
    assert_int_equal(f.payload, 0);
}

static void test_a_segment_longer_than_its_length_field_can_say_counts_whole(void **state) {
    (void)state;
    struct made m = make(TCP, 20, 1000);
    struct frame f;
    m.bytes[16] = m.bytes[17] = 0;
    assert_true(frame_parse(m.bytes, m.len, &f));
    assert_int_equal(f.payload, 1000);
}

static void test_a_datagram_shows_ports(void **state) {
    (void)state;
    struct made m = make(UDP, 8, 5);
    struct frame f;
    assert_true(frame_parse(m.bytes, m.len, &f));
    assert_int_equal(f.kind, FRAME_UDP);
    assert_int_equal(f.payload, 5);
}

static void test_a_later_fragment_has_no_ports(void **state) {
    (void)state;
    struct made m = make(UDP, 8, 500);
    struct frame f;
    m.bytes[14 + 7] = 8;
    assert_true(frame_parse(m.bytes, m.len, &f));
    assert_int_equal(f.kind, FRAME_IP);
    assert_int_equal(f.source_port, 0);
}

static void test_other_kinds_are_told_apart(void **state) {
    (void)state;
    struct made m = make(ICMP, 8, 56);
    struct frame f;
    assert_true(frame_parse(m.bytes, m.len, &f));
    assert_int_equal(f.kind, FRAME_IP);
    m.bytes[13] = 6;
    memset(m.bytes, 0xff, 6);
    assert_true(frame_parse(m.bytes, 42, &f));
    assert_int_equal(f.kind, FRAME_ARP);
    assert_true(f.group);
    m.bytes[12] = 0x86, m.bytes[13] = 0xdd;
    assert_true(frame_parse(m.bytes, m.len, &f));
    assert_int_equal(f.kind, FRAME_OTHER);
}

/* Frames come from whatever runs in a node: cut anywhere, filled with anything. The copy ends where
 * the memory does, for the sanitizer. */
static void test_a_broken_frame_reads_nothing_beyond_its_end(void **state) {
    (void)state;
    struct made m = make(TCP, 20, 40);
    struct frame f;
    for (size_t len = 0; len <= m.len; len++) {
        for (int value = 0; value < 256; value += 15) {
            unsigned char *copy = malloc(len ? len : 1);
            memcpy(copy, m.bytes, len);
            if (len > 14)
                copy[14] = (unsigned char)(0x40 | (value & 15));
            if (len > 46)
                copy[46] = (unsigned char)value;
            if (frame_parse(copy, len, &f))
                assert_true(f.payload <= len);
            else
                assert_true(len < 14);
            free(copy);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_segment_shows_ports_and_payload),
        cmocka_unit_test(test_what_pads_a_short_frame_is_no_payload),
        cmocka_unit_test(test_a_segment_longer_than_its_length_field_can_say_counts_whole),
        cmocka_unit_test(test_a_datagram_shows_ports),
        cmocka_unit_test(test_a_later_fragment_has_no_ports),
        cmocka_unit_test(test_other_kinds_are_told_apart),
        cmocka_unit_test(test_a_broken_frame_reads_nothing_beyond_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
