/* Where the marker of a store is put, and what is told where a call fails: every state of every place beside a plain model. The file
 * system is played by this file. */
#include "agent/store/marker.h"

#include "agent/core/keys.h"
#include "agent/core/kv.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

enum { ME = 1234, SOMEBODY = 1235, PLACES = 3 };

/* What a folder may be: only the first three are ours to use. */
static const struct state {
    bool there, makable, seen;
    mode_t mode;
    uid_t owner;
    bool usable;
} states[] = {
    {false, true, true, S_IFDIR | 0700, ME, true},
    {true, false, true, S_IFDIR | 0700, ME, true},
    {true, false, true, S_IFDIR | 0755, ME, true},
    {false, false, true, S_IFDIR | 0700, ME, true},
    {true, false, false, S_IFDIR | 0700, ME, true},
    {true, false, true, S_IFLNK | 0700, ME, true},
    {true, false, true, S_IFREG | 0700, ME, true},
    {true, false, true, S_IFDIR | 0700, SOMEBODY, true},
    {true, false, true, S_IFDIR | 0720, ME, true},
    {true, false, true, S_IFDIR | 0702, ME, true},
    {true, false, true, S_IFDIR | 0700, ME, false},
};
enum { STATES = sizeof(states) / sizeof(*states), GOOD = 3 };

static const char *xdg; /* XDG_RUNTIME_DIR */
static char given_dir[4200];
static const struct state *place[PLACES];
static int boot_code, read_code, write_code; /* 0, or what the call fails with */
static const char *left;                     /* what an earlier store has left; NULL: nothing */
static char written_to[4200], written[200], unlinked[4200];
static int writes, unlinks;
static int64_t virtual_ns;

static const struct state *state_of(const char *dir) {
    static const char *const others[] = {"/run/rankrun", "/tmp/rankrun-1234"};
    for (int i = 0; i < 2; i++)
        if (strcmp(dir, others[i]) == 0)
            return place[i + 1];
    assert_string_equal(dir, given_dir);
    return place[0];
}

static int fake_mkdir(const char *dir, mode_t mode) {
    const struct state *s = state_of(dir);
    assert_int_equal(mode, 0700);
    errno = s->there ? EEXIST : EACCES;
    return s->makable ? 0 : -1;
}

static int fake_lstat(const char *dir, struct stat *ret) {
    const struct state *s = state_of(dir);
    *ret = (struct stat){.st_mode = s->mode, .st_uid = s->owner};
    return s->seen ? 0 : -1;
}

static int fake_access(const char *dir, int how) {
    assert_int_equal(how, W_OK | X_OK);
    return state_of(dir)->usable ? 0 : -1;
}

static int fake_read(const char *path, size_t most, struct buf *ret, struct err *err) {
    assert_int_equal(most, 4096);
    if (strcmp(path, "/proc/sys/kernel/random/boot_id") == 0) {
        buf_puts(ret, boot_code ? "" : "boot-1\n");
        return boot_code ? err_say(err, boot_code, "no boot id") : 0;
    }
    assert_string_equal(path, written_to);
    if (read_code || !left)
        return err_say(err, read_code ? read_code : -ENOENT, "cannot read it");
    buf_puts(ret, left);
    return 0;
}

static int fake_write(const char *path, const char *text, size_t n, struct err *err) {
    writes++;
    assert_string_equal(path, written_to);
    snprintf(written, sizeof(written), "%.*s", (int)n, text);
    return write_code ? err_say(err, write_code, "cannot write it") : 0;
}

static int fake_unlink(const char *path) {
    unlinks++;
    snprintf(unlinked, sizeof(unlinked), "%s", path);
    return 0;
}

static const char *fake_getenv(const char *name) {
    assert_string_equal(name, "XDG_RUNTIME_DIR");
    return xdg;
}

#define getenv(name)                    fake_getenv(name)
#define geteuid()                       ((uid_t)ME)
#define mkdir(dir, mode)                fake_mkdir(dir, mode)
#define lstat(dir, st)                  fake_lstat(dir, st)
#define access(dir, how)                fake_access(dir, how)
#define unlink(path)                    fake_unlink(path)
#define file_read(path, most, ret, err) fake_read(path, most, ret, err)
#define file_write(path, text, n, err)  fake_write(path, text, n, err)
#define clock_monotonic_ns()            virtual_ns
#include "agent/store/marker.c"

static struct kv *kv;
static struct marker m;
static struct err err;

