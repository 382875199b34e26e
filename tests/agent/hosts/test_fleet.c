/* One command on several hosts: all that it prints, what it tells the hosts, and how it ends. */
#include "base/buf.h"
#include "tests/agent/hosts/play.h"

/* ---- what they print ---- */

static void test_lines_stand_behind_their_host(void **state) {
    (void)state;
    expect(ONE(HERE, "say", "a", "warn", "b", "say", "", "begin", "c"), 0,
           "[127.0.0.1] a\n[127.0.0.1] \n[127.0.0.1] c\n", "[127.0.0.1] b\n");
    expect(ONE(REACHED, "say", "a", "warn", "b", "say", "\r\x1b[2J"), 0,
           "[240.0.0.1] a\n[240.0.0.1] \r\x1b[2J\n", "[240.0.0.1] b\n");
}

static void put_long(struct buf *out, size_t n) {
    buf_printf(out, "[%s] ", HERE);
    for (size_t i = 0; i < n; i++)
        buf_putc(out, 'x');
    buf_putc(out, '\n');
}

static void test_a_line_without_an_end_is_shown_in_parts(void **state) {
    (void)state;
    static const struct {
        const char *many, *ended;
        size_t parts[3];
    } rows[] = {
        {"65535", "", {65535}},
        {"65536", NULL, {65536}},
        {"65537", "", {65536, 1}},
        {"131073", NULL, {65536, 65536, 1}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        BUF_FINI struct buf out = {0};
        for (int k = 0; k < 3 && rows[i].parts[k]; k++)
            put_long(&out, rows[i].parts[k]);
        int code = play(ONE(HERE, "many", rows[i].many, rows[i].ended ? "say" : "begin", ""));
        assert_int_equal(code, 0);
        assert_int_equal(strlen(stage.said[0]), out.len);
        assert_memory_equal(stage.said[0], out.data, out.len);
    }
}

/* Of a bar the last writing; nothing that moves, erases or hides. */
static void test_a_terminal_is_shown_what_is_fit_for_it(void **state) {
    (void)state;
    terminal = 1;
    expect(ONE(HERE, "say", "", "say", "10%\r20%\r30%\r\r", "say", "\r", "say", "a\tb", "say",
               "\x1b[31mred\x1b[0m\x1b[2J", "say", "\xff", "warn", "1\r2\x1b[2J"),
           0,
           "[127.0.0.1] \n[127.0.0.1] 30%\n[127.0.0.1] \n[127.0.0.1] a\tb\n"
           "[127.0.0.1] \x1b[31mred\x1b[0m\\x1b[2J\n[127.0.0.1] \\xff\n",
           "[127.0.0.1] 1\r2\x1b[2J\n");
    terminal = 2;
    expect(ONE(HERE, "warn", "1\r2\x1b[2J", "say", "1\r2"), 0, "[127.0.0.1] 1\r2\n",
           "[127.0.0.1] 2\\x1b[2J\n");
    line_as_json(true);
    expect(ONE(HERE, "warn", "{\"time\":\"\x1b[2J\"}"), 0, "",
           "{\"host\":\"127.0.0.1\",\"time\":\"\\x1b[2J\"}\n");
}

static void test_lines_of_agents_stay_json(void **state) {
    (void)state;
    line_as_json(true);
    expect(ONE(HERE, "warn", "{\"time\":1}", "warn", "{\"time\":}", "warn", "{\"time\":12,\"a\":2}",
               "warn", "{\"time\":12]", "warn", "{\"tima\":12}", "warn", "{\"time\"=12}", "say",
               "{\"time\":1}"),
           0, "[127.0.0.1] {\"time\":1}\n",
           "{\"host\":\"127.0.0.1\",\"time\":1}\n[127.0.0.1] {\"time\":}\n"
           "{\"host\":\"127.0.0.1\",\"time\":12,\"a\":2}\n[127.0.0.1] {\"time\":12]\n"
           "[127.0.0.1] {\"tima\":12}\n[127.0.0.1] {\"time\"=12}\n");
    line_as_json(false);
    expect(ONE(HERE, "warn", "{\"time\":12}"), 0, "", "[127.0.0.1] {\"time\":12}\n");
}

/* ---- how they are started ---- */

static void show(const char *name, const char *path, bool json, char *ret, size_t size) {
    bool here = str_eq(name, HERE);
    const char *flag = json ? REMOTE_JSON : "";
    if (here)
        snprintf(ret, size, "[%s] <%s><remote>%s%s%s in a group of its own\n", name, str_base(self),
                 json ? "<" : "", flag, json ? ">" : "");
    else
        snprintf(ret, size, "[%s] %s<%s><exec '%s' remote%s%s> in a group of its own\n", name, path,
                 name, self, json ? " " : "", flag);
}

static void test_each_host_is_reached_by_its_own_words(void **state) {
    (void)state;
    static char wanted[2 * PATH_MAX];
    for (int json = 0; json < 2; json++) {
        setenv("SHOWN", "1", 1);
        line_as_json(json);
        show(HERE, "", json, wanted, sizeof(wanted));
        expect(ONE(HERE, "end", "0"), 0, "", wanted);
        show(NO_WAY, "<an-ssh>", json, wanted, sizeof(wanted));
        assert_int_equal(play(ONE(NO_WAY, "end", "0")), 69);
        assert_memory_equal(stage.said[1], wanted, strlen(wanted));
    }
}

/* Whoever names no ssh has the one in PATH, which must not ask for anything. */
static void test_the_usual_ssh_asks_for_nothing(void **state) {
    (void)state;
    static char wanted[2 * PATH_MAX], link[128], folders[2 * PATH_MAX];
    char before[PATH_MAX];
    snprintf(before, sizeof(before), "%s", getenv("PATH"));
    snprintf(link, sizeof(link), "%s/ssh", stage.folder);
    snprintf(folders, sizeof(folders), "%s:%s", stage.folder, before);
    assert_int_equal(symlink(self, link), 0);
    setenv("PATH", folders, 1);
    setenv("SHOWN", "1", 1);
    spec.ssh = NULL;
    int code = play(ONE(NO_WAY, "end", "0"));
    setenv("PATH", before, 1);
    unlink(link);
    show(NO_WAY, "<ssh><-o><BatchMode=yes><-T>", false, wanted, sizeof(wanted));
    assert_memory_equal(stage.said[1], wanted, strlen(wanted));
    assert_int_equal(code, 69);
}

static void test_a_path_is_one_word_for_a_shell(void **state) {
    (void)state;
    static const char wanted[] =
        "[240.0.0.255] <an-ssh><240.0.0.255><exec '/it'\\''s a/'\\'''\\''$path' remote> in a group "
        "of its own\nrankrun: host 240.0.0.255: ssh failed (exit code 255); try: ssh 240.0.0.255 "
        "true\n";
    setenv("SHOWN", "1", 1);
    calls.self = "/it's a/''$path";
    expect(ONE(NO_WAY, "end", "0"), 69, "", wanted);
    static char longest[PATH_MAX], quoted[PATH_MAX + 16];
    memset(longest, 'p', sizeof(longest) - 1);
    snprintf(quoted, sizeof(quoted), "'%s' remote>", longest);
    calls.self = longest;
    assert_int_equal(play(ONE(NO_WAY, "end", "0")), 69);
    assert_non_null(strstr(stage.said[1], quoted));
}

/* More than a pipe holds, to a host that takes it. */
static void expect_what_is_sent(const char *host) {
    static char value[100001];
    char out[2 * PATH_MAX], dir[PATH_MAX];
    const struct given given[] = {HOST(host, "where", "", "variable", "TOKEN", "variable", "LONG_1",
                                       "variable", "LONG_3", "input", "", "handles", "2", "handles",
                                       "13")};
    memset(value, 'v', sizeof(value) - 1);
    setenv("LONG_1", value, 1);
    setenv("LONG_2", value, 1);
    setenv("LONG_3", value, 1);
    snprintf(out, sizeof(out),
             "[%s] %s\n[%s] TOKEN is a b\n[%s] LONG_1 has 100000 bytes\n[%s] LONG_3 has 100000 "
             "bytes\n[%s] input /dev/null, 0 bytes\n[%s] signal 2 is as usual\n[%s] signal 13 is "
             "as usual\n",
             host, getcwd(dir, sizeof(dir)), host, host, host, host, host, host);
    spec.variable = "TOKEN=a b";
    expect(given, 1, 0, out, "");
    unsetenv("LONG_1");
    unsetenv("LONG_2");
    unsetenv("LONG_3");
}

static void test_a_host_gets_directory_and_environment(void **state) {
    (void)state;
    expect_what_is_sent(HERE);
    assert_true(watched < 500); /* it is not asked again and again for room that is not needed */
    expect_what_is_sent(REACHED);
    calls.stops = true;
    expect_what_is_sent(HERE);
    spec.plain = true;
    expect_what_is_sent(HERE);
}

/* It is not waited for while others may have something to say. */
static void test_who_takes_nothing_keeps_nobody_waiting(void **state) {
    (void)state;
    static char value[100001];
    memset(value, 'v', sizeof(value) - 1);
    setenv("LONG_1", value, 1);
    setenv("HEARD", stage.paths[0], 1);
    expect(ONE(DEAF, "end", "0"), 3, "[240.0.0.44] heard [240.0.0.44] taking nothing\n",
           "rankrun: host 240.0.0.44: its agent ended with code 3\n");
    expect(ONE(NO_WAY, "end", "0"), 69, "",
           "rankrun: host 240.0.0.255: ssh failed (exit code 255); try: ssh 240.0.0.255 true\n");
    unsetenv("LONG_1");
}

/* ---- how they end ---- */

static void test_each_end_is_told_and_has_its_code(void **state) {
    (void)state;
    static const struct {
        const char *host, *word, *about;
        int code, plain_code;
        const char *said, *plain_said;
    } rows[] = {
        {HERE, "end", "0", 0, 0, "", ""},
        {HERE, "end", "1", 1, 1, "", "the command ended with code 1"},
        {HERE, "end", "2", 2, 2, "its agent ended with code 2", "the command ended with code 2"},
        {HERE, "end", "126", 126, 126, "its agent ended with code 126",
         "the command ended with code 126"},
        {HERE, "end", "127", 127, 127, "its agent ended with code 127",
         "the command ended with code 127"},
        {HERE, "end", "128", 128, 128, "its agent ended with code 128",
         "the command ended with code 128"},
        {HERE, "end", "129", 129, 129, "ended by signal 1", "ended by signal 1"},
        {HERE, "end", "192", 192, 192, "ended by signal 64", "ended by signal 64"},
        {HERE, "end", "193", 193, 193, "its agent ended with code 193",
         "the command ended with code 193"},
        {HERE, "end", "255", 255, 255, "its agent ended with code 255",
         "the command ended with code 255"},
        {HERE, "die", "9", 137, 137, "ended by signal 9", "ended by signal 9"},
        {REACHED, "end", "0", 0, 0, "", ""},
        {REACHED, "end", "1", 1, 1, "", "the command ended with code 1"},
        {REACHED, "end", "254", 254, 254, "its agent ended with code 254",
         "the command ended with code 254"},
        {NO_LUCK, "end", "0", 137, 137, "ended by signal 9", "ended by signal 9"},
        {NO_RUN, "end", "0", 69, 69, "rankrun is not there under the path it has here",
         "rankrun is not there under the path it has here"},
        {NO_WAY, "end", "0", 69, 69, "ssh failed (exit code 255); try: ssh 240.0.0.255 true",
         "ssh failed (exit code 255); try: ssh 240.0.0.255 true"},
    };
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(*rows); i++) {
        char said[256] = "";
        const char *text = i % 2 ? rows[i / 2].plain_said : rows[i / 2].said;
        spec.plain = i % 2;
        if (text[0])
            snprintf(said, sizeof(said), "rankrun: host %s: %s\n", rows[i / 2].host, text);
        expect(ONE(rows[i / 2].host, rows[i / 2].word, rows[i / 2].about),
               i % 2 ? rows[i / 2].plain_code : rows[i / 2].code, "", said);
    }
}

