#include "agent/workers/sandbox.h"

#include "base/sys/file.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* In the order of what they are about. Not refused, because jobs use them: process_vm_readv and
 * process_vm_writev (MPI's and UCX's copies between processes), pidfd_getfd (CUDA memory shared
 * between processes), kcmp (graphics drivers), perf_event_open (profilers), personality (the
 * sanitizers' programs). What they may reach is the domain's business (domain.h). */
static const char *const refused[] = {
    /* other processes */
    "ptrace", "process_madvise", "setns", "unshare",
    /* the kernel */
    "init_module", "finit_module", "delete_module", "create_module", "kexec_load",
    "kexec_file_load", "bpf", "reboot", "syslog", "iopl", "ioperm", "modify_ldt", "acct",
    "lookup_dcookie", "vhangup",
    /* what gets round this filter, or hands the kernel's faults to a program */
    "io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd",
    /* file systems */
    "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "open_tree_attr",
    "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "open_by_handle_at",
    "fanotify_init", "fanotify_mark", "quotactl", "quotactl_fd", "nfsservctl", "swapon", "swapoff",
    /* the machine's clock and names */
    "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname",
    /* keys of others */
    "add_key", "request_key", "keyctl", NULL};

const char *const *sandbox_refused(void) {
    return refused;
}

/* Those that an older libseccomp does not know by name. Calls of this age have the same number on
 * every architecture. */
static const struct {
    const char *name;
    int number;
} young[] = {
    {"io_uring_setup", 425}, {"io_uring_enter", 426},  {"io_uring_register", 427},
    {"open_tree", 428},      {"move_mount", 429},      {"fsopen", 430},
    {"fsconfig", 431},       {"fsmount", 432},         {"fspick", 433},
    {"clone3", 435},         {"process_madvise", 440}, {"mount_setattr", 442},
    {"quotactl_fd", 443},    {"open_tree_attr", 467},
};

/* Refused when in every condition the bits of the argument that the mask names are, or are not,
 * those of the value. Of a number that the kernel takes for an int the upper half is anything. */
struct condition {
    unsigned arg;
    enum scmp_compare compare;
    uint64_t mask, value;
};
#define BITS(arg, mask, value)                                                                     \
    { arg, SCMP_CMP_MASKED_EQ, mask, value }
#define NOT_ZERO(arg)                                                                              \
    { arg, SCMP_CMP_NE, 0, 0 }
#define INT 0xffffffff

static const struct partly {
    const char *name;
    struct condition conditions[2]; /* the second may be missing: all 0 */
} partly[] = {
    /* a namespace of one's own */
    {"clone", {BITS(0, CLONE_NEWNS, CLONE_NEWNS)}},
    {"clone", {BITS(0, CLONE_NEWCGROUP, CLONE_NEWCGROUP)}},
    {"clone", {BITS(0, CLONE_NEWUTS, CLONE_NEWUTS)}},
    {"clone", {BITS(0, CLONE_NEWIPC, CLONE_NEWIPC)}},
    {"clone", {BITS(0, CLONE_NEWUSER, CLONE_NEWUSER)}},
    {"clone", {BITS(0, CLONE_NEWPID, CLONE_NEWPID)}},
    {"clone", {BITS(0, CLONE_NEWNET, CLONE_NEWNET)}},
    /* files that are devices */
    {"mknod", {BITS(1, S_IFMT, S_IFCHR)}},
    {"mknod", {BITS(1, S_IFMT, S_IFBLK)}},
    {"mknodat", {BITS(2, S_IFMT, S_IFCHR)}},
    {"mknodat", {BITS(2, S_IFMT, S_IFBLK)}},
    /* what types into a terminal, takes a console's text, or changes how a line is read */
    {"ioctl", {BITS(1, INT, TIOCSTI)}},
    {"ioctl", {BITS(1, INT, TIOCLINUX)}},
    {"ioctl", {BITS(1, INT, TIOCCONS)}},
    {"ioctl", {BITS(1, INT, TIOCSETD)}},
    /* limits of another process */
    {"prlimit64", {NOT_ZERO(0), NOT_ZERO(2)}},
};

#define FUNCTIONS(X)                                                                               \
    X(seccomp_init)                                                                                \
    X(seccomp_attr_set)                                                                            \
    X(seccomp_rule_add_array)                                                                      \
    X(seccomp_syscall_resolve_name)                                                                \
    X(seccomp_export_bpf)                                                                          \
    X(seccomp_release)

#define FIELD(name) __typeof__(&(name)) name;
struct library {
    void *handle;
    FUNCTIONS(FIELD)
};
#undef FIELD

static int library_open(struct library *l, struct err *err) {
    l->handle = dlopen("libseccomp.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!l->handle)
        return err_say(err, -ENOENT,
                       "--sandbox: libseccomp.so.2 is not here (package libseccomp2)");
#define FIND(name) l->name = (__typeof__(l->name))(uintptr_t)dlsym(l->handle, #name);
    FUNCTIONS(FIND)
#undef FIND
    if (l->seccomp_init && l->seccomp_attr_set && l->seccomp_rule_add_array &&
        l->seccomp_syscall_resolve_name && l->seccomp_export_bpf && l->seccomp_release)
        return 0;
    dlclose(l->handle);
    return err_say(err, -ENOENT, "--sandbox: libseccomp.so.2 is too old");
}

/* Below 0: this architecture has none of that name, and it cannot be made. */
static int number_of(const struct library *l, const char *name) {
    int number = l->seccomp_syscall_resolve_name(name);
    for (size_t i = 0; number < 0 && i < sizeof(young) / sizeof(*young); i++)
        if (strcmp(young[i].name, name) == 0)
            number = young[i].number;
    return number;
}

static int refuse(const struct library *l, scmp_filter_ctx filter, const char *name, int with,
                  const struct condition *conditions) {
    struct scmp_arg_cmp all[2];
    unsigned n = 0;
    int number = number_of(l, name);
    if (number < 0)
        return 0;
    for (; conditions && n < 2 && conditions[n].compare; n++) {
        const struct condition *c = &conditions[n];
        uint64_t a = c->compare == SCMP_CMP_MASKED_EQ ? c->mask : c->value;
        all[n] = (struct scmp_arg_cmp){c->arg, c->compare, a, c->value};
    }
    return l->seccomp_rule_add_array(filter, SCMP_ACT_ERRNO((unsigned)with), number, n, all);
}

/* Calls of another architecture (32-bit ones) would pass by all rules, and are refused as a whole.
 * The flags of clone3 lie in memory, where no filter looks: to the C library a kernel without it is
 * one that has clone. */
static int describe(const struct library *l, scmp_filter_ctx filter) {
    int code = l->seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));
    for (size_t i = 0; !code && refused[i]; i++)
        code = refuse(l, filter, refused[i], EPERM, NULL);
    for (size_t i = 0; !code && i < sizeof(partly) / sizeof(*partly); i++)
        code = refuse(l, filter, partly[i].name, EPERM, partly[i].conditions);
    return code ? code : refuse(l, filter, "clone3", ENOSYS, NULL);
}
/* The library writes to a descriptor only. */
static int export(const struct library *l, scmp_filter_ctx filter, struct buf *ret) {
    FILE_CLOSE int fd = memfd_create("rankrun-sandbox", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    int code = l->seccomp_export_bpf(filter, fd);
    if (!code && lseek(fd, 0, SEEK_SET) < 0)
        code = -errno;
    return code ? code : file_read_fd(fd, BPF_MAXINSNS * sizeof(struct sock_filter), ret, NULL);
}

int sandbox_make(struct buf *ret, struct err *err) {
    struct library l = {0};
    int code = library_open(&l, err);
    if (code)
        return code;
    scmp_filter_ctx filter = l.seccomp_init(SCMP_ACT_ALLOW);
    code = filter ? describe(&l, filter) : -ENOMEM;
    if (!code)
        code = export(&l, filter, ret);
    if (filter)
        l.seccomp_release(filter);
    dlclose(l.handle);
    return code ? err_set(err, code, "--sandbox: make a system call filter") : 0;
}
