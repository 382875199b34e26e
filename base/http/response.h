/* response: an answer of HTTP/1 as it comes, byte by byte if need be (RFC 9112). Pure: it reads
 * what it is given, and passes on what is in it.
 *
 * Bodies are chunked, of a length that was said, or as long as the connection; interim answers
 * (100) and trailers are skipped. Lines are at most 64 kB, the head 256 kB. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum response_step {
    RESPONSE_MORE,   /* nothing is wrong, and there is more to come */
    RESPONSE_WHOLE,  /* that was all of it */
    RESPONSE_BROKEN, /* why says how; of no use any more */
};

struct response_reader {
    void (*header)(void *arg, const char *line, size_t n); /* "Name: value", without its end */
    bool (*body)(void *arg, const char *p, size_t n);      /* a piece; false: that is too much */
};

struct response {
    const struct response_reader *reader;
    void *arg;
    int state; /* what comes next */
    struct buf line;
    size_t head; /* bytes of it so far */
    long status; /* 0: not known yet */
    bool begun;  /* something has come */
    bool keeps;  /* the connection may carry another request, once it is whole */
    bool chunked;
    bool measured; /* left is the length that was said */
    int64_t left;  /* of the body, or of the chunk */
    char why[160];
};

/* reader and arg are lent. */
void response_begin(struct response *r, const struct response_reader *reader, void *arg);
/* *ret_used: what belongs to this answer; less than n only when it is whole. */
enum response_step response_take(struct response *r, const char *p, size_t n, size_t *ret_used);
/* The connection has ended: WHOLE or BROKEN. */
enum response_step response_end(struct response *r);
void response_fini(struct response *r);
