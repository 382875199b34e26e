/* How an etcd of one's own is started and ended: each call in its order, each failing once, and what it says in pieces of any size.
 * The kernel, the clock and the keeper are played by this file. */
#include "agent/store/etcd.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/loop.h"
#include "base/sys/process.h"
#include "base/sys/tcp.h"
#include "tests/agent/store/traced.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- what is played ---- */

enum { FDS = 40, PIECES_MAX = 8 };

static bool open_fds[FDS]; /* from 10 on */
static int64_t virtual_ns;
static int n_reserved;
static struct piece {
    const char *text; /* NULL: read fails so, with an errno; "": the end */
    int64_t at_ns;    /* when it comes */
    int error;
} pieces[PIECES_MAX];
static int next_piece;
static size_t next_byte, most; /* most: so much is read at once */
static int64_t ends_after_ns;  /* the keeper, when its pipes are closed */
static bool hangs;             /* even when it is killed */
static bool readable;          /* poll has said so: a read would wait else */

static int fd_open(void) {
    int fd = 10;
    while (open_fds[fd])
        assert_true(++fd < FDS);
    open_fds[fd] = true;
    return fd;
}

static void fake_close(int *fd) {
    if (*fd < 0)
        return;
    assert_true(open_fds[*fd]);
    open_fds[*fd] = false;
    trace_note("close %d", *fd);
    *fd = -1;
}

static int fake_reserve(int *fd, uint16_t *port, struct err *err) {
    int code = trace_code("reserve", err);
    if (code)
        return code;
    *fd = fd_open();
    *port = (uint16_t)(2000 + n_reserved++);
    trace_note("reserve %d at %d", *port, *fd);
    return 0;
}

static int fake_pipe(int ret[2]) {
    if (trace_fails("pipe"))
        return -EMFILE;
    ret[0] = fd_open();
    ret[1] = fd_open();
    trace_note("pipe %d %d", ret[0], ret[1]);
    return 0;
}

static int fake_spawn(const struct process_spawn *s, struct process *ret, struct err *err) {
    BUF_FINI struct buf line = {0};
    assert_true(!s->dir && !s->keep && !s->keep_n && s->session && !s->group && !s->in_child);
    assert_int_equal(s->death_signal, SIGCONT);
    assert_string_equal(s->file, "/proc/self/exe");
    for (const char *const *p = s->argv; *p; p++)
        buf_printf(&line, " %s", *p);
    trace_note("spawn%s", buf_str(&line));
    buf_clear(&line);
    for (const char *const *p = s->envp; *p; p++)
        if (strcmp(*p, "ETCD_UNSUPPORTED_ARCH=arm64") != 0)
            buf_printf(&line, " %s", *p);
    trace_note("with %d %d %d and%s", s->fds[0], s->fds[1], s->fds[2], buf_str(&line));
    int code = trace_code("spawn", err);
    if (!code)
        *ret = (struct process){4711, 17};
    return code;
}

/* Until the next piece comes, or for so long. */
static int fake_poll(const struct pollfd *fd, nfds_t n, int ms) {
    assert_int_equal(n, 1);
    assert_true(fd->events == POLLIN && fd->fd >= 10 && open_fds[fd->fd]);
    errno = EINTR;
    if (trace_fails("poll"))
        return -1;
    assert_true(ms >= 0);
    int64_t at_ns = pieces[next_piece].at_ns;
    if (pieces[next_piece].text || pieces[next_piece].error)
        if (at_ns <= virtual_ns + (int64_t)ms * 1000000) {
            virtual_ns = at_ns > virtual_ns ? at_ns : virtual_ns;
            readable = true;
            return 1;
        }
    virtual_ns += (int64_t)ms * 1000000;
    return 0;
}

static ssize_t fake_read(int fd, char *to, size_t size) {
    const struct piece *p = &pieces[next_piece];
    assert_true(open_fds[fd] && readable);
    readable = false;
    errno = p->error ? p->error : EINTR; /* that says nothing where it has not failed */
    if (p->error) {
        next_piece++;
        return -1;
    }
    size_t n = strlen(p->text) - next_byte;
    n = n < size ? n : size;
    n = n < most ? n : most;
    memcpy(to, p->text + next_byte, n);
    next_byte += n;
    if (n && !p->text[next_byte]) {
        next_piece++;
        next_byte = 0;
    }
    return (ssize_t)n;
}

static int fake_reap(const struct process *p, int64_t timeout_ns, const int *status) {
    assert_null(status);
    trace_note("reap %d for %lld", (int)p->pid, (long long)timeout_ns);
    if (hangs || timeout_ns < ends_after_ns)
        return -ETIME;
    return 0;
}

static int fake_signal(int signo) {
    trace_note("kill %d", signo);
    ends_after_ns = 0;
    return 0;
}

