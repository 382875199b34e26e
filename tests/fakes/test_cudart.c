/* The fake CUDA runtime: what the tests of the job rely on. */
#include "tests/fakes/cudart/cuda_runtime.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { SPOILS = 8, CELLS = 300 }; /* the SPOILS-th launch spoils the context: the last test's */

struct cells {
    int n, value[CELLS], seen[CELLS];
};

static void kernel_count(void *arg) {
    struct cells *c = arg;
    unsigned at = blockIdx.y * gridDim.x * blockDim.x + blockIdx.x * blockDim.x + threadIdx.x;
    if (at < CELLS)
        c->seen[at]++;
}

static void kernel_double(void *arg) {
    struct cells *c = arg;
    if (blockIdx.x == 0 && threadIdx.x == 0)
        c->n *= 2;
}

static cudaError_t launch(void (*kernel)(void *), void *arg, dim3 grid, cudaStream_t s) {
    void *args[] = {&arg};
    return cudaLaunchKernel((const void *)kernel, grid, (dim3){32, 1, 1}, args, 0, s);
}

static struct cells *cells_new(void) {
    struct cells *c;
    assert_int_equal(cudaMalloc((void **)&c, sizeof(*c)), cudaSuccess);
    memset(c, 0, sizeof(*c));
    return c;
}

static void test_every_thread_of_a_launch_runs_once(void **state) {
    (void)state;
    struct cells *c = cells_new();
    cudaStream_t s;
    assert_int_equal(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), cudaSuccess);
    assert_int_equal(launch(kernel_count, c, (dim3){3, 2, 1}, s), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(s), cudaSuccess);
    for (int i = 0; i < CELLS; i++)
        assert_int_equal(c->seen[i], i < 3 * 2 * 32);
    assert_int_equal(cudaStreamDestroy(s), cudaSuccess);
    assert_int_equal(cudaFree(c), cudaSuccess);
}

static int gate[2];

static void wait_at_gate(void *arg) {
    char byte;
    (void)arg;
    assert_int_equal(read(gate[0], &byte, 1), 1);
}

static void test_work_is_done_in_the_order_of_its_stream_and_not_before(void **state) {
    (void)state;
    struct cells *c = cells_new();
    cudaStream_t s;
    cudaEvent_t e;
    int three = 3, got = 0;
    assert_int_equal(pipe(gate), 0);
    cudaStreamCreateWithFlags(&s, 0);
    cudaEventCreateWithFlags(&e, 0);
    cudaLaunchHostFunc(s, wait_at_gate, NULL);
    cudaMemcpyAsync(&c->n, &three, sizeof(three), cudaMemcpyHostToDevice, s);
    launch(kernel_double, c, (dim3){1, 1, 1}, s);
    cudaMemcpyAsync(&got, &c->n, sizeof(got), cudaMemcpyDeviceToHost, s);
    cudaEventRecord(e, s);
    assert_int_equal(cudaStreamQuery(s), cudaErrorNotReady);
    assert_int_equal(cudaEventQuery(e), cudaErrorNotReady);
    three = 5; /* it is read when its turn comes */
    assert_int_equal(write(gate[1], "", 1), 1);
    assert_int_equal(cudaEventSynchronize(e), cudaSuccess);
    assert_int_equal(got, 10);
    assert_int_equal(cudaEventQuery(e), cudaSuccess);
    cudaEventDestroy(e);
    cudaStreamDestroy(s);
    cudaFree(c);
    close(gate[0]);
    close(gate[1]);
}

static void test_another_stream_waits_for_an_event(void **state) {
    (void)state;
    struct cells *c = cells_new();
    cudaStream_t first, second;
    cudaEvent_t e;
    int one = 1;
    assert_int_equal(pipe(gate), 0);
    cudaStreamCreateWithFlags(&first, 0);
    cudaStreamCreateWithFlags(&second, 0);
    cudaEventCreateWithFlags(&e, 0);
    cudaLaunchHostFunc(first, wait_at_gate, NULL);
    cudaMemcpyAsync(&c->n, &one, sizeof(one), cudaMemcpyHostToDevice, first);
    cudaEventRecord(e, first);
    cudaStreamWaitEvent(second, e, 0);
    launch(kernel_double, c, (dim3){1, 1, 1}, second);
    assert_int_equal(cudaStreamQuery(second), cudaErrorNotReady);
    assert_int_equal(write(gate[1], "", 1), 1);
    assert_int_equal(cudaStreamSynchronize(second), cudaSuccess);
    assert_int_equal(c->n, 2);
    cudaEventDestroy(e);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
    cudaFree(c);
    close(gate[0]);
    close(gate[1]);
}

static void test_memory_has_an_end_and_comes_back(void **state) {
    (void)state;
    void *big, *more = NULL;
    size_t unused, total, after;
    assert_int_equal(cudaMemGetInfo(&unused, &total), cudaSuccess);
    assert_int_equal(total, 1 << 20);
    assert_int_equal(cudaMalloc(&big, unused), cudaSuccess);
    assert_int_equal(cudaMalloc(&more, 1), cudaErrorMemoryAllocation);
    assert_null(more);
    assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    assert_int_equal(cudaFree(big), cudaSuccess);
    assert_int_equal(cudaFree(big), cudaErrorInvalidValue);
    assert_int_equal(cudaMemGetInfo(&after, &total), cudaSuccess);
    assert_int_equal(after, unused);
}

static void test_an_error_of_a_kernel_comes_late_and_stays(void **state) {
    (void)state;
    struct cells *c = cells_new();
    static cudaStream_t s; /* nothing can be given back afterwards */
    static cudaEvent_t e;
    int n = 0;
    cudaStreamCreateWithFlags(&s, 0);
    cudaEventCreateWithFlags(&e, 0);
    /* The launch that does it is accepted like all before it. */
    for (cudaError_t waited = cudaSuccess; waited == cudaSuccess && n < SPOILS; n++) {
        assert_int_equal(launch(kernel_count, c, (dim3){1, 1, 1}, s), cudaSuccess);
        waited = cudaStreamSynchronize(s);
    }
    assert_int_equal(cudaStreamSynchronize(s), 719);
    assert_int_equal(cudaMemcpyAsync(&n, c, sizeof(n), cudaMemcpyDeviceToHost, s), 719);
    assert_int_equal(cudaEventQuery(e), 719);
    assert_int_equal(cudaStreamQuery(s), 719);
    assert_int_equal(cudaMalloc((void **)&c, 1), 719);
    assert_int_equal(cudaFree(c), 719);
    assert_int_equal(cudaGetLastError(), 719);
    assert_int_equal(cudaGetLastError(), 719);
    assert_string_equal(cudaGetErrorName(719), "cudaErrorLaunchFailure");
    int driver;
    assert_int_equal(cudaDriverGetVersion(&driver), cudaSuccess);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_thread_of_a_launch_runs_once),
        cmocka_unit_test(test_work_is_done_in_the_order_of_its_stream_and_not_before),
        cmocka_unit_test(test_another_stream_waits_for_an_event),
        cmocka_unit_test(test_memory_has_an_end_and_comes_back),
        cmocka_unit_test(test_an_error_of_a_kernel_comes_late_and_stays),
    };
    setenv("RANKTRAIN_FAKE_CUDA", "memory=1048576,sticky=719@launch:8", 1);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
