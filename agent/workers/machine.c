#include "agent/workers/machine.h"

#include "base/arena.h"
#include "base/str.h"
#include "base/sys/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <mntent.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define A_SETTING "/proc/sys/kernel/core_pattern"

/* File systems that are the kernel itself, and hold nothing that a job writes. */
static const char *const settings[] = {"sysfs",       "cgroup",    "cgroup2",  "debugfs", "tracefs",
                                       "securityfs",  "efivarfs",  "configfs", "resctrl", "pstore",
                                       "binfmt_misc", "selinuxfs", "smackfs",  "fusectl", "bpf",
                                       "nfsd",        NULL};
/* Character devices by their major numbers (Documentation/admin-guide/devices.txt). */
enum { MEMORY = 1, TERMINAL = 5, MISC = 10 };
static const unsigned closed_majors[] = {
    4,  7,   13,  29,                 /* consoles, their screens, input */
    6,  99,  166, 188, 204, 229,      /* parallel and serial lines */
    9,  21,  86,  90,  162,           /* tapes, SCSI, flash memory, raw disks */
    14, 81,  116, 212,                /* sound and video */
    89, 108, 153, 180, 189, 202, 203, /* I2C, PPP, SPI, USB, the processors' registers */
};
/* Those that have another number each time. */
static const char *const closed_names[] = {"nvme", "ng",    "dax", "watchdog", "rtc",      "hidraw",
                                           "ipmi", "mei",   "tpm", "fw",       "gpiochip", "ptp",
                                           "pps",  "media", "cec", "vport",    NULL};
static const char *const open_misc[] = {"rdma_cm", "knem", "xpmem", NULL};

/* "nvme0" is one of nvme's. */
static bool is_numbered(const char *name, const char *const *list) {
    for (; *list; list++) {
        size_t n = strlen(*list);
        if (strncmp(name, *list, n) == 0 && (!name[n] || strchr("0123456789", name[n])))
            return true;
    }
    return false;
}

static bool is_for_jobs(const struct stat *st, const char *path, const char *name) {
    unsigned most = major(st->st_rdev), least = minor(st->st_rdev);
    if (!S_ISCHR(st->st_mode))
        return false;
    if (most == MEMORY) /* null, zero, full, random, urandom */
        return least == 3 || least == 5 || (least >= 7 && least <= 9);
    if (most == TERMINAL) /* tty, ptmx */
        return least == 0 || least == 2;
    if (most == MISC)
        return str_in(name, open_misc);
    for (size_t i = 0; i < sizeof(closed_majors) / sizeof(*closed_majors); i++)
        if (most == closed_majors[i])
            return false;
    return !is_numbered(name, closed_names) && !strstr(path, "/bsg/");
}

struct mounted {
    const char *dir, *type;
    unsigned long flags; /* that a remount must repeat */
};

static int list_mounts(struct arena *a, struct mounted **ret, size_t *ret_n, struct err *err) {
    static const char path[] = "/proc/self/mounts";
    struct mntent e;
    char line[2 * PATH_MAX];
    size_t n = 0, cap = 0;
    FILE *f = setmntent(path, "re");
    if (!f)
        return err_set(err, -errno, "--sandbox: read %s", path);
    while (getmntent_r(f, &e, line, sizeof(line))) {
        if (n == cap) {
            struct mounted *more = arena_array(a, struct mounted, cap = cap ? 2 * cap : 64);
            if (n)
                memcpy(more, *ret, n * sizeof(*more));
            *ret = more;
        }
        (*ret)[n++] = (struct mounted){arena_strdup(a, e.mnt_dir), arena_strdup(a, e.mnt_type),
                                       (hasmntopt(&e, "ro") ? MS_RDONLY : 0) |
                                           (hasmntopt(&e, "nosuid") ? MS_NOSUID : 0) |
                                           (hasmntopt(&e, "nodev") ? MS_NODEV : 0) |
                                           (hasmntopt(&e, "noexec") ? MS_NOEXEC : 0)};
    }
    endmntent(f);
    *ret_n = n;
    return 0;
}

/* One that is hidden by what was mounted over a directory above it is nobody's to write. Nor does
 * anything come below settings from the host later: an automount of a register of programs, say. */
static int restrict_mount(const char *dir, unsigned long flags, struct err *err) {
    if (mount(NULL, dir, NULL, MS_REMOUNT | MS_BIND | flags, NULL) == 0 &&
        (!(flags & MS_RDONLY) || mount(NULL, dir, NULL, MS_REC | MS_PRIVATE, NULL) == 0))
        return 0;
    if (errno == EINVAL || errno == ENOENT || errno == ENOTDIR)
        return 0;
    return err_set(err, -errno, "--sandbox: mount %s %s", dir,
                   flags & MS_RDONLY ? "read-only" : "without devices");
}

static int show(const char *source, const char *path, struct err *err) {
    if (mount(source, path, NULL, MS_BIND | MS_REC, NULL) == 0)
        return 0;
    return err_set(err, -errno, "--sandbox: mount %s at %s", source, path);
}

