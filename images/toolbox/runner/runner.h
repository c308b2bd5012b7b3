/* PID 1: the event loop's objects and how they call each other. */
#ifndef BRIG_RUNNER_H
#define BRIG_RUNNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "buffer.h"
#include "link.h"
#include "wire.h"
#include "worker.h"

#define CHANNEL_BUCKETS 256
#define MAX_BRIDGES 8

struct runner;

/* One descriptor in the event loop. Its owner outlives the batch of events it may still appear in. */
struct source {
    void (*on_event)(struct runner *, struct source *, uint32_t events);
    void *owner;
    int fd;
    uint32_t armed;
};

enum worker_state { WORKER_IDLE, WORKER_BUSY, WORKER_ENDING /* it gets no job any more, whatever it still says */ };

struct worker {
    struct worker *next;
    pid_t pid;
    struct source control;
    struct worker_slot *slot;
    struct channel *channel;
    enum worker_state state;
    bool is_suspect; /* it may have been killed with another that was */
    bool reaped;     /* its pid may be another process's by now */
};

/* The ends of a channel's pipes that its worker gets; count is -1 when they could not be made. */
struct channel_streams {
    int count;
    int fds[3];
};

/* A file operation that waits for a worker. */
struct queued_request {
    struct buffer payload;
    struct channel_streams streams;
    struct channel *next;
    uint64_t since_ms;
};

enum kill_state { KILL_NONE, KILL_TERMINATING, KILL_KILLING };
struct channel {
    struct channel *next;
    uint32_t id;
    bool is_command, pty, ended, exit_sent, dead;
    bool ends_tree; /* nothing it started may outlive it */
    bool hung_up; /* nobody has the terminal open at the moment */
    struct worker *worker;
    struct source in, out, err;
    struct buffer input;
    bool input_ended;
    uint32_t input_taken; /* bytes consumed and not yet granted again */
    int64_t credit;
    size_t late_left;
    bool owed_is_known;
    size_t out_owed, err_owed; /* output that comes before EXIT though its stream is held open */
    uint8_t flags;
    enum kill_state kill;
    bool deadline_passed;
    bool terminated;          /* SIGTERM of the kill has found somebody */
    bool seemed_empty;        /* the last SIGKILL found nobody */
    uint64_t pending_signals; /* bit n - 1: signal n came before there was a process to send it to */
    uint32_t grace_ms;
    struct queued_request *queued;
    uint64_t started_us, deadline_ms, hold_ms, kill_ms, kill_give_up_ms;
    struct buffer exit;
};

/* A connection made by `runner connect`; the one whose HELLO was right is the host. */
struct bridge {
    struct source control, in, out;
    struct buffer input;
    bool used, is_host;
    uint64_t deadline_ms;
};

struct runner {
    int epoll_fd;
    int highest_fd; /* that was ever noted */
    int fd_limit;
    struct source signals, listener;
    struct link link;
    struct bridge bridges[MAX_BRIDGES];
    struct bridge *host;
    struct channel *channels[CHANNEL_BUCKETS];
    bool output_waits; /* some stream is not read because the link is full */
    struct channel *retired;
    struct channel *queue_first, *queue_last;
    uint64_t file_ended_ms; /* when the last file operation came to its end */
    struct worker *workers, *retired_workers;
    struct worker_slot *slots;
    uint8_t token_hash[32];
    uint64_t boot_id;
    uint64_t lease_ms, alone_since_ms;
    bool was_connected;
    uint64_t out_of_memory_kills;
    uint64_t next_deadline_ms;
    uint64_t accept_again_ms;
};

uint64_t now_ms(void);
uint64_t now_us(void);
void watch(struct runner *r, struct source *s, uint32_t events);
void close_source(struct runner *r, struct source *s);
/* A worker closes everything up to the highest number noted. */
void note_fd(struct runner *r, int fd);
/* Whether channels and workers may use so high a number; the last few are kept for a host that comes back and for /proc. */
bool may_use_fd(struct runner *r, int fd);
/* Asks the loop to come round no later than this. */
void wake_at(struct runner *r, uint64_t when_ms);

/* bridge.c */
/* Streams that no `connect` has handed over. HELLO has to come on them as on any other. */
bool bridges_adopt(struct runner *r, const int streams[2], uint64_t patience_ms);
void bridges_accept(struct runner *r);
void bridges_tick(struct runner *r, uint64_t now);
void bridge_drop(struct runner *r, struct bridge *b);
void host_flush(struct runner *r);

/* channel.c */
bool channel_take_frame(struct runner *r, const struct frame *frame);
void channel_ended(struct runner *r, struct channel *c, const struct worker_report *report, const uint8_t *result);
void channel_tree_empty(struct runner *r, struct channel *c);
void channels_tick(struct runner *r, uint64_t now);
void channels_resume_output(struct runner *r);
void channels_free_retired(struct runner *r);
void channels_start_queued(struct runner *r);

/* pool.c */
bool pool_dispatch(struct runner *r, struct channel *c, const struct frame *request, const int *fds, int fd_count);
void pool_keep_ready(struct runner *r);
/* Ends every process that a command started, and waits until none is left, or for a few seconds. */
void pool_end_commands(struct runner *r);
int pool_file_workers(const struct runner *r);
void pool_reap(struct runner *r);
void pool_free_retired(struct runner *r);
void worker_continue(struct worker *w);
void worker_kill(struct worker *w);

#endif
