#include "faults/mechanism/packets.h"

#include <linux/virtio_net.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

enum { TCP = 6, UDP = 17, IP_AT = 14, L4_AT = 34, MOST = 70000 };

static unsigned char message[MOST], buf[MOST];
static struct {
    unsigned char bytes[8][2048];
    size_t len[8], n;
} got;

static unsigned be16(const unsigned char *p) {
    return (unsigned)p[0] << 8 | p[1];
}

/* RFC 1071, once more and more slowly than in packets.c. */
static unsigned checksum(const unsigned char *p, size_t len, unsigned begin) {
    unsigned s = begin;
    for (size_t i = 0; i < len; i++) {
        s += i % 2 ? p[i] : (unsigned)p[i] << 8;
        s = (s & 0xffff) + (s >> 16);
    }
    return s;
}

static unsigned pseudo(const unsigned char *frame, size_t len) {
    unsigned s = checksum(frame + IP_AT + 12, 8, frame[IP_AT + 9]) + (unsigned)len;
    return (s & 0xffff) + (s >> 16);
}

static bool is_right(const unsigned char *frame, size_t len) {
    return checksum(frame + IP_AT, 20, 0) == 0xffff &&
           checksum(frame + L4_AT, len - L4_AT, pseudo(frame, len - L4_AT)) == 0xffff;
}

/* A message as a sender leaves it to its card: in the field of the checksum the sum of the pseudo
 * header. Returns its length. */
static size_t make(int protocol, size_t payload, unsigned segment) {
    size_t header = protocol == TCP ? 32 : 8, len = L4_AT + header + payload;
    unsigned char *frame = message + PACKETS_HEADER, *ip = frame + IP_AT, *l4 = frame + L4_AT;
    struct virtio_net_hdr h = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
                               .gso_type = !segment          ? VIRTIO_NET_HDR_GSO_NONE
                                           : protocol == TCP ? VIRTIO_NET_HDR_GSO_TCPV4
                                                             : 5 /* UDP_L4 */,
                               .gso_size = (uint16_t)segment,
                               .csum_start = L4_AT,
                               .csum_offset = protocol == TCP ? 16 : 6};
    memset(message, 0, sizeof(message));
    memcpy(message, &h, PACKETS_HEADER);
    memcpy(frame, "\x02\x00\x00\x00\x00\x0a\x02\x00\x00\x00\x00\x0b\x08\x00", 14);
    memcpy(ip, "\x45\0\0\0\x12\xff\x40\0\x40\0\0\0\x0a\x4d\0\x01\x0a\x4d\0\x02", 20);
    ip[2] = (unsigned char)((len - IP_AT) >> 8);
    ip[3] = (unsigned char)(len - IP_AT);
    ip[9] = (unsigned char)protocol;
    unsigned ip_sum = ~checksum(ip, 20, 0);
    ip[10] = (unsigned char)(ip_sum >> 8);
    ip[11] = (unsigned char)ip_sum;
    memcpy(l4, "\x1b\x58\x72\xd8", 4);
    if (protocol == TCP) {
        memcpy(l4 + 4, "\xff\xff\xff\x00\x00\x00\x03\xe8\x80\x19", 10); /* FIN, PSH, ACK */
    } else {
        l4[4] = (unsigned char)((8 + payload) >> 8);
        l4[5] = (unsigned char)(8 + payload);
    }
    for (size_t i = 0; i < payload; i++)
        l4[header + i] = (unsigned char)(i * 7 + i / 251);
    unsigned p = pseudo(frame, len - L4_AT);
    l4[h.csum_offset] = (unsigned char)(p >> 8);
    l4[h.csum_offset + 1] = (unsigned char)p;
    return PACKETS_HEADER + len;
}

static void on_packet(void *arg, unsigned char *packet, size_t len) {
    static const unsigned char nothing[PACKETS_HEADER];
    (void)arg;
    assert_memory_equal(packet, nothing, PACKETS_HEADER);
    assert_true(got.n < 8 && len < 2048);
    got.len[got.n] = len - PACKETS_HEADER;
    memcpy(got.bytes[got.n++], packet + PACKETS_HEADER, len - PACKETS_HEADER);
}

static void cut(size_t len) {
    got.n = 0;
    packets_each(message, len, buf, on_packet, NULL);
}

static void test_a_packet_gets_the_checksum_that_was_left_to_the_card(void **state) {
    static const int protocols[] = {TCP, UDP};
    (void)state;
    for (int i = 0; i < 2; i++) {
        size_t len = make(protocols[i], 101, 0);
        assert_false(is_right(message + PACKETS_HEADER, len - PACKETS_HEADER));
        cut(len);
        assert_int_equal(got.n, 1);
        assert_true(is_right(got.bytes[0], got.len[0]));
    }
}

