#include "harness/carrier/host_facts.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/process.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
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

/* "10.0.0.9 51234 10.0.0.7 22": who came, and whom he has found. */
static bool address_of_ssh(char *ret, size_t size) {
    const char *said = getenv("SSH_CONNECTION");
    struct in_addr a;
    char found[INET_ADDRSTRLEN];
    if (!said || sscanf(said, "%*s %*s %15s", found) != 1 || inet_pton(AF_INET, found, &a) != 1)
        return false;
    str_copy(ret, size, found);
    return true;
}

static bool is_of_use(const struct ifaddrs *i) {
    return i->ifa_addr && i->ifa_addr->sa_family == AF_INET && i->ifa_flags & IFF_UP &&
           !(i->ifa_flags & IFF_LOOPBACK);
}

static void address_of_card(char *ret, size_t size) {
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0)
        return;
    const struct ifaddrs *i = all;
    while (i && !is_of_use(i))
        i = i->ifa_next;
    if (i)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr, ret,
                  (socklen_t)size);
    freeifaddrs(all);
}

static void put_network(struct json_writer *w) {
    char address[INET_ADDRSTRLEN] = "";
    struct stat own;
    if (!address_of_ssh(address, sizeof(address)))
        address_of_card(address, sizeof(address));
    json_put_string(w, "address", address);
    if (stat("/proc/self/ns/net", &own) == 0)
        json_put_i64(w, "network", (int64_t)own.st_ino);
}

/* rankruns that are there before us: jobs of somebody, whose processors and ports a run would share. */
static void put_jobs(struct json_writer *w) {
    enum { JOBS_MAX = 8 };
    char name[64], path[64];
    struct stat st;
    pid_t *all;
    size_t n = process_list(&all), found = 0;
    json_array(w, "jobs");
    for (size_t i = 0; i < n && found < JOBS_MAX; i++) {
        process_name(all[i], name, sizeof(name));
        snprintf(path, sizeof(path), "/proc/%d", (int)all[i]);
        if (!str_eq(name, "rankrun") || stat(path, &st) != 0)
            continue;
        json_object(w, NULL);
        json_put_i64(w, "pid", all[i]);
        json_put_i64(w, "uid", st.st_uid);
        json_end_object(w);
        found++;
    }
    json_end_array(w);
    free(all);
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
    put_network(w);
    put_jobs(w);
}
