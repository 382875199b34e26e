/* Checkpoints in a folder that is played: which names lie there, what stands in their manifests and files, what changes
 * between two looks and what cannot be read are drawn; what is told of them is on record, and which files are read. */
#include "tests/played.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/folder.h"
#include "base/texts.h"
#include "harness/observe/checkpoints.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { NAMES = 6, LOOKS = 5 };

static struct {
    struct {
        bool is;
        char name[40], manifest[900];
        int changed; /* when */
    } v[NAMES];
    int moment;
    const char *in; /* the folder that is looked through */
} world;

static const char *const contents[] = {"abcd", "efghi", ""}; /* of the files a, b and c */

static int at_of(const char *name) {
    for (int i = 0; i < NAMES; i++)
        if (world.v[i].is && str_eq(world.v[i].name, name))
            return i;
    return -1;
}

static int played_folder_open(struct folder *ret, const char *path, struct err *err) {
    *ret = FOLDER_NONE;
    if (fails("open %s", path))
        return -errno;
    ret->fd = played_open();
    return 0;
}

static int played_folder_enter(struct folder *ret, const struct folder *in, const char *name,
                               struct err *err) {
    *ret = FOLDER_NONE;
    if (fails("enter %s", name))
        return -errno;
    ret->fd = played_open();
    world.in = at_of(name) >= 0 ? world.v[at_of(name)].name : "";
    return 0;
}

static void played_folder_close(struct folder *f) {
    note("leave %d", f->fd);
    played_shut(f->fd);
    world.in = "";
}

static int played_folder_list(const struct folder *f, const char *name,
                              int (*only)(const struct dirent *d), struct texts *ret,
                              struct err *err) {
    static const char *const files[] = {".", "..", "a", "b", "c", "manifest.json"};
    assert_true(str_eq(name, ".") && !only);
    if (fails("list %s", world.in))
        return -errno;
    for (int i = 0; i < NAMES && !*world.in; i++)
        if (world.v[i].is)
            texts_add(ret, "%s", world.v[i].name);
    for (size_t i = 0; *world.in && i < sizeof(files) / sizeof(*files); i++)
        texts_add(ret, "%s", files[i]);
    return 0;
}

static int played_fstatat(int fd, const char *name, struct stat *st, int flags) {
    int i = at_of(world.in);
    *st = (struct stat){.st_ino = 5, .st_size = name[0], .st_ctim = {world.v[i].changed, 7}};
    return fails("look at %s, %d", name, flags) ? -1 : 0;
}

static int played_folder_read(const struct folder *f, const char *path, size_t max, struct buf *out,
                              struct err *err) {
    char name[40];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(path, "/"), path);
    int i = at_of(name);
    const char *file = strchr(path, '/') + 1;
    if (fails("read %s, %zu", path, max) || i < 0)
        return err_set(err, -errno, "read %s", path);
    if (str_eq(file, "manifest.json"))
        buf_puts(out, world.v[i].manifest);
    else if (strlen(file) == 1 && *file >= 'a' && *file <= 'c')
        buf_puts(out, contents[*file - 'a']);
    else
        return err_set(err, -ENOENT, "read %s", path);
    return 0;
}

#define folder_open                played_folder_open
#define folder_enter               played_folder_enter
#define folder_close               played_folder_close
#define folder_list                played_folder_list
#define folder_read                played_folder_read
#define fstatat(fd, name, st, how) played_fstatat(fd, name, st, how)
#include "harness/observe/checkpoints.c"

/* ---- what lies there ---- */

/* One file as it should be listed, or with something wrong. */
static void put_file(struct buf *out, int64_t *first) {
    static const char *const odd[] = {"", "../a", "d", "weights.f32"};
    char sum[65];
    int i = draw(3);
    const char *content = contents[i];
    sha256_of(content, strlen(content), sum);
    char name[] = {(char)('a' + i), '\0'};
    buf_printf(out, "{\"name\":\"%s\",\"bytes\":%d,\"sha256\":\"%s\"",
               draw(15) ? name : odd[draw(4)], (int)strlen(content) + (draw(15) == 0),
               draw(15) ? sum : "00");
    if (draw(2)) {
        buf_printf(out, ",\"tensor\":\"%s\",\"first\":%lld", draw(6) ? "weights" : "optimizer",
                   (long long)(draw(10) ? *first : 1));
        *first += (int64_t)strlen(content) / 4;
    }
    buf_puts(out, "}");
}

static void put_manifest(int i, int64_t step) {
    BUF_FINI struct buf text = {0};
    int64_t first = 0;
    buf_printf(&text, "{\"format\":\"%s\",\"step\":%lld",
               draw(20) ? "ranktrain-checkpoint" : "another", (long long)(step + (draw(15) == 0)));
    if (draw(6))
        buf_printf(&text, ",\"round\":%d", draw(5));
    if (draw(2))
        buf_printf(&text, ",\"model\":\"%s\"", draw(4) ? "m" : "");
    buf_printf(&text, ",\"files\":[");
    for (int n = draw(8) ? 1 + draw(3) : 0, k = 0; k < n; k++) {
        buf_puts(&text, k ? "," : "");
        put_file(&text, &first);
    }
    buf_puts(&text, draw(20) ? "]}" : "]");
    str_copy(world.v[i].manifest, sizeof(world.v[i].manifest), buf_str(&text));
}

static void change(void) {
    static const char *const drafts[] = {".step-00000025.3", "model.tmp", "step-25.part", "a-draft",
                                         "model~",           "notes",     "step-1234567"};
    int i = draw(NAMES);
    int64_t step = draw(40);
    world.v[i].is = draw(4) != 0;
    world.v[i].changed = world.moment;
    if (draw(4) == 0)
        snprintf(world.v[i].name, sizeof(world.v[i].name), "%s", drafts[draw(7)]);
    else
        snprintf(world.v[i].name, sizeof(world.v[i].name), "step-%08lld", (long long)step);
    for (int k = 0; k < i; k++) /* a folder has no name twice */
        world.v[i].is &= !world.v[k].is || !str_eq(world.v[k].name, world.v[i].name);
    put_manifest(i, step);
}

static void look(uint64_t seed) {
    struct folder run = FOLDER_NONE;
    memset(&world, 0, sizeof(world));
    world.in = "";
    static const char *const dirs[] = {"/run/ckpt", "/runs/ckpt", "/run", "/elsewhere"};
    run.path = draw(4) ? (char[]){"/run"} : (char[]){""};
    struct checkpoints *c = checkpoints_new(dirs[draw(4)], draw(3) ? &run : NULL);
    for (world.moment = 1; world.moment <= LOOKS; world.moment++) {
        BUF_FINI struct buf told = {0};
        struct json_writer w = {.out = &told};
        for (int n = draw(6); n > 0; n--)
            change();
        if (draw(2))
            checkpoints_refresh(c);
        json_object(&w, NULL);
        checkpoints_put(c, &w);
        json_end_object(&w);
        note("> %s", buf_str(&told));
    }
    assert_null(checkpoints_free(c));
}

static const struct play plays[] = {
    {"tests/harness/observe/record/checkpoints.txt", look, 16, true, {EACCES, ENOENT}}};

static void test_what_is_told_of_checkpoints_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_told_of_checkpoints_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
