#include "harness/preflight/inventory.h"

#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/nvml.h"

#include <dirent.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { SMALL = 1 << 16, PROGRAM_MAX = 256 << 20 };

static void put_line(struct json_writer *w, const char *key, const char *path) {
    BUF_FINI struct buf text = {0};
    file_read_plain(path, SMALL, &text, NULL);
    json_put_stringn(w, key, buf_str(&text), strcspn(buf_str(&text), "\n"));
}

/* "PRETTY_NAME=..." of os-release, "model name : ..." of cpuinfo: the first line that begins so. */
static void put_field(struct json_writer *w, const char *key, const char *path, const char *field) {
    BUF_FINI struct buf text = {0};
    file_read(path, 4 << 20, &text, NULL);
    const char *at = buf_str(&text);
    while (*at && !str_starts(at, field)) {
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    at += *at ? strlen(field) : 0;
    at += strspn(at, " \t:=\"");
    json_put_stringn(w, key, at, strcspn(at, "\"\n"));
}

static void put_memory(struct json_writer *w) {
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    json_put_i64(w, "memory_mb", (int64_t)pages * size >> 20);
}

/* A link that a device stands behind; bridges, tunnels and the loopback have none. */
static int is_nic(const struct dirent *e) {
    char path[512];
    snprintf(path, sizeof(path), "/sys/class/net/%s/device", e->d_name);
    return e->d_name[0] != '.' && access(path, F_OK) == 0;
}

static void put_nics(struct json_writer *w) {
    struct dirent **names;
    int n = scandir("/sys/class/net", &names, is_nic, alphasort);
    char path[512];
    json_array(w, "nics");
    for (int i = 0; i < n; i++) {
        json_object(w, NULL);
        json_put_string(w, "name", names[i]->d_name);
        static const char *const files[] = {"address", "mtu", "speed"};
        for (size_t k = 0; k < sizeof(files) / sizeof(*files); k++) {
            snprintf(path, sizeof(path), "/sys/class/net/%s/%s", names[i]->d_name, files[k]);
            put_line(w, files[k], path);
        }
        json_end_object(w);
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    json_end_array(w);
}

static void put_gpus(struct json_writer *w) {
    struct nvml *n = nvml_open(NULL);
    json_put_string(w, "driver", n ? nvml_driver(n) : "");
    json_array(w, "gpus");
    for (size_t i = 0; n && i < nvml_count(n); i++) {
        struct nvml_device d;
        if (nvml_device(n, i, &d, NULL) < 0)
            continue;
        json_object(w, NULL);
        json_put_string(w, "name", d.uuid);
        json_put_string(w, "model", d.name);
        json_put_i64(w, "memory_mb", d.memory < 0 ? -1 : d.memory >> 20);
        json_end_object(w);
    }
    json_end_array(w);
    nvml_close(n);
}

static void put_programs(struct json_writer *w) {
    static const char *const programs[] = {"rankquake", "rankrun", "ranktrain", NULL};
    char folder[4096], path[4200], hex[65];
    file_own_folder(folder, sizeof(folder));
    json_object(w, "programs");
    for (size_t i = 0; programs[i]; i++) {
        BUF_FINI struct buf text = {0};
        snprintf(path, sizeof(path), "%s/%s", folder, programs[i]);
        if (file_read_plain(path, PROGRAM_MAX, &text, NULL) < 0)
            continue;
        sha256_of(text.data, text.len, hex);
        json_put_string(w, programs[i], hex);
    }
    json_end_object(w);
}

void inventory_put(struct json_writer *w, const char *key) {
    struct utsname u = {0};
    uname(&u);
    json_object(w, key);
    json_put_string(w, "host", u.nodename);
    json_put_string(w, "machine", u.machine);
    json_put_string(w, "kernel", u.release);
    json_put_string(w, "libc", gnu_get_libc_version());
    put_field(w, "system", "/etc/os-release", "PRETTY_NAME");
    put_field(w, "processor", "/proc/cpuinfo", "model name");
    json_put_i64(w, "processors", sysconf(_SC_NPROCESSORS_ONLN));
    put_memory(w);
    put_gpus(w);
    put_nics(w);
    put_programs(w);
    json_end_object(w);
}
