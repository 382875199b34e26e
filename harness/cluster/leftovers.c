#include "harness/cluster/node_helper.h"

#include "agent/sys/file.h"
#include "harness/cluster/sockets.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TABLE_MAX = 16 << 20, PORTS = 65536 };

static void count_process(struct json_writer *w, const char *pid) {
    char path[300];
    struct buf name = {0};
    snprintf(path, sizeof(path), "/proc/%s/comm", pid);
    if (file_read(path, 4096, &name, NULL) == 0) { /* else it has just gone */
        json_object(w, NULL);
        json_put_i64(w, "pid", atoi(pid));
        json_put_stringn(w, "name", buf_str(&name), name.len ? name.len - 1 : 0);
        json_end_object(w);
    }
    buf_fini(&name);
}

static void count_processes(struct json_writer *w) {
    DIR *d = opendir("/proc");
    json_array(w, "processes");
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && atoi(e->d_name) != getpid())
            count_process(w, e->d_name);
    json_end_array(w);
    if (d)
        closedir(d);
}

static void mark_listener(void *arg, const struct socket_line *s) {
    unsigned char *ports = arg;
    if (s->state == SOCKET_LISTENS)
        ports[s->local_port] = 1;
}

static void count_ports(struct json_writer *w) {
    static unsigned char ports[PORTS];
    memset(ports, 0, sizeof(ports));
    sockets_each(mark_listener, ports);
    json_array(w, "ports");
    for (int i = 0; i < PORTS; i++)
        if (ports[i])
            json_put_i64(w, NULL, i);
    json_end_array(w);
}

static void count_system_v(struct json_writer *w) {
    struct buf table = {0};
    if (file_read("/proc/sysvipc/shm", TABLE_MAX, &table, NULL) == 0) {
        char *save = NULL, *line = strtok_r(table.data, "\n", &save);
        while ((line = strtok_r(NULL, "\n", &save))) {
            char text[64];
            int key, id;
            if (sscanf(line, "%d %d", &key, &id) != 2)
                continue;
            snprintf(text, sizeof(text), "System V segment %d", id);
            json_put_string(w, NULL, text);
        }
    }
    buf_fini(&table);
}

static void count_shared_memory(struct json_writer *w) {
    DIR *d = opendir("/dev/shm");
    json_array(w, "shm");
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[300];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof(path), "/dev/shm/%s", e->d_name);
        json_put_string(w, NULL, path);
    }
    if (d)
        closedir(d);
    count_system_v(w);
    json_end_array(w);
}

void leftovers_count(struct json_writer *w) {
    json_object(w, "found");
    count_processes(w);
    count_ports(w);
    count_shared_memory(w);
    json_array(w, "cgroups"); /* none is made for a node yet */
    json_end_array(w);
    json_end_object(w);
}
