#include "harness/carrier/channel.h"

#include "base/sys/descriptors.h"
#include "base/sys/file.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PACKET_MAX = 32768, TEXT_MAX = 64 << 20 };

/* Stands in a packet for a text that comes as the first descriptor. */
static const char in_memory[] = "@";

int channel_pair(int ret[2], struct err *err) {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) != 0)
        return err_set(err, -errno, "make a socket pair");
    return 0;
}

int channel_send(int fd, const struct buf *text, const int *fds, size_t fds_n, struct err *err) {
    int all[CHANNEL_FDS_MAX + 1], code;
    assert(fds_n <= CHANNEL_FDS_MAX && text->len);
    if (text->len <= PACKET_MAX) {
        code = descriptors_send(fd, text->data, text->len, fds, fds_n, 0);
        return code ? err_set(err, code, "send a message") : 0;
    }
    FILE_CLOSE int memory = memfd_create("message", MFD_CLOEXEC);
    if (memory < 0)
        return err_set(err, -errno, "make a memfd");
    if ((code = file_write_all(memory, text->data, text->len, err)))
        return code;
    all[0] = memory;
    if (fds_n)
        memcpy(all + 1, fds, sizeof(int) * fds_n);
    code = descriptors_send(fd, in_memory, 1, all, fds_n + 1, 0);
    return code ? err_set(err, code, "send a message") : 0;
}

static int read_memory(int fd, struct buf *out, struct err *err) {
    if (lseek(fd, 0, SEEK_SET) != 0)
        return err_set(err, -errno, "read a long message");
    return file_read_fd(fd, TEXT_MAX, out, err);
}

static int parse(struct message *m, const char *packet, size_t len, struct err *err) {
    if (len != 1 || *packet != *in_memory) {
        m->json = json_parse(&m->arena, packet, len, err);
        return m->json ? 1 : -EINVAL;
    }
    BUF_FINI struct buf text = {0};
    FILE_CLOSE int memory = m->fds[0];
    memmove(m->fds, m->fds + 1, sizeof(int) * (CHANNEL_FDS_MAX - 1));
    m->fds[CHANNEL_FDS_MAX - 1] = -1;
    int r = read_memory(memory, &text, err);
    if (r == 0 && !(m->json = json_parse(&m->arena, buf_str(&text), text.len, err)))
        r = -EINVAL;
    return r ? r : 1;
}

int channel_receive(int fd, struct message *ret, struct err *err) {
    static char packet[PACKET_MAX + 1];
    int fds[CHANNEL_FDS_MAX + 1];
    size_t fds_n = CHANNEL_FDS_MAX + 1;
    ssize_t n = descriptors_receive(fd, packet, PACKET_MAX, fds, &fds_n);
    if (n == -EAGAIN)
        return 0;
    if (n <= 0)
        return err_set(err, n < 0 ? (int)n : -ECONNRESET, "receive a message");
    struct message m = {.fds = {-1, -1, -1, -1}};
    bool spare = fds_n > CHANNEL_FDS_MAX; /* a memfd and four more */
    memcpy(m.fds, fds, sizeof(int) * (spare ? CHANNEL_FDS_MAX : fds_n));
    int r = parse(&m, packet, (size_t)n, err);
    if (spare)
        m.fds[CHANNEL_FDS_MAX - 1] = fds[CHANNEL_FDS_MAX];
    if (r > 0)
        *ret = m;
    else
        message_fini(&m);
    return r;
}

void message_fini(struct message *m) {
    for (size_t i = 0; i < CHANNEL_FDS_MAX; i++)
        file_close(&m->fds[i]);
    arena_fini(&m->arena);
}

int message_take_fd(struct message *m, size_t at) {
    return file_keep(&m->fds[at]);
}
