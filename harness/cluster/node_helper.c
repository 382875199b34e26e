#include "harness/cluster/node_helper.h"

#include "base/base64.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/loop.h"
#include "base/sys/namespace.h"
#include "base/sys/netlink.h"
#include "base/sys/process.h"
#include "base/sys/unix_address.h"
#include "faults/mechanism/call_watch.h"
#include "faults/mechanism/clock_page.h"
#include "faults/mechanism/tree.h"
#include "harness/carrier/file_answer.h"
#include "harness/carrier/given.h"
#include "harness/carrier/hello.h"
#include "harness/carrier/host_record.h"
#include "harness/carrier/host_facts.h"
#include "harness/cluster/abilities.h"
#include "harness/cluster/cluster.h"
#include "harness/cluster/dead_man.h"
#include "harness/cluster/held_node.h"
#include "harness/cluster/kept_file.h"
#include "harness/cluster/left_groups.h"
#include "harness/cluster/metadata.h"
#include "harness/cluster/node_calls.h"
#include "harness/cluster/node_clients.h"
#include "harness/cluster/node_dump.h"
#include "harness/cluster/node_faults.h"
#include "harness/cluster/node_output.h"
#include "harness/cluster/node_program.h"
#include "harness/cluster/seen_process.h"
#include "harness/cluster/sighting.h"
#include "harness/host/host_cut.h"
#include "harness/host/host_left.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the harness has not taken by then is not added to. */
enum { OUTPUT_WAITS_MAX = 4 << 20 };
/* Who does not read for so long what is said at the end has gone, or will not read it. */
enum { BYE_WAIT_MS = 1000 };

struct helper {
    struct loop *loop;
    struct carrier *carrier;
    struct process program;
    bool greeted;            /* the harness has said hello */
    bool privileged;         /* the program keeps the rights of whoever started the harness */
    struct call_watch watch; /* of the program */
    int watched;             /* its watch, until the harness has it; -1: none */
    int signo;               /* that told it to end; 0: none */
    bool settling;           /* the program has ended, its leftovers are not counted yet */
    struct loop_source *on_settle, *on_notice;
    const struct habitat *habitat;
    struct node_faults faults;    /* in force */
    struct held_node held;        /* by those, on another host */
    struct node_output output;    /* of the program, where the harness has no file for it */
    struct node_clients *clients; /* where the harness has not got the listener itself */
    struct host_record record;    /* of what is done on another host */
    struct host_cut *cut;         /* its half of partitions, there */
    struct node_calls *calls;     /* of the program, there */
    struct node_dump *dump;       /* NULL: nobody has asked for one */
    bool gives;                   /* the harness wants to know what processes are given */
    struct given_key key;         /* likewise */
    int64_t linger_ns;   /* what the program leaves has so long to end before it is counted */
    int64_t dead_man_ns; /* until setup says otherwise; 0: never */
    struct dead_man *heals, *ends; /* of the harness: what lasts here, and the node */
    struct metadata *metadata;     /* of its cloud; NULL: it is in none */
    int clock;                     /* the page of the node's wall clock; -1: it has none */
    struct buf out;
    struct json_writer w;
};

/* ---- answers ---- */

static struct json_writer *answer(struct helper *h, const char *op) {
    const struct sighting now = sighting_now(h->loop);
    buf_clear(&h->out);
    h->w = sighting_say(&now, &h->out, op);
    return &h->w;
}

static void answer_send(struct helper *h, const int *fds, size_t n) {
    json_end_object(&h->w);
    if (carrier_send(h->carrier, &h->out, fds, n, NULL) != 0)
        loop_stop(h->loop);
}

static void broken(struct helper *h, const struct err *why) {
    json_put_string(answer(h, "broken"), "error", why->msg);
    answer_send(h, NULL, 0);
    loop_stop(h->loop);
}

/* ---- a harness that says nothing ---- */

static void put_mended(struct helper *h, const char *name) {
    json_object(&h->w, NULL);
    json_put_string(&h->w, "fault", "part");
    json_put_string(&h->w, "name", name);
    json_put_string(&h->w, "error", NULL);
    json_end_object(&h->w);
}

static void mend_all(struct helper *h) {
    TEXTS_FINI struct texts names = {0};
    host_cut_mend_all(h->cut, true, &names);
    for (size_t i = 0; i < names.n; i++)
        put_mended(h, names.v[i]);
}

