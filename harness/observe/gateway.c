#include "harness/observe/gateway.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MAX = 4 << 20 };

static int connect_to(const char *addr, uint16_t port, struct err *err) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct timeval wait = {.tv_sec = GATEWAY_WAIT_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_set(err, -errno, "make a socket");
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    int code = inet_pton(AF_INET, addr, &to.sin_addr) != 1 ? EINVAL : 0;
    if (!code && connect(fd, (void *)&to, sizeof(to)) == 0)
        return fd;
    code = code ? code : errno;
    close(fd);
    if (code == EINPROGRESS || code == EAGAIN)
        return err_say(err, -EAGAIN, "no connection: no answer within %d s", GATEWAY_WAIT_S);
    return err_say(err, -code, "no connection: %s", strerror(code));
}

/* HTTP/1.0, so that the answer comes in one piece and ends with the connection. */
static int exchange(int fd, const char *path, const char *question, struct buf *answer) {
    struct buf request = {0};
    const char *token = getenv("RANKRUN_STORE_TOKEN");
    buf_printf(&request,
               "POST %s HTTP/1.0\r\nHost: store\r\nContent-Type: application/json\r\n"
               "Content-Length: %zu\r\n",
               path, strlen(question));
    if (token)
        buf_printf(&request, "Authorization: Bearer %s\r\n", token);
    buf_printf(&request, "\r\n%s", question);
    ssize_t n = send(fd, request.data, request.len, MSG_NOSIGNAL);
    buf_fini(&request);
    static char part[65536];
    while (n > 0 && answer->len < ANSWER_MAX && (n = recv(fd, part, sizeof(part), 0)) > 0)
        buf_put(answer, part, (size_t)n);
    return n < 0 ? -errno : 0;
}

static int take_body(const struct buf *answer, struct buf *ret, struct err *err) {
    const char *text = buf_str(answer), *body = strstr(text, "\r\n\r\n"),
               *blank = strchr(text, ' ');
    if (strncmp(text, "HTTP/1.", 7) != 0 || !body || !blank)
        return err_say(err, -EPROTO, "not an answer of a store: %.200s", text);
    if (atoi(blank) != 200)
        return err_say(err, -EPROTO, "it answered with HTTP status %d: %.200s", atoi(blank),
                       body + 4);
    buf_put(ret, body + 4, answer->len - (size_t)(body + 4 - text));
    return 0;
}

int gateway_ask(const char *addr, uint16_t port, const char *path, const char *question,
                struct buf *ret, struct err *err) {
    struct buf answer = {0};
    int fd = connect_to(addr, port, err);
    if (fd < 0)
        return fd;
    int r = exchange(fd, path, question, &answer);
    close(fd);
    if (r == -EAGAIN)
        err_say(err, r, "connected, but no whole answer within %d s", GATEWAY_WAIT_S);
    else if (r)
        err_say(err, r, "no whole answer: %s", strerror(-r));
    else
        r = take_body(&answer, ret, err);
    buf_fini(&answer);
    return r;
}
