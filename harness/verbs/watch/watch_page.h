/* watch_page: the page of `watch --serve`, whole: nothing is fetched from elsewhere. */
#pragma once

#include "base/buf.h"

/* The nonce is that of the Content-Security-Policy under which its style and script may run. */
void watch_page(const char *nonce, struct buf *out);
