#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/sys/file.h"
#include "harness/preflight/infiniband.h"

static char root[64];

static int make_root(void **state) {
    (void)state;
    strcpy(root, "/tmp/infiniband.XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state) {
    (void)state;
    return file_remove_tree(root, NULL);
}

/* A file of a port of an adapter, as the kernel writes it. */
static void plant(const char *port, const char *file, const char *text) {
    char path[256];
    snprintf(path, sizeof(path), "%s/%s/%s", root, port, file);
    *strrchr(path, '/') = '\0';
    assert_int_equal(file_make_dirs(path, 0755, NULL), 0);
    path[strlen(path)] = '/';
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "%s\n", text);
    fclose(f);
}

static void plant_port(const char *port, const char *state, const char *physical,
                       const char *rate) {
    plant(port, "link_layer", "InfiniBand");
    plant(port, "state", state);
    plant(port, "phys_state", physical);
    plant(port, "rate", rate);
    plant(port, "counters/link_downed", "0");
    plant(port, "counters/symbol_error", "3");
}

static void add(void *arg, const char *sentence) {
    buf_printf(arg, "%s\n", sentence);
}

/* How many sentences there are, and one of them; NULL: none. */
static const struct json *judged(struct arena *a, int n, const char *part) {
    BUF_FINI struct buf text = {0}, said = {0};
    struct json_writer w = {.out = &text};
    infiniband_put(root, &w, NULL);
    const struct json *ports = json_parse(a, text.data, text.len, NULL);
    assert_non_null(ports);
    assert_int_equal(infiniband_judge(ports, add, &said), n);
    if (!strstr(buf_str(&said), part))
        assert_string_equal(buf_str(&said), part);
    return ports;
}

static void test_what_the_kernel_says_of_ports_is_read(void **state) {
    (void)state;
    ARENA_FINI struct arena a = {0};
    plant_port("mlx5_0/ports/1", "4: ACTIVE", "5: LinkUp", "200 Gb/sec (4X HDR)");
    plant_port("mlx5_10/ports/1", "4: ACTIVE", "5: LinkUp", "2.5 Gb/sec (1X SDR)");
    plant_port("mlx5_2/ports/1", "1: DOWN", "2: Polling", "10 Gb/sec (4X SDR)");
    const struct json *ports = judged(&a, 0, "");
    assert_int_equal(ports->length, 3);
    assert_string_equal(json_get_string(json_first(ports), "name", ""), "mlx5_0/1");
    assert_string_equal(json_get_string(json_first(ports), "physical", ""), "LinkUp");
    assert_int_equal(json_get_i64(json_first(ports), "symbol_errors", -1), 3);
    assert_string_equal(infiniband_rates(ports, &a), "200000, 2500");
}

static void test_a_port_that_nobody_has_made_active_is_named(void **state) {
    (void)state;
    ARENA_FINI struct arena a = {0};
    plant_port("mlx5_0/ports/1", "2: INIT", "5: LinkUp", "200 Gb/sec (4X HDR)");
    judged(&a, 1, "port mlx5_0/1 has a link and is INIT: no subnet manager");
}

static void test_a_link_that_goes_down_and_one_with_errors_are_named(void **state) {
    (void)state;
    ARENA_FINI struct arena a = {0};
    plant_port("mlx5_0/ports/1", "4: ACTIVE", "5: LinkUp", "200 Gb/sec (4X HDR)");
    plant_port("mlx5_0/ports/2", "4: ACTIVE", "5: LinkUp", "200 Gb/sec (4X HDR)");
    plant("mlx5_0/ports/1", "counters/link_downed", "11");
    plant("mlx5_0/ports/2", "counters/symbol_error", "65535");
    judged(&a, 2, "port mlx5_0/1 has lost its link 11 times");
    judged(&a, 2, "port mlx5_0/2 has counted 65535 symbol errors");
    plant("mlx5_0/ports/1", "counters/link_downed", "10");
    judged(&a, 1, "symbol errors");
}

static void test_a_host_without_adapters_has_none(void **state) {
    (void)state;
    ARENA_FINI struct arena a = {0};
    assert_null(json_first(judged(&a, 0, "")));
    remove_root(NULL);
    judged(&a, 0, "");
    assert_int_equal(file_make_dirs(root, 0755, NULL), 0);
}

int main(void) {
#define WITH(t) cmocka_unit_test_setup_teardown(t, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        WITH(test_what_the_kernel_says_of_ports_is_read),
        WITH(test_a_port_that_nobody_has_made_active_is_named),
        WITH(test_a_link_that_goes_down_and_one_with_errors_are_named),
        WITH(test_a_host_without_adapters_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
