#include "harness/carrier/host_facts.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <ctype.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static int64_t gpus(void) {
    FILE_CLOSE_DIR DIR *d = opendir("/dev");
    const struct dirent *e;
    int64_t n = 0;
    while (d && (e = readdir(d)))
        n += str_starts(e->d_name, "nvidia") && isdigit((unsigned char)e->d_name[6]);
    return n;
}

/* Those that this process may use, which a batch system may have made fewer. */
static int64_t cpus(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set)
                                                        : sysconf(_SC_NPROCESSORS_ONLN);
}

void host_facts_put(struct json_writer *w) {
    struct utsname u;
    struct sysinfo s;
    struct statvfs v;
    struct timespec t;
    if (uname(&u) == 0) {
        json_put_string(w, "kernel", u.release);
        json_put_string(w, "machine", u.machine);
    }
    json_put_i64(w, "cpus", cpus());
    if (sysinfo(&s) == 0)
        json_put_i64(w, "memory", (int64_t)s.totalram * s.mem_unit);
    if (statvfs(file_temp_base(), &v) == 0)
        json_put_i64(w, "free", (int64_t)(v.f_bavail * v.f_frsize));
    json_put_i64(w, "gpus", gpus());
    if (clock_gettime(CLOCK_BOOTTIME, &t) == 0)
        json_put_i64(w, "uptime_ns", (int64_t)t.tv_sec * 1000000000 + t.tv_nsec);
}
