/* PID 1's side of the workers: forked ahead of time, given one job each, replaced when they die. */
#ifndef BRIG_POOL_H
#define BRIG_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "job.h"
#include "loop.h"

struct channel;

/* Callbacks for the channel that gave a worker its job. */
struct job_events {
    /* The main process of the command has ended, or the file operation is done. */
    void (*on_end)(struct runner *, struct channel *, const struct worker_report *, const uint8_t *result);
    /* Nothing of the job is left below the worker, which takes other jobs from now on. */
    void (*on_empty)(struct runner *, struct channel *, uint64_t orphans_since);
    /* The worker has died. The processes of the command below it became children of PID 1. */
    void (*on_loss)(struct runner *, struct channel *, uint64_t orphans_since);
};

/* A dismissed worker ends by itself, one that was given up is killed. Neither gets another job, whatever it still reports. */
enum worker_state { WORKER_IDLE, WORKER_BUSY, WORKER_DISMISSED, WORKER_GIVEN_UP };

struct worker {
    struct later later;
    struct worker *next;
    pid_t pid;
    struct source control;
    struct worker_slot *slot;
    enum worker_state state;
    struct channel *channel; /* whose job it has, or NULL */
    enum job_kind job_kind;
    const struct job_events *events;
    bool does_files; /* it is the program of file operations, or becomes it with its next job, and takes no command any more */
    bool is_suspect; /* it may have been killed together with another worker */
    bool is_reaped;  /* its pid may be another process's by now */
};

/* Makes the memory that PID 1 shares with its workers. False with errno. */
bool pool_share_memory(struct runner *r);

/* Gives the job to a worker and returns it, or NULL with errno. */
struct worker *pool_start_job(struct runner *r, struct channel *c, const struct job *job, const struct job_events *events);
/* How many jobs of this kind workers have. A command counts as long as a process that it has left is running. */
int pool_jobs(const struct runner *r, enum job_kind kind);

/* Ends every process that a command started, and waits until none is left, or for a few seconds. */
void pool_end_commands(struct runner *r);
/* The same for processes whose worker is gone, those older than `since` excepted. False when some could not be killed. */
bool pool_kill_orphans(struct runner *r, uint64_t since);

/* Calls this until it has found nothing to kill, or for a few seconds. False when something is left. */
bool pool_kill_until_gone(struct runner *r, size_t (*kill_once)(struct runner *, uint64_t since), uint64_t since);

void pool_keep_ready(struct runner *r);
void pool_reap(struct runner *r);

void worker_continue(struct worker *w);
void worker_kill(struct worker *w);

#endif
