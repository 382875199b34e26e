/* The machine that --sandbox closes, played: which file systems are mounted how, what lies in /proc and in /dev, and
 * what the kernel refuses are drawn; each call is on record, and how it ends. */
#include "tests/played.h"

#include "agent/workers/machine.h"
#include "base/arena.h"
#include "base/str.h"
#include "base/sys/file.h"

#include <dirent.h>
#include <ftw.h>
#include <mntent.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static struct {
    struct buf table;
    bool whole; /* a /proc has all of it */
    int entry;  /* of the directory that is read */
    uid_t user;
    struct dirent d;
} world;

/* ---- the system ---- */

static uid_t played_user(void) {
    return world.user;
}

static int played_unshare(int what) {
    return fails("unshare %x", (unsigned)what) ? -1 : 0;
}

static int played_mount(const char *source, const char *path, const char *type, unsigned long flags,
                        const void *data) {
    assert_true(!type && !data);
    return fails("mount %s at %s: %lx", source ? source : "-", path, flags) ? -1 : 0;
}

static int played_access(const char *path, int mode) {
    note("access %s %d", path, mode);
    errno = EROFS;
    return draw(2) ? 0 : -1;
}

static FILE *played_setmntent(const char *path, const char *mode) {
    if (fails("read %s %s", path, mode))
        return NULL;
    return fmemopen(world.table.data, world.table.len, "r");
}

static DIR *played_opendir(const char *path) {
    world.entry = 0;
    return fails("list %s", path) ? NULL : (DIR *)&world.d;
}

static const struct {
    const char *name;
    mode_t mode;
} entries[] = {{".", S_IFDIR},           {"..", S_IFDIR},         {"sys", S_IFDIR | 0555},
               {"mtrr", S_IFREG | 0200}, {"bus", S_IFDIR | 0555}, {"cpuinfo", S_IFREG | 0444},
               {"pressure", S_IFDIR},    {"self", S_IFLNK},       {"trigger", S_IFREG | 0020},
               {"all", S_IFREG | 0002},  {"link", S_IFLNK | 0777}};
enum { ENTRIES = sizeof(entries) / sizeof(*entries) };

/* The processes stand last, and nobody reads on behind them. */
static struct dirent *played_readdir(DIR *d) {
    assert_ptr_equal(d, &world.d);
    assert_true(world.entry <= ENTRIES);
    snprintf(world.d.d_name, sizeof(world.d.d_name), "%s",
             world.entry < ENTRIES ? entries[world.entry].name
             : draw(2)             ? "1"
                                   : "9871");
    world.entry++;
    note("entry %s", world.d.d_name);
    return draw(30) ? &world.d : NULL;
}

static int played_fstatat(int fd, const char *name, struct stat *st, int flags) {
    if (fails("look at %s %d", name, flags) || (str_eq(name, "self") && !world.whole))
        return -1;
    for (int i = 0; i < ENTRIES; i++)
        if (str_eq(entries[i].name, name))
            *st = (struct stat){.st_mode = entries[i].mode};
    return 0;
}

static int played_stat(const char *path, struct stat *st) {
    *st = (struct stat){.st_uid = (uid_t)(draw(4) == 0)};
    return fails("look at %s, of user %d", path, (int)st->st_uid) ? -1 : 0;
}

static void played_close_dir(DIR **d) {
    note("close %s", *d ? "the directory" : "nothing");
}

static int played_dirfd(DIR *d) {
    return 7;
}

static int played_nftw(const char *path, __nftw_func_t fn, int most, int flags) {
    static const struct {
        const char *path;
        int base;
        unsigned major, minor;
        int type;
    } rows[] = {{"/dev", 1, 0, 0, FTW_D},           {"/dev/null", 5, 1, 3, FTW_F},
                {"/dev/mem", 5, 1, 1, FTW_F},       {"/dev/ptmx", 5, 5, 2, FTW_F},
                {"/dev/tty", 5, 5, 0, FTW_F},       {"/dev/sda", 5, 8, 0, FTW_F},
                {"/dev/nvidia0", 5, 195, 0, FTW_F}, {"/dev/link", 5, 1, 3, FTW_SL},
                {"/dev/snd/x", 9, 116, 0, FTW_F}};
    int code = fails("walk %s %d %d", path, most, flags) ? -1 : 0;
    for (size_t i = 0; !code && i < sizeof(rows) / sizeof(*rows); i++) {
        struct stat st = {.st_mode = str_ends(rows[i].path, "sda") ? S_IFBLK : S_IFCHR,
                          .st_rdev = makedev(rows[i].major, rows[i].minor)};
        struct FTW where = {.base = rows[i].base};
        code = fn(rows[i].path, &st, rows[i].type, &where);
    }
    return code;
}

static char *played_getcwd(char *ret, size_t size) {
    snprintf(ret, size, "/home/job");
    return fails("where is it, of %zu", size) ? NULL : ret;
}

static int played_chdir(const char *path) {
    return fails("go to %s", path) ? -1 : 0;
}

#define geteuid               played_user
#define unshare               played_unshare
#define mount                 played_mount
#define access                played_access
#define setmntent             played_setmntent
#define opendir               played_opendir
#define readdir               played_readdir
#define fstatat(fd, n, st, f) played_fstatat(fd, n, st, f)
#define stat(path, st)        played_stat(path, st)
#define file_close_dir        played_close_dir
#define dirfd                 played_dirfd
#define nftw                  played_nftw
#define getcwd                played_getcwd
#define chdir                 played_chdir
#include "agent/workers/machine.c"
#undef stat
#undef mount
#undef access

/* ---- what is mounted ---- */

static void put_mounts(int n) {
    static const char *const types[] = {"proc",  "sysfs", "cgroup2", "devtmpfs",
                                        "tmpfs", "ext4",  "debugfs", "binfmt_misc",
                                        "proc",  "bpf",   "fuse"};
    static const char *const options[] = {"rw",           "ro",       "rw,nosuid,nodev,noexec",
                                          "rw,nosuid",    "rw,nodev", "ro,noexec,relatime",
                                          "rw,errors=ro", "noexec"};
    for (int i = 0; i < n; i++)
        buf_printf(&world.table, "none /%s%d %s %s 0 0\n", i % 5 ? "m" : "with\\040blank", i,
                   types[draw(11)], options[draw(8)]);
    buf_printf(&world.table, "dev /dev %s %s 0 0\n", draw(2) ? "tmpfs" : "devtmpfs",
               options[draw(8)]);
}

static void close_it(uint64_t seed) {
    struct err err = {0};
    memset(&world, 0, sizeof(world));
    world.whole = draw(3);
    world.user = seed % 10 == 0 ? 1000 : 0;
    put_mounts(seed <= 3 && !played.fails_at ? 62 + (int)seed * 33 : draw(8));
    int code = machine_close(&err);
    note("closed: %d %s", code, err.msg);
    buf_fini(&world.table);
}

static const struct play plays[] = {
    {"tests/agent/workers/record/machine.txt", close_it, 60, true, {EPERM, ENOENT}}};

static void test_how_a_machine_is_closed_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_a_machine_is_closed_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
