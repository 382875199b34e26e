/* What files, jobs and programs give to the harness, the guard and the job, for AFL++: the first
 * byte says who reads the rest. A crash is what a sanitizer finds, an assertion of the code, or one
 * of those here. */
#include "agent/hosts/remote_launch.h"
#include "agent/store/marker.h"
#include "agent/workers/error_file.h"
#include "agent/workers/file_timer.h"
#include "agent/workers/orders.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/printable.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/folder.h"
#include "base/utf8.h"
#include "harness/carrier/frames.h"
#include "harness/carrier/hello.h"
#include "harness/judge/coverage.h"
#include "harness/judge/own_checks.h"
#include "harness/observe/leader.h"
#include "harness/observe/lines.h"
#include "harness/observe/metric.h"
#include "harness/observe/observe.h"
#include "harness/run/control.h"
#include "harness/run/presence.h"
#include "scenarios/jobs/rankquake.h"
#include "scenarios/jobs/ranktrain/data/images.h"
#include "scenarios/jobs/ranktrain/data/packing.h"
#include "scenarios/jobs/ranktrain/manifest.h"
#include "tests/fuzz/fuzzed.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>

typedef void read_fn(struct arena *a, const char *text, size_t n);

/* ---- text ---- */

/* What is read is written as the same. */
static void read_json(struct arena *a, const char *text, size_t n) {
    const struct json *j = json_parse(a, text, n, NULL);
    struct buf once = {0}, twice = {0};
    struct json_writer w = {.out = &once}, again = {.out = &twice};
    json_put_tree(&w, NULL, j);
    const struct json *k = json_parse(a, buf_str(&once), once.len, NULL);
    assert(k);
    json_put_tree(&again, NULL, k);
    assert(str_eq(buf_str(&once), buf_str(&twice)));
    buf_fini(&once);
    buf_fini(&twice);
}

static void check_printable(const struct buf *b, bool lines) {
    for (size_t i = 0; i < b->len;) {
        unsigned c = 0;
        int n = utf8_read(b->data + i, b->len - i, &c);
        assert(n > 0 && (printable_is(c) || (lines && (c == '\n' || c == '\t'))));
        i += (size_t)n;
    }
}

/* In pieces it is the same, as a FILE gives them to base/sys/printing.c. */
static void read_text(struct arena *a, const char *text, size_t n) {
    struct buf whole = {0}, apart = {0}, held = {0};
    char room[64];
    printable_put(&whole, text, n, PRINTABLE_LINES);
    check_printable(&whole, true);
    for (size_t at = 0, piece = 1 + n % 5; at < n; at += piece) {
        buf_put(&held, text + at, piece < n - at ? piece : n - at);
        size_t whole_n = held.len - printable_unfinished(held.data, held.len);
        printable_put(&apart, held.data, whole_n, PRINTABLE_LINES);
        buf_consume(&held, whole_n);
    }
    printable_put(&apart, buf_str(&held), held.len, PRINTABLE_LINES);
    assert(str_eq(buf_str(&whole), buf_str(&apart)));
    printable_copy(room, sizeof(room), arena_strndup(a, text, n));
    buf_clear(&held);
    buf_puts(&held, room);
    check_printable(&held, false);
    buf_fini(&whole);
    buf_fini(&apart);
    buf_fini(&held);
}

static void read_base64(struct arena *a, const char *text, size_t n) {
    struct buf bytes = {0}, again = {0};
    (void)a;
    if (base64_take(&bytes, text, n)) {
        base64_put(&again, buf_str(&bytes), bytes.len);
        assert(again.len == n);
    }
    buf_fini(&bytes);
    buf_fini(&again);
}

static void read_metric(struct arena *a, const char *text, size_t n) {
    const char *page = arena_strndup(a, text, n), *line = strchr(page, '\n');
    char value[64];
    metric_read(line ? line + 1 : "", arena_strndup(a, page, strcspn(page, "\n")), value, NULL);
}