/* The harness is there and says nothing: what lasts here is undone, while there is still a node. */
static void on_silence(void *arg, int64_t silent_ns) {
    struct helper *h = arg;
    answer(h, "healed");
    json_put_i64(&h->w, "silent_ns", silent_ns);
    json_array(&h->w, "undone");
    node_faults_undo(&h->faults, h->program.pidfd, &h->w);
    mend_all(h);
    json_end_array(&h->w);
    if (h->clock >= 0)
        clock_page_set(h->clock, NULL, NULL);
    tree_signal(getpid(), SIGCONT); /* a harness that stops a node in turns may be stopped in one */
    if (h->habitat && h->habitat->heal)
        h->habitat->heal();
    if (h->clients)
        node_clients_release_all(h->clients);
    node_calls_release_all(h->calls);
    host_record_note(&h->record, "heal", "the harness was silent", NULL);
    answer_send(h, NULL, 0);
    if (!carrier_has_lane(h->carrier)) /* on another host it may never be heard of again */
        loop_stop(h->loop);
}

/* It has said nothing for so long that no run is left: nobody would ever end this node. */
static void on_long_silence(void *arg, int64_t silent_ns) {
    struct helper *h = arg;
    loop_stop(h->loop);
}

/* ---- setup ---- */

int node_listen(const char *path, struct err *err) {
    struct sockaddr_un addr;
    char dir[UNIX_ADDRESS_MAX], *slash;
    bool abstract = unix_address_is_abstract(path);
    int len = unix_address(path, &addr);
    if (len < 0)
        return err_say(err, len, "%s is too long for a socket", path);
    str_copy(dir, sizeof(dir), path);
    if ((slash = strrchr(dir, '/')))
        *slash = 0;
    int r = slash && !abstract ? file_make_dirs(dir, 0755, err) : 0;
    if (r)
        return r;
    FILE_CLOSE int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_set(err, -errno, "make the socket of events");
    /* Of any uid: a worker may have dropped its own. */
    if (bind(fd, (void *)&addr, (socklen_t)len) == 0 && (abstract || chmod(path, 0666) == 0) &&
        listen(fd, 1024) == 0)
        return file_keep(&fd);
    return err_set(err, -errno, "listen at %s", path);
}

static const struct habitat *habitat_of(const char *isolation) {
    return str_eq(isolation, habitat_processes.name) ? &habitat_processes : &habitat_namespaces;
}

static void on_noticed(void *arg, int fd, int what) {
    struct helper *h = arg;
    h->habitat->noticed();
}

/* The first of them is the listener of events. */
static int keep_listener(struct helper *h, const struct json *setup, int *fds, size_t n,
                         struct err *err) {
    if (carrier_has_lane(h->carrier) || n == 0)
        return 0;
    h->clients =
        node_clients_new(h->loop, h->carrier, file_keep(&fds[0]),
                         json_get_string(setup, "probe", NULL), h->gives ? &h->key : NULL, err);
    return h->clients ? 0 : err->code;
}

static int send_ready(struct helper *h, const struct json *setup, struct err *err) {
    int fds[CHANNEL_FDS_MAX];
    size_t n = 0;
    int r = h->habitat->ready(fds, &n, err), notice = -1;
    r = r ? r : keep_listener(h, setup, fds, n, err);
    if (r == 0 && h->habitat->notice && (notice = h->habitat->notice()) >= 0)
        h->on_notice = loop_fd(h->loop, notice, LOOP_READ, on_noticed, h);
    if (r == 0) {
        answer(h, "ready");
        answer_send(h, fds, carrier_has_lane(h->carrier) ? n : 0);
    }
    for (size_t i = 0; i < n; i++)
        file_close(&fds[i]);
    return r;
}

static void take_watch(const struct json *setup, struct call_watch *ret) {
    ret->kinds = (unsigned)json_get_i64(setup, "watch", 0);
    ret->numbers_n = 0;
    json_each(it, json_get(setup, "calls")) {
        if (ret->numbers_n < CALL_NUMBERS_MAX)
            ret->numbers[ret->numbers_n++] = (int)json_i64(it, -1);
    }
}

