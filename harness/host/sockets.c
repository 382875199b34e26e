#include "harness/host/sockets.h"

#include "base/buf.h"
#include "base/sys/file.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TABLE_MAX = 16 << 20, FOUND_MAX = 64 };

/* "0100007F", or four such words: each is a word of the address in the host's byte order. */
static void read_address(const char *hex, char *out, size_t size) {
    struct in6_addr v6;
    size_t words = strlen(hex) / 8;
    *out = 0;
    for (size_t i = 0; i < words && i < 4; i++) {
        unsigned word;
        if (sscanf(hex + 8 * i, "%8x", &word) != 1)
            return;
        memcpy((char *)&v6 + 4 * i, &word, 4);
    }
    if (words == 1)
        inet_ntop(AF_INET, &v6, out, (socklen_t)size);
    else if (words == 4 && IN6_IS_ADDR_V4MAPPED(&v6))
        inet_ntop(AF_INET, (char *)&v6 + 12, out, (socklen_t)size);
    else if (words == 4)
        inet_ntop(AF_INET6, &v6, out, (socklen_t)size);
}

/* "  0: 0100007F:1F90 00000000:0000 0A ...": number, local end, remote end, state, and behind six
 * more words the inode. */
static bool read_line(const char *line, struct socket_line *ret) {
    char local[36], remote[36];
    unsigned from, to, state;
    unsigned long long inode = 0;
    if (sscanf(line, " %*[^:]: %35[0-9A-F]:%4x %35[0-9A-F]:%4x %2x %*s %*s %*s %*s %*s %llu", local,
               &from, remote, &to, &state, &inode) < 5)
        return false;
    *ret = (struct socket_line){.local_port = (uint16_t)from,
                                .remote_port = (uint16_t)to,
                                .state = (int)state,
                                .inode = inode};
    read_address(local, ret->local, sizeof(ret->local));
    read_address(remote, ret->remote, sizeof(ret->remote));
    return true;
}

void sockets_each(void (*fn)(void *arg, const struct socket_line *s), void *arg) {
    static const char *const tables[] = {"/proc/net/tcp", "/proc/net/tcp6"};
    for (size_t i = 0; i < 2; i++) {
        BUF_FINI struct buf table = {0};
        char *save = NULL;
        if (file_read(tables[i], TABLE_MAX, &table, NULL) == 0 && table.len)
            for (char *line = strtok_r(table.data, "\n", &save); line;
                 line = strtok_r(NULL, "\n", &save)) {
                struct socket_line s;
                if (read_line(line, &s))
                    fn(arg, &s);
            }
    }
}

void sockets_held(pid_t pid, void (*fn)(void *arg, pid_t pid, int fd, uint64_t inode), void *arg) {
    char path[64], name[320], link[64];
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    FILE_CLOSE_DIR DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        unsigned long long inode;
        snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
        ssize_t n = readlink(name, link, sizeof(link) - 1);
        link[n > 0 ? n : 0] = '\0';
        if (sscanf(link, "socket:[%llu]", &inode) == 1)
            fn(arg, pid, atoi(e->d_name), inode);
    }
}

struct sockets_search {
    struct json_writer *w;
    uint16_t port;
    int found;
    bool (*is_ours)(void *arg, const struct socket_line *s);
    void *arg;
};

static void put_end(struct json_writer *w, const char *key, const char *address, uint16_t port) {
    char text[80];
    snprintf(text, sizeof(text), "%s:%u", address, port);
    json_put_string(w, key, text);
}

static void put_line(void *arg, const struct socket_line *s) {
    struct sockets_search *q = arg;
    bool listens = s->state == SOCKET_LISTENS;
    if ((s->local_port != q->port && s->remote_port != q->port) || s->state == SOCKET_SYN_SENT ||
        q->found == FOUND_MAX || (q->is_ours && !q->is_ours(q->arg, s)))
        return;
    q->found++;
    json_object(q->w, NULL);
    put_end(q->w, "local", s->local, s->local_port);
    if (!listens)
        put_end(q->w, "remote", s->remote, s->remote_port);
    json_put_string(q->w, "state", listens ? "listen" : "connected");
    json_end_object(q->w);
}

void sockets_put(struct json_writer *w, uint16_t port,
                 bool (*is_ours)(void *arg, const struct socket_line *s), void *arg) {
    struct sockets_search q = {.w = w, .port = port, .is_ours = is_ours, .arg = arg};
    json_array(w, "found");
    sockets_each(put_line, &q);
    json_end_array(w);
}
