/* Process trees, read from /proc. */
#ifndef BRIG_TREE_H
#define BRIG_TREE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Sends a signal to every live descendant of `root`, not to root itself; returns how many there were. */
size_t tree_signal(pid_t root, int signal_number);

/* Freezes the descendants of `root` until no new one appears, then kills them all; returns how many were alive. */
size_t tree_kill(pid_t root);

/* The same for the children of PID 1 that `is_ours` does not claim and that are not older than `since`, with all below them. */
size_t orphans_kill(int (*is_ours)(pid_t), uint64_t since);

/* When a process began, in the clock ticks of `since`; 0 when there is no such process. */
uint64_t start_of(pid_t pid);

/* The parent of a process as this PID namespace sees it, or -1: 0 means it was put here from outside. */
pid_t parent_of(pid_t pid);

#endif
