#define _GNU_SOURCE
#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "causes.h"
#include "pool.h"
#include "runner.h"
#include "tree.h"

/* The worker's ends, in the order in which a job has them. The channel keeps the other ends. */
struct job_streams {
    int fds[JOB_STREAMS];
    int count;
};

struct queued_file {
    struct queued_file *next;
    struct channel *channel;
    struct buffer request;
    struct job_streams streams;
    uint64_t since_ms;
};

/* ---- input ------------------------------------------------------------------------------------------------------- */

#define INPUT_MAX (2u * INITIAL_CREDIT)
#define TERMINAL_INPUT_RETRY_MS 10

static void discard_input(struct runner *r, struct channel *c) {
    size_t length = buffer_length(&c->in.bytes);
    buffer_drop(&c->in.bytes, length);
    link_grant(&r->link, c->id, &c->in.taken, length);
}

/* A terminal has one descriptor for both directions. The output owns it, so the input only forgets it. */
static void channel_close_input(struct runner *r, struct channel *c) {
    if (c->terminal != TERMINAL_NONE) c->in.source.fd = -1;
    else close_source(r, &c->in.source);
}

static void channel_write_input(struct runner *r, struct channel *c) {
    struct buffer *bytes = &c->in.bytes;
    int fd = c->in.source.fd;
    while (fd >= 0 && buffer_length(bytes) > 0) {
        ssize_t n = write(fd, buffer_front(bytes), buffer_length(bytes));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        if (n < 0) { /* no process reads it any more */
            channel_close_input(r, c);
            fd = -1;
            break;
        }
        buffer_drop(bytes, (size_t)n);
        link_grant(&r->link, c->id, &c->in.taken, (size_t)n);
    }
    if (fd < 0) discard_input(r, c);
    bool is_waiting = buffer_length(bytes) > 0;
    if (c->in.has_ended && !is_waiting) channel_close_input(r, c);
    /* epoll takes a descriptor once, and a terminal's is there as output. So writing to it is tried again on a timer. */
    if (c->terminal == TERMINAL_NONE) watch(r, &c->in.source, is_waiting ? EPOLLOUT : 0);
    else if (is_waiting) wake_at(r, now_ms() + TERMINAL_INPUT_RETRY_MS);
}