/* Whoever waits for pressure writes there what for. */
static bool is_setting(int dir, const char *name) {
    struct stat st;
    if (name[0] == '.' || str_eq(name, "pressure") ||
        fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    return S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && (st.st_mode & 0222));
}

static bool is_process(const char *name) {
    return name[0] >= '0' && name[0] <= '9';
}

/* All but the processes, which the kernel lists last. What is mounted below is read-only already.
 */
static int close_entries(DIR *d, const struct mounted *m, struct err *err) {
    char path[PATH_MAX];
    int code = 0;
    for (struct dirent *e; !code && (e = readdir(d)) != NULL && !is_process(e->d_name);) {
        if (!is_setting(dirfd(d), e->d_name))
            continue;
        snprintf(path, sizeof(path), "%s/%s", m->dir, e->d_name);
        code = show(path, path, err);
        if (!code)
            code = restrict_mount(path, m->flags | MS_RDONLY, err);
    }
    return code;
}

/* One that is a part of a /proc only, as containers have it, is closed as a whole. */
static int close_proc(const struct mounted *m, struct err *err) {
    struct stat st;
    FILE_CLOSE_DIR DIR *d = opendir(m->dir);
    if (!d)
        return 0; /* hidden, as above */
    bool whole = fstatat(dirfd(d), "self", &st, AT_SYMLINK_NOFOLLOW) == 0;
    int code = whole ? close_entries(d, m, err) : restrict_mount(m->dir, m->flags | MS_RDONLY, err);
    return code;
}

/* nftw(3) knows no argument. */
static const char *walk_dir;
static struct err *walk_err;

/* The maker of terminals looks for those beside it, which a mount of its own has not: the same one
 * lies among them. */
static int open_device(const char *path, const struct stat *st, int type, struct FTW *where) {
    char among[PATH_MAX];
    if (type != FTW_F || !is_for_jobs(st, path, path + where->base))
        return 0;
    if (!str_eq(path + where->base, "ptmx"))
        return show(path, path, walk_err);
    snprintf(among, sizeof(among), "%s/pts/ptmx", walk_dir);
    return access(among, F_OK) < 0 ? 0 : show(among, path, walk_err);
}

/* What jobs need is mounted on itself, and goes on working when the rest does not; nor does what
 * is made there later. A root of a user namespace has no power over devices of the host's. */
static int close_devices(const char *dir, unsigned long flags, struct err *err) {
    struct stat st;
    if (stat(dir, &st) < 0 || st.st_uid != 0)
        return 0;
    walk_dir = dir;
    walk_err = err;
    int code = nftw(dir, open_device, 16, FTW_PHYS | FTW_MOUNT);
    if (code == -1)
        code = err_set(err, -errno, "--sandbox: list %s", dir);
    return code ? code : restrict_mount(dir, flags | MS_NODEV, err);
}

static int close_mount(const struct mounted *m, struct err *err) {
    bool dev = str_eq(m->dir, "/dev") || str_eq(m->type, "devtmpfs");
    if (str_eq(m->type, "proc") && !(m->flags & MS_RDONLY))
        return close_proc(m, err);
    return dev && !(m->flags & MS_NODEV) ? close_devices(m->dir, m->flags, err) : 0;
}

/* As much as can be; the error is that of one that could not. What lies below a /proc goes with it,
 * and comes before. */
static int close_all(const struct mounted *all, size_t n, struct err *err) {
    int code = 0, r;
    for (size_t i = 0; i < n; i++)
        if (str_in(all[i].type, settings) && !(all[i].flags & MS_RDONLY)) {
            r = restrict_mount(all[i].dir, all[i].flags | MS_RDONLY, err);
            code = r ? r : code;
        }
    for (size_t i = 0; i < n; i++) {
        r = close_mount(&all[i], err);
        code = r ? r : code;
    }
    return code;
}

/* A directory that was entered before lies under what was mounted since. */
static void enter_directory_anew(void) {
    char dir[PATH_MAX];
    if (!getcwd(dir, sizeof(dir)) || chdir(dir) < 0)
        return;
}

static int have_own_mounts(struct err *err) {
    if (mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL) == 0)
        return 0;
    return err_set(err, -errno, "--sandbox: part this job's mounts from the host's");
}

int machine_close(struct err *err) {
    ARENA_FINI struct arena a = {0};
    struct mounted *all = NULL;
    size_t n = 0;
    if (geteuid() != 0)
        return 0;
    if (unshare(CLONE_NEWNS) < 0) {
        if (access(A_SETTING, W_OK) < 0)
            return 0;
        return err_set(err, -errno, "--sandbox: make a mount namespace to close %s in", A_SETTING);
    }
    int code = have_own_mounts(err);
    if (!code)
        code = list_mounts(&a, &all, &n, err);
    if (!code)
        code = close_all(all, n, err);
    enter_directory_anew();
    return code;
}
