/* What processes hold, with a /proc that is played: which processes there are, what each has open, and what is gone or
 * may not be seen are drawn; each file that is read and what is told is on record. */
#include "tests/played.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "harness/observe/held.h"

#include <ctype.h>
#include <dirent.h>
#include <unistd.h>

enum { DIRS = 16 };

static struct {
    int depth; /* folders that are open */
    struct {
        char names[8][24];
        int n, at;
        struct dirent d;
    } dirs[DIRS];
} world;

/* A process of number 12 has the children 121 and 122. */
static int played_read(const char *path, size_t max, struct buf *out, struct err *err) {
    static const char *const odd[] = {"", " ", "7", "77 x"};
    const char *what = strrchr(path, '/') + 1;
    int pid = 0;
    assert_int_equal(sscanf(path, "/proc/%d/", &pid), 1);
    if (fails("read %s, %zu", path, max))
        return -errno;
    if (str_eq(what, "statm"))
        buf_printf(out, "%s", draw(8) ? "900 12 3 0\n" : odd[draw(4)]);
    else if (str_eq(what, "status"))
        buf_printf(out, "Name:\tThreads: 9\nThreads:\t%d\nx\n", draw(8) + 1);
    else if (draw(2))
        buf_printf(out, "%d %d %s", pid * 10 + 1, pid * 10 + 2, draw(3) ? "" : "0 x -4");
    return 0;
}

static DIR *played_opendir(const char *path) {
    static const char *const links[] = {".", "..", "0", "1", "7", "12", "x"};
    assert_true(world.depth < DIRS);
    if (fails("list %s", path))
        return NULL;
    int i = world.depth++;
    world.dirs[i].n = world.dirs[i].at = 0;
    bool tasks = str_ends(path, "/task");
    for (int k = 0; k < 7; k++)
        if (k < 2 || draw(tasks ? 4 : 2) == 0)
            snprintf(world.dirs[i].names[world.dirs[i].n++], 24, "%s", links[k]);
    return (DIR *)&world.dirs[i];
}

static struct dirent *played_readdir(DIR *d) {
    int i = world.depth - 1;
    assert_ptr_equal(d, &world.dirs[i]);
    if (world.dirs[i].at == world.dirs[i].n)
        return NULL;
    memcpy(world.dirs[i].d.d_name, world.dirs[i].names[world.dirs[i].at++], 24);
    return &world.dirs[i].d;
}

static void played_close_dir(DIR **d) {
    world.depth -= *d != NULL;
    note("list %s no more", *d ? "it" : "nothing");
}

static int played_dirfd(DIR *d) {
    return 7;
}

static ssize_t played_readlinkat(int fd, const char *name, char *ret, size_t size) {
    static const char *const links[] = {
        "socket:[1]", "pipe:[2]", "anon_inode:[pidfd]", "anon_inode:[event]", "pidfd:[3]",
        "/dev/null",  "/socket:"};
    if (fails("where leads %s, %zu", name, size))
        return -1;
    int n = snprintf(ret, size, "%s", links[draw(7)]);
    memset(ret + n, 'x', size - (size_t)n); /* nobody ends it */
    return n;
}

static long played_sysconf(int name) {
    note("sysconf %d", name);
    return 4096;
}

#define file_read      played_read
#define opendir        played_opendir
#define readdir        played_readdir
#define dirfd          played_dirfd
#define file_close_dir played_close_dir
#define readlinkat     played_readlinkat
#define sysconf        played_sysconf
#include "harness/observe/held.c"

static void sum_up(uint64_t seed) {
    static const pid_t without[] = {112, 12, 1211};
    struct held_sum h = {.rss = seed % 7 ? 0 : -1};
    BUF_FINI struct buf told = {0};
    struct json_writer w = {.out = &told};
    memset(&world, 0, sizeof(world));
    held_add(&h, 1);
    held_add_descendants(&h, 1, without, (size_t)draw(4));
    json_object(&w, NULL);
    held_put(&w, &h);
    json_end_object(&w);
    note("> %lld: %s", (long long)h.processes, buf_str(&told));
    assert_int_equal(world.depth, 0);
}

static const struct play plays[] = {
    {"tests/harness/observe/record/held.txt", sum_up, 60, true, {ESRCH, EACCES}}};

static void test_what_is_held_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_held_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
