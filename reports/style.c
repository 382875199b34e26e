/* What the terminal and the environment say about colour, width and Unicode. */
#include "reports/report.h"

#include "reports/headway.h"

#include "base/str.h"
#include "base/sys/printing.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { WIDTH_MIN = 20 };

static bool is_set(const char *name) {
    const char *value = getenv(name);
    return value && *value;
}

/* The first of the three that is set decides, as for the C library. */
static bool locale_is_utf8(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (!is_set(names[i]))
            continue;
        const char *at = strchr(getenv(names[i]), '.');
        return at && (strncasecmp(at, ".utf-8", 6) == 0 || strncasecmp(at, ".utf8", 5) == 0);
    }
    return false;
}

struct report_style report_style_of(FILE *out) {
    struct report_style style = {.unicode = locale_is_utf8()};
    if (!printing_at_terminal(out))
        return style;
    int columns = headway_columns(out);
    style.width = columns < WIDTH_MIN ? WIDTH_MIN : columns;
    style.still = !headway_rewrites(out);
    style.color = !is_set("NO_COLOR") && !str_eq(getenv("TERM"), "dumb");
    return style;
}