#define FAILED(name, code) "rankrun: host " name ": its agent ended with code " code "\n"

static void test_the_first_failure_counts_unless_somebody_knows_the_outcome(void **state) {
    (void)state;
    const struct given both[] = {HOST(HERE, "end", "7"), HOST(HERE_2, "hear", "", "end", "8")};
    expect(both, 2, 7, "[127.0.0.2] heard rankrun: host 127.0.0.1: its agent ended with code 7\n",
           FAILED(HERE_2, "8"));
    const struct given one[] = {HOST(HERE, "end", "7"), HOST(HERE_2, "end", "0")};
    expect(one, 2, 0, "", FAILED(HERE, "7"));
    const struct given failed[] = {HOST(HERE, "end", "7"), HOST(HERE_2, "end", "1"),
                                   HOST(REACHED, "end", "0")};
    expect(failed, 3, 1, "", FAILED(HERE, "7"));
    spec.plain = true;
    expect(one, 2, 7, "", "rankrun: host 127.0.0.1: the command ended with code 7\n");
}

static void test_too_few_hosts_stop_the_others(void **state) {
    (void)state;
    static const char stopping[] =
        FAILED(HERE, "7") "rankrun: too few hosts are left: stopping the others\n";
    const struct given two[] = {
        HOST(HERE, "wait", "", "end", "7"),
        HOST(REACHED, "warn", "there", "await", "", "warn", "late", "end", "5")};
    const struct given three[] = {HOST(HERE, "end", "7"),
                                  HOST(HERE_2, "hear", "", "say", "on", "end", "0"),
                                  HOST(REACHED, "end", "0")};
    spec.min = 2;
    char said[256];
    snprintf(said, sizeof(said), "%s[240.0.0.1] late\n", stopping);
    expect(two, 2, 7, "[240.0.0.1] signal 15\n", said);
    expect(three, 3, 0,
           "[127.0.0.2] heard rankrun: host 127.0.0.1: its agent ended with code 7\n[127.0.0.2] "
           "on\n",
           "");
    spec.plain = true;
    expect(three, 2, 7,
           "[127.0.0.2] heard rankrun: host 127.0.0.1: the command ended with code 7\n[127.0.0.2] "
           "on\n",
           "");
}