/* Where the plan moves clocks: the folder of our programs here. */
static int take_clock(struct helper *h, const struct json *setup, struct err *err) {
    const char *programs = json_get_string(setup, "clock", "");
    char owner[NODE_HELPER_OWNER_MAX];
    if (carrier_has_lane(h->carrier) || !*programs)
        return 0;
    node_helper_owner(getpid(), owner);
    return host_clock_make(&h->held.wall, owner, programs, err);
}

/* The harness looks after its own host itself. */
static int take_host(struct helper *h, const struct json *setup, struct err *err) {
    const char *run = json_get_string(setup, "run", "");
    if (carrier_has_lane(h->carrier))
        return 0;
    if (!*run)
        return err_say(err, -EINVAL, "setup does not say which run it is");
    int r = host_record_open(&h->record, run, err);
    if (r)
        return r;
    held_node_places(&h->held, setup);
    host_left_mark(run);
    host_record_note(&h->record, "begin", host_left_name(), NULL);
    return 0;
}

static void on_setup(struct helper *h, struct message *m) {
    struct err err;
    mode_t callers = umask(022); /* what is made here is for every user of the node */
    h->habitat = habitat_of(json_get_string(m->json, "isolation", ""));
    h->privileged = json_get_bool(m->json, "privileged", false);
    take_watch(m->json, &h->watch);
    h->gives = given_key_take(&h->key, json_get_string(m->json, "given", ""));
    struct node_disks disks = {.paths = json_get(m->json, "disks"), .mounts = {-1, -1}};
    size_t fds = 0;
    for (; disks.paths && fds < 2; fds++)
        disks.mounts[fds] = message_take_fd(m, fds);
    h->clock = message_take_fd(m, fds);
    dead_man_free(h->heals);
    h->heals = dead_man_new(h->loop, carrier_in(h->carrier),
                            json_get_i64(m->json, "dead_man", h->dead_man_ns), on_silence, h);
    h->linger_ns = json_get_i64(m->json, "linger", 1000000000);
    h->ends = dead_man_new(h->loop, carrier_in(h->carrier), json_get_i64(m->json, "end", 0),
                           on_long_silence, h);
    if (take_host(h, m->json, &err) != 0 || take_clock(h, m->json, &err) != 0 ||
        h->habitat->setup(m->json, &disks, &err) != 0 || send_ready(h, m->json, &err) != 0)
        broken(h, &err);
    for (size_t i = 0; i < 2; i++)
        file_close(&disks.mounts[i]);
    umask(callers);
}

static void on_net(struct helper *h, struct message *m) {
    struct err err;
    int r = h->habitat->net(m->json, &err);
    if (r == 0 && json_get_bool(m->json, "metadata", false))
        r = metadata_open(&h->metadata, h->loop, &err);
    if (r) {
        broken(h, &err);
        return;
    }
    answer(h, "net");
    answer_send(h, NULL, 0);
}

/* ---- the program ---- */

static void on_output(void *arg, const char *bytes, size_t n) {
    struct helper *h = arg;
    BUF_FINI struct buf text = {0};
    base64_put(&text, bytes, n);
    json_put_string(answer(h, "output"), "bytes", buf_str(&text));
    answer_send(h, NULL, 0);
    node_output_pause(&h->output, carrier_waits(h->carrier) > OUTPUT_WAITS_MAX);
}

static void on_taken(void *arg) {
    struct helper *h = arg;
    node_output_pause(&h->output, false);
    if (h->clients)
        node_clients_pause(h->clients, false);
}

static int take_output(struct helper *h, struct message *m, struct err *err) {
    int fd = message_take_fd(m, 0);
    if (fd >= 0)
        return fd;
    if (carrier_has_lane(h->carrier))
        return err_say(err, -EBADF, "there is nothing for the program to write to");
    return node_output_begin(&h->output, h->loop, on_output, h, err);
}

static const char *const *environment_of(struct helper *h, struct message *m) {
    const struct json *said = json_get(m->json, "env");
    return carrier_has_lane(h->carrier) ? node_program_strings(&m->arena, said)
                                        : node_program_env_of_host(&m->arena, said, &h->held.wall);
}

/* What it will get, from us. */
static void tell_given(struct helper *h, const char *const *env, const char *cwd) {
    if (!h->gives)
        return;
    json_object(answer(h, "given"), "given");
    given_put_planned(&h->w, &h->key, getpid(), env, cwd);
    json_end_object(&h->w);
    answer_send(h, NULL, 0);
}

