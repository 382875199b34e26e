#include "faults/mechanism/disk_record.h"

#include "base/mem.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct stage {
    char folder[64];
    char *path, *bytes;
    struct arena arena;
    struct err err;
};

static int begin(void **state) {
    struct stage *s = mem_new(struct stage);
    strcpy(s->folder, "/tmp/rq_record_XXXXXX");
    assert_int_equal(file_make_temp_dir(s->folder, &s->err), 0);
    s->path = mem_printf("%s/record", s->folder);
    s->bytes = mem_printf("%s/record.bytes", s->folder);
    *state = s;
    return 0;
}

static int end(void **state) {
    struct stage *s = *state;
    file_remove_tree(s->folder, NULL);
    arena_fini(&s->arena);
    free(s->path);
    free(s->bytes);
    free(s);
    return 0;
}

/* ---- what is written is read ---- */

static const unsigned char some[] = "some\0bytes\n{";
#define NONE .rank = -1, .node = ""
static const struct disk_operation all[] = {
    {DISK_HAD, .directory = true, .file = 1, .path = "", .mode = 0755, NONE},
    {DISK_HAD, .file = 2, .path = "old", .mode = 0640, .size = 12, .bytes = some, NONE},
    {DISK_HAD, .file = 2, .path = "old too", .mode = 0640, NONE},
    {DISK_HAD, .file = 3, .path = "latest", .to = "../elsewhere", NONE},
    {DISK_CREATE, .file = 4, .path = "a/\"\\\n\x1b[1m", .mode = 0600, .t_ns = 77, .pid = 5,
     .rank = 0, .node = "n0"},
    {DISK_MKDIR, .file = 5, .path = "\xff\xfe/no UTF-8", .mode = 02775, NONE},
    {DISK_SYMLINK, .file = 6, .path = "\xe2\x80\xae", .to = "", NONE},
    {DISK_LINK, .file = 4, .path = "a", .to = "\xc3", NONE},
    {DISK_RENAME, .directory = true, .file = 5, .path = "a", .to = "b", NONE},
    {DISK_EXCHANGE, .file = 5, .path = "a", .to = "b", NONE},
    {DISK_UNLINK, .file = 4, .path = "a", NONE},
    {DISK_RMDIR, .file = 5, .path = "a", NONE},
    {DISK_WRITE, .file = 4, .path = "a", .offset = 1ULL << 40, .size = 13, .bytes = some,
     .t_ns = INT64_MAX, .pid = 4194304, .rank = 1000, .node = "a node"},
    {DISK_WRITE, .file = 4, .path = "a", .size = 0, NONE},
    {DISK_TRUNCATE, .file = 4, .path = "a", .offset = 3, NONE},
    {DISK_ALLOCATE, .file = 4, .path = "a", .offset = 3, .size = 9, .mode = 3, NONE},
    {DISK_MODE, .file = 4, .path = "a", .mode = 0644, NONE},
    {DISK_SYNC, .directory = true, .file = 1, .path = "", NONE},
    {DISK_SYNC_DATA, .file = 4, .path = "a", NONE},
    {DISK_SYNC_ALL, .path = "", NONE},
    {DISK_SYNC_RANGE, .file = 4, .path = "a", .offset = 3, .size = 9, NONE},
    {DISK_OPEN, .file = 4, .path = "a", NONE},
    {DISK_CLOSE, .file = 4, .path = "a", NONE},
    {DISK_MARK, .path = "../checkpoint-write 20", NONE},
};
enum { ALL = sizeof(all) / sizeof(*all) };

static void record(struct stage *s, size_t n, uint64_t max) {
    struct disk_recorder *r;
    assert_int_equal(disk_recorder_open(&r, s->path, max, &s->err), 0);
    for (size_t i = 0; i < n; i++)
        disk_recorder_add(r, &all[i]);
    assert_false(disk_recorder_full(r));
    assert_int_equal(disk_recorder_close(r, &s->err), 0);
}

static void assert_same_text(const char *a, const char *b) {
    assert_int_equal(!a, !b);
    if (a)
        assert_string_equal(a, b);
}

static void assert_same(const struct disk_operation *a, const struct disk_operation *b) {
    assert_int_equal(a->deed, b->deed);
    assert_int_equal(a->directory, b->directory);
    assert_int_equal(a->file, b->file);
    assert_same_text(a->path, b->path);
    assert_same_text(a->to, b->to);
    assert_int_equal(a->mode, b->mode);
    assert_int_equal(a->offset, b->offset);
    assert_int_equal(a->size, b->size);
    if (b->bytes)
        assert_memory_equal(a->bytes, b->bytes, b->size);
    assert_int_equal(a->t_ns, b->t_ns);
    assert_int_equal(a->pid, b->pid);
    assert_int_equal(a->rank, b->rank);
    assert_same_text(a->node, b->node);
}

