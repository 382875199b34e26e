#include "agent/workers/sandbox.h"

#include "agent/sys/file.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

/* In the order of what they are about. Not refused, because jobs use them: process_vm_readv (MPI's
 * and UCX's copies between processes), pidfd_getfd (CUDA memory shared between processes), kcmp
 * (graphics drivers), perf_event_open (profilers). */
static const char *const refused[] = {
    /* other processes */
    "ptrace", "process_madvise", "setns", "unshare",
    /* the kernel */
    "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "bpf",
    "reboot", "syslog", "iopl", "ioperm", "acct",
    /* file systems */
    "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig",
    "fsmount", "fspick", "mount_setattr", "open_by_handle_at", "quotactl", "quotactl_fd", "swapon",
    "swapoff",
    /* the machine's clock and names */
    "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname",
    /* keys of others */
    "add_key", "request_key", "keyctl", NULL};

const char *const *sandbox_refused(void) {
    return refused;
}

#define FUNCTIONS(X)                                                                               \
    X(seccomp_init)                                                                                \
    X(seccomp_attr_set)                                                                            \
    X(seccomp_rule_add)                                                                            \
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
    if (l->seccomp_init && l->seccomp_attr_set && l->seccomp_rule_add &&
        l->seccomp_syscall_resolve_name && l->seccomp_export_bpf && l->seccomp_release)
        return 0;
    dlclose(l->handle);
    return err_say(err, -ENOENT, "--sandbox: libseccomp.so.2 is too old");
}

/* A call that this libseccomp or this kernel does not know cannot be made by name; calls of another
 * architecture (32-bit ones) would pass by all rules, and are refused as a whole. */
static int describe(const struct library *l, scmp_filter_ctx filter) {
    int code = l->seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));
    for (size_t i = 0; !code && refused[i]; i++) {
        int number = l->seccomp_syscall_resolve_name(refused[i]);
        if (number >= 0)
            code = l->seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
    }
    return code;
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