static loop_fd_fn *said_fn;
static void *said_arg;

static struct loop_source *fake_watch(int fd, int what, loop_fd_fn *fn, void *arg) {
    static char source;
    assert_int_equal(what, LOOP_READ);
    trace_note("watch %d", fd);
    said_fn = fn;
    said_arg = arg;
    return (struct loop_source *)(void *)&source;
}

#define clock_monotonic_ns() virtual_ns
#define access(path, how)                                                                          \
    ((how) == X_OK && (strcmp(path, "/good") == 0 || strcmp(path, "g") == 0)                       \
         ? 0                                                                                       \
         : (errno = EACCES, -1))
#define tcp_reserve_port(fd, port, err) fake_reserve(fd, port, err)
#define process_report_pipe(ret)        fake_pipe(ret)
#define process_spawn(s, ret, err)      fake_spawn(s, ret, err)
#define process_reap(p, ns, status)     fake_reap(p, ns, status)
#define process_signal(p, signo)        fake_signal(signo)
#define process_close(p)                trace_note("forget %d", (p)->pidfd)
#define poll(fds, n, ms)                fake_poll(fds, n, ms)
#define read(fd, to, n)                 fake_read(fd, to, n)
#define loop_fd(l, fd, what, fn, arg)   fake_watch(fd, what, fn, arg)
#define loop_source_free(s)             (trace_note("unwatch"), (struct loop_source *)NULL)
#define file_close                      fake_close
#include "agent/store/etcd.c"

/* ---- starting ---- */

#define READY "2026-01-02 03:04:05.678 N | embed: ready to serve client requests\n"

static const char *const usual[] = {
    "A=b", "ETCD_NAME=other", "XETCD_X=1", "ETCD=1", "ETCD_", "Z=", NULL};
static struct err err;

static void fresh(const char *failing, int at) {
    trace_begin(failing, at);
    memset(open_fds, 0, sizeof(open_fds));
    memset(pieces, 0, sizeof(pieces));
    n_reserved = next_piece = 0;
    next_byte = 0;
    most = SIZE_MAX;
    virtual_ns = 7000000000;
    ends_after_ns = 0;
    hangs = readable = false;
    err = (struct err){0};
    pieces[0].text = READY;
}

static struct etcd *start(const char *path, bool old_api) {
    static char *variables[16], named[64];
    int n = 0;
    for (; usual[n]; n++)
        variables[n] = (char *)(uintptr_t)usual[n];
    snprintf(named, sizeof(named), "TORCHELASTIC_ETCD_BINARY_PATH=%s", path ? path : "");
    if (path)
        variables[n++] = named;
    variables[n] = NULL;
    char **before = environ;
    environ = variables;
    struct etcd *e = etcd_start(old_api, &err);
    environ = before;
    return e;
}

static int count_open(void) {
    int n = 0;
    for (int i = 0; i < FDS; i++)
        n += open_fds[i];
    return n;
}

#define PORTS "pipe 10 11\npipe 12 13\nreserve 2000 at 14\nreserve 2001 at 15\nclose 15\nclose 14\n"
#define SPAWN(program, more)                                                                       \
    "spawn rankrun-etcd " program                                                                  \
    " --listen-client-urls http://127.0.0.1:2000 --advertise-client-urls http://127.0.0.1:2000 "   \
    "--listen-peer-urls http://127.0.0.1:2001 --auto-compaction-mode revision "                    \
    "--auto-compaction-retention 10000" more "\n"
#define WITH(more) "with 10 13 13 and A=b XETCD_X=1 ETCD=1 Z=" more "\n"
#define BEGUN      "close 13\nclose 10\n"
#define ENDED      "close 11\nclose 12\nreap 4711 for 10000000000\nforget 17\n"

static void test_each_call_is_made_in_its_order(void **state) {
    (void)state;
    static const struct {
        const char *path;
        bool old_api;
        const char *calls;
    } all[] = {
        {NULL, false, PORTS SPAWN("etcd", "") WITH("") BEGUN},
        {NULL, true, PORTS SPAWN("etcd", " --enable-v2") WITH("") BEGUN},
        {"", false, PORTS SPAWN("etcd", "") WITH(" TORCHELASTIC_ETCD_BINARY_PATH=") BEGUN},
        {"g", false, PORTS SPAWN("g", "") WITH(" TORCHELASTIC_ETCD_BINARY_PATH=g") BEGUN},
        {"/good", true,
         PORTS SPAWN("/good", " --enable-v2") WITH(" TORCHELASTIC_ETCD_BINARY_PATH=/good") BEGUN},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        BUF_FINI struct buf whole = {0};
        fresh("", 0);
        struct etcd *e = start(all[i].path, all[i].old_api);
        assert_string_equal(err.msg, "");
        assert_non_null(e);
        trace_is(all[i].calls);
        assert_int_equal(etcd_port(e), 2000);
        assert_int_equal(etcd_keeper(e), 4711);
        assert_int_equal(count_open(), 2);
        assert_null(etcd_free(e));
        buf_printf(&whole, "%s%s", all[i].calls, ENDED);
        trace_is(buf_str(&whole));
        assert_int_equal(count_open(), 0);
    }
    assert_null(etcd_free(NULL));
}

