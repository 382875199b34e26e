#include "scenarios/jobs/ranktrain/net/tcp_message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Of the number and the bytes. Four lanes, for one would wait for its multiplications; each step is
 * reversible, so that whatever one lane differs in stays different. It is no secret. */
static uint64_t checksum(uint64_t number, const char *body, size_t bytes) {
    enum { LANES = 4 };
    static const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    size_t n = bytes / sizeof(uint64_t);
    uint64_t h[LANES] = {number, 1, 2, 3}, sum = bytes, word;
    for (size_t i = 0; i < n; i++) {
        memcpy(&word, body + i * sizeof(word), sizeof(word));
        uint64_t *lane = &h[i % LANES], mixed = (*lane ^ word) * odd;
        *lane = mixed << 29 | mixed >> 35;
    }
    word = 0;
    if (bytes % sizeof(word))
        memcpy(&word, body + n * sizeof(word), bytes % sizeof(word));
    h[0] ^= word * odd;
    for (int i = 0; i < LANES; i++) {
        sum = (sum ^ h[i]) * odd;
        sum ^= sum >> 32;
    }
    return sum;
}

void tcp_message_out(struct tcp_message *ret, uint64_t number, void *body, size_t bytes) {
    *ret = (struct tcp_message){.head = {.number = number}, .body = body, .bytes = bytes};
    ret->head.checksum = checksum(number, body, bytes);
}

void tcp_message_in(struct tcp_message *ret, void *body, size_t bytes) {
    *ret = (struct tcp_message){.body = body, .bytes = bytes};
}

bool tcp_message_is_whole(const struct tcp_message *m) {
    return m->done == sizeof(m->head) + m->bytes;
}

bool tcp_message_is_right(const struct tcp_message *m) {
    return m->head.checksum == checksum(m->head.number, m->body, m->bytes);
}

static size_t parts(struct tcp_message *m, struct iovec iov[2]) {
    size_t n = 0, head = sizeof(m->head);
    if (m->done < head)
        iov[n++] = (struct iovec){(char *)&m->head + m->done, head - m->done};
    size_t begun = m->done > head ? m->done - head : 0;
    if (begun < m->bytes)
        iov[n++] = (struct iovec){m->body + begun, m->bytes - begun};
    return n;
}

static int moved(struct tcp_message *m, ssize_t n) {
    if (n > 0) {
        m->done += (size_t)n;
        return 1;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return n == 0 || errno == EPIPE ? -ECONNRESET : -errno;
}

int tcp_message_send(struct tcp_message *m, int fd) {
    struct iovec iov[2];
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = parts(m, iov)};
    return moved(m, sendmsg(fd, &msg, MSG_NOSIGNAL));
}

int tcp_message_receive(struct tcp_message *m, int fd) {
    struct iovec iov[2];
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = parts(m, iov)};
    return moved(m, recvmsg(fd, &msg, 0));
}