static int start_program(struct helper *h, struct message *m, struct err *err) {
    const char *cwd = json_get_string(m->json, "cwd", "/");
    FILE_CLOSE int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    FILE_CLOSE int out = take_output(h, m, err);
    if (out < 0)
        return out;
    if (access(cwd, X_OK) != 0)
        return err_set(err, -errno, "go to the directory %s", cwd);
    struct process_spawn s = {
        .argv = node_program_strings(&m->arena, json_get(m->json, "argv")),
        .envp = environment_of(h, m),
        .dir = cwd,
        .fds = (int[]){in, out, out},
        .session = true,
    };
    if (h->habitat->starting)
        h->habitat->starting(&s, h->privileged);
    tell_given(h, s.envp, cwd);
    return node_program_start(&s, h->privileged, &h->watch, &h->program, &h->watched, err);
}

/* The process that has this number and began then: never the next owner of the number. */
static int take_process(const struct json *m, struct process *ret, struct err *err) {
    pid_t pid = (pid_t)json_get_i64(m, "pid", 0);
    uint64_t start = 0;
    if (pid <= 0)
        return err_say(err, -EINVAL, "which process is not said");
    int r = process_open(pid, ret, err);
    if (r)
        return r;
    if (process_start_ticks(pid, &start) == 0 && start == (uint64_t)json_get_i64(m, "start", -1))
        return 0;
    process_close(ret);
    return err_say(err, -ESRCH, "process %d has ended", (int)pid);
}

static int send_signal(struct helper *h, const struct json *m, struct err *err) {
    struct process p;
    int signo = (int)json_get_i64(m, "signo", 0);
    char about[64];
    int r = take_process(m, &p, err);
    if (r)
        return r;
    snprintf(about, sizeof(about), "signal %d to process %d", signo, (int)p.pid);
    host_record_note(&h->record, "signal", about, NULL);
    r = process_signal_living(&p, signo);
    process_close(&p);
    return r ? err_set(err, r, "send %s", about) : 0;
}

static void on_signal(struct helper *h, struct message *m) {
    struct err err;
    int r = send_signal(h, m->json, &err);
    answer(h, "signalled");
    json_put_i64(&h->w, "token", json_get_i64(m->json, "token", 0));
    json_put_string(&h->w, "error", r ? err.msg : NULL);
    answer_send(h, NULL, 0);
}

static void note_run(struct helper *h, const struct json *run) {
    BUF_FINI struct buf words = {0};
    json_each(it, json_get(run, "argv"))
        buf_printf(&words, "%s%s", words.len ? " " : "", json_string(it, ""));
    host_record_note(&h->record, "run", buf_str(&words), NULL);
}

/* The kernel's word, of the program itself. */
static void put_uptime(struct json_writer *w, pid_t pid) {
    int64_t monotonic_ns, boottime_ns;
    if (!namespace_uptime_of(pid, &monotonic_ns, &boottime_ns))
        return;
    json_put_i64(w, "monotonic", monotonic_ns);
    json_put_i64(w, "boottime", boottime_ns);
}

static void on_run(struct helper *h, struct message *m) {
    struct err err;
    if (h->program.pid) {
        err_say(&err, -EBUSY, "a program runs in this node already");
    } else if (note_run(h, m->json), start_program(h, m, &err) == 0) {
        h->settling = false;
        loop_timer_off(h->on_settle);
        seen_process_put_name_now(answer(h, "started"), h->program.pid);
        if (!carrier_has_lane(h->carrier)) {
            put_uptime(&h->w, h->program.pid);
            answer_send(h, NULL, 0);
            node_calls_watch(h->calls, file_keep(&h->watched));
        } else {
            answer_send(h, (int[]){h->program.pidfd, h->watched}, h->watched >= 0 ? 2 : 1);
        }
        file_close(&h->watched);
        return;
    }
    json_put_string(answer(h, "failed"), "why", err.msg);
    answer_send(h, NULL, 0);
}

static void send_leftovers(struct helper *h) {
    h->settling = false;
    loop_timer_off(h->on_settle);
    h->habitat->put_leftovers(answer(h, "leftovers"));
    answer_send(h, NULL, 0);
}

static void on_settled(void *arg, int64_t now_ns) {
    send_leftovers(arg);
}

