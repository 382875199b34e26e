/* History: what is written can be read back, and what cannot be read is named by file and line. */
#include "harness/history/history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char first[] = "{\"seq\":1,\"t\":5,\"source\":\"harness\",\"kind\":\"run\",\"v\":1}\n";

static char path[128];

static int make_path(void **state) {
    (void)state;
    const char *dir = getenv("TMPDIR");
    snprintf(path, sizeof(path), "%s/rq-history-XXXXXX", dir ? dir : "/tmp");
    int fd = mkstemp(path);
    if (fd >= 0)
        close(fd);
    return fd < 0;
}

static int remove_path(void **state) {
    (void)state;
    return unlink(path);
}

static void write_file(const char *a, const char *b) {
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fprintf(out, "%s%s", a, b);
    fclose(out);
}

static void put_run(struct history *h) {
    json_put_i64(history_begin(h, 5, SOURCE_HARNESS, "run"), "v", 1);
    history_end(h);
}

static void test_what_is_written_is_read_back_the_same(void **state) {
    (void)state;
    struct history h, again;
    struct err err = {0};
    assert_int_equal(history_create(&h, path, &err), 0);
    put_run(&h);
    struct json_writer *w = history_begin(&h, 77, SOURCE_KERNEL, "worker-exit");
    json_put_string(w, "node", "n1");
    json_put_i64(w, "pid", 4711);
    json_put_i64(w, "signal", 9);
    const struct record *live = history_end(&h);
    assert_int_equal(live->seq, 2);
    assert_string_equal(live->node, "n1");
    assert_int_equal(history_load(&again, path, &err), 0);
    assert_int_equal(again.n, 2);
    const struct record *r = again.records[1];
    assert_int_equal(r->seq, 2);
    assert_int_equal(r->t_ns, 77);
    assert_int_equal(r->source, SOURCE_KERNEL);
    assert_true(record_is(r, "worker-exit"));
    assert_int_equal(r->pid, 4711);
    assert_int_equal(record_i64(r, "signal", 0), 9);
    assert_false(again.torn);
    history_fini(&again);
    history_fini(&h);
}

static void test_a_history_without_a_file_is_kept_in_memory(void **state) {
    (void)state;
    struct history h;
    assert_int_equal(history_create(&h, NULL, NULL), 0);
    put_run(&h);
    assert_ptr_equal(history_newest(&h, SOURCE_HARNESS, "run"), h.records[0]);
    assert_null(history_newest(&h, SOURCE_KERNEL, "run"));
    history_fini(&h);
}

static void test_a_last_line_that_was_cut_off_is_left_out(void **state) {
    (void)state;
    struct history h;
    write_file(first, "{\"seq\":2,\"t\":6,\"sour");
    assert_int_equal(history_load(&h, path, NULL), 0);
    assert_int_equal(h.n, 1);
    assert_true(h.torn);
    history_fini(&h);
}

