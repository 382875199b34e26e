/* escape: text made safe for XML and HTML, between tags and in attributes with double quotes. */
#pragma once

#include "agent/base/buf.h"

/* XML 1.0 has no place for most control characters, nor for bytes that are no UTF-8, and a page no
 * better one than a terminal for what turns text around: all of that is spelled out (printable.h).
 */
void escape_put(struct buf *out, const char *s);
