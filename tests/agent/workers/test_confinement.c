/* --sandbox, in a kernel that is played: what is asked for in which order, what is told where less holds, and what
 * becomes of each refusal. The filter is made by a library that only notes its rules. */
#include "tests/played.h"

#include "agent/workers/domain.h"
#include "agent/workers/machine.h"
#include "agent/workers/sandbox.h"
#include "base/sys/file.h"
#include "base/sys/rights.h"

#include <dlfcn.h>
#include <linux/filter.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    uint64_t seed;
    enum domain_reach reach;
    bool misses; /* the library has not all that is needed */
} world;

/* ---- the library ---- */

static scmp_filter_ctx played_init(uint32_t action) {
    return fails("filter that else does %x", action) ? NULL : &world;
}

static int played_attr(scmp_filter_ctx f, enum scmp_filter_attr attr, uint32_t value) {
    assert_ptr_equal(f, &world);
    return fails("attribute %d is %x", (int)attr, value) ? -errno : 0;
}

static int played_rule(scmp_filter_ctx f, uint32_t action, int call, unsigned n,
                       const struct scmp_arg_cmp *args) {
    for (unsigned i = 0; i < n; i++)
        note("  argument %u, %d: %llx %llx", args[i].arg, (int)args[i].op,
             (unsigned long long)args[i].datum_a, (unsigned long long)args[i].datum_b);
    assert_ptr_equal(f, &world);
    return fails("call %d gives %x, %u conditions", call, action, n) ? -errno : 0;
}

/* It knows some, some it gives numbers of its own, as they have no call here; others it has never heard of. */
static int played_resolve(const char *name) {
    static int next;
    size_t n = strlen(name);
    int number = name[0] == 'm' || name[0] == 'q' ? -1 : name[n - 1] == 't' ? -10101 : 1;
    next = number > 0 ? 1000 + (int)n * 7 + name[0] + name[n - 1] : number;
    note("number of %s: %d", name, next);
    return next;
}

static int played_export(const scmp_filter_ctx f, int fd) {
    static const char bytes[3 * sizeof(struct sock_filter)] = "a filter";
    if (fails("export to %s", fd >= 0 ? "a file" : "nothing"))
        return -errno;
    return file_write_all(fd, bytes, sizeof(bytes), NULL);
}

static void played_release(scmp_filter_ctx f) {
    assert_ptr_equal(f, &world);
    note("filter ends");
}

static void *played_dlopen(const char *name, int flags) {
    return fails("open %s %d", name, flags) ? NULL : &world.misses;
}

static void *played_dlsym(void *handle, const char *name) {
    static const struct {
        const char *name;
        uintptr_t at;
    } all[] = {{"seccomp_init", (uintptr_t)played_init},
               {"seccomp_attr_set", (uintptr_t)played_attr},
               {"seccomp_rule_add_array", (uintptr_t)played_rule},
               {"seccomp_syscall_resolve_name", (uintptr_t)played_resolve},
               {"seccomp_export_bpf", (uintptr_t)played_export},
               {"seccomp_release", (uintptr_t)played_release}};
    assert_ptr_equal(handle, &world.misses);
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (strcmp(all[i].name, name) == 0)
            return fails("find %s", name) ? NULL : (void *)all[i].at;
    return NULL;
}

static int played_dlclose(void *handle) {
    assert_ptr_equal(handle, &world.misses);
    note("close the library");
    return 0;
}

static int played_memfd(const char *name, unsigned flags) {
    return fails("memfd %s %u", name, flags) ? -1 : memfd_create(name, flags);
}

static off_t played_lseek(int fd, off_t to, int how) {
    return fails("seek %d %d", (int)to, how) ? -1 : lseek(fd, to, how);
}

#define dlopen       played_dlopen
#define dlsym        played_dlsym
#define dlclose      played_dlclose
#define memfd_create played_memfd
#define lseek        played_lseek
#include "agent/workers/sandbox.c"
#undef memfd_create
#undef lseek

