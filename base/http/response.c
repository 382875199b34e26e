#include "base/http/response.h"

#include "base/str.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LINE_BYTES_MAX = 64 << 10, HEAD_BYTES_MAX = 256 << 10, SHOWN_MAX = 40 };
enum response_state {
    STATUS,
    HEADER,
    MEASURED,
    TO_THE_END,
    CHUNK_SIZE,
    CHUNK,
    CHUNK_END,
    TRAILER,
    OVER
};
enum { SWITCHING = 101, NO_CONTENT = 204, NOT_MODIFIED = 304 };

void response_begin(struct response *r, const struct response_reader *reader, void *arg) {
    *r = (struct response){.reader = reader, .arg = arg, .state = STATUS};
}

void response_fini(struct response *r) {
    buf_fini(&r->line);
}

static enum response_step broken(struct response *r, const char *what, const char *text, size_t n) {
    char shown[SHOWN_MAX + 1];
    size_t k = 0;
    for (; k < n && k < SHOWN_MAX && (unsigned char)text[k] >= ' ' && text[k] < 0x7f; k++)
        shown[k] = text[k];
    shown[k] = '\0';
    snprintf(r->why, sizeof(r->why), k ? "%s: '%s'" : "%s", what, shown);
    r->state = OVER;
    return RESPONSE_BROKEN;
}

static enum response_step whole(struct response *r) {
    r->state = OVER;
    return RESPONSE_WHOLE;
}

/* ---- the head ---- */

static const char protocol[] = "HTTP/1.";
enum { PROTOCOL_LEN = sizeof(protocol) - 1 };

static enum response_step not_http(struct response *r, const char *p, size_t n) {
    return broken(r, "it does not answer in HTTP/1", p, n);
}

/* "HTTP/1.1 200 OK" */
static enum response_step take_status(struct response *r, const char *p, size_t n) {
    enum { CODE = PROTOCOL_LEN + 2, LEAST = CODE + 3 };
    if (n < LEAST || strncmp(p, protocol, PROTOCOL_LEN) != 0 ||
        !isdigit((unsigned char)p[PROTOCOL_LEN]) || p[CODE - 1] != ' ' || p[CODE] < '1' ||
        p[CODE] > '9' || !isdigit((unsigned char)p[CODE + 1]) ||
        !isdigit((unsigned char)p[CODE + 2]) || (n > LEAST && p[LEAST] != ' '))
        return not_http(r, p, n);
    r->status = (p[CODE] - '0') * 100 + (p[CODE + 1] - '0') * 10 + (p[CODE + 2] - '0');
    r->keeps = p[PROTOCOL_LEN] != '0';
    r->state = HEADER;
    return RESPONSE_MORE;
}

