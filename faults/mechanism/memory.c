#include "faults/mechanism/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "55d0c0a000-55d0c2b000 rw-p 00000000 00:00 0 [heap]": no device, no inode. */
static uint64_t own_bytes(const char *line, uint64_t *ret_address) {
    unsigned long long from, to, inode;
    char rights[5];
    if (sscanf(line, "%llx-%llx %4s %*s %*s %llu", &from, &to, rights, &inode) != 4 || inode ||
        strncmp(rights, "rw", 2) != 0 || strstr(line, "[v") || strstr(line, "[stack"))
        return 0;
    *ret_address = from;
    return to - from;
}

int memory_longest(pid_t pid, uint64_t *ret_address, uint64_t *ret_bytes) {
    char path[64], line[4352];
    uint64_t longest = 0, address;
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f)) {
        uint64_t bytes = own_bytes(line, &address);
        if (bytes > longest) {
            longest = bytes;
            *ret_address = address;
        }
    }
    if (f)
        fclose(f);
    *ret_bytes = longest;
    return longest ? 0 : -ESRCH;
}

static int open_memory(pid_t pid, int flags) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
    int fd = open(path, flags | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int memory_read(pid_t pid, uint64_t address, void *to, size_t n) {
    int fd = open_memory(pid, O_RDONLY);
    if (fd < 0)
        return fd;
    ssize_t got = pread(fd, to, n, (off_t)address);
    int r = got == (ssize_t)n ? 0 : got < 0 ? -errno : -EIO;
    close(fd);
    return r;
}

int memory_write(pid_t pid, uint64_t address, const void *from, size_t n) {
    int fd = open_memory(pid, O_RDWR);
    if (fd < 0)
        return fd;
    ssize_t put = pwrite(fd, from, n, (off_t)address);
    int r = put == (ssize_t)n ? 0 : put < 0 ? -errno : -EIO;
    close(fd);
    return r;
}
