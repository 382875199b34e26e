/* Lines of the tee against a plain reference, for every split of what is read into pieces. */
#include "agent/workers/tee.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

static char *needles[] = {"loss", "NaN"};

static struct followed followed(void) {
    return (struct followed){.filtered = 0, .header = "[a]:", .needles = {.v = needles, .n = 2}};
}

/* One byte after the other, as the header of tee says. */
static void refer(const char *data, size_t n, struct buf *shown, struct buf *filtered) {
    BUF_FINI struct buf line = {0};
    bool after_return = false;
    for (size_t i = 0; i < n; i++) {
        bool ends = data[i] == '\n' || data[i] == '\r';
        bool belongs = data[i] == '\n' && after_return;
        after_return = data[i] == '\r';
        if (!ends)
            buf_putc(&line, data[i]);
        if (belongs || (!ends && line.len < LINE_MAX_BYTES))
            continue;
        buf_puts(shown, "[a]:");
        buf_put(shown, line.data, line.len);
        buf_putc(shown, '\n');
        if (strstr(buf_str(&line), "loss") || strstr(buf_str(&line), "NaN")) {
            buf_put(filtered, line.data, line.len);
            buf_putc(filtered, '\n');
        }
        buf_clear(&line);
    }
}

/* In three pieces, cut at i and k. */
static void assert_split(const char *data, size_t n, size_t i, size_t k, const struct buf *shown,
                         const struct buf *filtered) {
    struct followed f = followed();
    BUF_FINI struct buf is = {0}, is_filtered = {0};
    take(&f, data, i, &is, &is_filtered);
    take(&f, data + i, k - i, &is, &is_filtered);
    take(&f, data + k, n - k, &is, &is_filtered);
    if (is.len != shown->len || memcmp(is.data, shown->data, is.len) != 0)
        fail_msg("cut at %zu and %zu: \"%s\"; expected \"%s\"", i, k, buf_str(&is), buf_str(shown));
    assert_string_equal(buf_str(&is_filtered), buf_str(filtered));
    assert_true(f.line.len < LINE_MAX_BYTES);
    buf_fini(&f.line);
}

static void test_lines_are_the_same_wherever_what_is_read_is_cut(void **state) {
    (void)state;
    static const char text[] = "one\ntwo loss\r\n\r\n\n\rNaN\r\rbar 10%\rbar 20%\r\nlos\nsNa\nN\n"
                               "a loss of NaN\n\n\nends";
    size_t n = strlen(text);
    BUF_FINI struct buf shown = {0}, filtered = {0};
    refer(text, n, &shown, &filtered);
    for (size_t i = 0; i <= n; i++)
        for (size_t k = i; k <= n; k++)
            assert_split(text, n, i, k, &shown, &filtered);
}

/* At the bound, one below and one above, with what may follow there. */
static void test_a_line_is_cut_exactly_where_its_room_ends(void **state) {
    (void)state;
    static const char *const tails[] = {"", "\n", "\r\n", "\n\n", "loss\n", "\rx\n"};
    static char text[3 * LINE_MAX_BYTES];
    for (int more = -2; more <= 2; more++)
        for (size_t t = 0; t < sizeof(tails) / sizeof(*tails); t++) {
            size_t at = (size_t)(LINE_MAX_BYTES + more);
            BUF_FINI struct buf shown = {0}, filtered = {0};
            memset(text, 'x', at);
            memcpy(text + at - 6, "loss", 4);
            strcpy(text + at, tails[t]);
            size_t n = at + strlen(tails[t]);
            refer(text, n, &shown, &filtered);
            for (size_t i = at - 5; i <= n; i++)
                assert_split(text, n, i, n, &shown, &filtered);
        }
}

static void test_a_line_that_goes_on_for_long_is_many(void **state) {
    (void)state;
    static char text[3 * LINE_MAX_BYTES + 5];
    BUF_FINI struct buf shown = {0}, filtered = {0};
    memset(text, 'y', sizeof(text));
    refer(text, sizeof(text), &shown, &filtered);
    for (size_t i = 0; i <= sizeof(text); i += 4096)
        assert_split(text, sizeof(text), i, sizeof(text), &shown, &filtered);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_are_the_same_wherever_what_is_read_is_cut),
        cmocka_unit_test(test_a_line_is_cut_exactly_where_its_room_ends),
        cmocka_unit_test(test_a_line_that_goes_on_for_long_is_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