static void test_a_long_segment_becomes_packets_that_make_it_up(void **state) {
    (void)state;
    cut(make(TCP, 3000, 1448));
    assert_int_equal(got.n, 3);
    size_t offset = 0;
    for (size_t i = 0; i < 3; i++) {
        struct frame f;
        assert_true(is_right(got.bytes[i], got.len[i]));
        assert_true(frame_parse(got.bytes[i], got.len[i], &f));
        assert_int_equal(f.payload, i < 2 ? 1448 : 104);
        assert_int_equal(f.end, got.len[i]);
        assert_int_equal(f.sequence, 0xffffff00u + (uint32_t)offset); /* it wraps */
        assert_int_equal(be16(got.bytes[i] + IP_AT + 4), (0x12ff + i) & 0xffff);
        assert_int_equal(f.tcp_flags, i < 2 ? TCP_ACK : TCP_ACK | TCP_PSH | TCP_FIN);
        assert_memory_equal(got.bytes[i] + f.data, message + PACKETS_HEADER + L4_AT + 32 + offset,
                            f.payload);
        offset += f.payload;
    }
    assert_int_equal(offset, 3000);
}

static void test_datagrams_that_were_sent_at_once_are_sent_one_by_one(void **state) {
    (void)state;
    cut(make(UDP, 1000, 400));
    assert_int_equal(got.n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_true(is_right(got.bytes[i], got.len[i]));
        assert_int_equal(be16(got.bytes[i] + L4_AT + 4), i < 2 ? 408 : 208);
    }
}

static void test_what_is_no_ip_passes_as_it_is(void **state) {
    (void)state;
    memset(message, 0, PACKETS_HEADER);
    memcpy(message + PACKETS_HEADER, "\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x0b\x08\x06who has", 21);
    cut(PACKETS_HEADER + 21);
    assert_int_equal(got.n, 1);
    assert_int_equal(got.len[0], 21);
    assert_memory_equal(got.bytes[0], message + PACKETS_HEADER, 21);
}

static int bits_apart(const unsigned char *a, const unsigned char *b, size_t len) {
    int n = 0;
    for (size_t i = 0; i < len; i++)
        n += __builtin_popcount(a[i] ^ b[i]);
    return n;
}

static void test_one_bit_of_the_payload_is_changed_and_told_or_not(void **state) {
    (void)state;
    for (int mend = 0; mend < 2; mend++)
        for (uint64_t bit = 0; bit < 2000; bit += 61) {
            unsigned char before[2048];
            struct frame f;
            cut(make(TCP, 101, 0));
            frame_parse(got.bytes[0], got.len[0], &f);
            memcpy(before, got.bytes[0], got.len[0]);
            packets_flip(got.bytes[0], &f, bit, mend);
            assert_int_equal(bits_apart(before + f.data, got.bytes[0] + f.data, 101), 1);
            assert_int_equal(is_right(got.bytes[0], got.len[0]), mend);
        }
}

static void test_a_reset_has_the_number_that_each_end_waits_for(void **state) {
    unsigned char rst[PACKETS_RESET_MAX], *frame = rst + PACKETS_HEADER;
    struct frame f, r;
    (void)state;
    cut(make(TCP, 100, 0)); /* with FIN */
    frame_parse(got.bytes[0], got.len[0], &f);
    assert_int_equal(packets_reset(got.bytes[0], &f, false, rst), sizeof(rst));
    assert_true(frame_parse(frame, sizeof(rst) - PACKETS_HEADER, &r));
    assert_true(is_right(frame, sizeof(rst) - PACKETS_HEADER));
    assert_int_equal(r.tcp_flags, TCP_RST | TCP_ACK);
    assert_int_equal(r.sequence, f.sequence);
    assert_int_equal(r.source_port, 7000);
    assert_memory_equal(r.destination, f.destination, 6);
    packets_reset(got.bytes[0], &f, true, rst);
    frame_parse(frame, sizeof(rst) - PACKETS_HEADER, &r);
    assert_true(is_right(frame, sizeof(rst) - PACKETS_HEADER));
    assert_int_equal(r.sequence, 1000); /* what it has acknowledged */
    assert_int_equal(r.acknowledged, f.sequence + 101);
    assert_int_equal(r.destination_port, 7000);
    assert_memory_equal(r.destination, f.source, 6);
}

static void test_who_wants_to_connect_is_refused_as_by_a_kernel(void **state) {
    unsigned char rst[PACKETS_RESET_MAX];
    struct frame f, r;
    (void)state;
    cut(make(TCP, 0, 0));
    got.bytes[0][L4_AT + 13] = TCP_SYN;
    frame_parse(got.bytes[0], got.len[0], &f);
    packets_reset(got.bytes[0], &f, true, rst);
    frame_parse(rst + PACKETS_HEADER, sizeof(rst) - PACKETS_HEADER, &r);
    assert_int_equal(r.sequence, 0);
    assert_int_equal(r.acknowledged, f.sequence + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_packet_gets_the_checksum_that_was_left_to_the_card),
        cmocka_unit_test(test_a_long_segment_becomes_packets_that_make_it_up),
        cmocka_unit_test(test_datagrams_that_were_sent_at_once_are_sent_one_by_one),
        cmocka_unit_test(test_what_is_no_ip_passes_as_it_is),
        cmocka_unit_test(test_one_bit_of_the_payload_is_changed_and_told_or_not),
        cmocka_unit_test(test_a_reset_has_the_number_that_each_end_waits_for),
        cmocka_unit_test(test_who_wants_to_connect_is_refused_as_by_a_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