static void program_ended(struct helper *h, int status) {
    process_close(&h->program);
    node_output_drain(&h->output);
    if (h->clients)
        node_clients_drain(h->clients);
    json_put_i64(answer(h, "exited"), "status", status);
    answer_send(h, NULL, 0);
    h->settling = true;
    loop_timer_at(h->on_settle, clock_monotonic_ns() + h->linger_ns);
}

/* Orphans come to the first process of the node, so no child left means nothing left. */
static void on_child(void *arg, int signo) {
    struct helper *h = arg;
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | __WNOTHREAD)) > 0)
        if (pid == h->program.pid)
            program_ended(h, status);
    if (pid < 0 && h->settling)
        send_leftovers(h);
}

/* ---- faults ---- */

/* A process in words becomes the pidfd that would have come with the message. */
static int take_target(struct message *m, struct err *err) {
    struct process p;
    if (m->fds[0] >= 0 || !json_get(m->json, "pid"))
        return 0;
    int r = take_process(m->json, &p, err);
    if (r == 0)
        m->fds[0] = p.pidfd;
    return r;
}

/* Likewise what is kept of it: a file of the run's directory, which all hosts share. */
static int take_kept(const struct helper *h, struct message *m, struct err *err) {
    const char *path = json_get_string(m->json, "keep", NULL);
    if (!path || carrier_has_lane(h->carrier))
        return 0;
    int fd = kept_file_open(path, err);
    if (fd >= 0)
        m->fds[1] = fd;
    return fd < 0 ? fd : 0;
}

/* {key: [..]}: whom the message means, else all of the node, and who waits meanwhile. */
static void put_seen(const struct helper *h, struct buf *out, const char *key,
                     const struct json *m) {
    struct json_writer w = {.out = out};
    pid_t pid = (pid_t)json_get_i64(m, "pid", 0);
    if (carrier_has_lane(h->carrier))
        return;
    json_object(&w, NULL);
    json_array(&w, key);
    if (pid > 0)
        seen_process_put(&w, pid);
    else
        seen_node_put(&w);
    if (h->clients)
        node_clients_put_held(h->clients, &w);
    json_end_array(&w);
    json_end_object(&w);
}

/* {limits: [..], clock: {..}}, or less of it. */
static void put_counted(const struct helper *h, struct buf *out) {
    struct json_writer w = {.out = out};
    json_object(&w, NULL);
    held_limits_put(&h->held.limits, &w);
    host_clock_put(&h->held.wall, &w);
    json_end_object(&w);
}

static void put_members(struct json_writer *w, struct message *m, const struct buf *object) {
    const struct json *j = json_parse(&m->arena, buf_str(object), object->len, NULL);
    json_each(it, j) json_put_tree(w, it->key, it);
}

static void on_fault(struct helper *h, struct message *m) {
    struct err err;
    int64_t token = json_get_i64(m->json, "token", 0);
    int r = take_target(m, &err);
    bool undoes = json_get_bool(m->json, "recover", false);
    if (undoes && r == -ESRCH) /* with it went what was done to it; the fault knows */
        r = 0;
    r = r ? r : take_kept(h, m, &err);
    BUF_FINI struct buf before = {0};
    BUF_FINI struct buf counted = {0}; /* what is undone cannot be asked afterwards */
    put_seen(h, &before, "before", m->json);
    if (undoes)
        put_counted(h, &counted);
    host_record_note(&h->record, undoes ? "undo" : "fault", json_get_string(m->json, "fault", ""),
                     NULL);
    h->held.had = json_get(m->json, "had");
    r = r ? r : node_faults_do(&h->faults, m, h->program.pidfd, &err);
    h->held.had = NULL;
    answer(h, "injected");
    json_put_i64(&h->w, "token", token);
    json_put_string(&h->w, "error", r ? err.msg : NULL);
    if (!carrier_has_lane(h->carrier)) {
        BUF_FINI struct buf seen = {0};
        put_seen(h, &seen, "seen", m->json);
        put_members(&h->w, m, &before);
        put_members(&h->w, m, &seen);
        if (!undoes)
            put_counted(h, &counted);
        put_members(&h->w, m, &counted);
    }
    answer_send(h, NULL, 0);
}

