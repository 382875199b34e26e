#include "faults/mechanism/capture.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/sys/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng: blocks and options, in the order of
 * bytes of this host, which the first block tells. */
enum {
    BLOCK_SECTION = 0x0a0d0d0a,
    BLOCK_INTERFACE = 1,
    BLOCK_STATISTICS = 5,
    BLOCK_PACKET = 6,
    ETHERNET = 1,
    OPTION_END = 0,
    OPTION_COMMENT = 1,
    OPTION_NAME = 2,       /* of an interface, and the flags of a packet */
    OPTION_RESOLUTION = 9, /* of an interface */
    OPTION_LEFT_OUT = 5,   /* of statistics: isb_ifdrop */
};
enum { FULL = 65536, END_MAX = 512 };

struct capture {
    int fd;
    bool broken; /* the disk is full: nothing more is written */
    int64_t ahead_ns, most, written;
    uint64_t left_out;
    int64_t newest_ns;
    struct buf out;
};

static void put32(struct buf *b, uint32_t v) {
    buf_put(b, &v, sizeof(v));
}

static void put_padded(struct buf *b, const void *bytes, size_t len) {
    static const char zeros[4];
    buf_put(b, bytes, len);
    buf_put(b, zeros, -len & 3);
}

static void put_option(struct buf *b, unsigned code, const void *bytes, size_t len) {
    const uint16_t head[2] = {(uint16_t)code, (uint16_t)len};
    buf_put(b, head, sizeof(head));
    put_padded(b, bytes, len);
}

static void put_time(struct buf *b, uint64_t ns) {
    put32(b, (uint32_t)(ns >> 32));
    put32(b, (uint32_t)ns);
}

/* A block begins and ends with its length. Returns where it begins. */
static size_t block_begin(struct capture *c, uint32_t type) {
    size_t at = c->out.len;
    put32(&c->out, type);
    put32(&c->out, 0);
    return at;
}

static void block_end(struct capture *c, size_t at) {
    put_option(&c->out, OPTION_END, "", 0);
    uint32_t len = (uint32_t)(c->out.len - at + 4);
    put32(&c->out, len);
    memcpy(c->out.data + at + 4, &len, sizeof(len));
}

void capture_flush(struct capture *c) {
    if (!c || !c->out.len)
        return;
    if (!c->broken && file_write_all(c->fd, c->out.data, c->out.len, NULL) != 0)
        c->broken = true;
    c->written += (int64_t)c->out.len;
    buf_clear(&c->out);
}

static void put_section(struct capture *c) {
    char said[160];
    const int64_t unknown = -1;
    const uint16_t version[2] = {1, 0};
    size_t at = block_begin(c, BLOCK_SECTION);
    put32(&c->out, 0x1a2b3c4d);
    buf_put(&c->out, version, sizeof(version));
    buf_put(&c->out, &unknown, sizeof(unknown));
    int n = snprintf(said, sizeof(said), "t of history.jsonl is the time of a frame less %lld ns",
                     (long long)c->ahead_ns);
    put_option(&c->out, OPTION_COMMENT, said, (size_t)n);
    block_end(c, at);
}

static void put_interface(struct capture *c, const char *name) {
    const unsigned char nanoseconds = 9;
    size_t at = block_begin(c, BLOCK_INTERFACE);
    put32(&c->out, ETHERNET);
    put32(&c->out, CAPTURE_SNAP);
    put_option(&c->out, OPTION_NAME, name, strlen(name));
    put_option(&c->out, OPTION_RESOLUTION, &nanoseconds, 1);
    block_end(c, at);
}

struct capture *capture_new(int fd, const char *name, int64_t ahead_ns, int64_t most) {
    struct capture *c = mem_new(struct capture);
    *c = (struct capture){.fd = fd, .ahead_ns = ahead_ns, .most = most};
    put_section(c);
    put_interface(c, name);
    capture_flush(c);
    return c;
}

static void put_statistics(struct capture *c) {
    char said[160];
    size_t at = block_begin(c, BLOCK_STATISTICS);
    put32(&c->out, 0);
    put_time(&c->out, (uint64_t)(c->newest_ns + c->ahead_ns));
    if (c->left_out) {
        int n = snprintf(said, sizeof(said),
                         "%llu more frames are left out: the file may have %lld bytes",
                         (unsigned long long)c->left_out, (long long)c->most);
        put_option(&c->out, OPTION_COMMENT, said, (size_t)n);
    }
    put_option(&c->out, OPTION_LEFT_OUT, &c->left_out, sizeof(c->left_out));
    block_end(c, at);
}

struct capture *capture_free(struct capture *c) {
    if (!c)
        return NULL;
    put_statistics(c);
    capture_flush(c);
    file_close(&c->fd);
    buf_fini(&c->out);
    free(c);
    return NULL;
}

void capture_frame(struct capture *c, int64_t now_ns, const void *bytes, size_t len, bool inbound,
                   const char *comment) {
    size_t kept = len < CAPTURE_SNAP ? len : CAPTURE_SNAP;
    const uint32_t direction = inbound ? 1 : 2;
    int64_t size = (int64_t)(kept + (comment ? strlen(comment) : 0) + 64);
    c->newest_ns = now_ns;
    if (c->written + (int64_t)c->out.len + size > c->most - END_MAX) {
        c->left_out++;
        return;
    }
    size_t at = block_begin(c, BLOCK_PACKET);
    put32(&c->out, 0);
    put_time(&c->out, (uint64_t)(now_ns + c->ahead_ns));
    put32(&c->out, (uint32_t)kept);
    put32(&c->out, (uint32_t)len);
    put_padded(&c->out, bytes, kept);
    if (comment && *comment)
        put_option(&c->out, OPTION_COMMENT, comment, strlen(comment));
    put_option(&c->out, OPTION_NAME, &direction, sizeof(direction));
    block_end(c, at);
    if (c->out.len >= FULL)
        capture_flush(c);
}
