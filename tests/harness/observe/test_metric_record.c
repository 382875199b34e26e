/* Pages of metrics that are put together of pieces, well and badly, and what is wanted of them: what is read, or the
 * whole sentence why not, is on record. */
#include "tests/played.h"

#include "base/str.h"
#include "harness/observe/metric.h"

#define one(v, n) ((v)[draw(n)])

static const char *const names[] = {"up", "up", "u:p_9", "UP", "up2", "2up", ""};
static const char *const keys[] = {"job", "job", "node", "x", "9", ""};
static const char *const values[] = {"a", "b", "a\\\"b", "\\\\", "", "a\nb", "} 3", "\\"};
static const char *const blanks[] = {"", "", "", " ", "\t", "  "};
static const char *const numbers[] = {
    "1",
    "2.5e3",
    "-0",
    "+Inf",
    "NaN",
    "nan(7)",
    "0x1p3",
    "12x",
    "",
    "x",
    "1e400",
    "0000000000000000000000000000000000000000000000000000000000007",
    "00000000000000000000000000000000000000000000000000000000000070",
    "000000000000000000000000000000000000000000000000000000000000700"};

static void put_series(struct buf *out, int labels) {
    buf_printf(out, "%s%s%s", one(blanks, 6), one(names, 7), one(blanks, 6));
    if (!labels && draw(3))
        return;
    buf_puts(out, "{");
    for (int i = 0; i < labels; i++)
        buf_printf(out, "%s%s%s%s%s%s%s%s%s%s", i && draw(20) ? "," : "", one(blanks, 6),
                   labels > 5 ? "l" : one(keys, 6), one(blanks, 6), draw(30) ? "=" : "",
                   one(blanks, 6), draw(30) ? "\"" : "", labels > 5 ? "v" : one(values, 8),
                   draw(30) ? "\"" : "", one(blanks, 6));
    buf_puts(out, draw(6) ? "}" : draw(2) ? ",}" : "");
}

static void read_some(uint64_t seed) {
    for (int i = 0; i < 60; i++) {
        BUF_FINI struct buf page = {0}, wanted = {0};
        char value[64] = "untouched";
        struct err err = {0};
        for (int n = draw(6); n > 0; n--) {
            if (draw(6) == 0)
                buf_puts(&page, draw(2) ? "# up 7" : "  #");
            else
                put_series(&page, draw(20) ? draw(4) : 31 + draw(3));
            buf_printf(&page, "%s%s%s%s", draw(9) ? " " : "", one(numbers, 14),
                       draw(4) ? "" : " 1395066363000", draw(4) ? "\n" : "\r\n");
        }
        put_series(&wanted, draw(20) ? draw(3) : 31 + draw(3));
        if (draw(15) == 0)
            buf_puts(&wanted, " more");
        int code = metric_read(buf_str(&page), buf_str(&wanted), value, &err);
        note("%s\nof %s: %d %s, %s", buf_str(&wanted), buf_str(&page), code, value, err.msg);
    }
}

static const struct play plays[] = {
    {"tests/harness/observe/record/metric.txt", read_some, 40, false, {0, 0}}};

static void test_what_is_read_of_pages_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_read_of_pages_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
