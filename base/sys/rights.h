/* rights: what a program that need not be trusted is started without. Both work in a child just
 * before its exec: they make system calls only, and what they take never comes back.
 *
 * Nothing that changes the machine is among the capabilities of programs: no module, device, clock,
 * mount or network card, no file by its handle, and no look into processes that have more. A job
 * that runs as root has what it is used to: files of every owner, other users, low ports, locked
 * memory, priorities, limits. */
#pragma once

#include <linux/audit.h>
#include <stdbool.h>
#include <stdint.h>

/* The arch of seccomp_data that this program's system calls have: numbers of others mean others. */
#if defined(__x86_64__)
#define RIGHTS_OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define RIGHTS_OWN_ARCH AUDIT_ARCH_AARCH64
#else
#define RIGHTS_OWN_ARCH 0
#endif

/* A capability by its number (CAP_CHOWN), as a bit. */
#define RIGHT(capability) (UINT64_C(1) << (capability))
extern const uint64_t rights_of_programs;

/* Takes all capabilities of the calling thread but those, also from what will be executed. Returns
 * 0 or a -errno. */
int rights_drop(uint64_t kept);

/* The process and what descends from it signal nobody but each other (Landlock, Linux 6.12), nor
 * do they see more in /proc of others than everybody does. Where the kernel cannot say that,
 * kill(-1), which means everybody, is refused to them (EPERM), and no other signal. Without CAP_SYS_ADMIN, set-user-ID programs give them no rights any more. Returns 0 or a
 * -errno. */
int rights_confine_signals(void);