static void read_boot(struct arena *a, const char *text, size_t n) {
    marker_judge(arena_strndup(a, text, n), "01234567-89ab-cdef-0123-456789abcdef");
}

static void read_leader(struct arena *a, const char *text, size_t n) {
    const struct json *j = json_parse(a, text, n, NULL);
    struct leader l;
    struct err err = {0};
    leader_of_job(j, "job", &l, &err);
    leader_of_members(json_get(j, "status"), json_get(j, "list"), &l, &err);
    leader_of_members(NULL, j, &l, &err);
}

static void read_answer(struct arena *a, const char *text, size_t n) {
    struct history h = {0};
    struct finding f = {.check = "own:mine"};
    struct err err = {0};
    (void)a;
    assert(own_check_read(&f, &h, text, n, &err) == 0 || err.msg[0]);
}

static void read_manifest(struct arena *a, const char *text, size_t n) {
    struct manifest m, again;
    struct buf out = {0};
    (void)a;
    if (manifest_read(text, n, &m, NULL) == 0) {
        manifest_write(&m, &out);
        assert(manifest_read(buf_str(&out), out.len, &again, NULL) == 0);
        assert(again.step == m.step && str_eq(again.model, m.model));
    }
    buf_fini(&out);
}

/* ---- descriptors ---- */

static int memory(const char *text, size_t n) {
    int fd = memfd_create("record", MFD_CLOEXEC);
    if (fd < 0 || write(fd, text, n) != (ssize_t)n || lseek(fd, 0, SEEK_SET) < 0)
        abort();
    return fd;
}

static void read_launch(struct arena *a, const char *text, size_t n) {
    struct launch_order l;
    if (launch_read(memory(text, n), a, &l, NULL) == 0)
        for (uint32_t i = 0; i < l.n; i++)
            assert(l.workers[i].argv && l.workers[i].env);
}

static void read_remote_launch(struct arena *a, const char *text, size_t n) {
    struct remote_launch e;
    int fd = memory(text, n);
    if (remote_launch_read(fd, a, &e, NULL) == 0)
        assert(e.dir && e.argv[0]);
    close(fd);
}

/* The header's own checksum is set right for every other one, so that what is behind it is read. */
static void read_images(struct arena *a, const char *text, size_t n) {
    struct images d;
    struct images_header h;
    int fd = memory(text, n);
    (void)a;
    if (n > sizeof(h) && text[n - 1] & 1) {
        memcpy(&h, text, sizeof(h));
        h.crc = (uint32_t)crc32(0, (const unsigned char *)&h, offsetof(struct images_header, crc));
        if (pwrite(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h))
            abort();
    }
    if (images_open(fd, "fuzzed", &d, NULL) == 0) {
        for (uint32_t i = 0; i < d.count; i++) {
            images_read(&d, i, NULL);
            assert(images_label(&d, i) < d.shape.classes);
        }
        images_close(&d);
    }
    close(fd);
}

/* ---- files of a directory ---- */

static char dir[200], path[300];

static const char *put(const char *name, const char *text, size_t n) {
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (file_write(path, text, n, NULL) < 0)
        abort();
    return path;
}

static void read_presence(struct arena *a, const char *text, size_t n) {
    struct presence p;
    struct folder run;
    put("presence.json", text, n);
    if (folder_open(&run, dir, NULL) < 0)
        abort();
    int r = presence_read(&run, a, &p, NULL);
    folder_close(&run);
    if (r < 0)
        return;
    presence_state(&p);
    for (size_t i = 0; i < p.nodes_n; i++)
        presence_lives(&p, &p.nodes[i]);
}

static void read_control(struct arena *a, const char *text, size_t n) {
    struct control c;
    (void)a;
    put("control.json", text, n);
    control_read(dir, &c, NULL);
}

static void read_coverage(struct arena *a, const char *text, size_t n) {
    (void)a;
    coverage_lost(put("baseline", text, n));
}

static void read_error_file(struct arena *a, const char *text, size_t n) {
    char message[256], to[300];
    (void)a;
    put("error.json", text, n);
    error_file_text(path, message, sizeof(message));
    snprintf(to, sizeof(to), "%s/to.json", dir);
    error_file_pass_on(path, to, -9, NULL);
}