static void test_an_environment_of_any_size_is_passed_on(void **state) {
    (void)state;
    enum { MANY = 20000 };
    static char *many[MANY + 1];
    static char variable[] = "A=b";
    for (int i = 0; i < MANY; i++)
        many[i] = variable;
    char **before = environ;
    fresh("", 0);
    environ = many;
    struct etcd *e = etcd_start(false, &err);
    environ = before;
    assert_non_null(e);
    const char *from = strstr(buf_str(&trace), " and A=b");
    assert_non_null(from);
    assert_int_equal(strcspn(from + 4, "\n"), MANY * strlen(" A=b"));
    etcd_free(e);
}

static void fails(const char *call, int at, int code, const char *why, const char *calls) {
    fresh(call, at);
    assert_null(start(NULL, false));
    assert_int_equal(err.code, code);
    assert_string_equal(err.msg, why);
    assert_int_equal(count_open(), 0);
    trace_is(calls);
}

static void test_where_a_call_fails_nothing_is_left(void **state) {
    (void)state;
    fails("pipe", 1, -EMFILE, "make a pipe: Too many open files", "forget -1\n");
    fails("pipe", 2, -EMFILE, "make a pipe: Too many open files",
          "pipe 10 11\nclose 10\nclose 11\nforget -1\n");
    fails("reserve", 1, -5, "reserve failed",
          "pipe 10 11\npipe 12 13\n" BEGUN "close 11\nclose 12\nforget -1\n");
    fails("reserve", 2, -5, "reserve failed",
          "pipe 10 11\npipe 12 13\nreserve 2000 at 14\nclose 14\n" BEGUN
          "close 11\nclose 12\nforget -1\n");
    fails("spawn", 1, -5, "spawn failed",
          PORTS SPAWN("etcd", "") WITH("") BEGUN "close 11\nclose 12\nforget -1\n");
    fresh("", 0);
    assert_null(start("/bad", false));
    assert_int_equal(err.code, -EINVAL);
    assert_string_equal(err.msg,
                        "TORCHELASTIC_ETCD_BINARY_PATH=/bad in the environment: Permission denied");
    trace_is("");
}

/* ---- until it serves ---- */

static void starts(int64_t after_ns) {
    struct etcd *e = start(NULL, false);
    assert_string_equal(err.msg, "");
    assert_non_null(e);
    assert_int_equal(virtual_ns, 7000000000 + after_ns);
    etcd_free(e);
}

static void does_not_start(const char *how, const char *words) {
    char expected[600];
    assert_null(start(NULL, false));
    snprintf(expected, sizeof(expected), "the etcd of this job (etcd) %s: %s", how, words);
    assert_string_equal(err.msg, expected);
    assert_int_equal(err.code, -EHOSTUNREACH);
    assert_int_equal(count_open(), 0);
    assert_non_null(strstr(buf_str(&trace), ENDED)); /* whoever was started is ended */
}

static void test_it_has_half_a_minute_to_serve(void **state) {
    (void)state;
    fresh("", 0);
    pieces[0].at_ns = 7000000000 + 30000000000;
    starts(30000000000);
    fresh("", 0);
    pieces[0].at_ns = 7000000000 + 30000000001;
    does_not_start("did not serve within 30 s", "it said nothing");
    fresh("", 0); /* it is busy, and does not serve */
    for (int i = 0; i < 7; i++)
        pieces[i] = (struct piece){"2026 I | busy\n", 7000000000 + (int64_t)i * 5000000000, 0};
    does_not_start("did not serve within 30 s", "busy");
    assert_int_equal(virtual_ns, 37000000000);
    fresh("", 0);
    pieces[0].at_ns = 0;
    pieces[0].text = "2026 I | late\n";
    pieces[1] = (struct piece){READY, 7000000000 + 29999999999, 0};
    starts(29999999999);
}

static void test_an_interrupted_call_is_made_again(void **state) {
    (void)state;
    fresh("poll", 1);
    starts(0);
    fresh("", 0);
    pieces[0] = (struct piece){.error = EINTR};
    pieces[1].text = READY;
    starts(0);
}

