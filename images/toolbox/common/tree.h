/* Process trees, read from /proc. */
#ifndef BRIG_TREE_H
#define BRIG_TREE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Sends a signal to every living descendant of `root`, but not to `root`. Returns how many there were. */
size_t tree_signal(pid_t root, int signal_number);

/* Stops the descendants of `root` until no new one appears, then kills them all. Returns how many were alive. */
size_t tree_kill(pid_t root);

/* The same for those children of PID 1, and their descendants, that `is_ours` does not claim and that are not older than `since`. */
size_t orphans_kill(int (*is_ours)(pid_t), uint64_t since);

/* The start of a process, in the clock ticks of /proc, which are also the unit of `since`. 0 when there is no such process. */
uint64_t start_of(pid_t pid);

/* The parent of a process, or -1. It is 0 when the process was put into this PID namespace from outside. */
pid_t parent_of(pid_t pid);

#endif
