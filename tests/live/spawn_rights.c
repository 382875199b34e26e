/* Tries what a job should not be able to do to the host it runs on, and what it should, and prints
 * a line for each: "may NAME" or "may not NAME". Nothing is changed by it: what it makes it takes
 * away, files that would change the kernel are opened and closed. What this host does not have is
 * not told. spawn_rights        the lot spawn_rights NAME   one of them; exits 0 when it may */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <unistd.h>

enum answer { NO, YES, ABSENT };

static enum answer answer_of(long r) {
    if (r >= 0)
        return YES;
    return errno == ENOENT || errno == ENOSYS || errno == ENOTDIR || errno == ENODEV ? ABSENT : NO;
}

static enum answer may_open(const char *path, int flags) {
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
    enum answer a = answer_of(fd);
    if (fd >= 0)
        close(fd);
    return a;
}

static enum answer may_make(const char *dir) {
    char path[4200];
    snprintf(path, sizeof(path), "%s/.spawn_rights-%d", dir, (int)getpid());
    enum answer a = may_open(path, O_WRONLY | O_CREAT | O_EXCL);
    unlink(path);
    return a;
}

/* ---- what is the host's ---- */

static enum answer write_etc(void) {
    return may_make("/etc");
}

static enum answer write_usr(void) {
    return may_make("/usr/bin");
}

static enum answer write_sysctl(void) {
    return may_open("/proc/sys/kernel/core_pattern", O_WRONLY);
}

static enum answer write_sysrq(void) {
    return may_open("/proc/sysrq-trigger", O_WRONLY);
}

static enum answer write_sys(void) {
    return may_open("/sys/kernel/mm/transparent_hugepage/enabled", O_WRONLY);
}

static enum answer read_disk(void) {
    char path[300];
    enum answer a = ABSENT;
    DIR *d = opendir("/sys/block");
    for (struct dirent *e; d && a == ABSENT && (e = readdir(d));)
        if (*e->d_name != '.') {
            snprintf(path, sizeof(path), "/dev/%s", e->d_name);
            a = may_open(path, O_RDONLY);
        }
    if (d)
        closedir(d);
    return a;
}

static enum answer read_log(void) {
    return may_open("/dev/kmsg", O_RDONLY);
}

static enum answer make_device(void) {
    int r = mknod("spawn_rights.device", S_IFBLK | 0600, makedev(7, 0));
    enum answer a = answer_of(r);
    unlink("spawn_rights.device");
    return a;
}

static enum answer do_mount(void) {
    int r = mount("none", "/tmp", "tmpfs", 0, NULL);
    enum answer a = answer_of(r);
    if (r == 0)
        umount2("/tmp", MNT_DETACH);
    return a;
}

static enum answer unseal(void) {
    if (mount(NULL, "/etc", NULL, MS_REMOUNT | MS_BIND, NULL) == 0 ||
        umount2("/etc", MNT_DETACH) == 0)
        return may_make("/etc");
    return NO;
}

/* An empty file is no module: ENOEXEC says that it was looked at. */
static enum answer load_module(void) {
    int fd = memfd_create("none", MFD_CLOEXEC);
    long r = syscall(SYS_finit_module, fd, "", 0);
    enum answer a = r < 0 && (errno == ENOEXEC || errno == EINVAL) ? YES : answer_of(r);
    close(fd);
    return a;
}

/* The frequency that it has. */
static enum answer set_clock(void) {
    struct timex t = {0};
    adjtimex(&t);
    t.modes = ADJ_FREQUENCY;
    return answer_of(adjtimex(&t));
}

static enum answer open_by_handle(void) {
    union {
        struct file_handle handle;
        char room[sizeof(struct file_handle) + 8];
    } u = {.handle = {.handle_bytes = 8, .handle_type = 1}};
    int fd = open_by_handle_at(AT_FDCWD, &u.handle, O_PATH);
    return fd >= 0 || errno != EPERM ? YES : NO;
}

static enum answer trace_first(void) {
    return answer_of(ptrace(PTRACE_SEIZE, 1, NULL, NULL));
}