/* One that has failed with the job is no reason to stop others, unless these do not end. */
static void test_who_does_not_end_as_others_did_is_stopped(void **state) {
    (void)state;
    const struct given two[] = {HOST(HERE, "wait", "", "end", "1"),
                                HOST(HERE_2, "warn", "there", "await", "", "end", "1")};
    const struct given quick[] = {HOST(HERE, "end", "1"), HOST(HERE_2, "end", "1")};
    spec.min = 2;
    expect(quick, 2, 1, "", "");
    assert_true(waited_s > 10 && waited_s <= 15);
    hurries = true;
    expect(two, 2, 1, "[127.0.0.2] signal 15\n",
           "rankrun: too few hosts are left: stopping the others\n");
}

/* ---- signals ---- */

static void test_a_signal_goes_to_all_and_none_is_blamed(void **state) {
    (void)state;
    static const char *const numbers[] = {"2", "15", "1"};
    for (int i = 0; i < 3; i++) {
        const struct given two[] = {
            HOST(HERE, "warn", "there", "await", "", "end", "9"),
            HOST(REACHED, "wait", "", "tell", numbers[i], "await", "", "end", "3")};
        const struct given well[] = {HOST(HERE, "tell", numbers[i], "await", "", "end", "0")};
        char out[128];
        snprintf(out, sizeof(out), "[127.0.0.1] signal %s\n[240.0.0.1] signal %s\n", numbers[i],
                 numbers[i]);
        expect(two, 2, 128 + atoi(numbers[i]), out, "");
        *strchr(out, '\n') = '\0';
        strcat(out, "\n");
        expect(well, 1, 0, out, "");
        spec.plain = true;
        expect(well, 1, 128 + atoi(numbers[i]), out, "");
        spec.plain = false;
    }
}