static void begin(const char *dir) {
    xdg = dir;
    snprintf(given_dir, sizeof(given_dir), "%s/rankrun", dir ? dir : "");
    for (int i = 0; i < PLACES; i++)
        place[i] = &states[0];
    boot_code = read_code = write_code = writes = unlinks = 0;
    left = NULL;
    written[0] = '\0';
    kv_free(kv);
    kv = kv_new(1, 0);
    virtual_ns = 5000000000;
}

/* dir: where its folder must be. */
static bool open_it(const char *dir, const char *host, const char *name, const char *quarantine) {
    memset(&m, 'x', sizeof(m));
    memset(&err, 'x', sizeof(err));
    snprintf(written_to, sizeof(written_to), "%s/store-%s-29400", dir, name);
    bool held = marker_open(&m, host, 29400, quarantine, kv, &err);
    assert_string_equal(m.path, *dir ? written_to : "");
    assert_int_equal(kv_count(kv), held);
    return held;
}

/* ---- the place ---- */

static void place_is(int best) {
    static const char *const dirs[] = {"/xdg/rankrun", "/run/rankrun", "/tmp/rankrun-1234"};
    int unreachable = best == PLACES;
    bool held = open_it(unreachable ? "" : dirs[best], "h", "h", "auto");
    assert_int_equal(held, unreachable);
    assert_int_equal(writes, !unreachable);
    assert_string_equal(written, unreachable ? "" : "boot-1\n");
    assert_int_equal(err.code, unreachable ? -EACCES : 0);
    assert_string_equal(
        err.msg, unreachable ? "no folder for the store's marker: neither $XDG_RUNTIME_DIR/rankrun "
                               "nor /run/rankrun nor /tmp/rankrun-1234 can be made and is this "
                               "user's alone"
                             : "");
    marker_close(&m, kv);
    assert_int_equal(unlinks, !unreachable);
    assert_string_equal(m.path, "");
}

static void test_it_is_the_first_folder_that_is_ours_alone(void **state) {
    (void)state;
    for (int i = 0; i < STATES * STATES * STATES; i++) {
        int is[PLACES] = {i % STATES, i / STATES % STATES, i / STATES / STATES}, best = 0;
        begin("/xdg");
        for (int k = 0; k < PLACES; k++)
            place[k] = &states[is[k]];
        while (best < PLACES && is[best] >= GOOD)
            best++;
        place_is(best);
    }
    begin(NULL);
    place_is(1);
    begin("");
    place_is(1);
    begin("xdg"); /* from where? */
    place_is(1);
}

/* A folder whose name fills what there is for it, and one that is longer by one. */
static void test_a_folder_may_have_a_long_name(void **state) {
    (void)state;
    enum { ROOM = 4096 - 512 };
    char longest[ROOM];
    memset(longest, 'd', sizeof(longest));
    longest[0] = '/';
    longest[ROOM - sizeof("/rankrun")] = '\0';
    begin(longest);
    assert_false(open_it(given_dir, "h", "h", "auto"));
    longest[ROOM - sizeof("/rankrun")] = 'd';
    longest[ROOM - sizeof("/rankrun") + 1] = '\0';
    begin(longest);
    assert_false(open_it("/run/rankrun", "h", "h", "auto"));
}