/* False when the host sends more than it was granted. */
static bool channel_take_input(struct runner *r, struct channel *c, const struct frame *frame) {
    static const uint8_t end_of_transmission = 4; /* Ctrl-D, which is how a terminal's input ends */
    if (c->in.has_ended) return frame->length == 0;
    if (buffer_length(&c->in.bytes) + frame->length > INPUT_MAX) return false;
    if (frame->length == 0) {
        c->in.has_ended = true;
        if (c->terminal != TERMINAL_NONE) buffer_append(&c->in.bytes, &end_of_transmission, 1);
    } else if (buffer_append(&c->in.bytes, frame->payload, frame->length) != 0) {
        return false;
    }
    channel_write_input(r, c);
    return true;
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

#define PIPE_BYTES (64u << 10)
#define TERMINAL_READS 16 /* one read of a terminal gives 4 KiB at most */
#define TERMINAL_RETRY_MS 10

static bool channel_has_output_open(const struct channel *c) { return is_open(&c->out.source) || is_open(&c->err.source); }

static bool may_read(const struct runner *r, const struct channel *c) {
    if (c->terminal == TERMINAL_HUNG_UP) return false;
    return c->phase >= CHANNEL_EXITED || (c->credit > 0 && !link_is_full(&r->link));
}

/* Waits for output on every stream that may be read now. Needed after every change of credit, phase or terminal. */
static void channel_watch_output(struct runner *r, struct channel *c) {
    if (link_is_full(&r->link)) r->output_waits = true;
    uint32_t events = may_read(r, c) ? EPOLLIN : 0;
    watch(r, &c->out.source, events);
    watch(r, &c->err.source, events);
}

/* Looks again at a terminal that nobody had open. */
static void channel_retry_terminal(struct runner *r, struct channel *c) {
    if (c->terminal != TERMINAL_HUNG_UP) return;
    c->terminal = TERMINAL_IN_USE;
    channel_watch_output(r, c);
}

static void settle(struct channel_output *o, size_t bytes) { o->owed -= bytes < o->owed ? bytes : o->owed; }

static void take_end(struct runner *r, struct channel_output *o) {
    struct channel *c = o->channel;
    bool has_terminal = c->terminal != TERMINAL_NONE;
    if (has_terminal && c->phase < CHANNEL_ENDED) {
        /* Closing the terminal now would send SIGHUP to a command that is just about to exit by itself. */
        c->terminal = TERMINAL_HUNG_UP;
        wake_at(r, now_ms() + TERMINAL_RETRY_MS);
        return;
    }
    if (has_terminal) channel_close_input(r, c);
    close_source(r, &o->source);
}

static void send_output(struct runner *r, struct channel_output *o, size_t length) {
    struct channel *c = o->channel;
    if (c->phase < CHANNEL_EXITED) {
        c->credit -= (int64_t)length;
        link_finish(&r->link, o->frame_type, c->id, length);
    } else if (length <= c->late_left && !link_is_full(&r->link)) {
        c->late_left -= length;
        link_finish(&r->link, FRAME_LATE, c->id, length);
    } /* otherwise it is dropped, so that a process that was left running never blocks on its output */
}

/* Reads once. False at the end of the stream, or when nothing more can be read for now. */
static bool channel_read_output(struct runner *r, struct channel_output *o) {
    const struct channel *c = o->channel;
    bool is_late = c->phase >= CHANNEL_EXITED;
    size_t room = MAX_PAYLOAD_FROM_RUNNER;
    if (!is_late && (size_t)c->credit < room) room = (size_t)c->credit;
    if (room == 0 || (!is_late && link_is_full(&r->link))) return false;
    uint8_t *payload = link_begin(&r->link, room);
    if (!payload) return false;
    ssize_t n = read(o->source.fd, payload, room);
    if (n < 0 && errno == EINTR) return false;
    settle(o, n > 0 ? (size_t)n : SIZE_MAX);
    if (n < 0 && errno == EAGAIN) return false;
    if (n > 0) send_output(r, o, (size_t)n);
    else take_end(r, o); /* a terminal that nobody has open fails with EIO */
    return n > 0;
}

/* A terminal does not say how much waits in it, so as much is read from it as a pipe could hold. */
static size_t waiting_bytes(const struct channel_output *o) {
    int waiting = 0;
    if (!is_open(&o->source)) return 0;
    if (o->channel->terminal != TERMINAL_NONE) return PIPE_BYTES;
    return ioctl(o->source.fd, FIONREAD, &waiting) == 0 && waiting > 0 ? (size_t)waiting : 0;
}

/* Begins CHANNEL_DRAINING: the bytes that lie in the streams now belong to the call. */
static void channel_begin_draining(struct channel *c) {
    c->phase = CHANNEL_DRAINING;
    c->out.owed = waiting_bytes(&c->out);
    c->err.owed = waiting_bytes(&c->err);
}

/* Reads the bytes that the call still owes. True when all of them are read. */
static bool channel_drain(struct runner *r, struct channel *c) {
    while (c->out.owed > 0 && channel_read_output(r, &c->out)) continue;
    while (c->err.owed > 0 && channel_read_output(r, &c->err)) continue;
    return c->out.owed + c->err.owed == 0;
}

/* ---- signals, and the end of everything that a command started --------------------------------------------------- */

#define ASK_AGAIN_MS 10
#define KILL_AGAIN_MS 10
#define REPORT_WITHIN_MS 200 /* the time for the report of a worker that has nothing left below it */
#define GIVE_UP_AFTER_MS 5000
#define SIGNAL_AGAIN_MS 1

/* Whether the job may still have processes that can be ended. */
static bool channel_has_tree(const struct channel *c) { return c->worker && c->tree.step != TREE_GIVEN_UP; }

/* A file operation is not stopped by a signal, because any command could send its worker the same one. */
static bool stop_file_operation(struct runner *r, struct channel *c) {
    c->worker->slot->cancelled = 1;
    close_source(r, &c->in.source); /* the end of its stream wakes the worker, which then looks at `cancelled` */
    close_source(r, &c->out.source);
    return true;
}

static bool terminate(struct channel *c) {
    bool was_heard = tree_signal(c->worker->pid, SIGTERM) > 0;
    tree_signal(c->worker->pid, SIGCONT); /* a stopped process takes SIGTERM only when it goes on */
    return was_heard;
}

/* A command whose request came a moment ago may have no process yet. Then the signal is sent again a little later. */
static void ask_to_end(struct runner *r, struct channel *c) {
    c->tree.was_heard = c->kind == CHANNEL_FILE_OPERATION ? stop_file_operation(r, c) : terminate(c);
    uint64_t again_ms = now_ms() + ASK_AGAIN_MS;
    wake_at(r, c->tree.was_heard || again_ms > c->tree.next_ms ? c->tree.next_ms : again_ms);
}

/* Begins to end the tree, unless that has begun already. A file operation is told to stop. */
static void channel_end_tree(struct runner *r, struct channel *c, uint32_t grace_ms) {
    if (!c->worker || c->tree.step != TREE_UNTOUCHED) return;
    c->tree.step = TREE_IN_GRACE;
    c->tree.next_ms = now_ms() + grace_ms;
    c->tree.give_up_ms = c->tree.next_ms + GIVE_UP_AFTER_MS;
    ask_to_end(r, c);
}

static void kill_tree(struct runner *r, struct channel *c, uint64_t now) {
    bool seemed_empty = c->tree.step == TREE_SEEMS_EMPTY;
    bool seems_empty = tree_kill(c->worker->pid) == 0;
    worker_continue(c->worker);
    if (now >= c->tree.give_up_ms) {
        c->tree.step = TREE_GIVEN_UP;
        c->exit_flags |= EXIT_TREE_LEFT;
        return;
    }
    /* A worker that has not reported by the second look is itself held up, and has to go too. */
    if (seemed_empty && seems_empty) worker_kill(c->worker);
    c->tree.step = seems_empty ? TREE_SEEMS_EMPTY : TREE_KILLING;
    c->tree.next_ms = now + (seems_empty ? REPORT_WITHIN_MS : KILL_AGAIN_MS);
    wake_at(r, c->tree.next_ms);
}

/* Takes the next step of ending the tree when its time has come. True when that has just been given up. */
static bool channel_advance_tree_end(struct runner *r, struct channel *c, uint64_t now) {
    if (c->tree.step == TREE_UNTOUCHED || !channel_has_tree(c)) return false;
    if (now >= c->tree.next_ms) kill_tree(r, c, now);
    else if (c->tree.was_heard) wake_at(r, c->tree.next_ms);
    else ask_to_end(r, c);
    return c->tree.step == TREE_GIVEN_UP;
}

static size_t kill_leftovers(struct runner *r, uint64_t since) {
    (void)since;
    size_t alive = 0;
    for (int i = 0; i < CHANNEL_BUCKETS; i++)
        for (const struct channel *c = r->channels[i]; c; c = c->next)
            if (c->phase == CHANNEL_EXITED && c->kind != CHANNEL_FILE_OPERATION && channel_has_tree(c)) alive += tree_kill(c->worker->pid);
    return alive;
}

/* Ends the processes that ended commands have left, and waits until they are gone, or for a few seconds. False if there were none. */
static bool channels_end_leftovers(struct runner *r) {
    if (kill_leftovers(r, 0) == 0) return false;
    pool_kill_until_gone(r, kill_leftovers, 0);
    return true;
}

static pid_t process_group(const struct channel *c) {
    pid_t foreground = 0;
    int terminal = c->terminal == TERMINAL_NONE ? -1 : c->out.source.fd;
    if (terminal >= 0 && ioctl(terminal, TIOCGPGRP, &foreground) == 0 && foreground > 0) return foreground;
    return c->worker ? c->worker->slot->child : 0;
}

static void channel_send_pending_signals(struct runner *r, struct channel *c) {
    pid_t group = process_group(c);
    if (group <= 0 && c->worker && c->phase < CHANNEL_ENDED) {
        wake_at(r, now_ms() + SIGNAL_AGAIN_MS); /* it has no process yet */
        return;
    }
    for (int number = 1; number <= 64 && group > 0; number++)
        if (c->pending_signals >> (number - 1) & 1) kill(-group, number);
    c->pending_signals = 0;
}

/* ---- pipes and terminals ----------------------------------------------------------------------------------------- */

static void hand_over(struct job_streams *streams, int fd) { streams->fds[streams->count++] = fd; }

/* The end of a pipe that PID 1 keeps, as its place in the array of pipe2. */
enum own_end { READS = 0, WRITES = 1 };

/* Only PID 1's end of the pipe is non-blocking, because the command expects an ordinary one. */
static bool open_pipe(struct runner *r, struct source *s, enum own_end own, struct job_streams *theirs) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    if (!may_use_fd(r, ends[0] > ends[1] ? ends[0] : ends[1])) {
        close(ends[0]);
        close(ends[1]);
        return false;
    }
    s->fd = ends[own];
    fcntl(s->fd, F_SETFL, O_NONBLOCK);
    hand_over(theirs, ends[1 - own]);
    return true;
}

