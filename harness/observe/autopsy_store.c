#include "harness/observe/autopsy.h"

#include "harness/observe/base64.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MAX = 4 << 20, ANSWER_S = 2 };

static int connect_to(const char *addr, uint16_t port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct timeval wait = {.tv_sec = ANSWER_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || inet_pton(AF_INET, addr, &to.sin_addr) != 1)
        return fd;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    if (connect(fd, (void *)&to, sizeof(to)) == 0)
        return fd;
    int code = errno;
    close(fd);
    errno = code;
    return -1;
}

/* All keys, in the words of etcd's JSON gateway (etcd v3 API, /v3/kv/range). */
static int ask(int fd, struct buf *out) {
    static const char body[] = "{\"key\":\"AA==\",\"range_end\":\"AA==\"}";
    struct buf request = {0};
    buf_printf(&request,
               "POST /v3/kv/range HTTP/1.0\r\nHost: store\r\nContent-Type: application/json\r\n"
               "Content-Length: %zu\r\n\r\n%s",
               sizeof(body) - 1, body);
    ssize_t n = send(fd, request.data, request.len, MSG_NOSIGNAL);
    buf_fini(&request);
    static char part[65536];
    while (n > 0 && out->len < ANSWER_MAX && (n = recv(fd, part, sizeof(part), 0)) > 0)
        buf_put(out, part, (size_t)n);
    return n < 0 ? -errno : 0;
}

static void put_base64(struct arena *a, struct buf *out, const char *text) {
    size_t n;
    const char *plain = base64_decode(a, text, &n);
    for (size_t i = 0; i < n; i++)
        buf_putc(out, plain[i] >= ' ' && plain[i] < 127 ? plain[i] : '.');
}

static void put_keys(struct arena *a, const struct json *answer, struct buf *out) {
    const struct json *keys = json_get(answer, "kvs");
    buf_printf(out, "revision %lld\n",
               (long long)json_get_i64(json_get(answer, "header"), "revision", 0));
    json_each(it, keys) {
        put_base64(a, out, json_get_string(it, "key", ""));
        buf_printf(out, "  (changed in %lld%s)\n    ",
                   (long long)json_get_i64(it, "mod_revision", 0),
                   json_get_i64(it, "lease", 0) ? ", leased" : "");
        put_base64(a, out, json_get_string(it, "value", ""));
        buf_putc(out, '\n');
    }
    if (!json_first(keys))
        buf_puts(out, "it holds no keys\n");
}

void autopsy_store(const char *addr, uint16_t port, struct buf *out) {
    struct buf answer = {0};
    struct arena a = {0};
    int fd = connect_to(addr, port);
    if (fd < 0) {
        if (errno == EINPROGRESS || errno == EAGAIN)
            buf_printf(out, "no connection: no answer within %d s\n", ANSWER_S);
        else
            buf_printf(out, "no connection: %s\n", strerror(errno));
        return;
    }
    int r = ask(fd, &answer);
    const char *body = strstr(buf_str(&answer), "\r\n\r\n");
    const struct json *j =
        body ? json_parse(&a, body + 4, answer.len - (size_t)(body + 4 - answer.data), NULL) : NULL;
    if (j)
        put_keys(&a, j, out);
    else if (r == -EAGAIN)
        buf_printf(out, "connected, but no whole answer within %d s\n", ANSWER_S);
    else if (r)
        buf_printf(out, "no whole answer: %s\n", strerror(-r));
    else
        buf_printf(out, "not an answer of a store: %.200s\n", buf_str(&answer));
    close(fd);
    arena_fini(&a);
    buf_fini(&answer);
}
