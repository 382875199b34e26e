/* Where the output of workers goes, with a disk that is played: every folder that is made, every name that is given,
 * and what becomes of each call that fails. */
#include "tests/played.h"

#include "agent/workers/error_file.h"
#include "agent/workers/output.h"
#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* A path of any length, in few letters. */
static void note_path(const char *what, const char *path) {
    size_t n = strlen(path);
    note("%s %.60s%s%s (%zu)", what, path, n > 100 ? ".." : "", n > 100 ? path + n - 40 : "", n);
}

static int played_make_dirs(const char *path, mode_t mode, struct err *err) {
    note_path("make", path);
    return fails("  %o", mode) ? err_set(err, -errno, "make %.40s", path) : 0;
}

static int played_temp_dir(char *path, struct err *err) {
    note_path("make for a while", path);
    size_t n = strlen(path);
    assert_true(n > 8 && str_eq(path + n - 8, "XXXXXXXX"));
    if (fails("  so"))
        return err_set(err, -errno, "make %.40s", path);
    memcpy(path + n - 8, "abcdefgh", 8);
    return 0;
}

static const char *played_temp_base(void) {
    return "/scratch";
}

static int played_rename(const char *from, const char *to) {
    note_path("rename", from);
    note_path("to", to);
    return fails("  so") ? -1 : 0;
}

static int played_access(const char *path, int mode) {
    return fails("access %s %d", path, mode) ? -1 : 0;
}

static int played_remove(const char *path, struct err *err) {
    note_path("remove", path);
    return 0;
}

static int played_statvfs(const char *path, struct statvfs *fs) {
    *fs = (struct statvfs){.f_blocks = (fsblkcnt_t)draw(2), .f_bavail = (fsblkcnt_t)draw(2)};
    note_path("room in", path);
    return fails("  %d of %d", (int)fs->f_bavail, (int)fs->f_blocks) ? -1 : 0;
}

static int played_stat(const char *path, struct stat *st) {
    *st = (struct stat){.st_size = draw(4), .st_mtim = {100 + draw(3), draw(3)}};
    note_path("look at", path);
    return fails("  %d, %d.%d", (int)st->st_size, (int)st->st_mtim.tv_sec, (int)st->st_mtim.tv_nsec)
               ? -1
               : 0;
}

static void played_text(const char *path, char *ret, size_t size) {
    note_path("text of", path);
    snprintf(ret, size, "%s", draw(2) ? "" : "it is broken");
}

#define file_make_dirs     played_make_dirs
#define file_make_temp_dir played_temp_dir
#define file_temp_base     played_temp_base
#define file_remove_tree   played_remove
#define rename             played_rename
#define access             played_access
#define error_file_text    played_text
#define statvfs(p, s)      played_statvfs(p, s)
#define stat(p, s)         played_stat(p, s)
#include "agent/workers/output.c"
#undef rename
#undef access
#undef statvfs
#undef stat

enum { WORKERS = 4 };

static void ask_all(const struct output *o) {
    struct output_files files;
    char path[PATH_MAX], text[80];
    for (int i = 0; i < WORKERS; i++) {
        output_files(o, i, &files);
        note("worker %d", i);
        note_path(" out", files.out);
        note_path(" err", files.err);
        note_path(" error", files.error_json);
        output_error_text(o, i, text, sizeof(text));
        note(" says \"%s\"", text);
        note(" before it failed %d", output_failed_before(o, i, WORKERS));
    }
    for (int stream = STREAM_OUT; stream <= STREAM_ERR; stream++) {
        output_filtered_file(o, stream, path);
        note_path("filtered", path);
    }
}

static const char *draw_log_dir(void) {
    static char deep[PATH_MAX + 100];
    int lengths[] = {PATH_MAX - 128 - 20, PATH_MAX - 128 - 13, PATH_MAX - 128 - 12, PATH_MAX - 1,
                     PATH_MAX + 50};
    switch (draw(8)) {
    case 0:
        return "/dev/null";
    case 1:
    case 2:
        return NULL;
    case 3:
        memset(deep, 'd', sizeof(deep));
        deep[lengths[draw(5)]] = deep[0] = '\0';
        deep[0] = '/';
        return deep;
    default:
        return "/logs";
    }
}

/* Rounds of one run, some at the same restart count. */
static void run(uint64_t seed) {
    static const char *const ids[] = {"job", "/a/b/", "x", "",
                                      "a long id that has eighty letters "
                                      "and more of them, so that one hundred and twenty-seven are "
                                      "not so many as it has, and it is cut there"};
    uint8_t to_file[WORKERS];
    bool hidden[WORKERS];
    struct err err = {0};
    struct output o;
    struct worker_output what = {.log_dir = draw_log_dir()};
    for (int i = 0; i < WORKERS; i++) {
        to_file[i] = (uint8_t)draw(4);
        hidden[i] = draw(2);
    }
    what.to_file = draw(3) ? to_file : NULL;
    what.hidden = draw(2) ? hidden : NULL;
    if (!what.log_dir || strlen(what.log_dir) < 100)
        note("may be: %d %s", output_check(what.log_dir, &err), err.msg);
    int code = output_init(&o, &what, 1 + draw(WORKERS), ids[draw(5)], &err);
    note("begins: %d %s; scratch %d", code, err.msg, o.scratch);
    note_path("in", o.run_dir);
    struct worker_spec s = {.local_world_size = WORKERS};
    for (int i = 0; i < 4; i++) {
        s.round += 1 + (uint64_t)draw(3);
        s.restart_count += draw(2);
        code = output_begin(&o, &s, &err);
        note("round %d, restart %d: %d %.80s", (int)s.round, s.restart_count, code, err.msg);
        ask_all(&o);
    }
    output_fini(&o);
    note_path("ends in", o.run_dir);
    output_fini(&o);
}

static const struct play plays[] = {
    {"tests/agent/workers/record/output.txt", run, 40, true, {EACCES, ENOSPC}}};

static void test_where_output_goes_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_where_output_goes_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
