/* spawn_sees DIR: does to DIR what a kernel that believes too long what it was told of a disk would show wrongly, and asks after
 * each step what is there. Exit: 0, or 1 with the line that saw something else. The same on any file system. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEES(what)                                                                                 \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            printf("line %d: not so: %s (%s)\n", __LINE__, #what, strerror(errno));                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { LARGE = 3 << 20 };

static bool is_there(const char *name) {
    return access(name, F_OK) == 0;
}

static struct stat of(const char *name) {
    struct stat st;
    SEES(lstat(name, &st) == 0);
    return st;
}

static int put(const char *name, int flags, const char *text) {
    int fd = open(name, O_WRONLY | O_CREAT | flags, 0644);
    SEES(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    return fd;
}

static const char *text_of(const char *name) {
    static char text[256];
    int fd = open(name, O_RDONLY);
    SEES(fd >= 0);
    ssize_t n = read(fd, text, sizeof(text) - 1);
    SEES(n >= 0 && close(fd) == 0);
    text[n] = '\0';
    return text;
}

static int entries(const char *dir) {
    DIR *d = opendir(dir);
    int n = 0;
    SEES(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static void see_names(void) {
    SEES(!is_there("a") && !is_there("a")); /* known not to be there, then made */
    close(put("a", O_TRUNC, "one"));
    SEES(is_there("a") && of("a").st_size == 3);
    SEES(!is_there("b") && rename("a", "b") == 0 && !is_there("a") && is_there("b"));
    close(put("a", O_TRUNC, "other"));
    SEES(rename("a", "b") == 0 && strcmp(text_of("b"), "other") == 0 && of("b").st_size == 5);
    SEES(link("b", "c") == 0 && of("b").st_nlink == 2 && of("c").st_ino == of("b").st_ino);
    SEES(unlink("b") == 0 && !is_there("b") && of("c").st_nlink == 1);
    SEES(symlink("c", "d") == 0 && strcmp(text_of("d"), "other") == 0);
    SEES(unlink("d") == 0 && !is_there("d"));
    SEES(chmod("c", 0600) == 0 && (of("c").st_mode & 0777) == 0600);
}

static void see_folders(void) {
    char name[32];
    SEES(mkdir("f", 0755) == 0 && entries("f") == 0);
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "f/name-%d", i);
        close(put(name, 0, "x"));
    }
    SEES(entries("f") == 300 && rename("f", "g") == 0 && !is_there("f") && !is_there("f/name-1"));
    SEES(is_there("g/name-299") && unlink("g/name-299") == 0 && entries("g") == 299);
    int fd = open("g", O_RDONLY | O_DIRECTORY);
    SEES(fd >= 0 && fsync(fd) == 0 && unlinkat(fd, "name-0", 0) == 0 && close(fd) == 0);
    SEES(entries("g") == 298 && rmdir("g") != 0 && errno == ENOTEMPTY);
    SEES(mkdir("h", 0700) == 0 && rmdir("h") == 0 && !is_there("h") && mkdir("h", 0755) == 0);
}

/* By one descriptor that only writes, by one that reads, and by a mapping. */
static void see_bytes(void) {
    int to = put("bytes", O_TRUNC, "0123456789"), from = open("bytes", O_RDONLY);
    char got[16] = "";
    SEES(from >= 0 && pread(from, got, 10, 0) == 10 && strcmp(got, "0123456789") == 0);
    char *mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, from, 0);
    SEES(mapped != MAP_FAILED && memcmp(mapped, "0123456789", 10) == 0);
    SEES(pwrite(to, "AB", 2, 3) == 2 && pread(from, got, 10, 0) == 10);
    SEES(strcmp(got, "012AB56789") == 0 && memcmp(mapped, "012AB56789", 10) == 0);
    SEES(ftruncate(to, 4) == 0 && of("bytes").st_size == 4 && pread(from, got, 10, 0) == 4);
    SEES(lseek(to, 0, SEEK_END) == 4 && write(to, "end", 3) == 3 && of("bytes").st_size == 7);
    close(to);
    to = put("bytes", O_APPEND, "+more");
    SEES(fsync(to) == 0 && of("bytes").st_size == 12 && fdatasync(to) == 0);
    SEES(posix_fallocate(to, 0, 100) == 0 && of("bytes").st_size == 100 && ftruncate(to, 12) == 0);
    munmap(mapped, 4096);
    close(to);
    close(from);
    SEES(strcmp(text_of("bytes"), "012Aend+more") == 0);
}

static void see_mapping(void) {
    int fd = open("mapped", O_RDWR | O_CREAT, 0644);
    SEES(fd >= 0 && ftruncate(fd, 8192) == 0);
    char *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    SEES(at != MAP_FAILED);
    strcpy(at + 4090, "over the edge");
    SEES(msync(at, 8192, MS_SYNC) == 0 && munmap(at, 8192) == 0 && close(fd) == 0);
    int from = open("mapped", O_RDONLY);
    char got[14] = "";
    SEES(pread(from, got, 13, 4090) == 13 && strcmp(got, "over the edge") == 0);
    close(from);
}

/* From a place in memory that no page begins at, in one call. */
static void see_much(void) {
    char *bytes = malloc(LARGE + 1), *again = malloc(LARGE);
    SEES(bytes && again);
    for (int i = 0; i <= LARGE; i++)
        bytes[i] = (char)(i * 2654435761u >> 11);
    int fd = open("much", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    SEES(write(fd, bytes + 1, LARGE) == LARGE && fsync(fd) == 0 && close(fd) == 0);
    fd = open("much", O_RDONLY);
    SEES(read(fd, again, LARGE) == LARGE && memcmp(again, bytes + 1, LARGE) == 0);
    close(fd);
    free(bytes);
    free(again);
}

/* What another process changes is seen here at once. */
static void see_another(void) {
    int status;
    SEES(!is_there("of-another") && of("c").st_size == 5);
    pid_t pid = fork();
    if (pid == 0) {
        close(put("of-another", 0, "x"));
        close(put("c", O_APPEND, "!"));
        _exit(unlink("mapped") != 0);
    }
    SEES(waitpid(pid, &status, 0) == pid && status == 0);
    SEES(is_there("of-another") && of("c").st_size == 6 && !is_there("mapped"));
}

int main(int argc, char **argv) {
    if (argc != 2 || chdir(argv[1]) != 0)
        return 2;
    umask(022);
    see_names();
    see_folders();
    see_bytes();
    see_mapping();
    see_much();
    see_another();
    return 0;
}
