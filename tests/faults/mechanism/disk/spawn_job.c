/* A program that does to a directory what savers of checkpoints do, and then some: spawn_job DIR.
 * It says what is not as on any other file system, and exits 1 then. */
#include <errno.h>
#include <fcntl.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static int failed;

#define IS(what)                                                                                   \
    do {                                                                                           \
        errno = 0;                                                                                 \
        if (!(what)) {                                                                             \
            printf("line %d: not so: %s (%s)\n", __LINE__, #what, strerror(errno));                \
            failed = 1;                                                                            \
        }                                                                                          \
    } while (0)

static void write_file(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    IS(fd >= 0);
    IS(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    IS(close(fd) == 0);
}

static int holds(const char *path, const char *text) {
    char got[256] = "";
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, got, sizeof(got) - 1);
    if (fd >= 0)
        close(fd);
    return n == (ssize_t)strlen(text) && strcmp(got, text) == 0;
}

static void save_atomically(void) {
    int dir = open(".", O_RDONLY | O_DIRECTORY), fd;
    IS(mkdir("step-1", 0755) == 0);
    IS((fd = open("step-1/model.tmp", O_WRONLY | O_CREAT | O_EXCL, 0600)) >= 0);
    IS(pwrite(fd, "weights", 7, 0) == 7);
    IS(fsync(fd) == 0);
    IS(close(fd) == 0);
    IS(rename("step-1/model.tmp", "step-1/model") == 0);
    IS(fsync(dir) == 0);
    IS(close(dir) == 0);
    IS(holds("step-1/model", "weights"));
    IS(access("step-1/model.tmp", F_OK) != 0 && errno == ENOENT);
}

static void names(void) {
    struct stat a, b;
    write_file("one", "1");
    write_file("two", "2");
    IS(renameat2(AT_FDCWD, "one", AT_FDCWD, "two", 1 /* NOREPLACE */) != 0 && errno == EEXIST);
    IS(renameat2(AT_FDCWD, "one", AT_FDCWD, "two", 2 /* EXCHANGE */) == 0);
    IS(holds("one", "2") && holds("two", "1"));
    IS(link("one", "uno") == 0);
    IS(stat("one", &a) == 0 && stat("uno", &b) == 0 && a.st_ino == b.st_ino && a.st_nlink == 2);
    IS(rename("one", "uno") == 0 && access("one", F_OK) == 0);
    IS(unlink("uno") == 0 && holds("one", "2"));
    IS(symlink("one", "latest") == 0 && holds("latest", "2"));
    IS(rename("two", "one") == 0 && holds("one", "1"));
    IS(mkdir("full", 0700) == 0);
    write_file("full/in", "");
    IS(rmdir("full") != 0 && errno == ENOTEMPTY);
    IS(rename("full", "moved") == 0 && access("moved/in", F_OK) == 0);
    IS(mkdir("empty", 0700) == 0 && rmdir("empty") == 0);
    IS(open("one", O_CREAT | O_EXCL | O_WRONLY, 0600) < 0 && errno == EEXIST);
}

static void bytes(void) {
    char got[8];
    struct stat st;
    int fd = open("appended", O_WRONLY | O_CREAT | O_APPEND, 0644);
    IS(write(fd, "ab", 2) == 2 && pwrite(fd, "cd", 2, 0) == 2); /* Linux appends it, too */
    IS(close(fd) == 0 && holds("appended", "abcd"));
    IS(truncate("appended", 2) == 0 && holds("appended", "ab"));
    write_file("appended", "x");
    IS(holds("appended", "x"));
    IS((fd = open("allocated", O_RDWR | O_CREAT, 0644)) >= 0);
    IS(fallocate(fd, 0, 0, 5000) == 0 && fstat(fd, &st) == 0 && st.st_size == 5000);
    IS(pread(fd, got, 8, 4990) == 8 && got[0] == 0);
    IS(ftruncate(fd, 3) == 0 && fdatasync(fd) == 0);
    IS(close(fd) == 0);
    IS((fd = open("gone", O_RDWR | O_CREAT, 0600)) >= 0);
    IS(unlink("gone") == 0 && write(fd, "still", 5) == 5 && pread(fd, got, 5, 0) == 5);
    IS(fstat(fd, &st) == 0 && st.st_nlink == 0 && memcmp(got, "still", 5) == 0);
    IS(close(fd) == 0);
    IS((fd = open("synced", O_WRONLY | O_CREAT | O_SYNC, 0600)) >= 0);
    IS(write(fd, "s", 1) == 1 && close(fd) == 0);
    IS(open(".", O_TMPFILE | O_RDWR, 0600) < 0 && errno == EOPNOTSUPP);
}

static void mappings(void) {
    int fd = open("mapped", O_RDWR | O_CREAT, 0644);
    IS(fd >= 0 && ftruncate(fd, 10000) == 0);
    char *m = mmap(NULL, 10000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    IS(m != MAP_FAILED);
    memcpy(m, "first", 6);
    IS(msync(m, 10000, MS_SYNC) == 0);
    memcpy(m + 8000, "second", 7);
    IS(munmap(m, 10000) == 0);
    IS(pread(fd, (char[8]){0}, 7, 8000) == 7);
    IS(close(fd) == 0);
}

/* Whether another process is kept out. */
static int is_locked(const char *path, int by_flock) {
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(path, O_RDWR);
        struct flock l = {.l_type = F_WRLCK};
        _exit(by_flock ? flock(fd, LOCK_EX | LOCK_NB) != 0 : fcntl(fd, F_SETLK, &l) != 0);
    }
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
}

static void locks(void) {
    struct flock l = {.l_type = F_WRLCK};
    int fd = open("locked", O_RDWR | O_CREAT, 0644);
    IS(!is_locked("locked", 1) && flock(fd, LOCK_EX) == 0 && is_locked("locked", 1));
    IS(flock(fd, LOCK_UN) == 0 && !is_locked("locked", 1));
    IS(fcntl(fd, F_SETLK, &l) == 0 && is_locked("locked", 0));
    IS(close(fd) == 0 && !is_locked("locked", 0));
}

static void many(void) {
    enum { MANY = 500 };
    char name[64], seen[MANY] = {0};
    int n = 0, k;
    IS(mkdir("many", 0755) == 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "many/a-name-of-some-length-%d", i);
        IS(mknod(name, S_IFREG | 0600, 0) == 0);
    }
    DIR *d = opendir("many");
    IS(d != NULL);
    for (struct dirent *e; d && (e = readdir(d));)
        if (sscanf(e->d_name, "a-name-of-some-length-%d", &k) == 1 && k < MANY && !seen[k]++)
            n++;
    IS(n == MANY);
    if (d)
        closedir(d);
}

static void attributes(void) {
    char got[16];
    struct stat st;
    struct timespec t[2] = {{1000, 5}, {2000, 6}};
    write_file("marked", "");
    if (setxattr("marked", "user.rq", "v", 1, 0) == 0 || errno != EOPNOTSUPP) {
        IS(getxattr("marked", "user.rq", got, sizeof(got)) == 1 && got[0] == 'v');
        IS(listxattr("marked", got, sizeof(got)) == 8);
        IS(removexattr("marked", "user.rq") == 0);
    }
    IS(chmod("marked", 0640) == 0 && utimensat(AT_FDCWD, "marked", t, 0) == 0);
    IS(stat("marked", &st) == 0 && (st.st_mode & 07777) == 0640 && st.st_mtim.tv_sec == 2000 &&
       st.st_mtim.tv_nsec == 6);
    IS(st.st_uid == geteuid() && st.st_gid == getegid());
}

int main(int argc, char **argv) {
    if (argc != 2 || chdir(argv[1]) != 0)
        return 2;
    umask(022);
    save_atomically();
    names();
    bytes();
    mappings();
    locks();
    many();
    attributes();
    return failed;
}
