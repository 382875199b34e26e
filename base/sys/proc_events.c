#include "base/sys/proc_events.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A message is a netlink header, the connector's header and the event, without gaps. The event is
 * not aligned there, so that it is always copied out. */
enum {
    EVENT_AT = NLMSG_HDRLEN + sizeof(struct cn_msg),
    EVENT_LEAST = offsetof(struct proc_event, event_data.exit.exit_signal),
    MESSAGE_MAX = 512,
    QUEUE_BYTES = 4 << 20, /* some thousand processes that end at once */
};

static int kept = -1;

/* Passes ends and the answers to subscriptions. Whatever else the host's processes do is dropped
 * where it arises and never wakes us. */
static int pass_ends_only(int fd) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, EVENT_AT + offsetof(struct proc_event, what)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_EXIT), 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_NONE), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, MESSAGE_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(*code), .filter = code};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

static int subscribe(int fd, uint32_t op, uint32_t number) {
    struct {
        struct nlmsghdr header;
        struct cn_msg message;
        uint32_t op;
    } __attribute__((packed)) m = {
        .header = {.nlmsg_len = sizeof(m), .nlmsg_type = NLMSG_DONE},
        .message = {.id = {CN_IDX_PROC, CN_VAL_PROC}, .ack = number, .len = sizeof(m.op)},
        .op = op,
    };
    return send(fd, &m, sizeof(m), 0) < 0 ? -errno : 0;
}

/* Reads one message of the kernel's own; anybody may send to a socket. Returns as
 * proc_events_read does. */
static int receive(int fd, struct cn_msg *ret_head, struct proc_event *ret) {
    char bytes[MESSAGE_MAX];
    struct sockaddr_nl from = {0};
    socklen_t from_len = sizeof(from);
    for (;;) {
        ssize_t n =
            recvfrom(fd, bytes, sizeof(bytes), MSG_DONTWAIT, (struct sockaddr *)&from, &from_len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -errno;
        if (from.nl_pid != 0 || (size_t)n < EVENT_AT + EVENT_LEAST)
            continue;
        size_t len = (size_t)n - EVENT_AT;
        memcpy(ret_head, bytes + NLMSG_HDRLEN, sizeof(*ret_head));
        memcpy(ret, bytes + EVENT_AT, len < sizeof(*ret) ? len : sizeof(*ret));
        if (ret_head->id.idx == CN_IDX_PROC && ret_head->id.val == CN_VAL_PROC)
            return 1;
    }
}

/* The kernel answers a subscription while it is being sent, and says nothing at all to a process in
 * other namespaces. Every listener hears every answer: ours bears our number. */
static int read_answer(int fd, uint32_t number) {
    struct cn_msg head;
    struct proc_event e = {0};
    int r;
    while ((r = receive(fd, &head, &e)) != 0)
        if (r == 1 && e.what == PROC_EVENT_NONE && head.ack == number + 1)
            return -(int)e.event_data.ack.err;
        else if (r < 0 && r != -ENOBUFS)
            return r;
    return -EPERM;
}

static int prepare(int fd) {
    struct sockaddr_nl group = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
    int bytes = QUEUE_BYTES;
    uint32_t number = (uint32_t)getpid();
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) != 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    if (pass_ends_only(fd) != 0 || bind(fd, (struct sockaddr *)&group, sizeof(group)) != 0)
        return -errno;
    int r = subscribe(fd, PROC_CN_MCAST_LISTEN, number);
    if (r == 0)
        r = read_answer(fd, number);
    return r == -ECONNREFUSED ? -EPERM : r; /* another network namespace, or no such kernel */
}

int proc_events_open(struct err *err) {
    if (kept >= 0)
        return kept;
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
    if (fd < 0)
        return err_set(err, errno == EPROTONOSUPPORT ? -EOPNOTSUPP : -errno,
                       "open a socket of the kernel's process events");
    int r = prepare(fd);
    if (r < 0) {
        close(fd);
        return err_set(err, r, "subscribe to the kernel's process events");
    }
    if (geteuid() != 0)
        kept = fd;
    return fd;
}

/* Before Linux 6.6 the kernel counts listeners by their words alone, so one that goes says so. */
void proc_events_close(int fd) {
    if (fd < 0 || fd == kept)
        return;
    subscribe(fd, PROC_CN_MCAST_IGNORE, 0);
    close(fd);
}

int proc_events_read(int fd, struct proc_exit *ret) {
    struct cn_msg head;
    struct proc_event e = {0};
    int r;
    do
        r = receive(fd, &head, &e);
    while (r == 1 && e.what != PROC_EVENT_EXIT);
    if (r == 1)
        *ret = (struct proc_exit){.pid = e.event_data.exit.process_tgid,
                                  .thread = e.event_data.exit.process_pid,
                                  .status = (int)e.event_data.exit.exit_code,
                                  .t_ns = (int64_t)e.timestamp_ns};
    return r;
}
