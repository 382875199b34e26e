/* Ranks that a job starts by itself, and lines that somebody waits for: what processes were started with, what they
 * claim and print is drawn; what is read of it, and what is recorded, is on record. */
#include "tests/harness/observe/noted.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/worker_env.h"
#include "harness/observe/log_matcher.h"
#include "harness/observe/spawned.h"
#include "harness/scenario/pattern.h"

static const char *const numbers[] = {"0", "1", "2", "2147483647", "2147483648", "-1", "1x", ""};
static const char *const names[] = {
    "RANK",
    "WORLD_SIZE",
    "RANKRUN_X",
    "TORCHELASTIC_RUN_ID",
    "HOME",
    "MASTER_ADDR",
    "LOCAL_RANK",
    "XRANK",
    "RANKRUN_",
    "RANKRUN_of_a_name_that_has_sixty_three_letters_and_no_more_of_them",
    "RANKRUN_of_a_name_that_has_sixty_four_letters_and_no_more_of_them_"};

static int played_read(const char *path, size_t max, struct buf *out, struct err *err) {
    assert_null(err);
    if (fails("read %s, %zu", path, max))
        return -errno;
    if (str_ends(path, "cmdline")) {
        buf_put(out, "python3\0-u", 10);
        return 0;
    }
    for (int n = draw(12), i = 0; i < n; i++) {
        buf_printf(out, "%s%s", names[draw(3) ? draw(2) : draw(11)], draw(20) ? "=" : "");
        if (draw(8) == 0)
            buf_printf(out, "%0*d", 699 + draw(3), 5);
        else
            buf_puts(out, numbers[draw(8)]);
        if (i + 1 < n || draw(2))
            buf_putc(out, '\0');
    }
    return 0;
}

static int64_t played_now(void) {
    return 77;
}

#define file_read          played_read
#define clock_monotonic_ns played_now
#include "harness/observe/spawned.c"
#include "harness/observe/log_matcher.c"

static const struct json *claim(struct arena *a) {
    BUF_FINI struct buf text = {0};
    buf_puts(&text, "{");
    for (int n = draw(8), i = 0; i < n; i++)
        buf_printf(&text, draw(5) ? "%s\"%s\":\"%s\"" : "%s\"%s\":7%s", i ? "," : "",
                   names[draw(3) ? draw(2) : draw(11)], draw(5) ? numbers[draw(3)] : "");
    buf_puts(&text, "}");
    return json_parse(a, buf_str(&text), text.len, NULL);
}

static void spawn(void) {
    ARENA_FINI struct arena a = {0};
    BUF_FINI struct buf told = {0};
    struct json_writer w = {.out = &told};
    struct spawned s;
    int rank = -7, size = -7;
    const struct json *env = draw(2) ? claim(&a) : NULL;
    bool is = spawned_read(&s, 55);
    bool claimed = spawned_claimed(env, &rank, &size);
    note("read %d: %d of %d; claimed %d: %d of %d", is, s.rank, s.world_size, claimed, rank, size);
    json_object(&w, NULL);
    spawned_put(&w, &s, 55, env);
    json_end_object(&w);
    note("> %s", buf_str(&told));
    if (is)
        spawned_fini(&s);
}

static void match(void) {
    static const struct log_expect logs[] = {{.pattern = "^error"},
                                             {.pattern = "step (\\d+)"},
                                             {.pattern = "^error"},
                                             {.pattern = "x$"}};
    static const char *const lines[] = {"error in step 7", "step x", "no error", "", "an x",
                                        "step 9"};
    struct expect x = {.logs = logs, .logs_n = (size_t)draw(5)};
    struct log_matcher *m = log_matcher_new(&noted.rec, &x);
    BUF_FINI struct buf longest = {0};
    note("matches %d", m != NULL);
    for (int n = draw(8); n > 0; n--)
        log_matcher_heard(m, draw(2) ? "n0" : "n1", draw(3) ? 100 : 0, lines[draw(6)]);
    buf_printf(&longest, "error %0*d", LINE_SHOWN - 7 + draw(3), 5);
    log_matcher_heard(m, "n2", 5, buf_str(&longest));
    log_matcher_record(&noted.rec, "n3", draw(2), "id", "e1", "a line");
    log_matcher_end(m);
    assert_null(log_matcher_free(m));
}

static void observe(uint64_t seed) {
    noted_begin(NULL);
    for (int i = 0; i < 12; i++) {
        spawn();
        match();
    }
    noted_end();
}

static const struct play plays[] = {
    {"tests/harness/observe/record/spawned.txt", observe, 16, true, {ESRCH, EACCES}}};

static void test_what_is_read_of_ranks_and_lines_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_read_of_ranks_and_lines_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