/* Whoever sends a second one wants it over: the far ends are killed, and the kernel ends the agents. */
static void test_a_second_signal_ends_the_far_ends(void **state) {
    (void)state;
    const struct given given[] = {
        HOST(HERE, "tell", "2", "await", "", "tell", "15", "await", "", "end", "0")};
    expect(given, 1, 130, "[127.0.0.1] signal 2\n[127.0.0.1] signal 15\n", "");
    const struct given two[] = {
        HOST(HERE, "warn", "there", "await", "", "warn", "once", "await", "", "end", "0"),
        HOST(HERE_2, "wait", "", "tell", "2", "await", "", "wait", "", "tell", "15", "await", "",
             "end", "0")};
    expect(two, 2, 130,
           "[127.0.0.1] signal 15\n[127.0.0.1] signal 2\n[127.0.0.2] signal 15\n[127.0.0.2] signal "
           "2\n",
           "");
}

int main(int argc, char **argv) {
    int code;
    if (play_begin(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_lines_stand_behind_their_host, fresh),
        cmocka_unit_test_setup(test_a_line_without_an_end_is_shown_in_parts, fresh),
        cmocka_unit_test_setup(test_a_terminal_is_shown_what_is_fit_for_it, fresh),
        cmocka_unit_test_setup(test_lines_of_agents_stay_json, fresh),
        cmocka_unit_test_setup(test_each_host_is_reached_by_its_own_words, fresh),
        cmocka_unit_test_setup(test_the_usual_ssh_asks_for_nothing, fresh),
        cmocka_unit_test_setup(test_a_path_is_one_word_for_a_shell, fresh),
        cmocka_unit_test_setup(test_a_host_gets_directory_and_environment, fresh),
        cmocka_unit_test_setup(test_who_takes_nothing_keeps_nobody_waiting, fresh),
        cmocka_unit_test_setup(test_each_end_is_told_and_has_its_code, fresh),
        cmocka_unit_test_setup(test_the_first_failure_counts_unless_somebody_knows_the_outcome,
                               fresh),
        cmocka_unit_test_setup(test_too_few_hosts_stop_the_others, fresh),
        cmocka_unit_test_setup(test_who_does_not_end_as_others_did_is_stopped, fresh),
        cmocka_unit_test_setup(test_a_signal_goes_to_all_and_none_is_blamed, fresh),
        cmocka_unit_test_setup(test_a_second_signal_ends_the_far_ends, fresh),
    };
    code = cmocka_run_group_tests(tests, NULL, NULL);
    stage_close();
    return code;
}
