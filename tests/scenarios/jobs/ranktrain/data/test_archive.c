/* A .tar.gz and what of it is unpacked. */
#include "scenarios/jobs/ranktrain/data/archive.h"

#include "base/sys/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

struct entry {
    const char *name;
    char type;
    const char *text; /* repeated to `size` */
    int size;
};

static void put_entry(gzFile f, const struct entry *e) {
    char block[512] = {0};
    snprintf(block, 100, "%s", e->name);
    snprintf(block + 124, 12, "%011o", (unsigned)e->size);
    block[156] = e->type;
    memcpy(block + 257, "ustar", 5);
    gzwrite(f, block, sizeof(block));
    for (int at = 0; at < e->size; at += 512) {
        memset(block, 0, sizeof(block));
        for (int i = 0; i < 512 && at + i < e->size; i++)
            block[i] = e->text[(at + i) % (int)strlen(e->text)];
        gzwrite(f, block, sizeof(block));
    }
}

static void test_plain_files_of_an_archive_are_unpacked_by_their_last_name(void **state) {
    (void)state;
    static const struct entry entries[] = {
        {"a/b/one", '0', "abc", 511}, {"two", '0', "de", 512},
        {"x/three", '\0', "f", 513},  {"a/", '5', "", 0},
        {"a/link", '2', "", 0},       {"a/.hidden", '0', "h", 5},
        {"dir/", '0', "i", 700},      {"a/empty", '0', "", 0},
        {"pax", 'x', "j", 30},        {"a/last", '0', "0123456789", 2000}};
    static const int wanted[] = {0, 1, 2, 7, 9};
    char place[] = "/tmp/test-archive-XXXXXX", path[64], to[64], command[160];
    struct err err = {0};
    assert_non_null(mkdtemp(place));
    snprintf(path, sizeof(path), "%s/a.tar.gz", place);
    snprintf(to, sizeof(to), "%s/to", place);
    assert_int_equal(mkdir(to, 0700), 0);
    gzFile f = gzopen(path, "wb");
    for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++)
        put_entry(f, &entries[i]);
    static const char end[1024];
    gzwrite(f, end, sizeof(end));
    gzwrite(f, "whatever", 8);
    gzclose(f);
    assert_int_equal(archive_unpack(path, to, &err), 0);
    for (size_t i = 0; i < 5; i++) {
        const struct entry *e = &entries[wanted[i]];
        BUF_FINI struct buf text = {0};
        char name[128];
        snprintf(name, sizeof(name), "%s/%s", to,
                 strrchr(e->name, '/') ? strrchr(e->name, '/') + 1 : e->name);
        assert_int_equal(file_read(name, 4096, &text, &err), 0);
        assert_int_equal(text.len, e->size);
        for (int k = 0; k < e->size; k++)
            assert_int_equal(text.data[k], e->text[k % (int)strlen(e->text)]);
    }
    snprintf(command, sizeof(command), "test $(ls -A %s | wc -l) = 5", to);
    assert_int_equal(system(command), 0);
    assert_int_equal(archive_unpack("/nowhere/x", to, &err), -ENOENT);
    assert_string_equal(err.msg, "open /nowhere/x: No such file or directory");
    assert_int_equal(file_remove_tree(place, NULL), 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_files_of_an_archive_are_unpacked_by_their_last_name),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
