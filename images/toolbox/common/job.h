/*
 * The messages between PID 1 and its workers. A worker gets one job at a time over a socket that keeps packets apart, and
 * answers with one or two reports. A few words are shared memory, because they are needed while a job runs.
 */
#ifndef BRIG_JOB_H
#define BRIG_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "protocol.h"

/* A request that is longer than one packet travels in a memory file. */
#define PACKET_MAX (32u << 10)
/* The longest result of a file operation is that of an inline read. */
#define RESULT_MAX (READ_RESULT_BYTES + INLINE_BYTES)
#define JOB_STREAMS 3

/* JOB_FILE turns a worker into the program of file operations. JOB_ANSWER is a question: a worker that still lives answers it with REPORT_EMPTY. */
enum job_kind { JOB_SPAWN = 1, JOB_FILE = 2, JOB_ANSWER = 3 };

struct job {
    enum job_kind kind;
    uint32_t channel;
    const uint8_t *payload; /* of the SPAWN or FILE frame */
    uint32_t length;
    int fds[JOB_STREAMS]; /* the worker's ends of the streams, in the order stdin, stdout, stderr; only those the request calls for */
    int fd_count;
};

struct job_header {
    uint32_t kind;
    uint32_t length;
    uint32_t in_memory_file;
};

/* A command reports its end and, once nothing it started is left, that its tree is empty. A file operation reports both at once. */
enum report_kind { REPORT_ENDED = 1, REPORT_EMPTY = 2 };

struct worker_report {
    uint32_t what; /* of report_kind, one or both */
    uint32_t kind; /* of exit_kind, as the fields below for the EXIT frame */
    uint32_t code;
    uint32_t error;
    uint32_t stage;
    uint32_t result_length;
    uint64_t user_us, system_us, max_rss;
};

struct worker_slot {
    volatile pid_t child; /* the command's main process while it runs, otherwise 0 */
    /*
     * Without PR_SET_CHILD_SUBREAPER (gVisor of 2022) a process that loses its parent falls to PID 1 instead of to its worker.
     * Then this is the time at which the command began, and every orphan that is not older counts as the command's. It may be another
     * command's. With PR_SET_CHILD_SUBREAPER this stays 0.
     */
    volatile uint64_t orphans_since;
    volatile uint32_t cancelled; /* PID 1 no longer wants the file operation that is under way */
    volatile pid_t supervisor;   /* the worker that this slot belongs to, or 0 */
    volatile uint32_t channel;   /* of the job that it has, or 0 */
};

#define WORKER_SLOTS 1024

/*
 * Memory that PID 1 shares with its workers, as a file without a name, so that a worker still has it as another program. No command
 * can reach it. A worker sees all slots, to find the call that a process belongs to.
 */
struct shared {
    struct timespec session_start; /* by the clock that file times are taken from */
    struct worker_slot slots[WORKER_SLOTS];
};

/* PID 1's side. job_send returns false with errno when the worker cannot take the job, as when it is dead. */
bool job_send(int control, const struct job *job);

enum report_state { REPORT_TAKEN, REPORT_NOT_YET, REPORT_IMPOSSIBLE };
/* `result` has room for RESULT_MAX bytes. A report that no worker writes, or the end of the socket, is REPORT_IMPOSSIBLE. */
enum report_state report_receive(int control, struct worker_report *report, uint8_t *result);

/* The worker's side. */
struct received_job {
    struct job_header header;
    uint8_t *payload; /* MAP_FAILED when there was no memory for it */
    bool is_mapped;
    int fds[JOB_STREAMS]; /* the job's streams, followed by -1 */
};

/* Waits for the next job and tells its kind without taking it. 0 when PID 1 has closed the socket. */
uint32_t job_await(int control);
/* `packet` has room for PACKET_MAX bytes and holds the payload. False when PID 1 has closed the socket. */
bool job_receive(int control, uint8_t *packet, struct received_job *job);
void job_free(struct received_job *job);
void report_send(int control, const struct worker_report *report, const uint8_t *result);

#endif
