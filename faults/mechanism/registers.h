/* registers: of a thread that is traced and stands still, and what it is made to do next. x86-64 and
 * arm64; all return 0 or a -errno, -ENOTSUP where this build knows no registers or the thread runs
 * 32-bit code. */
#pragma once

#include "faults/mechanism/seize.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#define user_regs_struct seize_no_regs
struct seize_no_regs {
    int none;
};
#endif

/* Where an instruction is, and what stood there; written: instead of it. */
struct registers_poked {
    unsigned long at;
    bool written;
    long word;
};

int registers_get(pid_t tid, struct user_regs_struct *ret);
int registers_set(pid_t tid, struct user_regs_struct *r);
/* An address below what a leaf function may use without saying so. */
unsigned long registers_free_stack(const struct user_regs_struct *r);
/* What the call has returned that it has just made. */
long registers_returned(const struct user_regs_struct *r);
/* Lets it make this call when it goes on; the caller writes `ret` back. */
int registers_make_call(pid_t tid, struct user_regs_struct *r, const struct seize_call *c,
                        struct registers_poked *ret);
/* Behind that call there is nothing it could go on with: whoever comes there is ended. */
int registers_end_behind(pid_t tid, const struct registers_poked *p);
/* Lets it call this function of its own when it goes on, which returns to the address 0. */
int registers_call(pid_t tid, struct user_regs_struct *r, uint64_t function, unsigned long arg);
/* It stands at the address 0. */
bool registers_at_null(const struct user_regs_struct *r);
/* The system call that it is in the midst of; -1: none. */
long registers_in_call(const struct user_regs_struct *r);

/* What a function may change besides. */
struct registers_vector {
    size_t n;
    char bytes[16384];
};
int registers_get_vector(pid_t tid, struct registers_vector *ret);
int registers_set_vector(pid_t tid, struct registers_vector *v);

/* Lets it call a function at the address 0 when it goes on, as by a pointer that nobody has set. */
int registers_call_null(pid_t tid, struct user_regs_struct *r);
