#include "agent/workers/orders.h"

#include "base/sys/descriptors.h"

#include "agent/workers/spec.h"
#include "base/buf.h"
#include "base/sys/file.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

int order_send(int sock, const void *message, size_t size, int fd) {
    int r = descriptors_send(sock, message, size, &fd, fd >= 0, MSG_DONTWAIT);
    return r == -ECONNRESET ? -EPIPE : r;
}

bool order_may_go_later(int code) {
    return code == -EAGAIN || code == -ENOBUFS || code == -ENOMEM || code == -ETOOMANYREFS;
}

int order_receive(int sock, void *message, size_t size, int *ret_fd) {
    size_t passed = 1;
    int fd = -1;
    ssize_t n = descriptors_receive(sock, message, size, &fd, &passed);
    if (n < 0)
        return n == -ECONNRESET ? 0 : (int)n;
    *ret_fd = fd;
    return n == (ssize_t)size;
}

static void put_number(struct buf *b, uint32_t v) {
    buf_put(b, &v, sizeof(v));
}

static void put_text(struct buf *b, const char *s) {
    buf_put(b, s, strlen(s) + 1);
}

static void put_texts(struct buf *b, char *const *texts) {
    uint32_t n = 0;
    while (texts[n])
        n++;
    put_number(b, n);
    for (uint32_t i = 0; i < n; i++)
        put_text(b, texts[i]);
}

int launch_write(const struct launch_order *l, int *ret_fd, struct err *err) {
    BUF_FINI struct buf b = {0};
    put_number(&b, l->deadline_required);
    put_text(&b, l->scratch);
    put_number(&b, l->sandbox);
    put_number(&b, l->n);
    for (uint32_t i = 0; i < l->n; i++) {
        put_texts(&b, l->workers[i].argv);
        put_texts(&b, l->workers[i].env);
        put_text(&b, l->workers[i].out);
        put_text(&b, l->workers[i].err);
    }
    int fd = memfd_create("rankrun-launch", MFD_CLOEXEC);
    int code = fd < 0 ? err_set(err, -errno, "make a memfd") : 0;
    if (!code && (code = file_write_all(fd, b.data, b.len, err)) < 0)
        err_wrap(err, "what is to be started, into a memfd: ");
    if (!code && lseek(fd, 0, SEEK_SET) < 0)
        code = err_set(err, -errno, "rewind a memfd");
    if (code)
        file_close(&fd);
    else
        *ret_fd = fd;
    return code;
}

/* What is left to read; a text or number that does not fit ends it for good. */
struct orders_reader {
    const char *at, *end;
    bool broken;
};

static uint32_t get_number(struct orders_reader *r) {
    uint32_t v = 0;
    if (r->broken || (size_t)(r->end - r->at) < sizeof(v)) {
        r->broken = true;
        return 0;
    }
    memcpy(&v, r->at, sizeof(v));
    r->at += sizeof(v);
    return v;
}

static char *get_text(struct orders_reader *r, struct arena *a) {
    const char *nul = r->broken ? NULL : memchr(r->at, '\0', (size_t)(r->end - r->at));
    if (!nul) {
        r->broken = true;
        return NULL;
    }
    char *text = arena_strdup(a, r->at);
    r->at = nul + 1;
    return text;
}

static char **get_texts(struct orders_reader *r, struct arena *a) {
    uint32_t n = get_number(r);
    if (r->broken || n > (size_t)(r->end - r->at)) {
        r->broken = true;
        return NULL;
    }
    char **texts = arena_array(a, char *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        texts[i] = get_text(r, a);
    return texts;
}

static int launch_decode(struct orders_reader *r, struct arena *a, struct launch_order *ret) {
    struct launch_order l = {.deadline_required = get_number(r) != 0};
    l.scratch = get_text(r, a);
    l.sandbox = get_number(r) != 0;
    l.n = get_number(r);
    if (r->broken || l.n == 0 || l.n > WORKERS_MAX)
        return -EBADMSG;
    l.workers = arena_array(a, struct launch_worker, l.n);
    for (uint32_t i = 0; i < l.n; i++) {
        l.workers[i].argv = get_texts(r, a);
        l.workers[i].env = get_texts(r, a);
        l.workers[i].out = get_text(r, a);
        l.workers[i].err = get_text(r, a);
    }
    if (r->broken)
        return -EBADMSG;
    *ret = l;
    return 0;
}

int launch_read(int fd, struct arena *a, struct launch_order *ret, struct err *err) {
    BUF_FINI struct buf b = {0};
    int code = file_read_fd(fd, SIZE_MAX, &b, err);
    file_close(&fd);
    if (!code) {
        struct orders_reader r = {buf_str(&b), buf_str(&b) + b.len, false};
        code = launch_decode(&r, a, ret);
        if (code)
            err_set(err, code, "read a worker group");
    }
    return code;
}
