/* held: preloaded into a program, it notes at the program's end which descriptors that has opened and not closed. A note is a symbolic link in
 * the folder HELD_LOGS, for a process that may write no file can make one: began.PID leads to the command line, ended.PID says that
 * descriptors were looked at, and open.PID.FD leads to what FD does. A fork that comes to such an end is asked as well.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { DESCRIPTORS_MAX = 4096 };

static bool was_open[DESCRIPTORS_MAX];
static char logs[PATH_MAX - 64];

static void note(const char *what, int pid, const char *target) {
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s.%d", logs, what, pid);
    if (*logs && symlink(*target ? target : "-", path) < 0)
        return; /* who lacks a note is not counted */
}

/* Calls f for each descriptor that is open. */
static void each_open(void (*f)(int fd)) {
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *e; dir && (e = readdir(dir));) {
        int fd = atoi(e->d_name);
        if (*e->d_name != '.' && fd != dirfd(dir) && fd < DESCRIPTORS_MAX)
            f(fd);
    }
    if (dir)
        closedir(dir);
}

static void keep(int fd) {
    was_open[fd] = true;
}

static void tell(int fd) {
    char path[64], name[64], target[PATH_MAX] = "";
    if (was_open[fd])
        return;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (readlink(path, target, sizeof(target) - 1) < 0)
        return;
    snprintf(name, sizeof(name), "open.%d", (int)getpid());
    note(name, fd, target);
}

static void note_words(void) {
    char words[PATH_MAX];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, words, sizeof(words) - 1);
    if (fd >= 0)
        close(fd);
    words[n > 0 ? n - 1 : 0] = '\0';
    for (ssize_t i = 0; i + 1 < n; i++)
        words[i] = words[i] ? words[i] : ' ';
    note("began", (int)getpid(), words);
}

__attribute__((constructor)) static void begin(void) {
    const char *where = getenv("HELD_LOGS");
    snprintf(logs, sizeof(logs), "%s", where ? where : "");
    each_open(keep);
    note_words();
}

__attribute__((destructor)) static void end(void) {
    each_open(tell);
    note("ended", (int)getpid(), "-");
}