static void test_its_name_is_that_of_host_and_port(void **state) {
    (void)state;
    static const char stays[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.:-_";
    char host[300], name[300];
    for (int byte = 1; byte < 256; byte++) {
        snprintf(host, sizeof(host), "a%cb", byte);
        snprintf(name, sizeof(name), "a%cb", strchr(stays, byte) ? byte : '_');
        begin("/xdg");
        assert_false(open_it("/xdg/rankrun", host, name, "auto"));
    }
    memset(host, 'h', sizeof(host) - 1);
    host[sizeof(host) - 1] = '\0';
    strcpy(name, host);
    name[255] = '\0';
    begin("/xdg");
    assert_false(open_it("/xdg/rankrun", host, name, "auto"));
}

/* ---- what was left there ---- */

static void test_where_it_cannot_be_known_what_was_left_it_is_owed_and_told(void **state) {
    (void)state;
    static const struct {
        int boot, read, write;
        const char *left, *why;
        bool held;
        int writes;
    } all[] = {
        {0, 0, 0, NULL, "", false, 1},
        {0, 0, 0, "boot-0\n", "", false, 1},
        {0, 0, 0, "boot-1\n", "", true, 1},
        {0, 0, 0, "boot-", "", true, 1},
        {-EIO, 0, 0, NULL, "no boot id", true, 0},
        {0, -EACCES, 0, NULL, "cannot read it", true, 0},
        {0, 0, -ENOSPC, NULL, "cannot write it", false, 1},
        {0, 0, -ENOSPC, "boot-1\n", "cannot write it", true, 1},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        begin("/xdg");
        boot_code = all[i].boot;
        read_code = all[i].read;
        write_code = all[i].write;
        left = all[i].left;
        assert_int_equal(open_it("/xdg/rankrun", "h", "h", "auto"), all[i].held);
        assert_string_equal(err.msg, all[i].why);
        assert_int_equal(err.code, all[i].boot + all[i].read + all[i].write);
        assert_int_equal(writes, all[i].writes);
        assert_string_equal(written, writes ? "boot-1\n" : "");
        marker_close(&m, kv);
        assert_int_equal(unlinks, !all[i].held);
        if (unlinks)
            assert_string_equal(unlinked, "/xdg/rankrun/store-h-29400");
        marker_close(&m, kv); /* none is open any more */
        assert_int_equal(unlinks, !all[i].held);
    }
}

/* What is held back for is a key with a lease of ten minutes, to the nanosecond. */
static void test_what_is_owed_stands_in_the_store_for_ten_minutes(void **state) {
    (void)state;
    struct arena a = {0};
    struct kv_txn_result r;
    struct kv_op op = {.kind = KV_RANGE, .key = kv_string(KEY_QUARANTINE_TEXT)};
    int64_t lease;
    begin("/xdg");
    for (int i = 1; i <= 100; i++) /* that somebody has chosen */
        assert_int_equal(kv_lease_grant(kv, i, 6000, virtual_ns, &lease, NULL), 0);
    assert_true(open_it("/xdg/rankrun", "h", "h", "always"));
    assert_int_equal(kv_lease_count(kv), 101);
    assert_int_equal(kv_txn(kv, &(struct kv_txn){.success = &op, .n_success = 1}, &a, &r, NULL), 0);
    assert_int_equal(r.results[0].n_pairs, 1);
    assert_int_equal(r.results[0].pairs[0].value.len, strlen("{\"owed\":1}"));
    assert_memory_equal(r.results[0].pairs[0].value.data, "{\"owed\":1}", strlen("{\"owed\":1}"));
    arena_fini(&a);
    kv_lease_expire(kv, virtual_ns + 600000000000 - 1);
    assert_int_equal(kv_count(kv), 1);
    kv_lease_expire(kv, virtual_ns + 600000000000);
    assert_int_equal(kv_count(kv), 0);
}

/* ---- whose keys are sessions ---- */

static void test_only_sessions_are_waited_for(void **state) {
    (void)state;
    static const struct {
        const char *key;
        bool needed;
    } all[] = {
        {"/rankrun/job/0123456789abcdef/s/u", true},
        {"/rankrun/job/0123456789abcdef/s/", false},
        {"/rankrun/job/0123456789abcdef/s", false},
        {"/rankrun/job/0123456789abcdef/m/u", false},
        {"/rankrun/job/0123456789abcdef/sx/u", false},
        {"/rankrun/job/s/u", false},
        {"/rankrun/job/a/b/s/u", false},
        {"a/b/c/d/s/u", true},
        {"/s/u", false},
        {"", false},
        {KEY_QUARANTINE_TEXT, true},
        {KEY_QUARANTINE_TEXT "x", false},
        {"/rankrun/quarantinf", false},
        {"/rankrun/quarantin", false},
    };
    static const char *const values[] = {"", "/s/u", "x/s/u",
                                         "/x/s/u"}; /* that say nothing of it */
    for (size_t i = 0; i < 4 * sizeof(all) / sizeof(*all); i++) {
        struct arena a = {0};
        struct kv_txn_result r;
        struct kv_op op = {
            .kind = KV_PUT, .key = kv_string(all[i / 4].key), .value = kv_string(values[i % 4])};
        begin("/xdg");
        if (op.key.len)
            assert_int_equal(
                kv_txn(kv, &(struct kv_txn){.success = &op, .n_success = 1}, &a, &r, NULL), 0);
        if (marker_needed(kv) != all[i / 4].needed)
            fail_msg("%s", all[i / 4].key);
        arena_fini(&a);
    }
    kv = kv_free(kv);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_the_first_folder_that_is_ours_alone),
        cmocka_unit_test(test_a_folder_may_have_a_long_name),
        cmocka_unit_test(test_its_name_is_that_of_host_and_port),
        cmocka_unit_test(test_where_it_cannot_be_known_what_was_left_it_is_owed_and_told),
        cmocka_unit_test(test_what_is_owed_stands_in_the_store_for_ten_minutes),
        cmocka_unit_test(test_only_sessions_are_waited_for),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