static bool open_pipes(struct runner *r, struct channel *c, uint8_t flags, struct job_streams *theirs) {
    if (!(flags & SPAWN_NO_STDIN) && !open_pipe(r, &c->in.source, WRITES, theirs)) return false;
    if (!open_pipe(r, &c->out.source, READS, theirs)) return false;
    return flags & SPAWN_MERGE || open_pipe(r, &c->err.source, READS, theirs);
}

/* Linux has TIOCGPTPEER since 4.13. Where it is missing, the terminal is opened by its name. */
static int open_terminal_peer(int master) {
    int peer = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (peer >= 0) return peer;
    char name[64];
    unsigned number;
    if (ioctl(master, TIOCGPTN, &number) != 0) return -1;
    snprintf(name, sizeof name, "/dev/pts/%u", number);
    return open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

static bool open_terminal(struct runner *r, struct channel *c, const struct spawn_request *request, struct job_streams *theirs) {
    int unlocked = 0, peer = -1;
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (master < 0) return false;
    struct winsize size = {.ws_row = request->rows, .ws_col = request->cols};
    bool is_ready = may_use_fd(r, master + 1) && ioctl(master, TIOCSPTLCK, &unlocked) == 0 && ioctl(master, TIOCSWINSZ, &size) == 0;
    if (is_ready) peer = open_terminal_peer(master);
    if (peer < 0) {
        close(master);
        return false;
    }
    c->terminal = TERMINAL_IN_USE;
    c->out.source.fd = c->in.source.fd = master;
    hand_over(theirs, peer);
    return true;
}

static void streams_close(const struct job_streams *streams) {
    for (int i = 0; i < streams->count; i++) close(streams->fds[i]);
}

/* False with errno, and nothing left open for the worker, when they cannot be made. */
static bool streams_for_command(struct runner *r, struct channel *c, const struct spawn_request *request, struct job_streams *out) {
    *out = (struct job_streams){.count = 0};
    if (request->flags & SPAWN_PTY) return open_terminal(r, c, request, out);
    if (open_pipes(r, c, request->flags, out)) return true;
    int error = errno;
    streams_close(out);
    errno = error;
    return false;
}

static bool streams_for_file(struct runner *r, struct channel *c, const struct file_head *head, struct job_streams *out) {
    *out = (struct job_streams){.count = 0};
    if (file_has_output(head)) return open_pipe(r, &c->out.source, READS, out);
    return !file_has_input(head) || open_pipe(r, &c->in.source, WRITES, out);
}

/* ---- file operations that wait for a worker ---------------------------------------------------------------------- */

/* Letting the others wait costs less than a process for each of fifty. */
#define FILE_JOBS_AT_ONCE 4
/*
 * If no operation ends for this long, those under way may be blocked, on a slow file system for instance. Then an operation
 * in the queue gets a worker of its own.
 */
#define PATIENCE_MS 20

/* Whether a new file operation has to wait. */
static bool queue_is_needed(const struct runner *r) {
    return r->queue_first || pool_jobs(r, JOB_FILE) >= FILE_JOBS_AT_ONCE || link_is_full(&r->link);
}

/* Takes the streams and a copy of the request; the channel is CHANNEL_QUEUED then. False when memory is out. */
static bool queue_add(struct runner *r, struct channel *c, const struct frame *request, const struct job_streams *streams) {
    struct queued_file *q = calloc(1, sizeof *q);
    if (!q || buffer_append(&q->request, request->payload, request->length) != 0) {
        free(q);
        return false;
    }
    q->channel = c;
    q->streams = *streams;
    q->since_ms = now_ms();
    *r->queue_end = q;
    r->queue_end = &q->next;
    c->phase = CHANNEL_QUEUED;
    return true;
}

static struct queued_file *queue_take(struct runner *r, struct channel *c) {
    struct queued_file **at = &r->queue_first;
    while ((*at)->channel != c) at = &(*at)->next;
    struct queued_file *q = *at;
    *at = q->next;
    if (!q->next) r->queue_end = at;
    c->phase = CHANNEL_RUNNING;
    return q;
}

/* The next operation that may start now, or NULL. The caller frees it, and the channel is CHANNEL_RUNNING. */
static struct queued_file *queue_take_next(struct runner *r) {
    /* Results may be large, and nothing holds them back once they are made. The host's next ACK brings the loop here again. */
    if (!r->queue_first || link_is_full(&r->link)) return NULL;
    uint64_t since_ms = r->queue_first->since_ms;
    uint64_t until_ms = (since_ms > r->file_ended_ms ? since_ms : r->file_ended_ms) + PATIENCE_MS;
    if (pool_jobs(r, JOB_FILE) >= FILE_JOBS_AT_ONCE && now_ms() < until_ms) {
        wake_at(r, until_ms);
        return NULL;
    }
    return queue_take(r, r->queue_first->channel);
}

static void queue_free(struct queued_file *q) {
    buffer_free(&q->request);
    free(q);
}

/* ---- from the end of a job to its EXIT --------------------------------------------------------------------------- */

/* A stream or a process that outlives its command may delay the result for this long. */
#define HOLD_MS 250

static bool is_tree_unwanted(const struct channel *c) {
    return c->kind == CHANNEL_COMMAND_AND_TREE || c->tree.step != TREE_UNTOUCHED;
}

/* A process may still print its last lines, as at the other end of a process substitution, so it gets a moment to end by itself. */
static void end_leftovers(struct runner *r, struct channel *c) {
    if (now_ms() < c->hold_ms) {
        wake_at(r, c->hold_ms);
        return;
    }
    channel_end_tree(r, c, c->grace_ms);
    if (c->tree.was_heard) c->exit_flags |= EXIT_TREE_ENDED;
}

/*
 * A stream that another process holds open must not keep EXIT back for ever, so after HOLD_MS EXIT waits only for the bytes in it
 * then. They belong to the call, however long the host takes to grant credit for them. A call that was cut short does not wait for
 * credit, because nobody may be reading its output any more.
 */
static bool streams_are_done(struct runner *r, struct channel *c) {
    if (!channel_has_output_open(c)) return true;
    if (now_ms() < c->hold_ms) {
        wake_at(r, c->hold_ms);
        return false;
    }
    if (c->phase < CHANNEL_DRAINING) channel_begin_draining(c);
    bool is_cut_short = c->exit_flags & (EXIT_KILLED | EXIT_TIMED_OUT) || c->timeout == TIMEOUT_PASSED;
    return channel_drain(r, c) || (is_cut_short && c->credit == 0);
}

static void send_exit(struct runner *r, struct channel *c) {
    if (channel_has_output_open(c)) c->exit_flags |= EXIT_PIPE_HELD;
    buffer_front(&c->exit)[1] = c->exit_flags;
    link_send(&r->link, FRAME_EXIT, c->id, buffer_front(&c->exit), buffer_length(&c->exit));
    c->phase = CHANNEL_EXITED;
    channel_close_input(r, c);
    channel_watch_output(r, c); /* output is late from here on and needs no credit */
}

static void retire(struct runner *r, struct channel *c) {
    struct channel **at = &r->channels[c->id % CHANNEL_BUCKETS];
    while (*at != c) at = &(*at)->next;
    *at = c->next;
    buffer_free(&c->in.bytes);
    buffer_free(&c->exit);
    c->phase = CHANNEL_RETIRED;
    free_later(r, &c->later);
}

/* Sends EXIT if it is complete, and retires the channel if it is over. Needed after every change that may lead to either. */
static void channel_finish_if_complete(struct runner *r, struct channel *c) {
    if (c->phase == CHANNEL_ENDED || c->phase == CHANNEL_DRAINING) {
        bool has_leftovers = channel_has_tree(c) && is_tree_unwanted(c);
        if (has_leftovers && c->tree.step == TREE_UNTOUCHED) end_leftovers(r, c);
        if (!has_leftovers && streams_are_done(r, c)) send_exit(r, c);
    }
    if (c->phase == CHANNEL_EXITED && !c->worker && !channel_has_output_open(c)) retire(r, c);
}

static void channel_resume_output(struct runner *r, struct channel *c) {
    channel_watch_output(r, c);
    channel_finish_if_complete(r, c);
}

static void channel_on_output(struct runner *r, struct source *s, uint32_t events) {
    (void)events;
    struct channel_output *o = s->owner;
    int reads = o->channel->terminal == TERMINAL_NONE ? 1 : TERMINAL_READS;
    while (reads-- > 0 && is_open(&o->source) && channel_read_output(r, o)) continue;
    channel_resume_output(r, o->channel);
}

/* ---- what the worker reports ------------------------------------------------------------------------------------- */

static void write_exit(struct channel *c, const struct worker_report *report, const uint8_t *result) {
    uint8_t head[EXIT_HEAD_BYTES] = {(uint8_t)report->kind};
    put16(head + 2, (uint16_t)report->code);
    put32(head + 4, report->error);
    put32(head + 8, report->stage);
    put64(head + 12, report->user_us);
    put64(head + 20, report->system_us);
    put64(head + 28, report->max_rss);
    put64(head + 36, now_us() - c->started_us);
    buffer_append(&c->exit, head, sizeof head);
    buffer_append(&c->exit, result, report->result_length);
}

/* Processes that an earlier command has left may hold the memory without using it. Then the kernel kills every later command. */
static uint8_t end_memory_holders(struct runner *r) {
    return causes_memory_is_taken(r) && channels_end_leftovers(r) ? EXIT_LEFTOVERS_ENDED : 0;
}

/* Writes EXIT and sends it as soon as nothing holds it back. Later calls for the same channel change nothing. */
static void channel_ended(struct runner *r, struct channel *c, const struct worker_report *report, const uint8_t *result) {
    if (c->phase >= CHANNEL_ENDED) return; /* it was given up before, and its worker reports after all */
    write_exit(c, report, result);
    if (c->kind == CHANNEL_FILE_OPERATION) r->file_ended_ms = now_ms();
    else if (causes_append(r, c, report, &c->exit)) c->exit_flags |= EXIT_OUT_OF_MEMORY | end_memory_holders(r);
    c->phase = CHANNEL_ENDED;
    channel_retry_terminal(r, c);
    c->hold_ms = now_ms() + HOLD_MS;
    channel_finish_if_complete(r, c);
}

/* Call this when the command could not be started, or the file operation was not carried out. 0 stands for an unknown error. */
static void channel_not_started(struct runner *r, struct channel *c, uint32_t stage, int error) {
    uint32_t kind = c->kind == CHANNEL_FILE_OPERATION ? EXIT_FILE : EXIT_NOT_STARTED;
    channel_close_input(r, c);
    close_source(r, &c->err.source);
    close_source(r, &c->out.source);
    channel_ended(r, c, &(struct worker_report){.kind = kind, .stage = stage, .error = (uint32_t)(error ? error : EAGAIN)}, NULL);
}

/* Call this when the command is not supervised any more, so that nobody knows how it ended. */
static void channel_lost(struct runner *r, struct channel *c) {
    channel_ended(r, c, &(struct worker_report){.kind = EXIT_LOST, .code = SIGKILL}, NULL);
}

static void kill_orphans(struct runner *r, struct channel *c, uint64_t since) {
    if (!pool_kill_orphans(r, since)) c->exit_flags |= EXIT_TREE_LEFT;
}

static void on_empty(struct runner *r, struct channel *c, uint64_t orphans_since) {
    if (is_tree_unwanted(c) && orphans_since) kill_orphans(r, c, orphans_since);
    c->worker = NULL;
    channel_finish_if_complete(r, c);
}

static void on_loss(struct runner *r, struct channel *c, uint64_t orphans_since) {
    c->worker = NULL;
    if (c->kind != CHANNEL_FILE_OPERATION) kill_orphans(r, c, orphans_since);
    channel_lost(r, c);
    channel_finish_if_complete(r, c);
}

static const struct job_events channel_job_events = {.on_end = channel_ended, .on_empty = on_empty, .on_loss = on_loss};

/* ---- from a request to a worker ---------------------------------------------------------------------------------- */

/* This much output is passed on after EXIT. The rest is read and dropped. */
#define LATE_MAX (1u << 20)

struct channel *channel_find(const struct runner *r, uint32_t id) {
    struct channel *c = r->channels[id % CHANNEL_BUCKETS];
    while (c && c->id != id) c = c->next;
    return c;
}

static void on_input_writable(struct runner *r, struct source *s, uint32_t events) {
    (void)events;
    channel_write_input(r, s->owner);
}

static void prepare_output(struct channel *c, struct channel_output *o, uint8_t frame_type) {
    *o = (struct channel_output){.source = {.on_event = channel_on_output, .owner = o, .fd = -1}, .channel = c, .frame_type = frame_type};
}

static struct channel *open_channel(struct runner *r, uint32_t id, enum channel_kind kind) {
    struct channel *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->id = id;
    c->kind = kind;
    c->phase = CHANNEL_RUNNING;
    c->credit = INITIAL_CREDIT;
    c->late_left = LATE_MAX;
    c->started_us = now_us();
    c->in.source = (struct source){.on_event = on_input_writable, .owner = c, .fd = -1};
    prepare_output(c, &c->out, FRAME_STDOUT);
    prepare_output(c, &c->err, FRAME_STDERR);
    c->next = r->channels[id % CHANNEL_BUCKETS];
    r->channels[id % CHANNEL_BUCKETS] = c;
    return c;
}

/* Closes the worker's ends of the streams here, whether it got them or not. */
static void start_job(struct runner *r, struct channel *c, const struct frame *request, const struct job_streams *streams) {
    enum job_kind kind = request->type == FRAME_SPAWN ? JOB_SPAWN : JOB_FILE;
    struct job job = {.kind = kind, .channel = c->id, .payload = request->payload, .length = request->length, .fd_count = streams->count};
    memcpy(job.fds, streams->fds, sizeof job.fds);
    if (kind == JOB_SPAWN) causes_note_start(r, c);
    c->worker = pool_start_job(r, c, &job, &channel_job_events);
    int error = errno;
    streams_close(streams);
    if (c->worker) channel_watch_output(r, c);
    else channel_not_started(r, c, STAGE_FORK, error);
}

/* False when the request breaks the protocol. A command that cannot be started is an EXIT like any other. */
static bool channel_start_command(struct runner *r, const struct frame *frame) {
    struct spawn_request request;
    if (!spawn_parse(frame->payload, frame->length, &request) || channel_find(r, frame->channel)) return false;
    bool ends_tree = request.flags & SPAWN_ENDS_TREE;
    struct channel *c = open_channel(r, frame->channel, ends_tree ? CHANNEL_COMMAND_AND_TREE : CHANNEL_COMMAND);
    if (!c) return false;
    c->grace_ms = request.grace_ms;
    if (request.timeout_ms) {
        c->timeout = TIMEOUT_AHEAD;
        c->deadline_ms = now_ms() + request.timeout_ms;
        wake_at(r, c->deadline_ms);
    }
    struct job_streams streams;
    if (streams_for_command(r, c, &request, &streams)) start_job(r, c, frame, &streams);
    else channel_not_started(r, c, STAGE_STREAMS, errno);
    return true;
}

static bool channel_start_file(struct runner *r, const struct frame *frame) {
    struct file_head head;
    if (!file_head_parse(frame->payload, frame->length, &head) || channel_find(r, frame->channel)) return false;
    struct channel *c = open_channel(r, frame->channel, CHANNEL_FILE_OPERATION);
    if (!c) return false;
    if (head.operation == FILE_RECEIPT) pool_end_commands(r);
    struct job_streams streams;
    if (!streams_for_file(r, c, &head, &streams)) channel_not_started(r, c, STAGE_STREAMS, errno);
    else if (!queue_is_needed(r) || !queue_add(r, c, frame, &streams)) start_job(r, c, frame, &streams);
    return true;
}

/* ---- the queue --------------------------------------------------------------------------------------------------- */

void channels_start_queued(struct runner *r) {
    struct queued_file *q;
    while ((q = queue_take_next(r))) {
        struct frame request = {.type = FRAME_FILE, .channel = q->channel->id};
        request.payload = buffer_front(&q->request);
        request.length = (uint32_t)buffer_length(&q->request);
        start_job(r, q->channel, &request, &q->streams);
        queue_free(q);
    }
}

static void channel_cancel_queued(struct runner *r, struct channel *c) {
    struct queued_file *q = queue_take(r, c);
    streams_close(&q->streams);
    queue_free(q);
    channel_not_started(r, c, STAGE_NONE, ECANCELED);
}

/* ---- frames and time --------------------------------------------------------------------------------------------- */

#define LAST_SIGNAL 64

static void for_each_channel(struct runner *r, void (*act)(struct runner *, struct channel *)) {
    for (int i = 0; i < CHANNEL_BUCKETS; i++)
        for (struct channel *c = r->channels[i], *next; c; c = next) {
            next = c->next; /* it may be retired meanwhile */
            act(r, c);
        }
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static void check_timeout(struct runner *r, struct channel *c, uint64_t now) {
    if (c->timeout != TIMEOUT_AHEAD) return;
    if (now < c->deadline_ms) {
        wake_at(r, c->deadline_ms);
        return;
    }
    c->timeout = TIMEOUT_PASSED;
    if (c->phase >= CHANNEL_ENDED) return;
    c->exit_flags |= EXIT_TIMED_OUT;
    channel_end_tree(r, c, c->grace_ms);
}

static void tick(struct runner *r, struct channel *c) {
    uint64_t now = now_ms();
    check_timeout(r, c, now);
    if (channel_advance_tree_end(r, c, now)) channel_lost(r, c);
    if (c->pending_signals) channel_send_pending_signals(r, c);
    channel_retry_terminal(r, c);
    if (c->terminal != TERMINAL_NONE && buffer_length(&c->in.bytes) > 0) channel_write_input(r, c);
    channel_finish_if_complete(r, c);
}

void channels_tick(struct runner *r) { for_each_channel(r, tick); }

void channels_resume_output(struct runner *r) {
    if (!r->output_waits || link_is_full(&r->link)) return;
    r->output_waits = false;
    for_each_channel(r, channel_resume_output);
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

static void take_signal(struct runner *r, struct channel *c, uint8_t number) {
    if (c->kind == CHANNEL_FILE_OPERATION) return;
    c->pending_signals |= UINT64_C(1) << (number - 1);
    channel_send_pending_signals(r, c);
}

static void take_resize(const struct channel *c, uint16_t rows, uint16_t cols) {
    if (c->terminal == TERMINAL_NONE || !is_open(&c->out.source)) return;
    ioctl(c->out.source.fd, TIOCSWINSZ, &(struct winsize){.ws_row = rows, .ws_col = cols});
}

static void take_kill(struct runner *r, struct channel *c, uint32_t grace_ms) {
    if (c->phase < CHANNEL_EXITED) c->exit_flags |= EXIT_KILLED;
    if (c->phase == CHANNEL_QUEUED) channel_cancel_queued(r, c);
    else channel_end_tree(r, c, grace_ms);
    channel_finish_if_complete(r, c);
}

static bool take_credit(struct runner *r, struct channel *c, uint32_t bytes) {
    c->credit += bytes;
    if (c->credit > CREDIT_MAX) return false;
    channel_resume_output(r, c);
    return true;
}

static bool is_valid(const struct frame *frame) {
    switch (frame->type) {
    case FRAME_INPUT: return true;
    case FRAME_SIGNAL: return frame->length == 1 && frame->payload[0] >= 1 && frame->payload[0] <= LAST_SIGNAL;
    case FRAME_RESIZE:
    case FRAME_KILL:
    case FRAME_CREDIT: return frame->length == 4;
    default: return false;
    }
}

bool channel_take_frame(struct runner *r, const struct frame *frame) {
    if (frame->type == FRAME_SPAWN) return channel_start_command(r, frame);
    if (frame->type == FRAME_FILE) return channel_start_file(r, frame);
    if (!is_valid(frame)) return false;
    struct channel *c = channel_find(r, frame->channel);
    if (!c) return true; /* it is over, and the host sent this before it saw the EXIT */
    switch (frame->type) {
    case FRAME_INPUT: return channel_take_input(r, c, frame);
    case FRAME_SIGNAL: take_signal(r, c, frame->payload[0]); return true;
    case FRAME_RESIZE: take_resize(c, get16(frame->payload), get16(frame->payload + 2)); return true;
    case FRAME_KILL: take_kill(r, c, get32(frame->payload)); return true;
    default: return take_credit(r, c, get32(frame->payload));
    }
}
