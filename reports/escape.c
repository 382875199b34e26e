#include "reports/escape.h"

#include "agent/base/printable.h"

#include <string.h>

void escape_put(struct buf *out, const char *s) {
    static const char special[] = "&<>\"\n";
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#10;"};
    char shown[PRINTABLE_MAX];
    for (size_t n = strlen(s), taken; n; s += taken, n -= taken) {
        const char *at = strchr(special, *s);
        taken = printable_next(s, n, PRINTABLE_LINES, shown);
        buf_puts(out, at ? entities[at - special] : shown);
    }
}
