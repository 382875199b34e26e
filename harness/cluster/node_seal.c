/* node_seal: what of the host a node's program cannot change, once the node is arranged. As root it
 * could: files are its own, /proc and /sys are the machine's, a device is a disk or the memory. Its
 * capabilities go with its start (rights.h), or all of this could be taken off again.
 *
 * The caller's directories are never sealed, and nothing else that jobs write to: home, /var,
 * /opt, whatever is mounted for data. */
#include "harness/cluster/node_helper.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/mount.h"
#include "base/sys/process.h"
#include "harness/cluster/bundle.h"
#include "harness/plan/plan.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t driver_wait_ns = 10000000000;

/* What a program may have of /dev. Accelerators, and the networks between them, are jobs'; a disk,
 * a terminal of the machine's or its memory is not. */
static const char *const devices[] = {
    "null", "zero", "full", "random", "urandom", "tty", "fuse", "shm", "hugepages",
    /* NVIDIA, AMD, Intel and Habana, AWS, Google, Huawei, Tenstorrent */
    "nvidia*", "nvgpu", "nvmap", "nvhost*", "gdrdrv", "kfd", "dri", "dxg", "accel", "accel*", "hl*",
    "habanalabs*", "neuron*", "apex_*", "vfio", "davinci*", "devmm_svm", "hisi_hdc", "tenstorrent",
    /* between them */
    "infiniband", "hfi1*", "knem", "xpmem", "efa*", "cxi*", "ipath*", NULL};

static bool is_for_jobs(const char *name) {
    for (size_t i = 0; devices[i]; i++)
        if (fnmatch(devices[i], name, 0) == 0)
            return true;
    return false;
}

/* ---- /dev ---- */

/* Links lead out of /dev, and are made anew. A disk is never a job's, whatever its name. */
static struct texts list_devices(void) {
    struct texts p = {0};
    struct stat st;
    FILE_CLOSE_DIR DIR *d = opendir("/dev");
    for (struct dirent *e; d && (e = readdir(d));)
        if (is_for_jobs(e->d_name) && fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            !S_ISLNK(st.st_mode) && !S_ISBLK(st.st_mode))
            texts_add(&p, "/dev/%s", e->d_name);
    return p;
}

static int make_links(struct err *err) {
    static const char *const links[][2] = {{"/proc/self/fd", "/dev/fd"},
                                           {"/proc/self/fd/0", "/dev/stdin"},
                                           {"/proc/self/fd/1", "/dev/stdout"},
                                           {"/proc/self/fd/2", "/dev/stderr"},
                                           {"pts/ptmx", "/dev/ptmx"}};
    for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++)
        if (symlink(links[i][0], links[i][1]) != 0)
            return err_set(err, -errno, "make %s", links[i][1]);
    return 0;
}

/* A program that begins with CUDA lets NVIDIA's helper load a module and make a device, for which a
 * job has no right: where nobody has done so since the machine was switched on, it is done for it.
 * A wish: who has no such driver needs none. */
static void prepare_driver(void) {
    static const char helper[] = "/usr/bin/nvidia-modprobe";
    const struct process_spawn s = {.argv = (const char *const[]){helper, "-u", "-c=0", NULL}};
    struct process p;
    if (access("/proc/driver/nvidia/version", F_OK) != 0 || access("/dev/nvidia-uvm", F_OK) == 0 ||
        process_spawn(&s, &p, NULL) != 0)
        return;
    if (process_reap(&p, driver_wait_ns, NULL) != 0)
        process_signal(&p, SIGKILL); /* it is reaped as every orphan */
    process_close(&p);
}

/* Message queues are of an IPC namespace; a kernel may have none. */
static int seal_devices(struct err *err) {
    prepare_driver();
    TEXTS_FINI struct texts keep = list_devices();
    int r = mount_cover("/dev", 0755, texts_list(&keep), keep.n, err);
    if (r || (r = make_links(err)) || (r = file_make_dirs("/dev/pts", 0755, err)) ||
        (r = mount_terminals("/dev/pts", err)))
        return r;
    if (file_make_dirs("/dev/mqueue", 01777, NULL) == 0)
        mount("mqueue", "/dev/mqueue", "mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    return 0;
}

/* ---- /proc ---- */

/* What is no process's: a directory, and a file that has a writer, such as sysrq-trigger. */
static struct texts list_machine(void) {
    struct texts p = {0};
    struct stat st;
    FILE_CLOSE_DIR DIR *d = opendir("/proc");
    for (struct dirent *e; d && (e = readdir(d));)
        if (*e->d_name != '.' && (*e->d_name < '0' || *e->d_name > '9') &&
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            (S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && st.st_mode & 0222)))
            texts_add(&p, "/proc/%s", e->d_name);
    return p;
}

static int seal_proc(struct err *err) {
    TEXTS_FINI struct texts machine = list_machine();
    int r = 0;
    for (size_t i = 0; i < machine.n && r == 0; i++)
        r = mount_read_only(machine.v[i], NULL, 0, err);
    return r;
}

/* ---- all ---- */

static int seal_files(const char *const *writable, size_t n, struct err *err) {
    int r = 0;
    for (size_t i = 0; plan_sealed[i] && r == 0; i++)
        r = mount_read_only(plan_sealed[i], writable, n, err);
    return r;
}

/* A root file system of the node's own shows these of the host: the C library among them. */
static int seal_shown(struct err *err) {
    static const char *const shown[] = {BUNDLE_PROGRAMS, BUNDLE_LIBRARIES, "/etc/hosts",
                                        "/etc/resolv.conf"};
    int r = 0;
    for (size_t i = 0; i < sizeof(shown) / sizeof(*shown) && r == 0; i++)
        r = mount_read_only(shown[i], NULL, 0, err);
    return r;
}

/* An ordinary user's rights on the host are the user's in a node too, with one exception: cgroups
 * may have been handed to users, and nothing else in a node outlives it. */
int node_seal(const struct json *seal, bool own_root, const char *const *writable, size_t n,
              struct err *err) {
    if (!json_get_bool(seal, "root", false))
        return mount_read_only("/sys/fs/cgroup", NULL, 0, err);
    int r = own_root ? seal_shown(err) : seal_files(writable, n, err);
    if (r == 0)
        r = seal_devices(err);
    if (r == 0)
        r = mount_read_only("/sys", NULL, 0, err);
    return r ? r : seal_proc(err);
}
