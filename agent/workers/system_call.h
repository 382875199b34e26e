/* system_call: one that a process makes by itself, without the C library: errno is left alone, which is another's where a child
 * has the memory of its parent. */
#pragma once

#include <sys/syscall.h>

/* In such a child no sanitizer may look on: it keeps what it knows in the thread-local memory that is the parent's. */
#define IN_CHILD __attribute__((no_sanitize("address", "undefined", "thread")))

/* Returns -errno. Its fifth argument is 0: prctl(2) looks at all of them. */
IN_CHILD static inline long system_call(long n, long a, long b, long c, long d) {
#if defined(__x86_64__)
    long r;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = 0;
    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return r;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = n;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = 0;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
#else
#error "x86-64 and arm64 only: how is a system call made here?"
#endif
}