/* ---- the kernel ---- */

static int played_prctl(int option, long a, long b, long c, long d) {
    return fails("prctl %d %ld %ld %ld %ld", option, a, b, c, d) ? -1 : 0;
}

static long played_syscall(long number, int what, int flags, const struct sock_fprog *program) {
    assert_int_equal(number, SYS_seccomp);
    bool not = fails("seccomp %d %d: %d of \"%.8s\"", what, flags, program->len,
                     (const char *)program->filter);
    return not ? -1 : 0;
}

static int played_rights(uint64_t kept) {
    return fails("keep rights %llx", (unsigned long long)kept) ? -errno : 0;
}

static int played_machine(struct err *err) {
    return fails("close the machine") ? err_set(err, -errno, "--sandbox: mount it") : 0;
}

static enum domain_reach played_reach(void) {
    return world.reach;
}

static int played_enter(struct err *err) {
    return fails("enter a domain") ? err_set(err, -errno, "--sandbox: enter it") : 0;
}

#define prctl          played_prctl
#define syscall        played_syscall
#define rights_drop    played_rights
#define machine_close  played_machine
#define domain_reach() played_reach()
#define domain_enter   played_enter
#include "agent/workers/confinement.c"

/* An agent's part, and a guard's, which is asked for more than once. */
static void confine(uint64_t seed) {
    struct buf open = {0};
    struct err err = {0};
    world.reach = (enum domain_reach)(seed - 1);
    int code = confinement_begin(&open, &err);
    note("confined: %d %s\nopen:\n%s", code, code ? err.msg : "", buf_str(&open));
    buf_fini(&open);
}

static const struct play play = {"", confine, 3, true, {EPERM, ENOSYS}};

/* Every rule in full; and where a call fails how it ends. */
static void say(struct buf *out) {
    for (uint64_t seed = 1; seed <= 3; seed++) {
        played_run(&play, seed, 0);
        const char *said = buf_str(&played.said);
        int calls = played.calls;
        buf_printf(out, "== reach %d\n%s", (int)seed - 1, seed == 1 ? said : strstr(said, "prctl"));
        for (int i = 1; i <= calls; i++) {
            played_run(&play, seed, i);
            said = buf_str(&played.said);
            buf_printf(out, "-- %s", strstr(said, ": fails") + 2);
        }
    }
    buf_fini(&played.said);
}

static const char record[] = "tests/agent/workers/record/confinement.txt";

static void test_all_that_is_asked_of_the_kernel_is_on_record(void **state) {
    (void)state;
    on_record_same(record, say, "this test");
}

/* One domain is enough, however often it is asked for; one that was refused is asked for again. */
static void test_a_guard_enters_one_domain(void **state) {
    (void)state;
    static const struct {
        int fails_at;
        int code;
        const char *said, *why;
    } rows[] = {
        {1, -EPERM, "enter a domain: fails\n", "--sandbox: enter it: Operation not permitted"},
        {2, -EPERM, "enter a domain\nprctl 4 0 0 0 0: fails\n",
         "--sandbox: hide this process's memory: Operation not permitted"},
        {0, 0, "prctl 4 0 0 0 0\n", ""},
        {1, -EPERM, "prctl 4 0 0 0 0: fails\n",
         "--sandbox: hide this process's memory: Operation not permitted"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct err err = {0};
        buf_clear(&played.said);
        played.calls = 0;
        played.fails_at = rows[i].fails_at;
        played.code = EPERM;
        assert_int_equal(confinement_divide(&err), rows[i].code);
        assert_string_equal(buf_str(&played.said), rows[i].said);
        assert_string_equal(err.msg, rows[i].why);
    }
    buf_fini(&played.said);
}

int main(int argc, char **argv) {
    int ret = 0;
    if (on_record_written(argc, argv, record, say, &ret))
        return ret;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_that_is_asked_of_the_kernel_is_on_record),
        cmocka_unit_test(test_a_guard_enters_one_domain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