static void test_what_was_recorded_is_read_back(void **state) {
    struct stage *s = *state;
    struct disk_record got;
    record(s, ALL, 0);
    assert_int_equal(disk_record_load(s->path, &s->arena, &got, &s->err), 0);
    assert_int_equal(got.n, ALL);
    assert_int_equal(got.bytes, 13);
    assert_int_equal(got.full, 0);
    for (size_t i = 0; i < ALL; i++)
        assert_same(&got.v[i], &all[i]);
}

static void test_each_deed_has_a_row_here(void **state) {
    (void)state;
    for (int d = 0; d < DISK_DEEDS_N; d++) {
        bool found = false;
        for (size_t i = 0; i < ALL; i++)
            found = found || all[i].deed == (enum disk_deed)d;
        assert_true(found);
    }
}

static void test_a_record_of_nothing_is_empty(void **state) {
    struct stage *s = *state;
    struct disk_record got = {.n = 9};
    record(s, 0, 0);
    assert_int_equal(disk_record_load(s->path, &s->arena, &got, &s->err), 0);
    assert_int_equal(got.n, 0);
}

static void test_a_record_takes_the_place_of_an_older_one(void **state) {
    struct stage *s = *state;
    struct disk_record got;
    record(s, ALL, 0);
    record(s, 2, 0);
    assert_int_equal(disk_record_load(s->path, &s->arena, &got, &s->err), 0);
    assert_int_equal(got.n, 2);
    assert_same(&got.v[1], &all[1]);
}

static void test_a_last_line_without_its_end_is_not_there_yet(void **state) {
    struct stage *s = *state;
    struct disk_record got;
    BUF_FINI struct buf text = {0};
    record(s, 5, 0);
    assert_int_equal(file_read(s->path, 1 << 20, &text, &s->err), 0);
    for (size_t cut = 1; cut <= 10; cut++) {
        assert_int_equal(truncate(s->path, (off_t)(text.len - cut)), 0);
        assert_int_equal(disk_record_load(s->path, &s->arena, &got, &s->err), 0);
        assert_int_equal(got.n, 4);
    }
}

static void test_it_can_be_read_while_it_is_written(void **state) {
    struct stage *s = *state;
    struct disk_recorder *r;
    struct disk_record got;
    assert_int_equal(disk_recorder_open(&r, s->path, 0, &s->err), 0);
    for (size_t i = 0; i < ALL; i++) {
        disk_recorder_add(r, &all[i]);
        assert_int_equal(disk_record_load(s->path, &s->arena, &got, &s->err), 0);
        assert_int_equal(got.n, i + 1);
    }
    disk_recorder_close(r, NULL);
}

/* ---- bounds ---- */

static void test_past_its_bound_nothing_more_is_recorded_and_it_says_so(void **state) {
    struct stage *s = *state;
    struct disk_recorder *r;
    struct disk_record got;
    assert_int_equal(disk_recorder_open(&r, s->path, 24, &s->err), 0);
    disk_recorder_add(r, &all[1]); /* 12 bytes each */
    disk_recorder_add(r, &all[1]);
    assert_false(disk_recorder_full(r));
    disk_recorder_add(r, &all[12]);
    assert_true(disk_recorder_full(r));
    disk_recorder_add(r, &all[16]);
    assert_int_equal(disk_recorder_close(r, &s->err), -EFBIG);
    assert_non_null(strstr(s->err.msg, "more than 24 bytes"));
    assert_int_equal(disk_record_load(s->path, &s->arena, &got, &s->err), 0);
    assert_int_equal(got.n, 2);
    assert_int_equal(got.full, 24);
}

static void test_a_place_where_no_record_can_be_made_is_named(void **state) {
    struct stage *s = *state;
    struct disk_recorder *r = NULL;
    assert_int_equal(disk_recorder_open(&r, "/proc/none/record", 0, &s->err), -ENOENT);
    assert_non_null(strstr(s->err.msg, "/proc/none/record.bytes"));
    assert_null(r);
    assert_int_equal(disk_recorder_close(NULL, &s->err), 0);
}

static void test_a_disk_that_is_full_ends_the_record(void **state) {
    struct stage *s = *state;
    struct disk_recorder *r;
    assert_int_equal(symlink("/dev/full", s->bytes), 0);
    assert_int_equal(disk_recorder_open(&r, s->path, 0, &s->err), 0);
    disk_recorder_add(r, &all[1]);
    assert_true(disk_recorder_full(r));
    assert_int_equal(disk_recorder_close(r, &s->err), -ENOSPC);
    assert_non_null(strstr(s->err.msg, s->path));
}

