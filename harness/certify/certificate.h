/* certificate: the file certificate.json, canonical JSON (base/canonical.h), and what follows from
 * it. It lies in a directory with all that it vouches for by SHA-256. */
#pragma once

#include "base/json.h"
#include "base/sys/folder.h"

#define CERTIFICATE_FORMAT "rankquake-certificate/1"
#define CERTIFICATE_FILE   "certificate.json"
#define CERTIFICATE_SIG    "certificate.json.sig"
#define CERTIFICATE_PAGE   "certificate.html"

/* How verify ends where the certificate does not hold; where it does, as what it certifies did. */
enum certificate_exit {
    CERTIFICATE_CUT = 10,     /* it is not all there, or no certificate */
    CERTIFICATE_ALTERED = 11, /* it, its signature or what it vouches for is not as it was signed */
    CERTIFICATE_STRANGER = 12,  /* it was signed by a key that is not allowed to */
    CERTIFICATE_EXPIRED = 13,   /* it does not hold at this time */
    CERTIFICATE_ELSEWHERE = 14, /* its inventory is not that of this host */
    CERTIFICATE_REJUDGED = 15,  /* judged again, a history says something else */
};

/* Reads one that is whole. text keeps its bytes. NULL: err says what it is instead. */
const struct json *certificate_read(struct arena *a, const struct folder *in, struct buf *text,
                                    struct err *err);

/* The SHA-256 of a plain file in the folder. */
int certificate_hash(const struct folder *in, const char *name, char ret[65], struct err *err);

/* What all its runs together come to (an exit code), from its scenarios and probes alone: a probe that
 * failed is a failure, whatever the runs were. preflight NULL: none was made. */
int certificate_result(const struct json *scenarios, const struct json *preflight);
