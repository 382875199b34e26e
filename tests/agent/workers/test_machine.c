/* What --sandbox mounts: each call that is made for given mounts, devices and settings, and what
 * becomes of each error. Nothing is mounted here: the calls are the test's. */
#include "agent/workers/machine.h"

#include "base/buf.h"
#include "base/sys/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static struct buf calls;         /* each in a line: source, where, flags in the order of names */
static char scratch[64];         /* stands as "D" there */
static int fails_at, fails_with; /* the so manyth mount; 0: none */
static int mounts, unshared, unshare_fails;
static uid_t user;
static int setting_open;

static const struct {
    unsigned long flag;
    const char *name;
} flag_names[] = {{MS_RDONLY, "ro"},     {MS_NOSUID, "nosuid"},   {MS_NODEV, "nodev"},
                  {MS_NOEXEC, "noexec"}, {MS_REMOUNT, "remount"}, {MS_BIND, "bind"},
                  {MS_REC, "rec"},       {MS_PRIVATE, "private"}, {MS_SLAVE, "slave"}};

static void put_path(const char *path) {
    size_t n = strlen(scratch);
    bool in = path && strncmp(path, scratch, n) == 0;
    buf_printf(&calls, "%s%s ", in ? "D" : "", path ? path + (in ? n : 0) : "-");
}

static int test_mount(const char *source, const char *path, const char *type, unsigned long flags,
                      const void *data) {
    assert_true(!type && !data);
    put_path(source);
    put_path(path);
    for (size_t i = 0; i < sizeof(flag_names) / sizeof(*flag_names); i++)
        if (flags & flag_names[i].flag) {
            buf_printf(&calls, "%s,", flag_names[i].name);
            flags &= ~flag_names[i].flag;
        }
    assert_int_equal(flags, 0);
    buf_puts(&calls, "\n");
    errno = fails_with;
    return ++mounts == fails_at ? -1 : 0;
}

static int test_unshare(int what) {
    assert_int_equal(what, 0x00020000);
    unshared++;
    errno = EPERM;
    return unshare_fails ? -1 : 0;
}

static uid_t test_geteuid(void) {
    return user;
}

static int test_access(const char *path, int mode) {
    if (strcmp(path, "/proc/sys/kernel/core_pattern") != 0)
        return access(path, mode);
    assert_int_equal(mode, W_OK);
    if (setting_open)
        return 0;
    errno = EROFS;
    return -1;
}

#define mount   test_mount
#define unshare test_unshare
#define geteuid test_geteuid
#define access  test_access
#include "agent/workers/machine.c"
#undef mount
#undef unshare
#undef geteuid
#undef access

static int set_up(void **state) {
    (void)state;
    buf_clear(&calls);
    fails_at = fails_with = mounts = unshared = unshare_fails = setting_open = 0;
    user = 0;
    strcpy(scratch, "/tmp/test_machine_XXXXXX");
    return mkdtemp(scratch) ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    return file_remove_tree(scratch, NULL);
}

static int drop_calls(void **state) {
    (void)state;
    buf_fini(&calls);
    return 0;
}

static void assert_calls(const char *wanted) {
    assert_string_equal(buf_str(&calls), wanted);
    buf_clear(&calls);
    mounts = 0;
}

/* ---- devices ---- */

static bool open_to_jobs(mode_t type, unsigned most, unsigned least, const char *path) {
    struct stat st = {.st_mode = type | 0666, .st_rdev = makedev(most, least)};
    const char *slash = strrchr(path, '/');
    return is_for_jobs(&st, path, slash + 1);
}