/* ---- records that nobody of us has written ---- */

static const struct {
    const char *line, *says;
} bad[] = {
    {"{", "line 2"},
    {"[]", "line 2: it is no object"},
    {"{}", "\"\" is no deed"},
    {"{\"deed\":\"scribble\"}", "\"scribble\" is no deed"},
    {"{\"deed\":7}", "is no deed"},
    {"{\"deed\":\"unlink\",\"path\":\"../a\"}", "its path leads out"},
    {"{\"deed\":\"unlink\",\"path\":\"a/../../b\"}", "its path leads out"},
    {"{\"deed\":\"unlink\",\"path\":\"/etc/passwd\"}", "its path leads out"},
    {"{\"deed\":\"unlink\",\"path\":\"a/./b\"}", "its path leads out"},
    {"{\"deed\":\"unlink\",\"path\":\"a//b\"}", "its path leads out"},
    {"{\"deed\":\"unlink\",\"path\":\"a/\"}", "its path leads out"},
    {"{\"deed\":\"unlink\",\"path64\":\"Li4=\"}", "its path leads out"},
    {"{\"deed\":\"unlink\",\"path64\":\"YQBi\"}", "its path is no text"},
    {"{\"deed\":\"unlink\",\"path64\":\"!\"}", "its path is no text"},
    {"{\"deed\":\"unlink\",\"path\":\"a\\u0000b\"}", ""},
    {"{\"deed\":\"unlink\",\"path\":7}", "its path is no text"},
    {"{\"deed\":\"rename\",\"path\":\"a\"}", "its \"to\" is no text"},
    {"{\"deed\":\"rename\",\"path\":\"a\",\"to\":\"../b\"}", "its \"to\" leads out"},
    {"{\"deed\":\"exchange\",\"path\":\"a\",\"to\":\"/b\"}", "its \"to\" leads out"},
    {"{\"deed\":\"link\",\"path\":\"a\",\"to\":\"..\"}", "its \"to\" leads out"},
    {"{\"deed\":\"symlink\",\"path\":\"a\"}", "what the link says"},
    {"{\"deed\":\"write\",\"path\":\"a\",\"size\":1}", "where its bytes are"},
    {"{\"deed\":\"write\",\"path\":\"a\",\"size\":12,\"at\":1}", "its bytes are not in"},
    {"{\"deed\":\"write\",\"path\":\"a\",\"size\":13,\"at\":0}", "its bytes are not in"},
    {"{\"deed\":\"had\",\"path\":\"a\",\"size\":9223372036854775807,\"at\":0}",
     "its bytes are not in"},
    {"{\"deed\":\"write\",\"path\":\"a\",\"size\":1,\"at\":9223372036854775807}",
     "its bytes are not in"},
    {"{\"deed\":\"write\",\"path\":\"a\",\"size\":1,\"at\":-1}", "where its bytes are"},
    {"{\"deed\":\"write\",\"path\":\"a\",\"size\":-1}", "a number of it"},
    {"{\"deed\":\"write\",\"path\":\"a\",\"size\":1.5}", "a number of it"},
    {"{\"deed\":\"write\",\"path\":\"a\",\"size\":9223372036854775807,\"offset\":1,\"at\":0}",
     "ends behind"},
    {"{\"deed\":\"truncate\",\"path\":\"a\",\"offset\":18446744073709551615}", "a number of it"},
    {"{\"deed\":\"create\",\"path\":\"a\",\"mode\":4096}", "a number of it"},
    {"{\"deed\":\"create\",\"path\":\"a\",\"rank\":2147483648}", "a number of it"},
    {"{\"deed\":\"create\",\"path\":\"a\",\"pid\":-5}", "a number of it"},
    {"{\"full\":-5}", "a number of it"},
};

static void write_text(const char *path, const char *text) {
    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
}

static void test_a_line_that_is_wrong_is_named(void **state) {
    struct stage *s = *state;
    struct disk_record got;
    write_text(s->bytes, "twelve bytes");
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char *text = mem_printf("{\"record\": 1}\n%s\n", bad[i].line);
        write_text(s->path, text);
        int r = disk_record_load(s->path, &s->arena, &got, &s->err);
        if (r != -EINVAL || !strstr(s->err.msg, bad[i].says) || !strstr(s->err.msg, "line 2"))
            fail_msg("%s: %d, %s", bad[i].line, r, s->err.msg);
        free(text);
    }
}

