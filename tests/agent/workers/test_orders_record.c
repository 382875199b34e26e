/* What agent and guard hand to each other, in a kernel that is played: each call that fails, each message that is of
 * another size, and what is said of it. What goes well says nothing. */
#include "tests/played.h"

#include "agent/workers/orders.h"
#include "agent/workers/spec.h"
#include "base/sys/descriptors.h"
#include "base/sys/file.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static struct buf file; /* that was written, and is read */
static int answer;      /* of the socket */

static int played_memfd(const char *name, unsigned flags) {
    buf_clear(&file);
    return fails("memfd %s %u", name, flags) ? -1 : played_open();
}

static int played_write(int fd, const void *data, size_t len, struct err *err) {
    assert_true(played.open[fd]);
    if (fails("write %zu into %d", len, fd))
        return err_set(err, -errno, "write");
    buf_put(&file, data, len);
    return 0;
}

static off_t played_seek(int fd, off_t to, int how) {
    assert_true(played.open[fd]);
    return fails("go to %d, %d", (int)to, how) ? -1 : 0;
}

static int played_read(int fd, size_t max, struct buf *out, struct err *err) {
    if (fails("read %d, %d", fd, max == SIZE_MAX))
        return err_set(err, -errno, "read");
    buf_put(out, file.data, file.len);
    return 0;
}

static int played_send(int socket, const void *data, size_t len, const int *fds, size_t n,
                       int flags) {
    note("send %zu to %d with %zu, %d; %d", len, socket, n, n ? fds[0] : -1, flags);
    return answer;
}

static ssize_t played_receive(int socket, void *data, size_t size, int *fds, size_t *n) {
    note("receive %zu of %d, room for %zu", size, socket, *n);
    *n = answer > 7;
    if (*n)
        *fds = 0;
    return answer;
}

#define memfd_create        played_memfd
#define file_write_all      played_write
#define file_read_fd        played_read
#define lseek               played_seek
#define file_close          played_file_close
#define descriptors_send    played_send
#define descriptors_receive played_receive
#include "agent/workers/orders.c"

static void hand_over(uint64_t seed) {
    static char *argv[] = {"a", "bc", NULL}, *none[] = {NULL};
    struct launch_worker workers[] = {{argv, none, "out", ""}, {none, argv, "", "err"}};
    struct launch_order is, l = {.deadline_required = seed & 1,
                                 .scratch = seed & 2 ? "/s" : "",
                                 .sandbox = seed & 4,
                                 .n = 2,
                                 .workers = workers};
    ARENA_FINI struct arena a = {0};
    struct err err = {.code = -77, .msg = "as before"};
    int fd = -7, code = launch_write(&l, &fd, &err);
    note("written: %d, %d; %d %s", code, fd, err.code, err.msg);
    for (size_t i = 0; i < file.len; i++)
        buf_printf(&played.said, "%02x", (unsigned char)file.data[i]);
    note(" is what it holds");
    if (code)
        return;
    file.len = seed & 8 ? file.len * (seed & 7) / 8 : file.len; /* and is cut */
    code = launch_read(fd, &a, &is, &err);
    note("read: %d; %d %s", code, err.code, err.msg);
}

static void speak(uint64_t seed) {
    static const int answers[] = {0, -EAGAIN, -EPIPE, -ECONNRESET, -ENOBUFS, -EMSGSIZE, 7, 8, 9};
    char message[8] = "1234567";
    int fd = -7;
    answer = answers[seed - 1];
    for (int with = -1; with <= 1; with++) {
        int code = order_send(3, message, sizeof(message), with);
        note("sent: %d, later %d", code, order_may_go_later(code));
    }
    int code = order_receive(4, message, sizeof(message), &fd);
    note("received: %d, %d", code, fd);
}

static void both(uint64_t seed) {
    if (seed <= 16)
        hand_over(seed - 1);
    else
        speak(seed - 16);
    buf_fini(&file);
}

static const struct play plays[] = {
    {"tests/agent/workers/record/orders.txt", both, 25, true, {ENOSPC, EMFILE}}};

static void test_what_is_handed_over_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_handed_over_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
