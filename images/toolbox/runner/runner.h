/*
 * The runner of a sandbox: PID 1, its workers, and the bridge that `docker exec` starts. This is the purpose of each file, bottom up;
 * a file calls only functions of files above it in this list. (Calls that have to go the other way are function pointers: on_event of a
 * source, and struct job_events.)
 *
 *   protocol.h         the numbers on which runner and host agree
 *   wire.c             frames and requests: from bytes to structs and back
 *   buffer.c           a queue of bytes
 *   link.c             frames to the host, kept until it says that it has them
 *   sha256.c           SHA-256
 *   io.c               writing all of something
 *   tree.c             processes and their descendants, read from /proc; signals to them
 *   address.c          addresses of sockets: as bytes of the protocol, and as the kernel has them
 *   scheduling.c       processors and priorities: the runner comes before the commands
 *   reach.c            the way to a directory without following symbolic links
 *   job.c              the messages between PID 1 and its workers
 *
 * In a worker:
 *   file-job.h         a file operation as a worker sees it
 *   file-stat.c        the type and the stat record of a path
 *   file-read.c        reading a file
 *   file-write.c       writing one
 *   file-list.c        listing a directory
 *   file-remove.c      removing files and trees
 *   beneath.c          opening directories below another one, without following links
 *   same-content.c     comparing the contents of two files
 *   names.c            the names in a directory, in order
 *   sight.c            looking at one name in the three directories of an overlay
 *   changes-record.c   one difference between two trees, as the host reads it
 *   changes.c          how a merged tree differs from the one below it
 *   commit-records.c   the changes that a commit has to make
 *   commit-place.c     the directory it changes, and the files there
 *   commit-step.c      one name that it changes: doing that and undoing it
 *   commit-journal.c   its list of steps, by which a commit that was cut off is undone
 *   commit-prepare.c   turning records into steps
 *   commit.c           all the steps, or none
 *   copy-content.c     copying the content of one file to another
 *   copy.c             copying paths from one tree to another
 *   report.c           the kernel's view of the container
 *   receipt-rules.c    names that programs obey by themselves
 *   receipt-known.c    directories that were there before
 *   receipt-list.c     the findings that the host is told
 *   receipt-strip.c    taking special rights away
 *   repository-parts.c the names by which git recognises a repository
 *   receipt.c          files that a session leaves behind
 *   socket-owners.c    the process that has a connection
 *   processor-waits.c  the times that threads have waited for a processor
 *   files.c            choosing the file operation of a request
 *   command.c          starting a command and waiting for it
 *   worker.c           one job after the other
 *
 * In PID 1:
 *   loop.c             the event loop's clock, timer and descriptors
 *   uncounted.c        resources that the kernel counts for no container
 *   runner.h           the state of PID 1
 *   counters.c         the kernel's counts for this container
 *   rooms.c            file systems that can be full
 *   before-call.h      both when a command began
 *   pool.c             the workers: forked ahead of time, given jobs, replaced
 *   channel-state.h    one command or file operation
 *   causes.c           the known causes of its failure
 *   channel-input.c    its input
 *   channel-output.c   its output
 *   channel-tree.c     signals to it, and ending everything it started
 *   channel-streams.c  making its pipes or its terminal
 *   channel-queue.c    file operations that wait for a worker
 *   channel-end.c      from its end to the EXIT frame
 *   channel-start.c    from its request to a worker
 *   channel.c          the effect of frames and time on channels
 *   endpoint.c         a socket that the host has in the sandbox
 *   connection.c       a connection to it or from it
 *   listener.c         a socket that programs connect to
 *   datagrams.c        a socket that programs send datagrams to
 *   network.c          the effect of frames and time on these
 *   bridge.c           connections from the host, and deciding who may speak
 *
 *   connect.c          `runner connect`, which hands its standard streams to PID 1, and the socket it does that over
 *   serve.c            PID 1 itself
 *   main.c             the command line
 */
#ifndef BRIG_RUNNER_H
#define BRIG_RUNNER_H

#include <stdbool.h>
#include <stdint.h>

#include "buffer.h"
#include "link.h"
#include "loop.h"
#include "protocol.h"
#include "uncounted.h"

#define CHANNEL_BUCKETS 256
#define MAX_BRIDGES 8

/* A connection that `runner connect` has made. The one whose HELLO was right is the host. */
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
    struct channel *retired;
    struct endpoint *endpoints[CHANNEL_BUCKETS];
    struct endpoint *retired_endpoints;
    int open_connections;
    bool network_waits; /* as output_waits, for sockets */
    bool output_waits; /* some stream is not read because the link is full */
    struct queued_file *queue_first, *queue_last;
    uint64_t file_ended_ms;  /* when the last file operation came to its end */
    uint64_t refused_forks;  /* how often a worker could not be forked because of a limit of processes */
    struct uncounted uncounted;
    struct watched *watched; /* the sources of causes of failures, or NULL */

    struct worker *workers, *retired_workers;
    struct worker_slot *slots;
};

#endif
