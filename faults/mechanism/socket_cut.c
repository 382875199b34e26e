#include "faults/mechanism/socket_cut.h"

#include "base/sys/file.h"
#include "base/sys/process.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif
#ifndef IPV6_MINHOPCOUNT
#define IPV6_MINHOPCOUNT 73
#endif

enum { NO_HOP = 255 };

int socket_take(int pidfd, int fd) {
    int copy = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
    return copy < 0 ? -errno : copy;
}

int socket_silence(int fd, bool on) {
    int hops = on ? NO_HOP : 0, family = 0;
    socklen_t len = sizeof(family);
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len) != 0)
        return -errno;
    if (family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_MINHOPCOUNT, &hops, sizeof(hops)) != 0)
        return -errno;
    return setsockopt(fd, IPPROTO_IP, IP_MINTTL, &hops, sizeof(hops)) != 0 ? -errno : 0;
}

void socket_mend(int fd) {
    int hops = 0;
    socklen_t len = sizeof(hops);
    if (getsockopt(fd, IPPROTO_IP, IP_MINTTL, &hops, &len) == 0 && hops == NO_HOP)
        socket_silence(fd, false);
}

uint32_t socket_drops(int fd) {
    uint32_t info[SK_MEMINFO_VARS] = {0};
    socklen_t len = sizeof(info);
    return getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len) == 0 ? info[SK_MEMINFO_DROPS] : 0;
}

int64_t socket_taken_in(int fd) {
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
        len < offsetof(struct tcp_info, tcpi_segs_in) + sizeof(info.tcpi_segs_in))
        return -ENOTSUP;
    return info.tcpi_segs_in;
}

/* ---- the trial ---- */

/* Two ends of a connection over the loopback; the first is the child's to hold. */
static int connect_pair(int ret[2]) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    FILE_CLOSE int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FILE_CLOSE int to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server < 0 || to < 0 || bind(server, (void *)&at, len) != 0 || listen(server, 1) != 0 ||
        getsockname(server, (void *)&at, &len) != 0 || connect(to, (void *)&at, len) != 0)
        return -errno;
    int from = accept4(server, NULL, NULL, SOCK_CLOEXEC);
    if (from < 0)
        return -errno;
    ret[0] = from;
    ret[1] = file_keep(&to);
    return 0;
}

static bool arrives(int fd, int wait_ms) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, wait_ms) == 1;
}

/* On the loopback what is sent has come or has been dropped when send returns. What was dropped is sent again
 * at once where what follows it is acknowledged, and by TCP's own clock after 200 ms else. */
static int cut_and_mend(int taken, int peer) {
    int at_once = 1, r = socket_silence(taken, true);
    if (r)
        return r;
    if (send(peer, "x", 1, MSG_NOSIGNAL) != 1)
        return -errno;
    if (arrives(taken, 0) || !socket_drops(taken))
        return -EOPNOTSUPP;
    if ((r = socket_silence(taken, false)) != 0)
        return r;
    setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once));
    if (send(peer, "y", 1, MSG_NOSIGNAL) != 1)
        return -errno;
    return arrives(taken, 5000) ? 0 : -EOPNOTSUPP;
}

static int try_child(pid_t pid, const int ends[2]) {
    struct process p;
    int r = process_open(pid, &p, NULL);
    if (r)
        return r;
    FILE_CLOSE int taken = socket_take(p.pidfd, ends[0]);
    process_close(&p);
    return taken < 0 ? taken : cut_and_mend(taken, ends[1]);
}

static int refused(int code, struct err *err) {
    if (code == -EPERM || code == -EACCES || code == -ENOSYS)
        return err_say(err, -ENOTSUP,
                       "sockets of other processes cannot be taken here (pidfd_getfd: %s): allow "
                       "ptrace, in a container by --cap-add SYS_PTRACE or --security-opt "
                       "seccomp=unconfined, else by sysctl kernel.yama.ptrace_scope=1",
                       strerror(-code));
    return err_say(err, -ENOTSUP, "connections cannot be cut at their sockets here: %s",
                   strerror(-code));
}

int socket_cut_check(struct err *err) {
    int ends[2] = {-1, -1}, r = connect_pair(ends);
    if (r)
        return refused(r, err);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            pause();
        _exit(0);
    }
    r = pid < 0 ? -errno : try_child(pid, ends);
    close(ends[0]);
    close(ends[1]);
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    return r ? refused(r, err) : 0;
}
