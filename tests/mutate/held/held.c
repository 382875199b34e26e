/* held: linked into a unit test, it looks at the end of the program whether all that was opened and started has been given
 * back: descriptors that were not open at the beginning are listed with what they lead to, and children that nobody has
 * waited for. Either ends the program with 1. A child that ends where it was forked is not asked. A test
 * whose standard input is empty begins without one: who takes descriptor 0 for none does not give it back. */
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DESCRIPTORS_MAX = 4096 };

static bool was_open[DESCRIPTORS_MAX];
static pid_t owner;

static int descriptor_of(const struct dirent *e, const DIR *dir) {
    int fd = atoi(e->d_name);
    return *e->d_name == '.' || fd == dirfd((DIR *)dir) || fd >= DESCRIPTORS_MAX ? -1 : fd;
}

static void target_of(int fd, char ret[PATH_MAX]) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, ret, PATH_MAX - 1);
    ret[n > 0 ? n : 0] = '\0';
}

static bool leads_nowhere(int fd) {
    char target[PATH_MAX];
    target_of(fd, target);
    return strcmp(target, "/dev/null") == 0;
}

/* Says so if it is still open for no reason: who gives those that are started a standard input keeps it. */
static bool tell(int fd) {
    char target[PATH_MAX];
    if (fd == STDIN_FILENO && leads_nowhere(fd))
        return false;
    target_of(fd, target);
    fprintf(stderr, "descriptor %d is still open: %s\n", fd, target);
    return true;
}

__attribute__((constructor)) static void begin(void) {
    if (leads_nowhere(STDIN_FILENO))
        close(STDIN_FILENO);
    DIR *dir = opendir("/proc/self/fd");
    owner = getpid();
    for (struct dirent *e; dir && (e = readdir(dir));) {
        int fd = descriptor_of(e, dir);
        if (fd >= 0)
            was_open[fd] = true;
    }
    if (dir)
        closedir(dir);
}

static bool is_something_open(void) {
    DIR *dir = opendir("/proc/self/fd");
    bool ret = false;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        int fd = descriptor_of(e, dir);
        if (fd < 0 || was_open[fd])
            continue;
        ret |= tell(fd);
    }
    if (dir)
        closedir(dir);
    return ret;
}

static bool has_children(void) {
    siginfo_t info = {0};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
        return false;
    if (info.si_pid)
        fprintf(stderr, "child %d has ended, and nobody has waited for it\n", (int)info.si_pid);
    else
        fprintf(stderr, "a child is still running\n");
    return true;
}

__attribute__((destructor)) static void end(void) {
    if (getpid() != owner)
        return;
    bool open = is_something_open(), children = has_children();
    if (!open && !children)
        return;
    fflush(NULL);
    _exit(1);
}