/* By the numbers of Documentation/admin-guide/devices.txt. */
static void test_exactly_the_devices_that_jobs_need_are_open(void **state) {
    (void)state;
    static const struct {
        unsigned most, least;
        const char *path;
        bool open;
    } rows[] = {
        {1, 1, "/dev/mem", false},
        {1, 2, "/dev/kmem", false},
        {1, 3, "/dev/null", true},
        {1, 4, "/dev/port", false},
        {1, 5, "/dev/zero", true},
        {1, 6, "/dev/core", false},
        {1, 7, "/dev/full", true},
        {1, 8, "/dev/random", true},
        {1, 9, "/dev/urandom", true},
        {1, 10, "/dev/aio", false},
        {1, 11, "/dev/kmsg", false},
        {5, 0, "/dev/tty", true},
        {5, 1, "/dev/console", false},
        {5, 2, "/dev/ptmx", true},
        {5, 3, "/dev/ttyprintk", false},
        {10, 130, "/dev/watchdog", false},
        {10, 58, "/dev/rdma_cm", true},
        {10, 59, "/dev/infiniband/rdma_cm", true},
        {10, 60, "/dev/knem", true},
        {10, 61, "/dev/xpmem", true},
        {10, 62, "/dev/rdma_cm2", false},
        {10, 232, "/dev/kvm", false},
        {195, 0, "/dev/nvidia0", true},
        {195, 255, "/dev/nvidiactl", true},
        {226, 128, "/dev/dri/renderD128", true},
        {231, 192, "/dev/infiniband/uverbs0", true},
        {136, 0, "/dev/pts/0", true},
        {240, 0, "/dev/nvme0", false},
        {240, 1, "/dev/nvme", false},
        {240, 2, "/dev/nvmex", true},
        {240, 3, "/dev/nvm", true},
        {240, 4, "/dev/ng0n1", false},
        {240, 5, "/dev/rtc0", false},
        {240, 6, "/dev/hidraw12", false},
        {240, 7, "/dev/bsg/0:0:0:0", false},
        {240, 8, "/dev/vport1p1", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (open_to_jobs(S_IFCHR, rows[i].most, rows[i].least, rows[i].path) != rows[i].open)
            fail_msg("%s (%u:%u)", rows[i].path, rows[i].most, rows[i].least);
    assert_false(open_to_jobs(S_IFBLK, 195, 0, "/dev/nvidia0"));
    assert_false(open_to_jobs(S_IFREG, 1, 3, "/dev/null"));
}

static void test_each_closed_number_is_closed_and_its_neighbours_are_not(void **state) {
    (void)state;
    static const unsigned closed[] = {4,   6,   7,   9,   13,  14,  21,  29,  81,
                                      86,  89,  90,  99,  108, 116, 153, 162, 166,
                                      180, 188, 189, 202, 203, 204, 212, 229};
    size_t n = 0;
    for (unsigned most = 2; most < 256; most++) {
        bool must = n < sizeof(closed) / sizeof(*closed) && closed[n] == most;
        n += must;
        if (most == TERMINAL || most == MISC)
            continue;
        if (open_to_jobs(S_IFCHR, most, 0, "/dev/x") == must)
            fail_msg("major %u", most);
    }
}

/* ---- mounts ---- */

static void test_settings_become_read_only_and_keep_their_flags(void **state) {
    (void)state;
    static const struct mounted all[] = {{"/sys", "sysfs", MS_NOSUID | MS_NOEXEC},
                                         {"/sys/fs/cgroup", "cgroup2", MS_NODEV},
                                         {"/sys/ro", "cgroup", MS_RDONLY},
                                         {"/home", "ext4", 0},
                                         {"/run/bpf", "bpf", 0}};
    struct err err = {0};
    assert_int_equal(close_all(all, 5, &err), 0);
    assert_calls("- /sys ro,nosuid,noexec,remount,bind,\n"
                 "- /sys rec,private,\n"
                 "- /sys/fs/cgroup ro,nodev,remount,bind,\n"
                 "- /sys/fs/cgroup rec,private,\n"
                 "- /run/bpf ro,remount,bind,\n"
                 "- /run/bpf rec,private,\n");
}

/* What is hidden by another mount is nobody's; each other error is told, and the rest is closed. */
static void test_an_error_closes_the_rest_all_the_same(void **state) {
    (void)state;
    static const struct mounted all[] = {{"/sys", "sysfs", 0}, {"/sys/b", "bpf", 0}};
    static const int hidden[] = {EINVAL, ENOENT, ENOTDIR};
    struct err err = {0};
    for (size_t i = 0; i < 3; i++) {
        fails_at = 1;
        fails_with = hidden[i];
        assert_int_equal(close_all(all, 2, &err), 0);
        assert_calls("- /sys ro,remount,bind,\n- /sys/b ro,remount,bind,\n- /sys/b rec,private,\n");
    }
    for (fails_at = 1; fails_at <= 2; fails_at++) {
        fails_with = EPERM;
        assert_int_equal(close_all(all, 2, &err), -EPERM);
        assert_string_equal(err.msg, "--sandbox: mount /sys read-only: Operation not permitted");
        assert_non_null(strstr(buf_str(&calls), "- /sys/b rec,private,\n"));
        buf_clear(&calls);
        mounts = 0;
    }
}

static void make_file(const char *name, mode_t mode) {
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", scratch, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
    assert_int_equal(chmod(path, mode), 0);
}

static void make_dir(const char *name) {
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", scratch, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

/* One entry at a time: a directory has no order. */
static void test_of_proc_what_can_be_written_is_read_only(void **state) {
    (void)state;
    static const struct {
        const char *name;
        mode_t mode; /* 0: a directory */
        bool closed;
    } rows[] = {{"sys", 0, true},        {"mtrr", 0200, true},     {"trigger", 0020, true},
                {"all", 0002, true},     {"cpuinfo", 0444, false}, {"pressure", 0, false},
                {".hidden", 0644, false}};
    struct mounted m = {scratch, "proc", MS_NOSUID};
    struct err err = {0};
    make_dir("self");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char path[128], wanted[400] = "";
        if (rows[i].mode)
            make_file(rows[i].name, rows[i].mode);
        else
            make_dir(rows[i].name);
        assert_int_equal(close_mount(&m, &err), 0);
        snprintf(path, sizeof(path), "%s/%s", scratch, rows[i].name);
        const char *name = rows[i].name;
        if (rows[i].closed)
            snprintf(wanted, sizeof(wanted),
                     "D/%s D/%s bind,rec,\n- D/%s ro,nosuid,remount,bind,\n- D/%s rec,private,\n",
                     name, name, name, name);
        if (rows[i].closed && !strstr(buf_str(&calls), wanted))
            fail_msg("%s: %s", name, buf_str(&calls));
        if (!rows[i].closed && strstr(buf_str(&calls), name))
            fail_msg("%s: %s", name, buf_str(&calls));
        buf_clear(&calls);
        assert_int_equal(file_remove_tree(path, NULL), 0);
    }
    m.flags = MS_RDONLY;
    assert_int_equal(close_mount(&m, &err), 0);
    assert_calls("");
}

static void test_a_part_of_proc_is_closed_as_a_whole(void **state) {
    (void)state;
    struct mounted m = {scratch, "proc", MS_NODEV}, gone = {"/no/such", "proc", 0};
    struct err err = {0};
    make_dir("sys");
    assert_int_equal(close_mount(&m, &err), 0);
    assert_calls("- D ro,nodev,remount,bind,\n- D rec,private,\n");
    assert_int_equal(close_mount(&gone, &err), 0);
    assert_calls("");
}

static void test_devices_of_a_file_system_that_has_none_are_left_alone(void **state) {
    (void)state;
    struct mounted m = {scratch, "devtmpfs", MS_NOEXEC};
    struct err err = {0};
    make_file("plain", 0666);
    assert_int_equal(close_mount(&m, &err), 0);
    if (getuid() == 0) /* the folder is root's */
        assert_calls("- D nodev,noexec,remount,bind,\n");
    m.flags = MS_NODEV;
    assert_int_equal(close_mount(&m, &err), 0);
    assert_calls("");
    m = (struct mounted){scratch, "tmpfs", 0};
    assert_int_equal(close_mount(&m, &err), 0);
    assert_calls("");
}

static void test_what_is_needed_is_shown_in_its_place(void **state) {
    (void)state;
    struct err err = {0};
    assert_int_equal(show("/a", "/b", &err), 0);
    assert_calls("/a /b bind,rec,\n");
    fails_at = 1;
    fails_with = EACCES;
    assert_int_equal(show("/a", "/b", &err), -EACCES);
    assert_string_equal(err.msg, "--sandbox: mount /a at /b: Permission denied");
}

/* ---- the whole ---- */

static void test_only_root_has_anything_closed(void **state) {
    (void)state;
    struct err err = {0};
    user = 1000;
    assert_int_equal(machine_close(&err), 0);
    assert_int_equal(unshared, 0);
    assert_calls("");
}

static void test_a_container_that_has_closed_its_settings_is_left_alone(void **state) {
    (void)state;
    struct err err = {0};
    unshare_fails = 1;
    assert_int_equal(machine_close(&err), 0);
    assert_int_equal(unshared, 1);
    setting_open = 1;
    assert_int_equal(machine_close(&err), -EPERM);
    assert_non_null(strstr(err.msg, "make a mount namespace to close "
                                    "/proc/sys/kernel/core_pattern in"));
    assert_calls("");
}

static void test_the_jobs_mounts_are_parted_from_the_hosts_first(void **state) {
    (void)state;
    static const char first[] = "none / rec,slave,\n";
    struct err err = {0};
    assert_int_equal(machine_close(&err), 0);
    assert_int_equal(strncmp(buf_str(&calls), first, strlen(first)), 0);
    buf_clear(&calls);
    mounts = 0;
    fails_at = 1;
    fails_with = EPERM;
    assert_int_equal(machine_close(&err), -EPERM);
    assert_string_equal(err.msg, "--sandbox: part this job's mounts from the host's: Operation not "
                                 "permitted");
    assert_calls(first);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_exactly_the_devices_that_jobs_need_are_open),
        TEST(test_each_closed_number_is_closed_and_its_neighbours_are_not),
        TEST(test_settings_become_read_only_and_keep_their_flags),
        TEST(test_an_error_closes_the_rest_all_the_same),
        TEST(test_of_proc_what_can_be_written_is_read_only),
        TEST(test_a_part_of_proc_is_closed_as_a_whole),
        TEST(test_devices_of_a_file_system_that_has_none_are_left_alone),
        TEST(test_what_is_needed_is_shown_in_its_place),
        TEST(test_only_root_has_anything_closed),
        TEST(test_a_container_that_has_closed_its_settings_is_left_alone),
        TEST(test_the_jobs_mounts_are_parted_from_the_hosts_first),
    };
    return cmocka_run_group_tests(tests, NULL, drop_calls);
}
