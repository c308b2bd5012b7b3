/* Workers: forked ahead of time, each either runs one file operation or supervises one command and all its children. */
#ifndef BRIG_WORKER_H
#define BRIG_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire.h"

/* A message in either direction fits one packet; a longer request travels in a memory file. */
#define PACKET_MAX (32u << 10)
#define RESULT_MAX (READ_RESULT_BYTES + INLINE_BYTES)

enum job_kind { JOB_SPAWN = 1, JOB_FILE = 2, JOB_ANSWER = 3 /* to say that it is alive */ };

struct job_header {
    uint32_t kind;
    uint32_t length;
    uint32_t in_memory_file;
};

/* Of a file operation both at once: it leaves nobody behind. */
enum report_kind { REPORT_ENDED = 1, REPORT_EMPTY = 2 };

struct worker_report {
    uint32_t what;
    uint32_t kind;
    uint32_t code;
    uint32_t error;
    uint32_t stage;
    uint32_t result_length;
    uint64_t user_us, system_us, max_rss;
};

/* Shared memory of a worker and the runner; no command can reach it. */
struct worker_slot {
    volatile pid_t child;
    /* Only where the kernel has no PR_SET_CHILD_SUBREAPER (gVisor of 2022): when the command began. Whatever loses its
     * parent falls to PID 1 there, and is known by being no older; an orphan of another command may be taken for it. */
    volatile uint64_t orphans_since;
    volatile uint32_t cancelled; /* by the runner: the file operation at hand is no longer wanted */
};

/* The worker's whole life, in the forked process. Never returns. */
_Noreturn void worker_main(int control, struct worker_slot *slot);

/* `stream` is what it reads from (write) or writes to (read, list, report), if it has one. It ends early when the operation is cancelled. */
struct file_operation_job {
    const uint8_t *request;
    size_t size;
    int stream;
    const volatile uint32_t *cancelled;
};

/* In the worker: runs a file operation. */
void file_operation_run(const struct file_operation_job *job, struct worker_report *report, uint8_t *result);

/* In the worker: writes the read-back of the policy to `out`. `paths`: newline-separated, to be stat'ed. */
int report_write(int out, const char *paths);

int write_all(int fd, const void *data, size_t size);

#endif
