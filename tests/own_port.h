/* own_port: a port on which a test's server can listen although it does not hold it yet.
 *
 * A port that the kernel chose and that was closed again may be given to any connection that goes
 * out in between. This one lies below the ports that the kernel gives out (ip_local_port_range), and
 * an abstract socket named after it keeps other tests of this network away until the test's process
 * ends. */
#pragma once

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { OWN_PORT_FIRST = 21000, OWN_PORT_PAST = 29000 };

/* 0: nobody listens on it or did so a moment ago; or -1. */
static inline int own_port_try(int port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int r = bind(fd, (struct sockaddr *)&a, sizeof(a));
    close(fd);
    return r;
}

/* 0: taken for this process, until it ends; or -1: another test has it. */
static inline int own_port_hold(int port) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "test-port-%d", port);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&a, length) == 0)
        return 0;
    close(fd);
    return -1;
}

/* Another one at each call; -1: all are taken. */
static inline int own_port(void) {
    int span = OWN_PORT_PAST - OWN_PORT_FIRST;
    for (int i = 0; i < span; i++) {
        int port = OWN_PORT_FIRST + (getpid() * 7 + i) % span;
        if (own_port_hold(port) == 0 && own_port_try(port) == 0)
            return port;
    }
    return -1;
}
