/* confined: the system that a launcher with --sandbox asks, played. Loaded before the C library (confining.py), it notes each call by which the
 * launcher and its guard give up rights, in words, in the file CONFINED_LOG, does none of it, and lets one fail.
 *
 * Of the environment: CONFINED_FAIL, "agent 3 1": the third call of the agent's, or guard's, fails with error 1; CONFINED_LANDLOCK, the version that
 * the kernel has; CONFINED_UID; CONFINED_MOUNTS and CONFINED_DEVICES, files in place of the table of mounts
 * and of what lies in /dev, with fewer in CONFINED_DEVICES.few for another directory; CONFINED_SETTING, with which error no setting can be written.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <mntent.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { RIGHTS = 41 };

static pid_t first;
static int page = -1; /* the descriptor of the newest page without a name */
static bool is_launcher, is_guard;

#define REAL(name) ((__typeof__(&(name)))(uintptr_t)dlsym(RTLD_NEXT, #name))

static long number_of(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text && *text ? atol(text) : otherwise;
}

__attribute__((constructor)) static void begin(void) {
    const char *name = program_invocation_short_name;
    first = getpid();
    is_guard = strcmp(name, "rankrun-guard") == 0;
    is_launcher = getenv("CONFINED_LOG") && (is_guard || strcmp(name, "rankrun") == 0);
}