static void test_the_number_of_the_line_is_right(void **state) {
    struct stage *s = *state;
    struct disk_record got;
    write_text(s->bytes, "");
    write_text(s->path, "{\"record\": 1}\n{\"deed\":\"create\",\"path\":\"a\"}\n"
                        "{\"deed\":\"sync\",\"path\":\"a\"}\nx\n{\"deed\":\"sync\"}\n");
    assert_int_equal(disk_record_load(s->path, &s->arena, &got, &s->err), -EINVAL);
    assert_non_null(strstr(s->err.msg, "record, line 4"));
}

static void test_what_is_no_record_is_said(void **state) {
    struct stage *s = *state;
    struct disk_record got;
    const char *const texts[] = {"",
                                 "{\"record\": 1}",
                                 "{\"record\": 2}\n",
                                 "{}\n",
                                 "\n",
                                 "\x7f"
                                 "ELF\n"};
    write_text(s->bytes, "");
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        write_text(s->path, texts[i]);
        assert_int_equal(disk_record_load(s->path, &s->arena, &got, &s->err), -EINVAL);
        assert_non_null(strstr(s->err.msg, s->path));
    }
}

static void test_a_record_that_has_lost_its_bytes_names_them(void **state) {
    struct stage *s = *state;
    struct disk_record got;
    record(s, 2, 0);
    assert_int_equal(unlink(s->bytes), 0);
    assert_int_equal(disk_record_load(s->path, &s->arena, &got, &s->err), -ENOENT);
    assert_non_null(strstr(s->err.msg, s->bytes));
    assert_int_equal(unlink(s->path), 0);
    assert_int_equal(disk_record_load(s->path, &s->arena, &got, &s->err), -ENOENT);
}

/* ---- held in memory ---- */

static size_t size_of(const char *path) {
    BUF_FINI struct buf b = {0};
    assert_int_equal(file_read(path, 1 << 20, &b, NULL), 0);
    return b.len;
}

static void test_what_is_held_is_on_the_disk_once_it_is_closed(void **state) {
    struct stage *s = *state;
    struct disk_recorder *r;
    struct disk_operation o = {DISK_WRITE, .file = 1, .path = "a", NONE};
    assert_int_equal(disk_recorder_open(&r, s->path, 0, &s->err), 0);
    assert_null(disk_recorder_room(r, 1));
    assert_int_equal(disk_recorder_hold(r, &s->err), 0);
    assert_false(disk_recorder_holds(r));
    size_t lines = size_of(s->path);
    unsigned char *room = disk_recorder_room(r, 6);
    o.size = 5; /* fewer than were asked for */
    o.bytes = memcpy(room, "abcdef", 6);
    disk_recorder_add(r, &o);
    assert_true(disk_recorder_holds(r));
    assert_int_equal(size_of(s->bytes), 0);
    assert_int_equal(size_of(s->path), lines);
    o.bytes = (const unsigned char *)"ghijk"; /* from elsewhere */
    disk_recorder_add(r, &o);
    disk_recorder_flush(r);
    assert_false(disk_recorder_holds(r));
    o.size = 1;
    o.bytes = (const unsigned char *)"u";
    disk_recorder_add(r, &o);
    assert_int_equal(disk_recorder_close(r, &s->err), 0);

    struct disk_record got;
    assert_int_equal(disk_record_load(s->path, &s->arena, &got, &s->err), 0);
    assert_int_equal(got.n, 3);
    assert_memory_equal(got.v[0].bytes, "abcde", 5);
    assert_memory_equal(got.v[1].bytes, "ghijk", 5);
    assert_memory_equal(got.v[2].bytes, "u", 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_what_was_recorded_is_read_back),
        TEST(test_each_deed_has_a_row_here),
        TEST(test_a_record_of_nothing_is_empty),
        TEST(test_a_record_takes_the_place_of_an_older_one),
        TEST(test_a_last_line_without_its_end_is_not_there_yet),
        TEST(test_it_can_be_read_while_it_is_written),
        TEST(test_past_its_bound_nothing_more_is_recorded_and_it_says_so),
        TEST(test_a_place_where_no_record_can_be_made_is_named),
        TEST(test_a_disk_that_is_full_ends_the_record),
        TEST(test_a_line_that_is_wrong_is_named),
        TEST(test_the_number_of_the_line_is_right),
        TEST(test_what_is_no_record_is_said),
        TEST(test_a_record_that_has_lost_its_bytes_names_them),
        TEST(test_what_is_held_is_on_the_disk_once_it_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