/* The harness asks again what it was told with `injected`. */
static void on_look(struct helper *h, struct message *m) {
    BUF_FINI struct buf seen = {0};
    put_seen(h, &seen, "seen", m->json);
    put_members(answer(h, "look"), m, &seen);
    held_limits_put(&h->held.limits, &h->w);
    host_clock_put(&h->held.wall, &h->w);
    answer_send(h, NULL, 0);
}

/* ---- partitions of other hosts ---- */

static void note_part(struct helper *h, const struct json *part) {
    BUF_FINI struct buf about = {0};
    buf_printf(&about, "%s by %s:", json_get_string(part, "name", ""),
               json_get_string(part, "way", "sockets"));
    json_each(it, json_get(part, "peers"))
        buf_printf(&about, " %s", json_get_string(it, "name", ""));
    host_record_note(&h->record, "part", buf_str(&about), NULL);
}

/* What went wrong is said in the answer that has been begun, which else says what came of it. */
static void on_part(struct helper *h, struct message *m) {
    struct err err;
    note_part(h, m->json);
    json_put_i64(answer(h, "parted"), "token", json_get_i64(m->json, "token", 0));
    int r = host_cut_part(h->cut, m->json, &h->w, &err);
    json_put_string(&h->w, "error", r ? err.msg : NULL);
    answer_send(h, NULL, 0);
}

static void on_mend(struct helper *h, struct message *m) {
    const char *name = json_get_string(m->json, "name", "");
    host_record_note(&h->record, "mend", name, NULL);
    json_put_i64(answer(h, "mended"), "token", json_get_i64(m->json, "token", 0));
    host_cut_mend(h->cut, name, &h->w);
    json_put_string(&h->w, "error", NULL);
    answer_send(h, NULL, 0);
}

static void on_count(struct helper *h, struct message *m) {
    json_put_i64(answer(h, "counted"), "token", json_get_i64(m->json, "token", 0));
    host_cut_count(h->cut, &h->w);
    answer_send(h, NULL, 0);
}

static void on_notice(struct helper *h, struct message *m) {
    if (h->metadata)
        metadata_tell(h->metadata, json_get_string(m->json, "cloud", ""),
                      json_get_string(m->json, "text", ""));
}

static void on_sockets(struct helper *h, struct message *m) {
    int64_t port = json_get_i64(m->json, "port", 0);
    answer(h, "sockets");
    json_put_i64(&h->w, "port", port);
    json_put_i64(&h->w, "round", json_get_i64(m->json, "round", 0));
    h->habitat->put_sockets(&h->w, (uint16_t)port);
    answer_send(h, NULL, 0);
}

/* ---- what is about no program ---- */

/* What the harness has tried itself on its own host is tried on others alone. */
static void say_hello(struct helper *h) {
    struct hello hello;
    bool elsewhere = !carrier_has_lane(h->carrier);
    hello_here(&hello);
    hello.can |= (unsigned)!elsewhere << HELLO_CAN_DESCRIPTORS;
    answer(h, "hello");
    json_object(&h->w, "cannot");
    if (elsewhere)
        abilities_try(&hello, &h->w);
    json_end_object(&h->w);
    hello_put(&h->w, &hello);
    answer_send(h, NULL, 0);
}

static void on_hello(struct helper *h, struct message *m) {
    struct hello harness;
    struct err err;
    hello_take(m->json, &harness);
    h->greeted = true;
    if (hello_check(&harness, "the harness", &err) != 0)
        broken(h, &err);
}

/* Nothing but that the harness is there, as all that it says does. */
static void on_beat(struct helper *h, struct message *m) {
}

static void on_clock(struct helper *h, struct message *m) {
    answer(h, "clock");
    json_put_i64(&h->w, "t1", json_get_i64(m->json, "t1", 0));
    json_put_i64(&h->w, "t2", carrier_heard_ns(h->carrier));
    json_put_i64(&h->w, "t3", clock_monotonic_ns());
    answer_send(h, NULL, 0);
}

static void on_file(struct helper *h, struct message *m) {
    json_put_i64(answer(h, "file"), "token", json_get_i64(m->json, "token", 0));
    file_answer(m->json, &h->w);
    answer_send(h, NULL, 0);
}

static void on_inventory(struct helper *h, struct message *m) {
    host_facts_put(answer(h, "inventory"));
    answer_send(h, NULL, 0);
}

