#include "base/sys/loopback.h"

#include "base/sys/descriptors.h"
#include "base/sys/file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* 127.64.0 to 127.127.255: far from what people use by hand. */
enum { RANGES = 64 * 256, FIRST = 64, TAKEN_PORTS_MAX = 8 };

/* The socket that holds the range, -EADDRINUSE when somebody has it. */
static int hold(const char *prefix) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "rankquake-%s", prefix);
    int low = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    FILE_CLOSE int fd = low < 0 ? -errno : descriptors_lift(low, STDERR_FILENO + 1);
    if (fd < 0)
        return fd;
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    return bind(fd, (void *)&name, len) == 0 ? file_keep(&fd) : -errno;
}

static int try_port(const char *prefix, uint16_t port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    char text[LOOPBACK_PREFIX_MAX + 4];
    int yes = 1;
    FILE_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    snprintf(text, sizeof(text), "%s.2", prefix);
    inet_pton(AF_INET, text, &to.sin_addr);
    return bind(fd, (void *)&to, sizeof(to)) < 0 || listen(fd, 1) < 0 ? -errno : 0;
}

int loopback_claim(uint16_t port, char ret_prefix[LOOPBACK_PREFIX_MAX], struct err *err) {
    char prefix[LOOPBACK_PREFIX_MAX];
    unsigned first = (unsigned)getpid() * 7919U % RANGES;
    for (unsigned i = 0, taken = 0; i < RANGES; i++) {
        unsigned range = (first + i) % RANGES;
        snprintf(prefix, sizeof(prefix), "127.%u.%u", FIRST + range / 256, range % 256);
        int fd = hold(prefix), code;
        if (fd == -EADDRINUSE)
            continue;
        if (fd < 0)
            return err_set(err, fd, "take the addresses %s.0/24", prefix);
        if ((code = try_port(prefix, port)) == 0) {
            memcpy(ret_prefix, prefix, sizeof(prefix));
            return fd;
        }
        close(fd);
        if (code != -EADDRINUSE)
            return err_set(err, code, "listen on %s.2:%u", prefix, port);
        if (++taken == TAKEN_PORTS_MAX)
            return err_say(err, code,
                           "port %u is taken on all addresses of this host: end the server that "
                           "listens there (ss -ltnp 'sport = :%u' names it)",
                           port, port);
    }
    return err_say(err, -EADDRINUSE, "all %d ranges of 127.0.0.0/8 are in use", RANGES);
}
