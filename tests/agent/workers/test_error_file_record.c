/* Error files that workers have left, well and badly, with a disk that is played: what is read of each, what is handed
 * on of it, and each sentence is on record. */
#include "tests/played.h"

#include "agent/workers/error_file.h"
#include "base/json.h"
#include "base/str.h"
#include "base/sys/file.h"

static struct { struct buf file; } world;

static int played_read(const char *path, size_t max, struct buf *out, struct err *err) {
    if (fails("read %s, %zu", path, max))
        return err_set(err, -errno, "open %s", path);
    buf_put(out, world.file.data, world.file.len);
    return 0;
}

static int played_write(const char *path, const void *data, size_t len, struct err *err) {
    note("write %s: %.*s.", path, (int)len, (const char *)data);
    return fails("  so") ? err_set(err, -errno, "make %s", path) : 0;
}

static bool played_exists(const char *path) {
    note("is there %s", path);
    return draw(2);
}

#define file_read         played_read
#define file_write_atomic played_write
#define file_exists       played_exists
#include "agent/workers/error_file.c"

static void put_file(void) {
    static const char *const messages[] = {
        "\"it broke\"",
        "{\"message\":\"ValueError: x\",\"extraInfo\":{\"a\":[1,null]},\"errorCode\":3}",
        "{\"errorCode\":\"1\",\"errorCode\":2}",
        "{}",
        "7",
        "null",
        "[\"message\"]",
        "\"\"",
        "{\"message\":{\"message\":\"deep\"}}"};
    static const char *const others[] = {"\"timestamp\":\"17\"", "\"more\":[1,{\"b\":true}]",
                                         "\"errorCode\":5"};
    static const char *const odd[] = {"", "[1]", "{\"mess", "\"text\"", "certainly not", "{}"};
    if (draw(4) == 0) {
        buf_puts(&world.file, odd[draw(6)]);
        return;
    }
    buf_puts(&world.file, "{");
    if (draw(2))
        buf_printf(&world.file, "%s,", others[draw(3)]);
    buf_printf(&world.file, "\"%s\":%s", draw(8) ? "message" : "massage", messages[draw(9)]);
    if (draw(2))
        buf_printf(&world.file, ",%s", others[draw(3)]);
    buf_puts(&world.file, "}");
}

static void hand_on(uint64_t seed) {
    memset(&world, 0, sizeof(world));
    for (int i = 0; i < 20; i++) {
        struct err err = {0};
        char text[64];
        size_t size = draw(4) ? 1 + (size_t)draw(40) : sizeof(text);
        buf_clear(&world.file);
        put_file();
        memset(text, '#', sizeof(text));
        error_file_text("/logs/error.json", text, size);
        note("says \"%s\" in %zu", text, size);
        for (size_t k = size; k < sizeof(text); k++)
            assert_int_equal(text[k], '#'); /* the rest is another's */
        int code = error_file_pass_on("/logs/error.json", "/mine.json", draw(2) ? 3 : -9, &err);
        note("handed on: %d %s", code, err.msg);
    }
    buf_fini(&world.file);
}

static const struct play plays[] = {
    {"tests/agent/workers/record/error_file.txt", hand_on, 20, true, {ENOENT, EACCES}}};

static void test_what_becomes_of_error_files_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_becomes_of_error_files_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
