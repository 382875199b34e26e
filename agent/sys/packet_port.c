#include "agent/sys/packet_port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Missing from the headers of some distributions; in the kernel since 4.20. */
#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

/* With less than some megabytes, long segments are lost and TCP spends its time repeating them. */
enum { QUEUE_BYTES = 8 << 20 };

static int prepare(int fd, int ifindex, struct err *err) {
    int one = 1, bytes = QUEUE_BYTES;
    /* The header must be chosen before the socket is bound; bound last, it sees no other card. */
    if (setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) != 0)
        return err_set(err, -errno, "ask for offload headers on a packet socket");
    if (setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) != 0)
        return err_set(err, -errno, "leave out own frames on a packet socket");
    setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one));
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) != 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) != 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    struct packet_mreq all = {.mr_ifindex = ifindex, .mr_type = PACKET_MR_PROMISC};
    if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)) != 0)
        return err_set(err, -errno, "listen to all frames of card %d", ifindex);
    struct sockaddr_ll addr = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = ifindex};
    if (bind(fd, (void *)&addr, sizeof(addr)) != 0)
        return err_set(err, -errno, "bind a packet socket to card %d", ifindex);
    return 0;
}

int packet_port_open(int ifindex, struct err *err) {
    /* Protocol 0: nothing arrives before the bind. */
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_set(err, -errno, "open a packet socket");
    int r = prepare(fd, ifindex, err);
    if (r == 0)
        return fd;
    close(fd);
    return r;
}

ssize_t packet_port_read(int fd, void *buf, size_t size) {
    for (;;) {
        ssize_t n = recv(fd, buf, size, MSG_DONTWAIT);
        if (n >= 0)
            return n;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return 0;
        if (errno != EINTR)
            return -errno;
    }
}

int packet_port_write(int fd, const void *message, size_t len) {
    for (;;) {
        if (send(fd, message, len, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
            return 0;
        if (errno != EINTR)
            return -errno;
    }
}

uint32_t packet_port_lost(int fd) {
    struct tpacket_stats stats = {0};
    socklen_t len = sizeof(stats);
    if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len) != 0)
        return 0;
    return stats.tp_drops;
}
