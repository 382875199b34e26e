/* What a helper finds where it runs. Each ability is tried, never guessed from a version. */
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "harness/carrier/hello.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool silences_sockets(void) {
    FILE_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int most = 255;
    return fd >= 0 && setsockopt(fd, IPPROTO_IP, IP_MINTTL, &most, sizeof(most)) == 0;
}

static bool knows_pidfds(void) {
    struct process self;
    if (process_open(getpid(), &self, NULL) != 0)
        return false;
    process_close(&self);
    return true;
}

static void read_boot_id(char *ret, size_t size) {
    BUF_FINI struct buf text = {0};
    if (file_read("/proc/sys/kernel/random/boot_id", 4096, &text, NULL) != 0)
        return;
    char *end = strchr(text.data, '\n');
    if (end)
        *end = 0;
    str_copy(ret, size, text.data);
}

static void read_life(char *ret, size_t size) {
    unsigned long long space = process_pid_space(0);
    uint64_t start = 0;
    if (space && process_start_ticks(1, &start) == 0)
        snprintf(ret, size, "%llu.%llu", space, (unsigned long long)start);
}

void hello_here(struct hello *ret) {
    *ret = (struct hello){.version = HELLO_VERSION, .uid = geteuid(), .pid = getpid()};
    read_boot_id(ret->boot_id, sizeof(ret->boot_id));
    read_life(ret->life, sizeof(ret->life));
    gethostname(ret->host, sizeof(ret->host) - 1);
    ret->can = (unsigned)(process_adopt_orphans() == 0) << HELLO_CAN_ADOPTION |
               (unsigned)knows_pidfds() << HELLO_CAN_PIDFDS |
               (unsigned)(ret->uid == 0) << HELLO_CAN_ROOT |
               (unsigned)silences_sockets() << HELLO_CAN_SILENT_SOCKETS;
}