/* It takes a moment, and is asked before there is a job. */
static void on_preload(struct helper *h, struct message *m) {
    struct err err;
    char owner[NODE_HELPER_OWNER_MAX];
    node_helper_owner(getpid(), owner);
    int r = host_clock_try(owner, json_get_string(m->json, "programs", ""), &err);
    json_put_string(answer(h, "preload"), "error", r ? err.msg : NULL);
    answer_send(h, NULL, 0);
}

static void on_left(struct helper *h, struct message *m) {
    host_left_answer(m->json, answer(h, "left"));
    left_groups_put(str_eq(json_get_string(m->json, "do", ""), "clean"), &h->w);
    answer_send(h, NULL, 0);
}

static void on_arm(struct helper *h, struct message *m) {
    if (h->clients)
        node_clients_arm(h->clients, m->json);
    node_calls_arm(h->calls, m->json);
}

static void on_pass(struct helper *h, struct message *m) {
    node_calls_pass(h->calls, m->json);
}

/* Before a call is: that whoever makes it has started. */
static void tell_clients(void *arg) {
    struct helper *h = arg;
    if (h->clients)
        node_clients_drain(h->clients);
}

/* One that is being written is not begun anew: its end answers for both. */
static void on_dump(struct helper *h, struct message *m) {
    struct err err;
    if (h->dump && !node_dump_is_over(h->dump))
        return;
    node_dump_free(h->dump);
    h->dump = node_dump_begin(h->loop, h->carrier, json_get_i64(m->json, "budget", 0), &err);
    if (h->dump)
        return;
    json_put_bool(answer(h, "dumped"), "done", true);
    json_put_string(&h->w, "error", err.msg);
    answer_send(h, NULL, 0);
}

static void on_release(struct helper *h, struct message *m) {
    if (h->clients)
        node_clients_release(h->clients, m->json);
}

/* ---- the carrier ---- */

static void refuse(struct helper *h, const char *op, const char *why) {
    struct err err;
    err_say(&err, -EPROTO,
            "the harness said \"%s\" %s: give both ends the same version of RankQuake", op, why);
    broken(h, &err);
}

static const struct order {
    const char *op;
    void (*fn)(struct helper *h, struct message *m);
    enum { AT_ANY_TIME, BEFORE_SETUP, AFTER_SETUP } when;
} orders[] = {{"hello", on_hello, AT_ANY_TIME},
              {"beat", on_beat, AT_ANY_TIME},
              {"clock", on_clock, AT_ANY_TIME},
              {"file", on_file, AT_ANY_TIME},
              {"inventory", on_inventory, AT_ANY_TIME},
              {"left", on_left, AT_ANY_TIME},
              {"preload", on_preload, BEFORE_SETUP},
              {"setup", on_setup, BEFORE_SETUP},
              {"net", on_net, AFTER_SETUP},
              {"run", on_run, AFTER_SETUP},
              {"fault", on_fault, AFTER_SETUP},
              {"look", on_look, AFTER_SETUP},
              {"signal", on_signal, AFTER_SETUP},
              {"part", on_part, AFTER_SETUP},
              {"mend", on_mend, AFTER_SETUP},
              {"count", on_count, AFTER_SETUP},
              {"arm", on_arm, AFTER_SETUP},
              {"release", on_release, AFTER_SETUP},
              {"pass", on_pass, AFTER_SETUP},
              {"dump", on_dump, AFTER_SETUP},
              {"notice", on_notice, AFTER_SETUP},
              {"sockets", on_sockets, AFTER_SETUP}};

static const struct order *order_of(const char *op) {
    for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++)
        if (str_eq(op, orders[i].op))
            return &orders[i];
    return NULL;
}

static void handle(void *arg, struct message *m) {
    struct helper *h = arg;
    const char *op = json_get_string(m->json, "op", "");
    const struct order *o = order_of(op);
    dead_man_heard(h->heals);
    dead_man_heard(h->ends);
    if (!o)
        refuse(h, op, "which nobody understands");
    else if (!h->greeted && o->fn != on_hello)
        refuse(h, op, "before it said hello");
    else if (o->when == AFTER_SETUP && !h->habitat)
        refuse(h, op, "before setup");
    else if (o->when == BEFORE_SETUP && h->habitat)
        refuse(h, op, "a second time");
    else
        o->fn(h, m);
}