/* Notes a call of this process, and returns with which error it is to fail; 0: with none. */
__attribute__((format(printf, 1, 2))) int confined(const char *fmt, ...) {
    static pid_t of;
    static int calls;
    char line[8192], role[16];
    int number = 0, code = 0, n;
    va_list ap;
    if (of != getpid())
        calls = 0;
    of = getpid();
    n = snprintf(line, sizeof(line), "%s ", is_guard || of != first ? "guard" : "agent");
    va_start(ap, fmt);
    n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
    va_end(ap);
    line[n++] = '\n';
    int log = REAL(open)(getenv("CONFINED_LOG"), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (log < 0 || write(log, line, (size_t)n) != n)
        abort();
    close(log);
    calls++;
    if (sscanf(getenv("CONFINED_FAIL") ? getenv("CONFINED_FAIL") : "", "%15s %d %d", role, &number,
               &code) == 3 &&
        number == calls && strncmp(role, line, 5) == 0)
        return code;
    return 0;
}

static int fails(int code) {
    errno = code;
    return code ? -1 : 0;
}

/* ---- privileges ---- */

int prctl(int option, ...) {
    unsigned long a[4];
    va_list ap;
    va_start(ap, option);
    for (int i = 0; i < 4; i++)
        a[i] = va_arg(ap, unsigned long);
    va_end(ap);
    if (!is_launcher || (option != PR_SET_NO_NEW_PRIVS && option != PR_SET_DUMPABLE &&
                         option != PR_CAPBSET_DROP && option != PR_CAPBSET_READ))
        return REAL(prctl)(option, a[0], a[1], a[2], a[3]);
    if (option == PR_CAPBSET_READ)
        return a[0] < RIGHTS ? 1 : fails(EINVAL);
    return fails(confined("prctl %s %lu %lu %lu %lu",
                          option == PR_SET_NO_NEW_PRIVS ? "NO_NEW_PRIVS"
                          : option == PR_SET_DUMPABLE   ? "DUMPABLE"
                                                        : "CAPBSET_DROP",
                          a[0], a[1], a[2], a[3]));
}

static long capabilities(long call, const long *a) {
    struct __user_cap_data_struct *sets = (void *)a[1];
    if (call == SYS_capget) {
        memset(sets, 0xff, 2 * sizeof(*sets));
        return fails(confined("capget"));
    }
    return fails(confined("capset effective %x %x permitted %x %x inheritable %x %x",
                          sets[1].effective, sets[0].effective, sets[1].permitted,
                          sets[0].permitted, sets[1].inheritable, sets[0].inheritable));
}

/* As the played library has written them. */
static long filter(const long *a) {
    const struct sock_fprog *p = (const void *)a[2];
    int as_made = 0;
    while (as_made < p->len && p->filter[as_made].code == 6 &&
           p->filter[as_made].k == 0x7fff0000U + (unsigned)as_made)
        as_made++;
    return fails(confined("seccomp %ld %ld, a filter of %d, of which %d are as they were made",
                          a[0], a[1], p->len, as_made));
}

static long landlock(long call, const long *a) {
    const struct { uint64_t fs, net, scopes; } *rules = (const void *)a[0];
    char opened[256] = "", path[64];
    if (call == SYS_landlock_create_ruleset && !rules) {
        int code = confined("landlock: which version? %ld %ld", a[1], a[2]);
        long version = number_of("CONFINED_LANDLOCK", 7);
        return code || version < 0 ? fails(code ? code : (int)-version) : version;
    }
    if (call == SYS_landlock_create_ruleset) {
        int code =
            confined("landlock: rules for files %#lx, network %#lx, scopes %#lx, of %ld bytes, %ld",
                     (long)rules->fs, (long)rules->net, (long)rules->scopes, a[1], a[2]);
        return code ? fails(code) : REAL(memfd_create)("rules", MFD_CLOEXEC);
    }
    if (call == SYS_landlock_restrict_self)
        return fails(
            confined("landlock: restrict, with %s, %ld", a[0] > 2 ? "rules" : "none", a[1]));
    const struct {
        uint64_t allowed;
        int32_t directory;
    } __attribute__((packed)) *beneath = (const void *)a[2];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", beneath->directory);
    if (readlink(path, opened, sizeof(opened) - 1) < 0)
        strcpy(opened, "nothing");
    return fails(confined("landlock: a rule of kind %ld, with %s, allows %#lx below %s, %ld", a[1],
                          a[0] > 2 ? "rules" : "none", (long)beneath->allowed, opened, a[3]));
}

long syscall(long call, ...) {
    long a[6];
    va_list ap;
    va_start(ap, call);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (is_launcher && (call == SYS_capget || call == SYS_capset))
        return capabilities(call, a);
    if (is_launcher && call == SYS_seccomp)
        return filter(a);
    if (is_launcher && (call == SYS_landlock_create_ruleset || call == SYS_landlock_add_rule ||
                        call == SYS_landlock_restrict_self))
        return landlock(call, a);
    return REAL(syscall)(call, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- the library ---- */

void *dlopen(const char *file, int flags) {
    if (!is_launcher || !file || !strstr(file, "libseccomp"))
        return REAL(dlopen)(file, flags);
    return confined("dlopen %s %d", file, flags) ? NULL
                                                 : REAL(dlopen)(getenv("CONFINED_LIBRARY"), flags);
}

int dlclose(void *handle) {
    if (is_launcher)
        confined("dlclose");
    return REAL(dlclose)(handle);
}

int memfd_create(const char *name, unsigned flags) {
    if (!is_launcher || strcmp(name, "rankrun-sandbox") != 0)
        return REAL(memfd_create)(name, flags);
    int code = confined("memfd_create %s %u", name, flags);
    page = code ? -1 : REAL(memfd_create)(name, flags);
    return code ? fails(code) : page;
}

off_t lseek(int fd, off_t offset, int whence) {
    int code = is_launcher && fd == page ? confined("lseek %ld %d", (long)offset, whence) : 0;
    page = -1;
    return code ? fails(code) : REAL(lseek)(fd, offset, whence);
}

/* ---- files and mounts ---- */

uid_t geteuid(void) {
    return is_launcher ? (uid_t)number_of("CONFINED_UID", 0) : REAL(geteuid)();
}

int open(const char *path, int flags, ...) {
    va_list ap;
    va_start(ap, flags);
    mode_t mode = va_arg(ap, mode_t);
    va_end(ap);
    int code = is_launcher && (flags & O_PATH) ? confined("open %s %#x", path, (unsigned)flags) : 0;
    return code ? fails(code) : REAL(open)(path, flags, mode);
}

int access(const char *path, int mode) {
    if (!is_launcher || strcmp(path, "/proc/sys/kernel/core_pattern") != 0)
        return REAL(access)(path, mode);
    int code = confined("access %s %d", path, mode);
    return fails(code ? code : (int)number_of("CONFINED_SETTING", 0));
}

int chdir(const char *path) {
    int code = is_launcher ? confined("chdir %s", path) : 0;
    return code ? fails(code) : REAL(chdir)(path);
}

int unshare(int flags) {
    return is_launcher ? fails(confined("unshare %#x", (unsigned)flags)) : REAL(unshare)(flags);
}

int mount(const char *source, const char *target, const char *type, unsigned long flags,
          const void *data) {
    if (!is_launcher)
        return REAL(mount)(source, target, type, flags, data);
    return fails(
        confined("mount %s at %s, %s, %s:%s%s%s%s%s%s%s%s%s %#lx", source ? source : "nothing",
                 target, type ? type : "of no type", data ? (const char *)data : "no options",
                 flags & MS_RDONLY ? " read-only" : "", flags & MS_NOSUID ? " nosuid" : "",
                 flags & MS_NODEV ? " nodev" : "", flags & MS_NOEXEC ? " noexec" : "",
                 flags & MS_REMOUNT ? " remount" : "", flags & MS_BIND ? " bind" : "",
                 flags & MS_REC ? " all" : "", flags & MS_PRIVATE ? " private" : "",
                 flags & MS_SLAVE ? " slave" : "",
                 flags & ~(unsigned long)(MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC |
                                          MS_REMOUNT | MS_BIND | MS_REC | MS_PRIVATE | MS_SLAVE)));
}

FILE *setmntent(const char *path, const char *how) {
    int code = is_launcher ? confined("setmntent %s %s", path, how) : 0;
    errno = code;
    return code ? NULL : REAL(setmntent)(is_launcher ? getenv("CONFINED_MOUNTS") : path, how);
}

int endmntent(FILE *f) {
    if (is_launcher)
        confined("endmntent");
    return REAL(endmntent)(f);
}

/* Of a line "char 10 235 file autofs": what it is, its numbers, as what it is walked past, and its path. */
static int pass(const char *dir, const char *line, __nftw_func_t each) {
    char what[8], as[8], path[512], below[256];
    unsigned most, least;
    if (sscanf(line, "%7s %u %u %7s %255s", what, &most, &least, as, below) != 5)
        abort();
    struct stat st = {.st_mode = *what == 'c'   ? S_IFCHR
                                 : *what == 'b' ? S_IFBLK
                                                : S_IFREG,
                      .st_rdev = makedev(most, least)};
    snprintf(path, sizeof(path), "%s/%s", dir, below);
    struct FTW where = {.base = (int)(strrchr(path, '/') + 1 - path)};
    return each(path, &st, *as == 'f' ? FTW_F : *as == 'd' ? FTW_D : FTW_SL, &where);
}

int nftw(const char *dir, __nftw_func_t each, int depth, int flags) {
    char line[512];
    if (!is_launcher)
        return REAL(nftw)(dir, each, depth, flags);
    int code = confined("nftw %s %d %#x", dir, depth, (unsigned)flags);
    if (code)
        return fails(code);
    snprintf(line, sizeof(line), "%s%s", getenv("CONFINED_DEVICES"),
             strcmp(dir, "/dev") == 0 ? "" : ".few");
    FILE *f = fopen(line, "re");
    while (!code && fgets(line, sizeof(line), f))
        code = pass(dir, line, each);
    fclose(f);
    return code;
}

/* ---- directories, in an order that is the same everywhere: processes last, but for what begins with z ---- */

static DIR *listed;
static struct dirent entries[64];
static size_t entries_n, entries_at;

static int by_name(const void *a, const void *b) {
    const char *one = ((const struct dirent *)a)->d_name, *two = ((const struct dirent *)b)->d_name;
    int late_one = *one == 'z' ? 2 : *one >= '0' && *one <= '9',
        late_two = *two == 'z' ? 2 : *two >= '0' && *two <= '9';
    return late_one != late_two ? late_one - late_two : strcmp(one, two);
}

DIR *opendir(const char *path) {
    DIR *d = REAL(opendir)(path);
    if (!is_launcher || !d ||
        strncmp(path, getenv("CONFINED_HERE"), strlen(getenv("CONFINED_HERE"))) != 0)
        return d;
    listed = d;
    entries_n = entries_at = 0;
    for (struct dirent *e; entries_n < 64 && (e = REAL(readdir)(d)) != NULL;)
        entries[entries_n++] = *e;
    qsort(entries, entries_n, sizeof(*entries), by_name);
    return d;
}

struct dirent *readdir(DIR *d) {
    if (d != listed)
        return REAL(readdir)(d);
    return entries_at < entries_n ? &entries[entries_at++] : NULL;
}

int closedir(DIR *d) {
    if (d == listed) {
        listed = NULL;
        confined("closedir");
    }
    return REAL(closedir)(d);
}
