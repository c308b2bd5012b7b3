/* The state of PID 1. */
#ifndef BRIG_RUNNER_H
#define BRIG_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"
#include "counters.h"
#include "link.h"
#include "loop.h"
#include "protocol.h"
#include "uncounted.h"

#define CHANNEL_BUCKETS 256
#define MAX_BRIDGES 8

enum channel_kind {
    CHANNEL_FILE_OPERATION,
    CHANNEL_COMMAND,
    CHANNEL_COMMAND_AND_TREE, /* nothing that the command started may outlive it */
};

/* A channel only goes forward through these. */
enum channel_phase {
    CHANNEL_QUEUED,   /* a file operation that waits for a worker */
    CHANNEL_RUNNING,  /* a worker has the job */
    CHANNEL_ENDED,    /* EXIT is written, but output or processes of the command may still hold it back */
    CHANNEL_DRAINING, /* the streams are held open for too long: EXIT waits only for what lay in them at that moment */
    CHANNEL_EXITED,   /* EXIT is sent; whatever is still written goes to the host as LATE */
    CHANNEL_RETIRED,  /* nothing can happen to it any more; it is freed at the end of the loop's turn */
};

enum timeout_state { TIMEOUT_NONE, TIMEOUT_AHEAD, TIMEOUT_PASSED };

/* Once the last process that used a terminal is gone, no process has it open; a background process may open it again. */
enum terminal_state { TERMINAL_NONE, TERMINAL_IN_USE, TERMINAL_HUNG_UP };

/* The steps of ending a process tree: first SIGTERM, after a grace SIGKILL until the worker reports that the tree is empty. */
enum tree_step {
    TREE_UNTOUCHED,
    TREE_IN_GRACE,
    TREE_KILLING,
    TREE_SEEMS_EMPTY, /* the last SIGKILL found no process, and the worker should report soon */
    TREE_GIVEN_UP,    /* SIGKILL did not empty it in time */
};

struct tree_end {
    enum tree_step step;
    bool was_heard; /* SIGTERM has found a process; until then it is sent again and again */
    uint64_t next_ms, give_up_ms;
};

/* The kernel's counts, and the file systems that were full, when a command began. */
struct before_call {
    struct counts counts;
    uint64_t throttled;       /* periods without processors left; only read for a command with a time limit */
    uint64_t forks_of_runner; /* forks that were refused to the runner itself */
    uint32_t full_rooms;      /* bit n: the room at n */
    bool is_noted;
    bool had_company;         /* another command, or processes that one has left, ran at some time meanwhile */
};

struct channel_input {
    struct source source;
    struct buffer bytes; /* bytes that the command has not taken yet */
    bool has_ended;      /* the host has sent the end of file */
    uint32_t taken;      /* bytes the command has taken, for which no new credit was granted yet */
};

struct channel_output {
    struct source source;
    struct channel *channel;
    uint8_t frame_type;
    size_t owed; /* in CHANNEL_DRAINING: bytes that EXIT still waits for */
};

struct channel {
    struct later later;
    struct channel *next;
    uint32_t id;
    enum channel_kind kind;
    enum channel_phase phase;
    enum terminal_state terminal;
    struct channel_input in;
    struct channel_output out, err;
    int64_t credit;   /* how much output the host still takes before EXIT */
    size_t late_left; /* how much of it is still passed on after EXIT */

    struct worker *worker; /* until it reports that nothing of the job is left */
    struct tree_end tree;
    uint32_t grace_ms;
    uint64_t pending_signals; /* bit n - 1: signal n has come before there was a process to send it to */
    enum timeout_state timeout;
    uint64_t deadline_ms;

    struct before_call before;
    uint64_t started_us;
    uint64_t hold_ms; /* EXIT waits until this time for streams and processes that outlive the main process */
    uint8_t exit_flags;
    struct buffer exit; /* the payload of EXIT */
};

/* A connection that `runner-files connect` has made. The one whose HELLO was right is the host. */
struct bridge {
    struct source control, in, out;
    struct buffer input;
    bool is_used, is_host;
    uint64_t deadline_ms;
};

struct runner {
    int epoll_fd;
    int highest_fd; /* that was ever in use */
    int fd_limit;
    uint64_t next_deadline_ms;
    struct later *over;
    struct source signals, listener;

    struct link link;
    struct bridge bridges[MAX_BRIDGES];
    struct bridge *host;
    uint8_t token_hash[32];
    uint64_t boot_id;
    uint64_t lease_ms, alone_since_ms;
    bool was_connected;
    uint64_t accept_again_ms;

    struct channel *channels[CHANNEL_BUCKETS];
    struct endpoint *endpoints[CHANNEL_BUCKETS];
    int open_connections;
    bool network_waits; /* as output_waits, for sockets */
    bool output_waits; /* some stream is not read because the link is full */
    struct queued_file *queue_first, **queue_end; /* the end is where the next one is put */
    uint64_t file_ended_ms;  /* when the last file operation came to its end */
    uint64_t refused_forks;  /* how often a worker could not be forked because of a limit of processes */
    struct uncounted uncounted;
    struct watched *watched; /* the sources of causes of failures, or NULL */

    struct worker *workers;
    struct shared *shared;
    int shared_fd;
};

#endif
