/* Lists what a node's agent has left behind: processes, ports, shared memory and System V's other
 * objects, cgroups. */
#include "harness/cluster/node_helper.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/shared_memory.h"
#include "harness/cluster/cgroups.h"
#include "harness/cluster/metadata.h"
#include "harness/host/sockets.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TABLE_MAX = 16 << 20, PORTS = 65536 };

static void put_process(struct json_writer *w, pid_t pid) {
    char name[64];
    if (!*process_name(pid, name, sizeof(name)))
        return; /* it has just gone */
    json_object(w, NULL);
    json_put_i64(w, "pid", pid);
    json_put_string(w, "name", name);
    json_end_object(w);
}

struct marks {
    const struct leftovers *l;
    unsigned char ports[PORTS];
};

static void mark_listener(void *arg, const struct socket_line *s) {
    struct marks *m = arg;
    if (s->state == SOCKET_LISTENS && (!m->l->is_ours || m->l->is_ours(m->l->arg, s)))
        m->ports[s->local_port] = 1;
}

static void put_ports(struct json_writer *w, const struct leftovers *l) {
    static struct marks m;
    m = (struct marks){.l = l};
    sockets_each(mark_listener, &m);
    json_array(w, "ports");
    for (int i = 0; i < PORTS; i++)
        if (m.ports[i])
            json_put_i64(w, NULL, i);
    json_end_array(w);
}

/* By which who had one is found; "" of what is no file. */
static void put_shm_ids(struct json_writer *w, char *const *shm) {
    char id[64];
    json_array(w, "shm_ids");
    for (; shm && *shm; shm++)
        json_put_string(w, NULL, shared_memory_id(*shm, id, sizeof(id)));
    json_end_array(w);
}

void leftovers_put(struct json_writer *w, const struct leftovers *l) {
    json_object(w, "found");
    json_array(w, "processes");
    for (size_t i = 0; i < l->pids_n; i++)
        put_process(w, l->pids[i]);
    json_end_array(w);
    put_ports(w, l);
    json_put_strings(w, "shm", (const char *const *)l->shm);
    put_shm_ids(w, l->shm);
    json_array(w, "cgroups");
    cgroups_put_of(w, l->pids, l->pids_n);
    json_end_array(w);
    json_end_object(w);
}

/* ---- all of the node's namespaces ---- */

/* One of the kernel's tables of System V objects: a heading, then a key and an id in each line. */
static void find_system_v(const char *path, const char *what, struct texts *ret) {
    BUF_FINI struct buf table = {0};
    if (file_read(path, TABLE_MAX, &table, NULL) == 0) {
        char *save = NULL, *line = strtok_r(table.data, "\n", &save);
        while ((line = strtok_r(NULL, "\n", &save))) {
            int key, id;
            if (sscanf(line, "%d %d", &key, &id) == 2)
                texts_add(ret, "%s %d", what, id);
        }
    }
}

static void find_shared_memory(struct texts *ret) {
    FILE_CLOSE_DIR DIR *d = opendir("/dev/shm");
    for (struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            texts_add(ret, "/dev/shm/%s", e->d_name);
    find_system_v("/proc/sysvipc/shm", "System V segment", ret);
    find_system_v("/proc/sysvipc/sem", "System V semaphore set", ret);
    find_system_v("/proc/sysvipc/msg", "System V message queue", ret);
}

/* The metadata service is the helper's own. */
static bool is_not_metadata(void *arg, const struct socket_line *s) {
    return !str_eq(s->local, METADATA_ADDRESS);
}

void leftovers_of_namespaces(struct json_writer *w) {
    TEXTS_FINI struct texts shm = {0};
    pid_t *all;
    size_t n = process_list(&all), others = 0;
    for (size_t i = 0; i < n; i++)
        if (all[i] != getpid())
            all[others++] = all[i];
    find_shared_memory(&shm);
    leftovers_put(w, &(struct leftovers){
                         .pids = all, .pids_n = others, .is_ours = is_not_metadata, .shm = shm.v});
    free(all);
}
