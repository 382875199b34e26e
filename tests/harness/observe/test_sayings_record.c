/* What agents have printed of the job, at each bound: lines that begin so, are of another, are too long or too many, in
 * a file that is read in pieces and may fail; each record is on record. */
#include "tests/harness/observe/noted.h"

#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/observe/sayings.h"

#include <unistd.h>

static struct { struct buf text; } world;

static int64_t played_now(void) {
    return 9;
}

static ssize_t played_pread(int fd, void *data, size_t size, off_t from) {
    size_t n = world.text.len - (size_t)from;
    if (draw(8) == 0) {
        errno = EINTR;
        return -1;
    }
    if (fails("read %d: %zu from %lld", fd, size, (long long)from))
        return -1;
    n = n < size ? n : size;
    n = n > 3000 && draw(2) ? 3000 : n;
    memcpy(data, world.text.data + from, n);
    return (ssize_t)n;
}

#define pread              played_pread
#define clock_monotonic_ns played_now
#include "harness/observe/sayings.c"

static const char *const begins[] = {"rankrun: round ",
                                     "rankrun: first failure of round ",
                                     "rankrun: run \"",
                                     "{\"time\":\"2",
                                     "{\"name\":\"torchelastic.worker.status.",
                                     "rankrun: roun d",
                                     "rankrun: run x",
                                     "{\"time\":\"1",
                                     "{\"name\":\"torchelastic.worker.statu.",
                                     "step 3"};
static const char *const before[] = {"", "", "", "[n1] ", "] ", " ", "]", "a line that", "[x]  "};

static void put_line(int len) {
    buf_printf(&world.text, "%s%s", before[draw(9)], begins[draw(10)]);
    for (int i = 0; i < len; i++)
        buf_putc(&world.text, (char)('a' + i % 26));
    if (draw(20) == 0)
        buf_putc(&world.text, '\0');
    buf_puts(&world.text, draw(20) ? "\n" : "\r\n");
}

static void hear(uint64_t seed) {
    struct err err = {0};
    memset(&world, 0, sizeof(world));
    noted_begin(NULL);
    for (int n = draw(30); n > 0; n--)
        put_line(draw(6) ? draw(40) : LINE_MAX_BYTES - 40 + draw(60));
    if (draw(2))
        buf_puts(&world.text, "rankrun: round 7");
    buf_str(&world.text);
    int code = sayings_record(&noted.rec, "n5", 3, &err);
    note("heard: %d %s", code, err.msg);
    noted_end();
    buf_fini(&world.text);
}

static const struct play plays[] = {
    {"tests/harness/observe/record/sayings.txt", hear, 40, true, {EIO, EBADF}}};

static void test_what_is_heard_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

/* As many as are recorded, and as many bytes as are read, and one more. */
static void test_so_much_is_heard_and_no_more(void **state) {
    (void)state;
    for (int more = -1; more <= 1; more++)
        for (int bytes = 0; bytes <= 1; bytes++) {
            struct err err = {0};
            memset(&world, 0, sizeof(world));
            buf_clear(&played.said);
            played.calls = played.fails_at = 0;
            noted_begin(NULL);
            for (int i = 0; i < SAID_MAX + more && !bytes; i++)
                buf_puts(&world.text, "rankrun: round 1\n");
            while (bytes && world.text.len < (size_t)(TEXT_MAX + more))
                buf_put(&world.text, "0123456789abcdef",
                        bytes && world.text.len + 16 > (size_t)(TEXT_MAX + more)
                            ? (size_t)(TEXT_MAX + more) - world.text.len
                            : 16);
            assert_int_equal(sayings_record(&noted.rec, "n5", 3, &err), 0);
            const struct record *r = noted.history.records[noted.history.n - 1];
            assert_int_equal(json_get_bool(r->fields, "whole", more > 0), more <= 0);
            assert_int_equal(record_i64(r, "said", -1), bytes ? 0 : SAID_MAX + more);
            assert_int_equal(noted.history.n - 1, bytes      ? 0
                                                  : more > 0 ? SAID_MAX
                                                             : SAID_MAX + more);
            noted_end();
            buf_fini(&world.text);
        }
    buf_fini(&played.said);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_heard_is_on_record),
        cmocka_unit_test(test_so_much_is_heard_and_no_more),
    };
    return played_main(argc, argv, plays, tests);
}
