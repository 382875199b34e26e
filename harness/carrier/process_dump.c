/* Writes down one process: its threads, stacks, files and sockets. */
#include "harness/carrier/process_dump.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TABLE_MAX = 16 << 20, THREADS_MAX = 64, FILES_MAX = 256 };

/* ---- sockets ---- */

/* The tables of the process's network namespace; what they hold of one inode is looked up. */
struct tables {
    struct buf tcp, local;
};

static const char *const tcp_states[] = {"?",          "established", "connecting", "syn-recv",
                                         "fin-wait-1", "fin-wait-2",  "time-wait",  "close",
                                         "close-wait", "last-ack",    "listening",  "closing"};

static void read_table(pid_t pid, const char *name, struct buf *out) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, name);
    file_read(path, TABLE_MAX, out, NULL);
}

static void put_address(struct buf *out, unsigned addr, unsigned port) {
    char text[INET_ADDRSTRLEN] = "?";
    struct in_addr in = {.s_addr = addr};
    inet_ntop(AF_INET, &in, text, sizeof(text));
    buf_printf(out, "%s:%u", text, port);
}

/* "  0: 0A0012C6:72D8 0B0012C6:A4B2 01 00000000:00000000 02:0000 0 0 0 12345 ..." */
static bool put_tcp(const char *line, unsigned long inode, struct buf *out) {
    unsigned addr, port, peer, peer_port, state, unsent, unread;
    unsigned long found;
    if (sscanf(line, " %*[^:]: %8x:%4x %8x:%4x %2x %8x:%8x %*s %*s %*s %*s %lu", &addr, &port,
               &peer, &peer_port, &state, &unsent, &unread, &found) != 8 ||
        found != inode)
        return false;
    buf_puts(out, "tcp ");
    put_address(out, addr, port);
    if (peer_port) {
        buf_puts(out, " -> ");
        put_address(out, peer, peer_port);
    }
    buf_printf(out, ", %s, %u bytes unsent or unacknowledged, %u unread",
               state < sizeof(tcp_states) / sizeof(*tcp_states) ? tcp_states[state] : "?", unsent,
               unread);
    return true;
}

/* "0000000000000000: 00000002 00000000 00010000 0005 01 12345 /run/rankquake/events" */
static bool put_local(const char *line, unsigned long inode, struct buf *out) {
    unsigned long found;
    int at = 0;
    if (sscanf(line, "%*[^:]: %*s %*s %*s %*s %*s %lu%n", &found, &at) != 1 || found != inode)
        return false;
    buf_printf(out, "unix%s", line + at);
    return true;
}

static bool find_line(const struct buf *table, unsigned long inode, struct buf *out,
                      bool (*put)(const char *, unsigned long, struct buf *)) {
    char line[600];
    for (const char *p = buf_str(table); *p;) {
        size_t n = strcspn(p, "\n");
        snprintf(line, sizeof(line), "%.*s", (int)(n < sizeof(line) ? n : sizeof(line) - 1), p);
        if (put(line, inode, out))
            return true;
        p += n + (p[n] == '\n');
    }
    return false;
}

static void put_files(pid_t pid, struct buf *out) {
    struct tables t = {0};
    char path[300], link[512];
    int files = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    FILE_CLOSE_DIR DIR *d = opendir(path);
    if (!d) {
        buf_printf(out, "open files: cannot be read: %s\n", strerror(errno));
        return;
    }
    read_table(pid, "tcp", &t.tcp);
    read_table(pid, "unix", &t.local);
    buf_puts(out, "open files\n");
    for (struct dirent *e; (e = readdir(d)) && files < FILES_MAX;) {
        unsigned long inode;
        snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, e->d_name);
        ssize_t n = readlink(path, link, sizeof(link) - 1);
        if (n <= 0)
            continue;
        files++;
        link[n] = '\0';
        buf_printf(out, "  %-4s ", e->d_name);
        if (sscanf(link, "socket:[%lu]", &inode) != 1 ||
            (!find_line(&t.tcp, inode, out, put_tcp) &&
             !find_line(&t.local, inode, out, put_local)))
            buf_puts(out, link);
        buf_putc(out, '\n');
    }
    buf_fini(&t.tcp);
    buf_fini(&t.local);
}

/* ---- threads ---- */

/* The text of a file of /proc without its last newline; how it could not be read otherwise. */
static void put_file(struct buf *out, const char *path, const char *denied) {
    BUF_FINI struct buf text = {0};
    struct err err = {0};
    int r = file_read(path, TABLE_MAX, &text, &err);
    if (r == -EACCES || r == -EPERM)
        buf_puts(out, denied);
    else if (r)
        buf_puts(out, err.msg);
    else
        buf_printf(out, "%.*s", (int)strcspn(buf_str(&text), "\n"), buf_str(&text));
}

static void put_state(struct buf *out, const char *task) {
    char path[400];
    BUF_FINI struct buf status = {0};
    snprintf(path, sizeof(path), "%s/status", task);
    file_read(path, TABLE_MAX, &status, NULL);
    const char *state = strstr(buf_str(&status), "\nState:\t");
    if (state)
        buf_printf(out, "%.*s", (int)strcspn(state + 8, "\n"), state + 8);
}

static void put_stack(struct buf *out, const char *task) {
    char path[400];
    BUF_FINI struct buf stack = {0};
    struct err err = {0};
    snprintf(path, sizeof(path), "%s/stack", task);
    int r = file_read(path, TABLE_MAX, &stack, &err);
    if (r)
        buf_printf(out, "    kernel stack: %s\n",
                   r == -EACCES || r == -EPERM ? "only root may read it" : err.msg);
    for (const char *p = buf_str(&stack); *p;) {
        size_t n = strcspn(p, "\n");
        buf_printf(out, "    %.*s\n", (int)n, p);
        p += n + (p[n] == '\n');
    }
}

static void put_thread(pid_t pid, const char *tid, struct buf *out) {
    char task[300], path[400];
    snprintf(task, sizeof(task), "/proc/%d/task/%s", (int)pid, tid);
    buf_printf(out, "thread %s ", tid);
    snprintf(path, sizeof(path), "%s/comm", task);
    put_file(out, path, "?");
    buf_puts(out, ", ");
    put_state(out, task);
    buf_puts(out, ", waits in ");
    snprintf(path, sizeof(path), "%s/wchan", task);
    put_file(out, path, "(not readable)");
    buf_puts(out, ", system call ");
    snprintf(path, sizeof(path), "%s/syscall", task);
    put_file(out, path, "(not readable)");
    buf_putc(out, '\n');
    put_stack(out, task);
}

void process_dump(pid_t pid, struct buf *out) {
    char path[64];
    int threads = 0;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    FILE_CLOSE_DIR DIR *d = opendir(path);
    if (!d) {
        buf_puts(out, "it has just ended\n");
        return;
    }
    for (struct dirent *e; (e = readdir(d)) && threads < THREADS_MAX;)
        if (e->d_name[0] != '.') {
            put_thread(pid, e->d_name, out);
            threads++;
        }
    put_files(pid, out);
}
