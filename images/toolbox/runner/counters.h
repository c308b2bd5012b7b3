/* The kernel's counts for this container, under cgroup v2 or v1. */
#ifndef BRIG_COUNTERS_H
#define BRIG_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

/* Stands for a number that the kernel does not report, as under gVisor. */
#define COUNT_UNKNOWN UINT64_MAX

struct counts {
    uint64_t memory_kills;  /* processes of this container that were killed for lack of memory, its own or the machine's */
    uint64_t limit_hits;    /* how often the container's own memory was used up; v1 does not count this */
    uint64_t refused_forks; /* how often no process could be started because of a limit on their number */
};

/* The container's own limit of processors. */
struct cpu_limit {
    uint64_t thousandths; /* of a processor, or COUNT_UNKNOWN if there is no limit */
    uint64_t period_us;   /* the kernel counts in such periods, or COUNT_UNKNOWN */
};

/* These files are opened before the first command runs, because an open file cannot be hidden or replaced. */
struct counters {
    int memory_events;  /* v2: both counts of memory */
    int memory_kills;   /* v1 */
    int most_memory[2]; /* v1: without and with swap. Its memory.failcnt stays 0 with some kernels */
    int memory_limit;
    int refused_forks, process_limit, most_processes;
    int cpu_stat, cpu_limit;
    int cpu_period; /* v1: v2 has it in the file of the limit */
};

void counters_open(struct counters *c);
struct counts counters_read(const struct counters *c);

/*
 * The container's own memory limit, or COUNT_UNKNOWN if it was not reached between two readings, so that only an outer limit can have
 * been. With v1 it is only known whether the limit was ever reached.
 */
uint64_t counters_memory_limit(const struct counters *c, const struct counts *before, const struct counts *now);

/* Whether memory that the kernel cannot give back by itself takes most of the limit. Files that are only cached do not count. */
bool counters_memory_is_taken(const struct counters *c);
/* The container's own limit of processes, or COUNT_UNKNOWN if it was never reached, so that only an outer limit can have been. */
uint64_t counters_process_limit(const struct counters *c);

/* In how many periods the container had used up its processors before the end. */
uint64_t counters_throttled(const struct counters *c);
struct cpu_limit counters_cpu_limit(const struct counters *c);

#endif
