/* Requests as the kernel makes them, answered through a socket in the place of /dev/fuse. */
#include "faults/mechanism/disk/disk_late.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

static struct disk *disk;
static struct disk_mount *mounts[2];
static int kernel[2]; /* the other ends */
static char dir[] = "/tmp/rq-late-XXXXXX";
static struct {
    struct fuse_out_header head;
    union {
        struct fuse_entry_out entry;
        struct fuse_attr_out attr;
        char bytes[4096];
    };
} answer;

static int begin(void **state) {
    (void)state;
    struct err err = {0};
    strcpy(dir + sizeof(dir) - 7, "XXXXXX");
    if (!mkdtemp(dir) || disk_open(&disk, dir, &(struct disk_options){0}, &err) != 0)
        return -1;
    for (size_t i = 0; i < 2; i++) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
            return -1;
        mounts[i] = mem_new(struct disk_mount);
        *mounts[i] = (struct disk_mount){
            .disk = disk, .slot = i, .fd = ends[0], .node = mem_strdup("n"), .threads = 1};
        disk->mounts[i] = mounts[i];
        kernel[i] = ends[1];
    }
    return 0;
}

static int end(void **state) {
    (void)state;
    char command[100];
    for (size_t i = 0; i < 2; i++) {
        disk_let_go(disk, i);
        disk_forget(disk, i);
        free(mounts[i]->rules);
        free(mounts[i]->opened);
        free(mounts[i]->node);
        close(mounts[i]->fd);
        close(kernel[i]);
        free(mounts[i]);
    }
    disk_close(disk, NULL);
    disk_tree_fini(&disk->tree);
    buf_fini(&disk->path);
    buf_fini(&disk->to);
    close(disk->backing);
    free(disk);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

/* What comes of it: 0 or a -errno; the rest lies in `answer`. */
static int ask(size_t mount, unsigned opcode, uint64_t node, const void *arg, size_t size,
               const char *names, size_t names_n) {
    static char request[8192], reply[DISK_WRITE_MAX];
    struct fuse_in_header in = {.opcode = opcode, .nodeid = node, .unique = 1};
    memcpy(request, &in, sizeof(in));
    if (size)
        memcpy(request + sizeof(in), arg, size);
    if (names_n)
        memcpy(request + sizeof(in) + size, names, names_n);
    struct disk_call c = disk_call_of(mounts[mount], request, sizeof(in) + size + names_n, reply);
    disk_deal_with(&c);
    assert_true(recv(kernel[mount], &answer, sizeof(answer), 0) >= (ssize_t)sizeof(answer.head));
    return answer.head.error;
}

static int look(size_t mount, const char *name) {
    return ask(mount, FUSE_LOOKUP, DISK_ROOT, NULL, 0, name, strlen(name) + 1);
}

static int open_node(size_t mount, uint64_t node) {
    return ask(mount, FUSE_OPEN, node, &(struct fuse_open_in){.flags = O_RDONLY},
               sizeof(struct fuse_open_in), NULL, 0);
}

static void put(size_t mount, const char *name) {
    const struct fuse_mknod_in in = {.mode = S_IFREG | 0644};
    assert_int_equal(ask(mount, FUSE_MKNOD, DISK_ROOT, &in, sizeof(in), name, strlen(name) + 1), 0);
}

static int moves(size_t mount, const char *from_and_to, size_t n) {
    const struct fuse_rename_in in = {.newdir = DISK_ROOT};
    return ask(mount, FUSE_RENAME, DISK_ROOT, &in, sizeof(in), from_and_to, n);
}
#define MOVES(mount, names) assert_int_equal(moves(mount, names, sizeof(names)), 0)

static void late(int64_t ns, bool opens) {
    const struct disk_rule r = {
        .pattern = "**", .nth = 1, .room = -1, .late_ns = ns, .late_opens = opens, .id = 7};
    disk_rule_add(disk, 1, &r);
}

static const int64_t hour_ns = INT64_C(3600000000000);

/* Mount 1 has been told of it; then mount 0 puts another file there. */
static uint64_t replaced(void) {
    put(0, "latest");
    put(0, "next");
    assert_int_equal(look(1, "latest"), 0);
    uint64_t old = answer.entry.nodeid;
    MOVES(0, "next\0latest");
    return old;
}

static void test_a_name_is_what_it_was_for_who_was_told(void **state) {
    (void)state;
    late(hour_ns, false);
    uint64_t old = replaced();
    assert_int_equal(look(1, "latest"), 0);
    assert_int_equal(answer.entry.nodeid, old);
    assert_int_equal(look(0, "latest"), 0);
    assert_int_not_equal(answer.entry.nodeid, old);
    disk_rule_drop(disk, 1, 7);
    assert_int_equal(look(1, "latest"), 0);
    assert_int_not_equal(answer.entry.nodeid, old);
}

static void test_after_its_time_and_for_who_was_never_told_it_is_what_it_is(void **state) {
    (void)state;
    late(1, false);
    uint64_t old = replaced();
    assert_int_equal(look(1, "latest"), 0);
    assert_int_not_equal(answer.entry.nodeid, old);
    disk_rule_drop(disk, 1, 7);
    late(hour_ns, false);
    put(0, "new");
    assert_int_equal(look(1, "new"), 0);
}

static void test_what_was_not_there_stays_away_and_what_is_gone_stays(void **state) {
    (void)state;
    late(hour_ns, false);
    put(0, "gone");
    assert_int_equal(look(1, "gone"), 0);
    assert_int_equal(look(1, "new"), -ENOENT);
    put(0, "new");
    assert_int_equal(ask(0, FUSE_UNLINK, DISK_ROOT, NULL, 0, "gone", 5), 0);
    assert_int_equal(look(1, "new"), -ENOENT);
    assert_int_equal(look(1, "gone"), 0);
}

static void test_its_own_changes_a_node_sees(void **state) {
    (void)state;
    late(hour_ns, false);
    uint64_t old = replaced();
    put(1, "own");
    MOVES(1, "own\0latest");
    assert_int_equal(look(1, "latest"), 0);
    assert_int_not_equal(answer.entry.nodeid, old);
}

static void test_who_opens_gets_what_is_there_unless_asked_otherwise(void **state) {
    (void)state;
    late(hour_ns, false);
    uint64_t old = replaced();
    assert_int_equal(look(1, "latest"), 0);
    assert_int_equal(open_node(1, old), -ESTALE);
    assert_int_equal(look(1, "latest"), 0);
    assert_int_not_equal(answer.entry.nodeid, old);
    assert_int_equal(open_node(1, answer.entry.nodeid), 0);
    disk_rule_drop(disk, 1, 7);
    late(hour_ns, true);
    put(0, "next");
    assert_int_equal(look(1, "latest"), 0);
    old = answer.entry.nodeid;
    MOVES(0, "next\0latest");
    assert_int_equal(look(1, "latest"), 0);
    assert_int_equal(answer.entry.nodeid, old);
    assert_int_equal(open_node(1, old), 0);
}

static void test_a_size_is_what_it_was_until_the_file_is_opened(void **state) {
    (void)state;
    const struct fuse_getattr_in in = {0};
    const struct fuse_setattr_in set = {.valid = FATTR_SIZE, .size = 100};
    late(hour_ns, false);
    put(0, "grown");
    assert_int_equal(look(1, "grown"), 0);
    uint64_t node = answer.entry.nodeid;
    assert_int_equal(ask(0, FUSE_SETATTR, node, &set, sizeof(set), NULL, 0), 0);
    assert_int_equal(answer.attr.attr.size, 100);
    assert_int_equal(ask(1, FUSE_GETATTR, node, &in, sizeof(in), NULL, 0), 0);
    assert_int_equal(answer.attr.attr.size, 0);
    assert_int_equal(open_node(1, node), 0);
    assert_int_equal(ask(1, FUSE_GETATTR, node, &in, sizeof(in), NULL, 0), 0);
    assert_int_equal(answer.attr.attr.size, 100);
}

#define ON_DISK(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_DISK(test_a_name_is_what_it_was_for_who_was_told),
        ON_DISK(test_after_its_time_and_for_who_was_never_told_it_is_what_it_is),
        ON_DISK(test_what_was_not_there_stays_away_and_what_is_gone_stays),
        ON_DISK(test_its_own_changes_a_node_sees),
        ON_DISK(test_who_opens_gets_what_is_there_unless_asked_otherwise),
        ON_DISK(test_a_size_is_what_it_was_until_the_file_is_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