static enum answer make_cgroup(void) {
    char line[8192], at[4096], type[64], path[4200];
    enum answer a = ABSENT;
    FILE *f = fopen("/proc/self/mounts", "re");
    while (f && a != YES && fgets(line, sizeof(line), f))
        if (sscanf(line, "%*s %4095s %63s", at, type) == 2 && strncmp(type, "cgroup", 6) == 0) {
            snprintf(path, sizeof(path), "%s/spawn_rights-%d", at, (int)getpid());
            a = answer_of(mkdir(path, 0755));
            rmdir(path);
        }
    if (f)
        fclose(f);
    return a;
}

/* Root of a namespace of its own gets at what is the machine's? */
static enum answer write_nested(const char *type, const char *path) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET) != 0)
            _exit(NO);
        pid_t inner = fork();
        if (inner == 0)
            _exit(mount(type, "/tmp", type, 0, NULL) == 0 ? may_open(path, O_WRONLY) : NO);
        waitpid(inner, &status, 0);
        _exit(WEXITSTATUS(status));
    }
    waitpid(pid, &status, 0);
    return (enum answer)WEXITSTATUS(status);
}

static enum answer write_sysctl_nested(void) {
    return write_nested("proc", "/tmp/sys/kernel/core_pattern");
}

static enum answer write_sys_nested(void) {
    return write_nested("sysfs", "/tmp/kernel/mm/transparent_hugepage/enabled");
}

/* ---- what is a job's ---- */

static enum answer write_here(void) {
    return may_make(".");
}

static enum answer write_null(void) {
    return may_open("/dev/null", O_RDWR);
}

static enum answer make_terminal(void) {
    int fd = posix_openpt(O_RDWR | O_NOCTTY);
    enum answer a = fd >= 0 && grantpt(fd) == 0 && unlockpt(fd) == 0
                        ? may_open(ptsname(fd), O_RDWR | O_NOCTTY)
                        : NO;
    if (fd >= 0)
        close(fd);
    return a;
}

static enum answer give_file(void) {
    close(open("spawn_rights.file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    enum answer a = answer_of(chown("spawn_rights.file", 12345, 12345));
    unlink("spawn_rights.file");
    return a;
}

static enum answer be_another(void) {
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(setuid(12345) != 0);
    waitpid(pid, &status, 0);
    return status == 0 ? YES : NO;
}

static enum answer low_port(void) {
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(81)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    enum answer a = answer_of(bind(fd, (void *)&any, sizeof(any)));
    close(fd);
    return a;
}

static enum answer trace_child(void) {
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    enum answer a = answer_of(ptrace(PTRACE_ATTACH, pid, NULL, NULL));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return a;
}

static const struct {
    const char *name;
    enum answer (*fn)(void);
} trials[] = {
    {"write-etc", write_etc},
    {"write-usr", write_usr},
    {"write-sysctl", write_sysctl},
    {"write-sysctl-nested", write_sysctl_nested},
    {"write-sys-nested", write_sys_nested},
    {"write-sysrq", write_sysrq},
    {"write-sys", write_sys},
    {"read-disk", read_disk},
    {"read-log", read_log},
    {"make-device", make_device},
    {"mount", do_mount},
    {"unseal", unseal},
    {"load-module", load_module},
    {"set-clock", set_clock},
    {"open-by-handle", open_by_handle},
    {"trace-first", trace_first},
    {"make-cgroup", make_cgroup},
    {"here", write_here},
    {"null", write_null},
    {"terminal", make_terminal},
    {"chown", give_file},
    {"setuid", be_another},
    {"low-port", low_port},
    {"trace-child", trace_child},
};

int main(int argc, char **argv) {
    for (size_t i = 0; i < sizeof(trials) / sizeof(*trials); i++) {
        if (argc > 1 && strcmp(argv[1], trials[i].name) != 0)
            continue;
        enum answer a = trials[i].fn();
        if (a != ABSENT)
            printf("may%s %s\n", a == YES ? "" : " not", trials[i].name);
        fflush(stdout);
        if (argc > 1)
            return a != YES;
    }
    return argc > 1;
}