static void test_it_is_told_what_it_said_last(void **state) {
    (void)state;
    static const struct {
        const char *said, *words;
    } all[] = {
        {"", "it said nothing"},
        {"\n\n", "it said nothing"},
        {"not a whole line", "it said nothing"},
        {"2026 C | etcdmain: bind\n\n", "etcdmain: bind"},
        {"one\ntwo\nthree", "two"},
        {"{\"msg\":\"m\",\"error\":\"e\"}\n", "m: e"},
        {"flag provided but not defined: -enable-v2\nUsage:\n  --name\n",
         "flag provided but not defined: -enable-v2; an etcd from 3.6 on has no v2 API: take "
         "--rdzv-backend etcd-v3, or an older one"},
        {"flag provided but not defined: -other\nUsage:\n",
         "flag provided but not defined: -other"},
        {"etcd: No such file or directory\n",
         "etcd: No such file or directory; install it (Debian, Ubuntu: apt install etcd-server), "
         "or name one by TORCHELASTIC_ETCD_BINARY_PATH; --standalone alone needs none"},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        for (size_t n = 1; n < 8; n++) {
            fresh("", 0);
            most = n;
            pieces[0].text = all[i].said;
            pieces[1].text = "";
            does_not_start("did not start", all[i].words);
        }
    fresh("", 0);
    pieces[0].text = "words\n";
    pieces[1].error = EIO;
    does_not_start("did not start", "words");
}

/* Whatever is read at once, and behind a line that has no end. */
static void test_that_it_serves_is_heard_wherever_it_is_cut(void **state) {
    (void)state;
    static char endless[80001];
    memset(endless, 'x', sizeof(endless) - 1);
    for (size_t n = 1; n < sizeof(READY); n++) {
        fresh("", 0);
        most = n;
        pieces[0].text = "first\n" READY "last\n";
        starts(0);
    }
    fresh("", 0);
    pieces[0].text = endless;
    pieces[1].text = "\n" READY;
    starts(0);
}

/* A line is kept up to 64 KiB, and what comes then begins one. */
static void test_of_a_line_without_an_end_the_last_is_told(void **state) {
    (void)state;
    static char endless[65538], cut[256];
    memset(cut, 'x', sizeof(cut) - 1);
    for (size_t n = 65535; n <= 65537; n++) {
        memset(endless, 'x', n);
        endless[n] = '\0';
        fresh("", 0);
        pieces[0].text = endless;
        pieces[1].text = "tail\n";
        pieces[2].text = "";
        does_not_start("did not start", n < 65536 ? cut : n == 65536 ? "tail" : "xtail");
    }
}

/* ---- its end ---- */

static void test_a_keeper_that_does_not_end_is_killed(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        fresh("", 0);
        struct etcd *e = start(NULL, false);
        assert_non_null(e);
        ends_after_ns = i ? 10000000001 : 10000000000;
        hangs = i == 2;
        buf_clear(&trace);
        etcd_free(e);
        trace_is(i ? "close 11\nclose 12\nreap 4711 for 10000000000\nkill 9\n"
                     "reap 4711 for 10000000000\nforget 17\n"
                   : ENDED);
    }
}

static int ended;
static char last_words[300];

static void on_ended(void *arg, const char *words) {
    assert_ptr_equal(arg, &ended);
    ended++;
    snprintf(last_words, sizeof(last_words), "%s", words);
}

static void test_its_end_is_told_once_with_its_words(void **state) {
    (void)state;
    fresh("", 0);
    struct etcd *e = start(NULL, false);
    assert_non_null(e);
    buf_clear(&trace);
    etcd_watch(e, NULL, on_ended, &ended);
    trace_is("watch 12\n");
    next_piece = 0;
    pieces[0] = (struct piece){.text = "one\n2026 C | two\nthree"};
    pieces[1] = (struct piece){.error = EINTR};
    pieces[2] = (struct piece){.text = ""};
    readable = true;
    said_fn(said_arg, 12, LOOP_READ);
    readable = true;
    said_fn(said_arg, 12, LOOP_READ);
    assert_int_equal(ended, 0);
    readable = true;
    said_fn(said_arg, 12, LOOP_READ);
    assert_int_equal(ended, 1);
    assert_string_equal(last_words, "two");
    trace_is("watch 12\nunwatch\n");
    etcd_free(e);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_call_is_made_in_its_order),
        cmocka_unit_test(test_an_environment_of_any_size_is_passed_on),
        cmocka_unit_test(test_where_a_call_fails_nothing_is_left),
        cmocka_unit_test(test_it_has_half_a_minute_to_serve),
        cmocka_unit_test(test_an_interrupted_call_is_made_again),
        cmocka_unit_test(test_it_is_told_what_it_said_last),
        cmocka_unit_test(test_that_it_serves_is_heard_wherever_it_is_cut),
        cmocka_unit_test(test_of_a_line_without_an_end_the_last_is_told),
        cmocka_unit_test(test_a_keeper_that_does_not_end_is_killed),
        cmocka_unit_test(test_its_end_is_told_once_with_its_words),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
