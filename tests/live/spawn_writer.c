/* A program that writes in ways that a shell does not, and says what came of it, as "short/mapped:
 * EIO" or "d/a: 100": spawn_writer write FILE BYTES, by one call; map FILE, a page of what is there
 * through a mapping, and msync; direct FILE, a page past the page cache. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

static long by_call(const char *file, int flags, size_t n) {
    void *bytes;
    int fd = open(file, O_WRONLY | O_CREAT | flags, 0600);
    if (fd < 0 || posix_memalign(&bytes, PAGE, n > PAGE ? n : PAGE) != 0)
        return -1;
    memset(bytes, 'x', n);
    return write(fd, bytes, n);
}

static long by_mapping(const char *file) {
    int fd = open(file, O_RDWR);
    char *page = fd < 0 ? MAP_FAILED : mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return -1;
    *page = 'm';
    return msync(page, PAGE, MS_SYNC);
}

static const char *name_of(int code) {
    return code == EIO ? "EIO" : code == EROFS ? "EROFS" : code == ENOSPC ? "ENOSPC" : "another";
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 64;
    long n = strcmp(argv[1], "map") == 0      ? by_mapping(argv[2])
             : strcmp(argv[1], "direct") == 0 ? by_call(argv[2], O_DIRECT, PAGE)
                                              : by_call(argv[2], 0, (size_t)atol(argv[3]));
    if (n < 0)
        printf("%s %s: %s\n", argv[1], argv[2], name_of(errno));
    else
        printf("%s %s: %ld\n", argv[1], argv[2], n);
    return 0;
}