static void on_end(void *arg, const struct err *why) {
    struct helper *h = arg;
    if (why->code == -EPROTO)
        broken(h, why);
    loop_stop(h->loop);
}

/* By others than the harness, whose word is the end of what it says. */
static void on_told_to_end(void *arg, int signo) {
    struct helper *h = arg;
    h->signo = signo;
    loop_stop(h->loop);
}

/* The last that is heard of a node. */
static void say_bye(struct helper *h) {
    TEXTS_FINI struct texts left = {0}, mended = {0};
    host_cut_mend_all(h->cut, false,
                      &mended); /* as long as there is somebody to hear their peers */
    if (h->habitat && h->habitat->end)
        h->habitat->end(&left);
    host_cut_mend_all(h->cut, true, &mended);
    held_limits_end(&h->held.limits, &left);
    if (host_clock_end(&h->held.wall) != 0)
        texts_add(&left, "the page of its clock, %s", h->held.wall.path);
    if (h->clients)
        node_clients_drain(h->clients);
    answer(h, "bye");
    if (h->signo)
        json_put_i64(&h->w, "signal", h->signo);
    json_put_strings(&h->w, "left", texts_list(&left));
    held_node_put_rules(&h->held, &h->w);
    json_array(&h->w, "healed");
    if (!carrier_has_lane(h->carrier)) /* here the harness undoes what lasts, or its death does */
        node_faults_undo(&h->faults, -1, &h->w);
    for (size_t i = 0; i < mended.n; i++)
        put_mended(h, mended.v[i]);
    json_end_array(&h->w);
    host_record_note(&h->record, "bye", left.n ? "something is left" : NULL, NULL);
    answer_send(h, NULL, 0);
    carrier_flush(h->carrier, BYE_WAIT_MS);
}

int node_helper_run(const struct carrier_ends *ends, int64_t dead_man_ns, struct err *err) {
    struct helper h = {.program = PROCESS_NONE,
                       .watched = -1,
                       .clock = -1,
                       .held = {.wall = HOST_CLOCK_NONE},
                       .output = NODE_OUTPUT_NONE,
                       .record = HOST_RECORD_NONE,
                       .dead_man_ns = dead_man_ns};
    h.loop = loop_new(err);
    if (!h.loop)
        return err->code;
    h.carrier = carrier_new(h.loop, ends, &(struct carrier_listener){handle, on_end, &h, on_taken});
    h.cut = host_cut_new();
    h.calls = node_calls_new(h.loop, h.carrier, h.cut, tell_clients, &h);
    if (!carrier_has_lane(h.carrier)) { /* here the harness does it, outside of the node */
        h.held.rules = node_calls_rules(h.calls);
        h.faults.ops = &held_node_ops;
        h.faults.node = &h.held;
    }
    h.heals = dead_man_new(h.loop, ends->in, dead_man_ns, on_silence, &h);
    loop_signal(h.loop, SIGCHLD, on_child, &h);
    if (!carrier_has_lane(h.carrier)) { /* whoever stops it there wants it to end well */
        loop_watch_lateness(h.loop);
        loop_signal(h.loop, SIGTERM, on_told_to_end, &h);
        loop_signal(h.loop, SIGINT, on_told_to_end, &h);
        loop_signal(h.loop, SIGHUP, on_told_to_end, &h);
    }
    h.on_settle = loop_timer(h.loop, on_settled, &h);
    say_hello(&h);
    int r = loop_run(h.loop, err);
    say_bye(&h);
    node_output_end(&h.output);
    node_clients_free(h.clients);
    node_calls_free(h.calls);
    node_dump_free(h.dump);
    host_cut_free(h.cut);
    host_record_close(&h.record);
    process_close(&h.program);
    node_faults_fini(&h.faults);
    held_node_fini(&h.held);
    dead_man_free(h.heals);
    dead_man_free(h.ends);
    metadata_free(h.metadata);
    file_close(&h.clock);
    buf_fini(&h.out);
    carrier_free(h.carrier);
    loop_free(h.loop);
    return r;
}

int node_helper_clear(const char *owner) {
    return limit_group_clear_of(owner) + host_clock_clear(owner);
}

void node_helper_owner(pid_t helper, char ret[NODE_HELPER_OWNER_MAX]) {
    limit_group_owner(helper, ret);
}