static void on_line(void *arg, void *who, const char *line) {
    (void)arg, (void)who;
    assert(strlen(line) <= LINE_LENGTH_MAX);
    for (; *line; line++)
        assert((unsigned char)*line >= ' ' && *line != 0x7f);
}

/* As workers print it: in two portions. */
static void read_output(struct arena *a, const char *text, size_t n) {
    struct loop *loop = loop_new(NULL);
    struct lines *lines = lines_new(loop, on_line, NULL, NULL);
    (void)a;
    int log = open(put("rank-0.log", text, n / 2), O_RDONLY | O_CLOEXEC);
    struct lines_file *f = lines_follow(lines, log, NULL, NULL);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    lines_drain(f);
    file_write_all(fd, text + n / 2, n - n / 2, NULL);
    lines_drain(f);
    close(fd);
    lines_free(lines);
    loop_free(loop);
}

static void on_expired(void *arg, pid_t pid, int signo, const char *scope, int64_t late_ns) {
    (void)arg, (void)late_ns;
    assert(pid > 0 && signo < NSIG && strlen(scope) < FILE_TIMER_SCOPE);
}

static void on_odd(void *arg, const char *what) {
    (void)arg;
    assert(*what);
}

static void read_timers(struct arena *a, const char *text, size_t n) {
    static const struct file_timer_events events = {on_expired, on_odd};
    struct loop *loop = loop_new(NULL);
    char fifo[300];
    (void)a;
    snprintf(fifo, sizeof(fifo), "%s/timer", dir);
    struct file_timer *t = file_timer_new(loop, fifo, &events, NULL, NULL);
    int fd = open(fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (!t || fd < 0)
        abort();
    (void)!write(fd, text, n);
    for (int i = 0; i < 4; i++)
        event_base_loop(loop_base(loop), EVLOOP_NONBLOCK);
    close(fd);
    file_timer_free(t);
    loop_free(loop);
}

/* ---- messages of a job: one a line; what is recorded of them can be read again ---- */

static void on_record(void *arg, const struct record *r, struct event_client *from) {
    (void)arg, (void)from;
    assert(r->seq > 0 && r->kind[0]);
}

static void say(int fd, const char *text, const char *end) {
    for (const char *line; text < end; text = line + 1) {
        line = memchr(text, '\n', (size_t)(end - text));
        line = line ? line : end;
        if (line > text)
            (void)!send(fd, text, (size_t)(line - text), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

static void read_events(struct arena *a, const char *text, size_t n) {
    struct loop *loop = loop_new(NULL);
    struct history h, again;
    struct rounds rounds;
    struct recorder rec = {&h, &rounds, on_record, NULL};
    int pair[2];
    char file[300];
    (void)a;
    snprintf(file, sizeof(file), "%s/history.jsonl", dir);
    rounds_init(&rounds, true);
    struct observer *o = observer_new(loop, &rec, n % 2 ? "/proc/self/exe" : "/bin/sh", NULL);
    if (!o || history_create(&h, file, NULL) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        abort();
    struct json_writer *w = recorder_begin(&rec, 1, SOURCE_HARNESS, "run");
    json_put_i64(w, "v", 1);
    json_put_string(w, "scenario", "x");
    recorder_end(&rec, NULL);
    observer_connect(o, "n0", pair[0], getpid());
    say(pair[1], text, text + n);
    observer_drain(o);
    observer_free(o);
    close(pair[1]);
    size_t records = h.n;
    history_fini(&h);
    assert(history_load(&again, file, NULL) == 0 && again.n == records && !again.torn);
    history_fini(&again);
    rounds_fini(&rounds);
    loop_free(loop);
}

/* ---- who reads ---- */

/* ---- what comes from a helper on another host ---- */

/* In pieces of another length it is the same; whoever is refused has been told in a line. */
static size_t take_frames(const char *text, size_t n, size_t piece, struct buf *out) {
    struct frame_stream f = {0};
    struct err err;
    const char *frame;
    size_t len, came = 0;
    int r = 0;
    for (size_t at = 0; at < n && r >= 0; at += piece) {
        frames_hear(&f, text + at, n - at < piece ? n - at : piece);
        while ((r = frames_take(&f, &frame, &len, &err)) == 1) {
            buf_put(out, frame, len);
            came++;
        }
    }
    assert(r == 0 || (r == -EPROTO && !strchr(err.msg, '\n')));
    frames_fini(&f);
    return came;
}

static void read_frames(struct arena *a, const char *text, size_t n) {
    struct buf whole = {0}, pieces = {0};
    struct hello h;
    struct err err;
    assert(take_frames(text, n, n + 1, &whole) == take_frames(text, n, 3, &pieces));
    assert(whole.len == pieces.len);
    hello_take(json_parse(a, buf_str(&whole), whole.len, NULL), &h);
    assert(hello_check(&h, "n1", &err) == 0 || !strchr(err.msg, '\n'));
    buf_fini(&whole);
    buf_fini(&pieces);
}

static const struct subject {
    read_fn *read;
    const char *seed;
} subjects[] = {
    {read_json, "{\"a\":[1,-2.5e3,true,null,\"\\u00e9\\ud83d\\ude00\\n\"],\"b\":{}}"},
    {read_text, "a\tb\n\033[31m\302\233 \342\200\256\360\237\230\200 \355\240\200\300\200\377"},
    {read_base64, "Zm9vYg=="},
    {read_metric, "up{job=\"x\"}\n# HELP up\nup{job=\"x\",b=\"\\\"\"} 1 123\nup{job=\"y\"} +Inf\n"},
    {read_boot, "01234567-89ab-cdef-0123-456789abcdef\n"},
    {read_leader, "{\"kvs\":[{\"key\":\"L3JhbmtydW4vam9iL2N1cg==\",\"value\":\"eyJpbmMiOiJhIn0=\"},"
                  "{\"key\":\"L3JhbmtydW4vam9iL2EvbGVhZA==\",\"value\":\"eyJ1aWQiOiJiIn0=\","
                  "\"create_revision\":\"5\"}]}"},
    {read_leader, "{\"status\":{\"leader\":\"7\",\"raftTerm\":\"2\"},\"list\":{\"members\":[{"
                  "\"ID\":\"7\",\"name\":\"n0\"}]}}"},
    {read_answer, "{\"status\":\"fail\",\"seen\":\"it\",\"expected\":\"that\",\"evidence\":[1]}"},
    {read_manifest,
     "{\"format\":\"ranktrain-checkpoint\",\"version\":1,\"step\":25,\"round\":3,\"run_id\":\"j\","
     "\"world_size\":6,\"seed\":1,\"parameters\":61706,\"model\":\"\",\"files\":[{\"name\":"
     "\"weights.f32\",\"bytes\":246824,\"sha256\":"
     "\"0000000000000000000000000000000000000000000000000000000000000000\"},{\"name\":"
     "\"velocity.f32\",\"bytes\":246824,\"sha256\":"
     "\"0000000000000000000000000000000000000000000000000000000000000000\"}]}"},
    {read_presence, "{\"v\":1,\"boot\":\"x\",\"space\":\"pid:[1]\",\"keep\":true,\"harness\":{"
                    "\"name\":\"harness\",\"pid\":1,\"start_ticks\":2},\"nodes\":[{\"name\":\"n0\","
                    "\"pid\":2,\"start_ticks\":3}]}"},
    {read_control, "{\"v\":6,\"model\":\"m\",\"label\":\"l\",\"step_ns\":1,\"first_step\":1,"
                   "\"last_step\":9,\"told\":true,\"loss\":0.5,\"dir\":\"/x\"}"},
    {read_coverage, "{\"v\":1,\"scenario\":\"x\",\"dir\":\"/x\",\"answered\":[\"ranks\"],\"lost\":"
                    "[\"ranks\"]}"},
    {read_error_file, "{\"message\":{\"message\":\"RuntimeError: x\",\"extraInfo\":{\"timestamp\":"
                      "\"1700000000\"}}}"},
    {read_output, "step 1\rstep 2\n\033[1;32mstep\033[0m 3 \t\x01\xff\n"},
    {read_timers,
     "{\"version\":1,\"pid\":17,\"scope_id\":\"a.py#1\",\"expiration_time\":1700000000."
     "5,\"signal\":9}\n{\"version\":1,\"pid\":17,\"scope_id\":\"a.py#1\","
     "\"expiration_time\":-1,\"signal\":9}\n"},
    {read_events,
     "{\"v\":1,\"seq\":1,\"kind\":\"worker-start\",\"env\":{\"RANK\":\"0\",\"WORLD_SIZE"
     "\":\"1\"}}\n{\"kind\":\"step\",\"step\":7,\"loss\":0.5,\"armed\":1}\nno JSON\n"
     "{\"kind\":\"done\",\"model\":\"m\",\"source\":\"kernel\",\"t\":1}\n"},
    /* Those that hold bytes: put_seed makes them. */
    {read_launch, NULL},
    {read_frames, NULL},
    {read_remote_launch, NULL},
    {read_images, NULL},
};
enum { SUBJECTS = sizeof(subjects) / sizeof(*subjects) };

static void take(const char *bytes, size_t n) {
    struct arena a = {0};
    if (n > 0)
        subjects[(unsigned char)*bytes % SUBJECTS].read(&a, bytes + 1, n - 1);
    arena_fini(&a);
}

static void put_launch(struct buf *out) {
    char *argv[] = {"train", "--x", NULL}, *env[] = {"RANK=0", NULL};
    struct launch_worker w = {argv, env, "", "err"};
    struct launch_order l = {.scratch = "", .sandbox = "", .n = 1, .workers = &w};
    int fd;
    if (launch_write(&l, &fd, NULL) < 0 || file_read_fd(fd, 4096, out, NULL) < 0)
        abort();
    close(fd);
}

static void put_images(struct buf *out) {
    const struct images_shape shape = {
        .channels = 1, .side = 2, .classes = 10, .mean = {0.5f}, .deviation = {0.5f}};
    struct packing p;
    int fd = memory("", 0);
    packing_begin(&p, fd, &shape, 0, 1);
    if (packing_add(&p, (const uint8_t *)"abcd", 7, NULL) < 0 || packing_end(&p, NULL) < 0 ||
        lseek(fd, 0, SEEK_SET) < 0 || file_read_fd(fd, 1 << 16, out, NULL) < 0)
        abort();
    packing_fini(&p);
    close(fd);
}

static void put_frames(struct buf *out) {
    static const char hello[] = "{\"op\":\"hello\",\"version\":2,\"uid\":0,\"boot_id\":\"x\","
                                "\"host\":\"node7\",\"can\":[\"root\",\"pidfds\"]}";
    frame_put(out, hello, sizeof(hello) - 1);
}

static void put_seed(int i, struct buf *out) {
    const struct remote_launch e = {"/", (const char *const[]){"run", NULL},
                                    (const char *const[]){"A=b", NULL}};
    buf_putc(out, (char)i);
    if (subjects[i].seed)
        buf_puts(out, subjects[i].seed);
    else if (subjects[i].read == read_launch)
        put_launch(out);
    else if (subjects[i].read == read_images)
        put_images(out);
    else if (subjects[i].read == read_frames)
        put_frames(out);
    else
        remote_launch_write(&e, out);
}

static void begin(void) {
    const char *base = getenv("TMPDIR");
    snprintf(dir, sizeof(dir), "%s/fuzz-record-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(dir))
        abort();
}

int main(int argc, char **argv) {
    static const struct fuzzed records = {begin, take, put_seed, SUBJECTS};
    int code = fuzzed_main(&records, argc, argv);
#ifndef __AFL_FUZZ_TESTCASE_LEN /* whose next process goes on with it */
    file_remove_tree(dir, NULL);
#endif
    return code;
}