static void test_a_bad_line_is_named_by_its_number(void **state) {
    (void)state;
    static const struct {
        const char *line, *message;
    } bad[] = {
        {"{\"seq\":2,\n", ":2: JSON: "},
        {"[]\n", ":2: a record is a JSON object"},
        {"\n", ":2: JSON: "},
        {"{\"seq\":1,\"t\":6,\"source\":\"job\",\"kind\":\"x\"}\n", ":2: \"seq\" must be"},
        {"{\"seq\":2,\"source\":\"job\",\"kind\":\"x\"}\n", ":2: \"t\" must be"},
        {"{\"seq\":2,\"t\":6,\"source\":\"me\",\"kind\":\"x\"}\n", ":2: \"source\" must be one of"},
        {"{\"seq\":2,\"t\":6,\"source\":\"job\"}\n", ":2: \"kind\" is missing"},
        {"{\"seq\":2,\"t\":6,\"source\":\"job\",\"kind\":7}\n", ":2: \"kind\" is missing"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct history h;
        struct err err = {0};
        write_file(first, bad[i].line);
        assert_int_equal(history_load(&h, path, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, path));
        if (!strstr(err.msg, bad[i].message))
            fail_msg("expected \"%s\" in \"%s\"", bad[i].message, err.msg);
    }
}

static void test_what_a_kind_demands_is_looked_for(void **state) {
    (void)state;
    static const struct {
        const char *line, *message;
    } rows[] = {
        {"\"source\":\"kernel\",\"kind\":\"worker-exit\",\"node\":\"n0\",\"pid\":7}",
         "does not say how it came out"},
        {"\"source\":\"kernel\",\"kind\":\"worker-exit\",\"node\":\"n0\",\"pid\":7,\"code\":"
         "\"x\"}",
         "\"code\" of a worker-exit must be a whole number"},
        {"\"source\":\"kernel\",\"kind\":\"worker-exit\",\"node\":\"n0\",\"pid\":7,\"code\":1,"
         "\"code\":0}",
         "\"code\" is given twice"},
        {"\"source\":\"kernel\",\"kind\":\"leftovers\",\"node\":\"n0\",\"processes\":[]}",
         "must have \"ports\", a list"},
        {"\"source\":\"probe\",\"kind\":\"worker-start\",\"node\":\"n0\",\"pid\":7}",
         "must have \"env\", a map"},
        {"\"source\":\"harness\",\"kind\":\"health\",\"left\":0,\"complete\":true}",
         "\"left\" of a health must be a list"},
        /* An end of C's strings within a key hides nothing. */
        {"\"source\":\"kernel\",\"kind\":\"worker-exit\",\"node\":\"n0\",\"pid\":7,\"code\":1,"
         "\"code\\u0000x\":0}",
         "\"code\" is given twice"},
        /* Claims may be anything, and nobody knows what a new kind needs. */
        {"\"source\":\"job\",\"kind\":\"step\",\"step\":\"x\",\"step\":[]}", NULL},
        {"\"source\":\"kernel\",\"kind\":\"of-tomorrow\"}", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct history h;
        struct err err = {0};
        char line[300];
        snprintf(line, sizeof(line), "{\"seq\":2,\"t\":6,%s\n", rows[i].line);
        write_file(first, line);
        assert_int_equal(history_load(&h, path, &err), rows[i].message ? -EBADMSG : 0);
        if (rows[i].message && !strstr(err.msg, rows[i].message))
            fail_msg("expected \"%s\" in \"%s\"", rows[i].message, err.msg);
        history_fini(&h);
    }
}

static void test_a_record_that_is_left_out_is_missed(void **state) {
    (void)state;
    struct history h, part;
    write_file(first, "{\"seq\":5,\"t\":6,\"source\":\"job\",\"kind\":\"x\"}\n");
    assert_int_equal(history_load(&h, path, NULL), 0);
    assert_int_equal(h.missing, 3);
    assert_int_equal(h.gap, 1);
    history_filter(&part, &h, 1u << SOURCE_HARNESS);
    assert_int_equal(part.missing, 3);
    history_fini(&part);
    history_fini(&h);
}

static void test_what_does_not_fit_is_left_out_and_said(void **state) {
    (void)state;
    struct history h;
    FILE *out = fopen(path, "w");
    fputs(first, out);
    for (int i = 2; i < 2000; i++)
        fprintf(out, "{\"seq\":%d,\"t\":6,\"source\":\"job\",\"kind\":\"x\",\"i\":%d}\n", i, i);
    fclose(out);
    assert_int_equal(history_load_within(&h, path, 20000, NULL), 0);
    assert_true(h.too_long && h.n > 20 && h.n < 1000);
    assert_true(history_is_cut(&h));
    history_fini(&h);
}

/* The second record: what it is and how it begins, so many times the same, in which # is the
 * number, and how it ends. */
static int load_repeated(struct history *h, const char *what, const char *again, int times,
                         const char *end, struct err *err) {
    int before = (int)strcspn(again, "#");
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fprintf(out, "%s{\"seq\":2,\"t\":6,%s", first, what);
    for (int i = 0; i < times; i++)
        if (again[before])
            fprintf(out, "%.*s%d%s", before, again, i, again + before + 1);
        else
            fputs(again, out);
    fprintf(out, "%s\n", end);
    fclose(out);
    return history_load(h, path, err);
}

#define OF_JOB "\"source\":\"job\",\"kind\":\"x\",\"a\":"
#define OF_KERNEL                                                                                  \
    "\"source\":\"kernel\",\"kind\":\"worker-exit\",\"node\":\"n0\",\"pid\":7,\"code\":0"

static void test_a_line_nested_too_deeply_is_refused(void **state) {
    (void)state;
    struct history h;
    struct err err = {0};
    assert_int_equal(load_repeated(&h, OF_JOB, "[", 1000000, "", &err), -EBADMSG);
    assert_non_null(strstr(err.msg, ":2: JSON"));
}

static void test_a_text_of_megabytes_is_kept_whole(void **state) {
    (void)state;
    struct history h;
    assert_int_equal(load_repeated(&h, OF_JOB "\"", "0123456789", 300000, "\"}", NULL), 0);
    assert_int_equal(strlen(record_text(h.records[1], "a")), 3000000);
    history_fini(&h);
}

/* Evidence has few fields, so that each can be compared with each; a claim may have any number. */
static void test_evidence_of_very_many_fields_is_refused(void **state) {
    (void)state;
    struct history h;
    struct err err = {0};
    assert_int_equal(load_repeated(&h, OF_KERNEL, ",\"f#\":0", 200000, "}", &err), -EBADMSG);
    assert_non_null(strstr(err.msg, ":2: it has 200007 fields; no record has more than 64"));
    assert_int_equal(load_repeated(&h, OF_KERNEL, ",\"f#\":0", 57, "}", NULL), 0);
    history_fini(&h);
    assert_int_equal(load_repeated(&h, OF_JOB "0", ",\"f#\":0", 100000, "}", NULL), 0);
    assert_int_equal(h.records[1]->fields->length, 100001);
    history_fini(&h);
}

/* It is carried as it is, and text again wherever it is written. */
static void test_what_is_no_utf_8_is_written_as_text(void **state) {
    (void)state;
    struct history h;
    struct buf text = {0};
    struct json_writer w = {.out = &text};
    assert_int_equal(load_repeated(&h, OF_JOB "\"", "\377\376<", 1, "\"}", NULL), 0);
    record_put(h.records[1], &w);
    assert_non_null(strstr(buf_str(&text), "\"a\":\"\xef\xbf\xbd\xef\xbf\xbd<\"}"));
    buf_fini(&text);
    history_fini(&h);
}

/* A line that has no end is not read to its end. */
static void test_a_line_of_many_megabytes_is_refused(void **state) {
    (void)state;
    struct history h;
    struct err err = {0};
    FILE *out = fopen(path, "w");
    fputs(first, out);
    fputs("{\"seq\":2,\"x\":\"", out);
    for (int i = 0; i < 5 << 20; i++)
        fputc('x', out);
    fclose(out);
    assert_int_equal(history_load(&h, path, &err), -EBADMSG);
    assert_non_null(strstr(err.msg, ":2: the line is longer than 4 MB"));
}

/* Equal parts are kept once, and nothing is lost by it. */
static void test_a_record_is_written_as_it_was_read(void **state) {
    (void)state;
    static const char *const lines[] = {
        "{\"seq\":2,\"t\":6,\"source\":\"job\",\"kind\":\"step\",\"node\":\"n0\",\"pid\":7,"
        "\"step\":"
        "1,\"loss\":2.5,\"shards\":[0,1,[2,{}]],\"a\":{\"b\":[true,null,\"x\"]}}",
        "{\"seq\":3,\"t\":6,\"source\":\"job\",\"kind\":\"step\",\"node\":\"n0\",\"pid\":7,"
        "\"step\":"
        "2,\"loss\":2.5,\"shards\":[0,1,[2,{}]],\"a\":{\"b\":[false,null,\"x\"]}}",
    };
    struct history h;
    FILE *out = fopen(path, "w");
    fprintf(out, "%s%s\n%s\n", first, lines[0], lines[1]);
    fclose(out);
    assert_int_equal(history_load(&h, path, NULL), 0);
    for (size_t i = 0; i < 2; i++) {
        struct buf text = {0};
        struct json_writer w = {.out = &text};
        record_put(h.records[i + 1], &w);
        assert_string_equal(buf_str(&text), lines[i]);
        buf_fini(&text);
    }
    history_fini(&h);
}

static void test_what_is_no_history_is_refused(void **state) {
    (void)state;
    struct history h;
    struct err err = {0};
    write_file("", "");
    assert_int_equal(history_load(&h, path, &err), -EBADMSG);
    assert_non_null(strstr(err.msg, "this is no history"));
    write_file("{\"seq\":1,\"t\":5,\"source\":\"harness\",\"kind\":\"run\",\"v\":2}\n", "");
    assert_int_equal(history_load(&h, path, &err), -EBADMSG);
    assert_non_null(strstr(err.msg, "version 2"));
    assert_int_equal(history_load(&h, "/nonexistent/history.jsonl", &err), -ENOENT);
    assert_non_null(strstr(err.msg, "/nonexistent/history.jsonl"));
}

static void test_a_message_nested_too_deeply_is_kept_without_its_fields(void **state) {
    (void)state;
    struct history h;
    assert_int_equal(history_create(&h, NULL, NULL), 0);
    struct json_writer *w = history_begin(&h, 5, SOURCE_JOB, "other");
    for (int i = 0; i < 100; i++)
        json_array(w, i ? NULL : "deep");
    for (int i = 0; i < 100; i++)
        json_end_array(w);
    const struct record *r = history_end(&h);
    assert_true(record_is(r, "other"));
    assert_null(record_get(r, "deep"));
    history_fini(&h);
}

static void test_a_filter_keeps_the_named_sources_only(void **state) {
    (void)state;
    struct history h, part;
    assert_int_equal(history_create(&h, NULL, NULL), 0);
    for (int s = 0; s < SOURCE_N; s++) {
        history_begin(&h, s, (enum source)s, "x");
        history_end(&h);
    }
    history_filter(&part, &h, 1u << SOURCE_KERNEL | 1u << SOURCE_DISK);
    assert_int_equal(part.n, 2);
    assert_int_equal(part.records[0]->source, SOURCE_KERNEL);
    assert_int_equal(part.records[1]->source, SOURCE_DISK);
    history_fini(&part);
    history_fini(&h);
}

static void test_a_hundred_thousand_lines_are_no_trouble(void **state) {
    (void)state;
    struct history h, again;
    assert_int_equal(history_create(&h, path, NULL), 0);
    put_run(&h);
    for (int i = 0; i < 100000; i++) {
        json_put_i64(history_begin(&h, i, SOURCE_JOB, "step"), "step", i);
        history_end(&h);
    }
    history_fini(&h);
    assert_int_equal(history_load(&again, path, NULL), 0);
    assert_int_equal(again.n, 100001);
    history_fini(&again);
}

static void test_a_full_disk_is_remembered(void **state) {
    (void)state;
    struct history h;
    if (history_create(&h, "/dev/full", NULL) < 0)
        skip();
    put_run(&h);
    assert_int_equal(h.write_error, ENOSPC);
    history_fini(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_is_read_back_the_same),
        cmocka_unit_test(test_a_history_without_a_file_is_kept_in_memory),
        cmocka_unit_test(test_a_last_line_that_was_cut_off_is_left_out),
        cmocka_unit_test(test_a_bad_line_is_named_by_its_number),
        cmocka_unit_test(test_what_a_kind_demands_is_looked_for),
        cmocka_unit_test(test_a_record_that_is_left_out_is_missed),
        cmocka_unit_test(test_what_does_not_fit_is_left_out_and_said),
        cmocka_unit_test(test_a_line_nested_too_deeply_is_refused),
        cmocka_unit_test(test_a_text_of_megabytes_is_kept_whole),
        cmocka_unit_test(test_evidence_of_very_many_fields_is_refused),
        cmocka_unit_test(test_what_is_no_utf_8_is_written_as_text),
        cmocka_unit_test(test_a_line_of_many_megabytes_is_refused),
        cmocka_unit_test(test_a_record_is_written_as_it_was_read),
        cmocka_unit_test(test_what_is_no_history_is_refused),
        cmocka_unit_test(test_a_message_nested_too_deeply_is_kept_without_its_fields),
        cmocka_unit_test(test_a_filter_keeps_the_named_sources_only),
        cmocka_unit_test(test_a_hundred_thousand_lines_are_no_trouble),
        cmocka_unit_test(test_a_full_disk_is_remembered),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