/* The value of the line when it is that header's: without the blanks around it; else NULL. */
static const char *value_of(const char *line, size_t n, const char *name, size_t *ret_n) {
    size_t len = strlen(name);
    if (n <= len || strncasecmp(line, name, len) != 0 || line[len] != ':')
        return NULL;
    const char *from = line + len + 1, *end = line + n;
    while (from < end && (*from == ' ' || *from == '\t'))
        from++;
    while (end > from && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *ret_n = (size_t)(end - from);
    return from;
}

static bool is_word(const char *p, size_t n, const char *word) {
    return n == strlen(word) && strncasecmp(p, word, n) == 0;
}

/* It may be said twice, if it is the same both times. */
static enum response_step take_length(struct response *r, const char *p, size_t n) {
    char digits[24] = "";
    int64_t length;
    if (n < sizeof(digits))
        memcpy(digits, p, n);
    if (strspn(digits, "0123456789") != n || !str_to_i64(digits, 0, INT64_MAX, &length) ||
        (r->measured && length != r->left))
        return broken(r, "its answer has an unreadable Content-Length", p, n);
    r->measured = true;
    r->left = length;
    return RESPONSE_MORE;
}

static enum response_step take_header(struct response *r, const char *p, size_t n) {
    const char *value;
    size_t k;
    if ((value = value_of(p, n, "Content-Length", &k)))
        return take_length(r, value, k);
    if ((value = value_of(p, n, "Transfer-Encoding", &k))) {
        if (!is_word(value, k, "chunked") || r->chunked)
            return broken(r, "its answer has a Transfer-Encoding that nobody asked for", value, k);
        r->chunked = true;
    } else if ((value = value_of(p, n, "Connection", &k))) {
        r->keeps = is_word(value, k, "keep-alive") || (r->keeps && !is_word(value, k, "close"));
    }
    r->reader->header(r->arg, p, n);
    return RESPONSE_MORE;
}

/* What kind of body follows (RFC 9112, 6.3). An interim answer is followed by another one. */
static enum response_step end_head(struct response *r) {
    if (r->status == SWITCHING)
        return broken(r, "it answers in another protocol", "", 0);
    if (r->status < 200) {
        bool measured = r->measured || r->chunked;
        r->state = STATUS;
        r->status = 0;
        return measured ? broken(r, "an interim answer has a body", "", 0) : RESPONSE_MORE;
    }
    if (r->status == NO_CONTENT || r->status == NOT_MODIFIED)
        return whole(r);
    if (r->chunked) {
        r->state = CHUNK_SIZE;
        r->keeps = r->keeps && !r->measured; /* whoever says both may mean either */
    } else if (r->measured) {
        r->state = MEASURED;
        return r->left ? RESPONSE_MORE : whole(r);
    } else {
        r->state = TO_THE_END;
        r->keeps = false;
    }
    return RESPONSE_MORE;
}

/* ---- chunks ---- */

/* In hexadecimal; what follows a semicolon is nobody's. */
static enum response_step take_chunk_size(struct response *r, const char *p, size_t n) {
    size_t k = 0;
    int64_t size = 0;
    for (; k < n && k < 15 && isxdigit((unsigned char)p[k]); k++)
        size = size * 16 + (isdigit((unsigned char)p[k]) ? p[k] - '0' : (p[k] | 0x20) - 'a' + 10);
    if (!k || (k < n && !memchr(" \t;", p[k], 3)))
        return broken(r, "its answer has a chunk without a size", p, n);
    r->left = size;
    r->state = size ? CHUNK : TRAILER;
    return RESPONSE_MORE;
}

/* ---- whatever comes ---- */

static enum response_step take_line(struct response *r, const char *p, size_t n) {
    if (n && p[n - 1] == '\r')
        n--;
    switch ((enum response_state)r->state) {
    case STATUS:
        return take_status(r, p, n);
    case HEADER:
        return n ? take_header(r, p, n) : end_head(r);
    case CHUNK_SIZE:
        return take_chunk_size(r, p, n);
    case CHUNK_END:
        r->state = CHUNK_SIZE;
        return n ? broken(r, "its answer has a chunk longer than its size", p, n) : RESPONSE_MORE;
    case TRAILER:
        return n ? RESPONSE_MORE : whole(r);
    case MEASURED:
    case TO_THE_END:
    case CHUNK:
    case OVER:
        break;
    }
    assert(!"no line is expected");
    return RESPONSE_BROKEN;
}

/* Garbage need not have lines. */
static bool is_http_so_far(const struct response *r) {
    size_t n = r->line.len < PROTOCOL_LEN ? r->line.len : PROTOCOL_LEN;
    return r->state != STATUS || strncmp(buf_str(&r->line), protocol, n) == 0;
}

static enum response_step take_of_line(struct response *r, const char *p, size_t n,
                                       size_t *ret_used) {
    const char *end = memchr(p, '\n', n);
    size_t k = end ? (size_t)(end - p) : n;
    bool in_chunks = r->state == CHUNK_SIZE || r->state == CHUNK_END;
    *ret_used = end ? k + 1 : k;
    r->head += in_chunks ? 0 : *ret_used;
    buf_put(&r->line, p, k);
    if (!is_http_so_far(r))
        return not_http(r, buf_str(&r->line), r->line.len);
    if (r->line.len > LINE_BYTES_MAX || r->head > HEAD_BYTES_MAX)
        return broken(r, "the head of its answer has no end", "", 0);
    if (!end)
        return RESPONSE_MORE;
    struct buf line = r->line;
    r->line = (struct buf){0};
    enum response_step step = take_line(r, buf_str(&line), line.len);
    buf_fini(&line);
    return step;
}

static enum response_step take_of_body(struct response *r, const char *p, size_t n,
                                       size_t *ret_used) {
    bool bounded = r->state != TO_THE_END;
    size_t k = bounded && (int64_t)n > r->left ? (size_t)r->left : n;
    *ret_used = k;
    if (!r->reader->body(r->arg, p, k))
        return broken(r, "its answer is too long", "", 0);
    r->left -= bounded ? (int64_t)k : 0;
    if (!bounded || r->left)
        return RESPONSE_MORE;
    if (r->state == MEASURED)
        return whole(r);
    r->state = CHUNK_END;
    return RESPONSE_MORE;
}

enum response_step response_take(struct response *r, const char *p, size_t n, size_t *ret_used) {
    enum response_step step = RESPONSE_MORE;
    size_t used = 0, k;
    assert(r->state != OVER);
    r->begun = r->begun || n;
    while (used < n && step == RESPONSE_MORE) {
        bool body = r->state == MEASURED || r->state == TO_THE_END || r->state == CHUNK;
        step = body ? take_of_body(r, p + used, n - used, &k)
                    : take_of_line(r, p + used, n - used, &k);
        used += k;
    }
    *ret_used = used;
    return step;
}

enum response_step response_end(struct response *r) {
    if (r->state == TO_THE_END)
        return whole(r);
    return broken(r,
                  r->begun ? "the connection ended in the middle of its answer"
                           : "the connection ended without an answer",
                  "", 0);
}
