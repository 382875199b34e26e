#include "harness/cluster/node_output.h"

#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { PIECE_MAX = 1 << 16, PIECES_MAX = 64 };

/* True: there may be more. */
static bool read_some(struct node_output *o) {
    static char bytes[PIECE_MAX];
    ssize_t n = read(o->fd, bytes, sizeof(bytes));
    if (n < 0 && errno == EINTR)
        return true;
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0) {
        node_output_end(o);
        return false;
    }
    o->fn(o->arg, bytes, (size_t)n);
    return o->fd >= 0;
}

static void on_readable(void *arg, int fd, int what) {
    read_some(arg);
}

int node_output_begin(struct node_output *o, struct loop *l, node_output_fn *fn, void *arg,
                      struct err *err) {
    int ends[2];
    node_output_end(o);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return err_set(err, -errno, "make a pipe for what the program prints");
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *o = (struct node_output){.fd = ends[0], .fn = fn, .arg = arg};
    o->source = loop_fd(l, o->fd, LOOP_READ, on_readable, o);
    return ends[1];
}

void node_output_pause(struct node_output *o, bool paused) {
    if (o->source)
        loop_fd_set(o->source, paused ? 0 : LOOP_READ);
}

/* Who goes on printing while we read is not waited for. */
void node_output_drain(struct node_output *o) {
    for (int i = 0; i < PIECES_MAX && o->fd >= 0 && read_some(o); i++)
        ;
}

void node_output_end(struct node_output *o) {
    o->source = loop_source_free(o->source);
    file_close(&o->fd);
}
