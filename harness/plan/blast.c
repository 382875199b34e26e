/* What a run may do to this host: its faults, which are known, and its job, which may be anybody's
 * program. The cluster keeps what is said here. */
#include "base/sys/namespace.h"
#include "harness/plan/entries.h"

#include <unistd.h>

const char *const plan_sealed[] = {"/etc", "/boot",  "/efi",   "/usr",    "/bin",       "/sbin",
                                   "/lib", "/lib32", "/lib64", "/libx32", "/var/spool", NULL};

static void put_sealed(struct buf *out) {
    for (size_t i = 0; plan_sealed[i]; i++)
        buf_printf(out, "%s%s", i ? ", " : "", plan_sealed[i]);
}

static void put_files(const struct plan *p, bool root, struct buf *out) {
    if (p->rootfs) {
        buf_puts(out,
                 "    files     writes to the directory that you are in and the run directory; "
                 "its root file system stays as it is\n");
    } else if (root) {
        buf_puts(out, "    files     reads all of this host's; writes to all but ");
        put_sealed(out);
        buf_puts(out, " (your directory and the run directory excepted)\n");
    } else {
        buf_puts(out, "    files     reads and writes what you may on this host, but has a /tmp, "
                      "/run and /dev/shm of its own\n");
    }
}

static void put_in_namespaces(const struct plan *p, bool root, struct buf *out) {
    buf_printf(out, "  the job%s may, in nodes that are namespaces:\n", root ? ", as root," : "");
    put_files(p, root, out);
    buf_puts(out, "    kernel    sees /proc and /sys, and changes nothing there but its own "
                  "processes; mounts nothing, loads and sets nothing\n");
    if (root)
        buf_puts(out, "    devices   uses accelerators, and the networks between them; sees no "
                      "disk, memory or terminal of this host\n");
    buf_puts(out, "    others    signals and traces processes of its node only; reaches nodes of "
                  "this run by network, and nothing else\n"
                  "    stays     what it writes to files, and a cgroup made in a user namespace of "
                  "its own, which is counted\n");
}

static void put_in_processes(bool root, struct buf *out) {
    buf_printf(out, "  the job%s may, as processes among those of this host:\n",
               root ? ", as root," : "");
    buf_puts(out,
             root ? "    files     reads and writes all of this host's, /etc and /proc/sys too\n"
                  : "    files     reads and writes what you may on this host\n");
    if (root)
        buf_puts(out, "    devices   uses all of this host's, disks too\n");
    buf_puts(out, "    others    signals its node only (before Linux 6.12, or where the run "
                  "directory has a long path: all that you may, but one by one); reaches all that "
                  "this host reaches\n"
                  "    reached   by every user of this host, at each port that it listens on\n"
                  "    stays     what it writes to files and asks other programs to do; cgroups "
                  "are counted\n");
}

static void put_on_hosts(struct buf *out) {
    buf_puts(
        out,
        "\nblast radius\n  faults touch what their helper has started on the hosts above, and the "
        "run "
        "directory; nothing else there or on this host\n"
        "  the job may, on each host, what whoever signs in there may:\n"
        "    others    signals its node only (before Linux 6.12 all that the user may, but one by "
        "one); reaches all that the host reaches\n"
        "    stays     what it writes to files and asks other programs to do; a line for each act "
        "of ours in /var/tmp/rankquake-UID of each host\n");
}

void blast_print(const struct plan *p, struct buf *out) {
    bool processes = (p->isolation ? p->isolation : p->scenario->cluster.isolation) ==
                     ISOLATION_PROCESSES; /* not settled where the host lacks something */
    if (p->scenario->cluster.provider) {
        put_on_hosts(out);
        return;
    }
    bool root = processes ? geteuid() == 0 : namespace_needs_no_user();
    buf_puts(out, "\nblast radius\n  faults touch the nodes above and the run directory, and "
                  "nothing else on this host\n");
    if (p->scenario->cluster.privileged)
        buf_printf(out, "  the job keeps all your rights (cluster.privileged)%s\n",
                   root ? ": as root it can do anything to this host" : "");
    else if (processes)
        put_in_processes(root, out);
    else
        put_in_namespaces(p, root, out);
}
