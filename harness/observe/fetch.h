/* fetch: what a web server answers, by libcurl.
 *
 * Blocking: for a process that does nothing else (rankquake ask). No proxy, no redirects. */
#pragma once

#include "agent/base/buf.h"
#include "agent/base/err.h"

#include <stddef.h>

enum { FETCH_BYTES_MAX = 16 << 20 };

/* names: "NAME=ADDRESS" each, hosts that no resolver knows. token: shown as `Authorization:
 * Bearer`; NULL: none. The body of an answer with a status of 2xx goes to ret. 0, or negative with
 * a sentence: -ENOENT there is no libcurl, -EPROTO another status, -EMSGSIZE a longer body than
 * FETCH_BYTES_MAX, -EIO there was no answer. err is needed. */
int fetch_url(const char *url, const char *token, const char *const *names, size_t names_n,
              struct buf *ret, struct err *err);
