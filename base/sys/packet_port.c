#include "base/sys/packet_port.h"

#include "base/sys/file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* Missing from the headers of some distributions; in the kernel since 4.20. */
#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

/* With less than some megabytes, long segments are lost and TCP spends its time repeating them. */
enum { QUEUE_BYTES = 8 << 20, QUEUE_LEAST = 4 << 20 };

/* A slot holds the kernel's header, ours and a segment; blocks are contiguous memory of the kernel,
 * so that longer ones may not be had. */
enum {
    SLOT_BYTES = 67584,
    BLOCK_BYTES = 1 << 20,
    SLOTS_IN_BLOCK = BLOCK_BYTES / SLOT_BYTES,
    BLOCKS = 8,
    SLOTS = BLOCKS * SLOTS_IN_BLOCK,
};

static bool is_queue_short(int fd) {
    int bytes = QUEUE_BYTES, got = 0;
    socklen_t len = sizeof(got);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) != 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) != 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &len);
    return got < QUEUE_LEAST;
}

static int make_ring(struct packet_port *p, struct err *err) {
    int version = TPACKET_V2;
    struct tpacket_req request = {.tp_block_size = BLOCK_BYTES,
                                  .tp_block_nr = BLOCKS,
                                  .tp_frame_size = SLOT_BYTES,
                                  .tp_frame_nr = SLOTS};
    if (setsockopt(p->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) != 0 ||
        setsockopt(p->fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)) != 0)
        return err_set(err, -errno, "make the ring of a packet socket");
    void *ring =
        mmap(NULL, (size_t)BLOCKS * BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
    if (ring == MAP_FAILED)
        return err_set(err, -errno, "map the ring of a packet socket");
    p->ring = ring;
    return 0;
}

static int prepare(struct packet_port *p, int ifindex, enum packet_queue queue, struct err *err) {
    int one = 1, fd = p->fd;
    /* The header must be chosen before the ring is made; bound last, it sees no other card. */
    if (setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) != 0)
        return err_set(err, -errno, "ask for offload headers on a packet socket");
    if (setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) != 0)
        return err_set(err, -errno, "leave out own frames on a packet socket");
    setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one));
    bool is_short = is_queue_short(fd);
    if (queue == PACKET_QUEUE_RING || (queue == PACKET_QUEUE_AUTO && is_short)) {
        int r = make_ring(p, err);
        if (r)
            return r;
    }
    struct packet_mreq all = {.mr_ifindex = ifindex, .mr_type = PACKET_MR_PROMISC};
    if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)) != 0)
        return err_set(err, -errno, "listen to all frames of card %d", ifindex);
    struct sockaddr_ll addr = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = ifindex};
    if (bind(fd, (void *)&addr, sizeof(addr)) != 0)
        return err_set(err, -errno, "bind a packet socket to card %d", ifindex);
    return 0;
}

int packet_port_open(struct packet_port *ret, int ifindex, enum packet_queue queue,
                     struct err *err) {
    struct packet_port p = PACKET_PORT_CLOSED;
    /* Protocol 0: nothing arrives before the bind. */
    p.fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (p.fd < 0)
        return err_set(err, -errno, "open a packet socket");
    int r = prepare(&p, ifindex, queue, err);
    if (r == 0)
        *ret = p;
    else
        packet_port_close(&p);
    return r;
}

void packet_port_close(struct packet_port *p) {
    if (p->ring)
        munmap(p->ring, (size_t)BLOCKS * BLOCK_BYTES);
    file_close(&p->fd);
    *p = PACKET_PORT_CLOSED;
}

static ssize_t read_socket(struct packet_port *p, unsigned char *buf) {
    for (;;) {
        ssize_t n = recv(p->fd, buf, PACKET_PORT_MAX, MSG_DONTWAIT);
        if (n >= 0)
            return n;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return 0;
        if (errno != EINTR)
            return -errno;
    }
}

static struct tpacket2_hdr *slot(const struct packet_port *p, unsigned number) {
    return (void *)(p->ring + (size_t)(number / SLOTS_IN_BLOCK) * BLOCK_BYTES +
                    (size_t)(number % SLOTS_IN_BLOCK) * SLOT_BYTES);
}

/* The slot that was read last is the kernel's again. */
static void give_back(struct packet_port *p) {
    if (p->held)
        __atomic_store_n(&slot(p, (p->next + SLOTS - 1) % SLOTS)->tp_status, TP_STATUS_KERNEL,
                         __ATOMIC_RELEASE);
    p->held = false;
}

/* A ring says nothing of a card that is gone; its socket does. */
static int pending_error(int fd) {
    int code = 0;
    socklen_t len = sizeof(code);
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &len) == 0 ? -code : -errno;
}

static ssize_t read_ring(struct packet_port *p, const unsigned char **ret) {
    for (;;) {
        give_back(p);
        struct tpacket2_hdr *h = slot(p, p->next);
        if (!(__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
            return pending_error(p->fd);
        p->next = (p->next + 1) % SLOTS;
        p->held = true;
        if (h->tp_snaplen == h->tp_len) {
            *ret = (unsigned char *)h + h->tp_mac - PACKET_PORT_HEADER;
            return (ssize_t)h->tp_snaplen + PACKET_PORT_HEADER;
        }
        p->torn++;
    }
}

ssize_t packet_port_read(struct packet_port *p, unsigned char *buf, const unsigned char **ret) {
    if (p->ring)
        return read_ring(p, ret);
    *ret = buf;
    return read_socket(p, buf);
}

int packet_port_write(struct packet_port *p, const unsigned char *message, size_t len) {
    for (;;) {
        if (send(p->fd, message, len, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
            return 0;
        if (errno != EINTR)
            return -errno;
    }
}

uint32_t packet_port_lost(struct packet_port *p) {
    struct tpacket_stats stats = {0};
    socklen_t len = sizeof(stats);
    uint32_t torn = p->torn;
    p->torn = 0;
    if (getsockopt(p->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len) != 0)
        return torn;
    return stats.tp_drops + torn;
}
