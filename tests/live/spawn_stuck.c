/* A file system whose server falls silent: spawn_stuck DIR mounts itself there, writes "ready" and,
 * once somebody asks for a name in it, "asked". Who asked is then in state D, and SIGKILL does not
 * end it: a request that the server has read is waited for. Ends with its standard input, or by
 * SIGTERM; what waits then gets an error. The protocol of /dev/fuse: linux/fuse.h. Needs root; 77
 * where it may not mount. */
#define FUSE_BUFFER 0x21000
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static char request[FUSE_BUFFER];

/* Returns 0, or -1 with errno. */
static int answer(int fd, uint64_t unique, int error, const void *body, size_t n) {
    char out[sizeof(struct fuse_out_header) + sizeof(struct fuse_init_out)];
    struct fuse_out_header h = {.len = (uint32_t)(sizeof(h) + n), .error = error, .unique = unique};
    memcpy(out, &h, sizeof(h));
    if (n)
        memcpy(out + sizeof(h), body, n);
    return write(fd, out, sizeof(h) + n) < 0 ? -1 : 0;
}

static void say(const char *word) {
    printf("%s\n", word);
    fflush(stdout);
}

/* Answers what a mount needs, and nobody who looks for a name. */
static void serve(int fd) {
    const struct fuse_in_header *in = (const struct fuse_in_header *)request;
    struct fuse_init_out init = {
        .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096};
    if (read(fd, request, sizeof(request)) < (ssize_t)sizeof(*in))
        return;
    if (in->opcode == FUSE_LOOKUP)
        say("asked");
    else if (in->opcode == FUSE_INIT)
        answer(fd, in->unique, 0, &init, sizeof(init));
    else if (in->opcode != FUSE_FORGET && in->opcode != FUSE_INTERRUPT)
        answer(fd, in->unique, -ENOSYS, NULL, 0);
}

int main(int argc, char **argv) {
    char options[64];
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (argc != 2) {
        fprintf(stderr, "spawn_stuck DIR\n");
        return 64;
    }
    snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd);
    if (fd < 0 || mount("stuck", argv[1], "fuse", MS_NOSUID | MS_NODEV, options) < 0) {
        printf("a file system in user space cannot be mounted here: %s\n", strerror(errno));
        return 77;
    }
    say("ready");
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
    while (!p[1].revents && poll(p, 2, -1) >= 0)
        if (p[0].revents)
            serve(fd);
    umount2(argv[1], MNT_DETACH);
    return 0;
}
