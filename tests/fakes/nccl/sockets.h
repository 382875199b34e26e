/* sockets: TCP as NCCL uses it: on the interface that NCCL_SOCKET_IFNAME names, without keepalive,
 * without deadlines, called off by an abort and by nothing else. Answers are ncclResult_t. */
#pragma once

#include "tests/fakes/nccl/nccl.h"

#include <netinet/in.h>

struct endpoint {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } addr;
    socklen_t length;
};

enum { ENDPOINT_NAME = 96 };

/* What ncclGetLastError says. Returns result. */
ncclResult_t complain(ncclResult_t result, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
const char *last_complaint(void);

/* "10.0.0.2<40911>" */
const char *endpoint_name(const struct endpoint *e, char ret[ENDPOINT_NAME]);

/* The address of the interface, port 0. ncclInvalidUsage: there is none. */
ncclResult_t socket_place(struct endpoint *ret);

/* Listens at a free port of the place, which is put into it. */
ncclResult_t socket_listen(struct endpoint *place, int *ret);

/* abort_fd: readable when it is over (then ncclInternalError, which nobody will see); -1: never. */
ncclResult_t socket_connect(const struct endpoint *to, int abort_fd, int *ret);
ncclResult_t socket_accept(int listener, int abort_fd, int *ret);
ncclResult_t socket_send(int fd, const void *p, size_t n, int abort_fd);
ncclResult_t socket_receive(int fd, void *p, size_t n, int abort_fd);

/* Both at once, as a ring must. */
ncclResult_t socket_exchange(int out, const void *p, size_t n, int in, void *q, size_t m,
                             int abort_fd);

void socket_close(int *fd);
