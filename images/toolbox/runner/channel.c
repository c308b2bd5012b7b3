/* Channels: one command or file operation each, from its request to its EXIT frame. */
#define _GNU_SOURCE
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

#include "runner.h"
#include "tree.h"

#define HOLD_MS 250         /* how long what outlives its command may delay the result */
#define KILL_STEP_MS 10
#define KILL_GIVE_UP_MS 5000
#define LATE_MAX (1u << 20) /* output after the result that is passed on; more is read and dropped */
#define GRANT_STEP (INITIAL_CREDIT / 2)
#define INPUT_MAX (2u * INITIAL_CREDIT)
#define PTY_READS 16
#define PIPE_BYTES (64u << 10)
#define FILE_WORKERS 4      /* file operations under way at once; forking a worker for each of fifty costs more than waiting */
#define QUEUE_PATIENCE_MS 20 /* without any of them coming to its end, after which one that waits gets a worker of its own: they may be blocked */
#define TERMINAL_RETRY_MS 10

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

static void on_output(struct runner *r, struct source *s, uint32_t events);
static void on_input_ready(struct runner *r, struct source *s, uint32_t events);
static void close_input(struct runner *r, struct channel *c);
static bool read_output(struct runner *r, struct channel *c, struct source *s);
static void begin_kill(struct runner *r, struct channel *c, uint32_t grace_ms);
static size_t owed_bytes(const struct channel *c, const struct source *s);

static struct channel *find(struct runner *r, uint32_t id) {
    struct channel *c = r->channels[id % CHANNEL_BUCKETS];
    while (c && c->id != id) c = c->next;
    return c;
}

static struct channel *open_channel(struct runner *r, uint32_t id) {
    struct channel *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->id = id;
    c->credit = INITIAL_CREDIT;
    c->late_left = LATE_MAX;
    c->started_us = now_us();
    c->in = (struct source){.on_event = on_input_ready, .owner = c, .fd = -1};
    c->out = (struct source){.on_event = on_output, .owner = c, .fd = -1};
    c->err = (struct source){.on_event = on_output, .owner = c, .fd = -1};
    c->next = r->channels[id % CHANNEL_BUCKETS];
    r->channels[id % CHANNEL_BUCKETS] = c;
    return c;
}

static bool is_open(const struct source *s) { return s->fd >= 0; }

/* A channel is over when its result is sent, nothing can write to it any more and its supervisor is free. */
static void retire_if_over(struct runner *r, struct channel *c) {
    if (c->dead || !c->exit_sent || c->worker || is_open(&c->out) || is_open(&c->err)) return;
    struct channel **at = &r->channels[c->id % CHANNEL_BUCKETS];
    while (*at != c) at = &(*at)->next;
    *at = c->next;
    buffer_free(&c->input);
    buffer_free(&c->exit);
    c->dead = true;
    c->next = r->retired;
    r->retired = c;
}

void channels_free_retired(struct runner *r) {
    while (r->retired) {
        struct channel *c = r->retired;
        r->retired = c->next;
        free(c);
    }
}

static void send_exit(struct runner *r, struct channel *c) {
    if (is_open(&c->out) || is_open(&c->err)) c->flags |= EXIT_PIPE_HELD;
    buffer_front(&c->exit)[1] = c->flags;
    link_send(&r->link, FRAME_EXIT, c->id, buffer_front(&c->exit), buffer_length(&c->exit));
    c->exit_sent = true;
    close_input(r, c);
    /* From here on output is late and flows without credit. */
    if (is_open(&c->out)) watch(r, &c->out, EPOLLIN);
    if (is_open(&c->err)) watch(r, &c->err, EPOLLIN);
}

/*
 * A stream that something else holds open may not keep the result back, but what lay in it when the hold was over
 * belongs to the call, however long the host takes to grant it. Of a call that was cut short nobody may read the rest.
 */
static bool hold_is_over(struct runner *r, struct channel *c) {
    if (now_ms() < c->hold_ms) {
        wake_at(r, c->hold_ms);
        return false;
    }
    if (!c->owed_is_known) {
        c->out_owed = owed_bytes(c, &c->out);
        c->err_owed = owed_bytes(c, &c->err);
        c->owed_is_known = true;
    }
    while (c->out_owed > 0 && read_output(r, c, &c->out)) continue;
    while (c->err_owed > 0 && read_output(r, c, &c->err)) continue;
    bool cut_short = c->flags & (EXIT_KILLED | EXIT_TIMED_OUT) || c->deadline_passed;
    return c->out_owed + c->err_owed == 0 || (cut_short && c->credit == 0);
}

/* What is still to print its last lines, such as the other end of a process substitution, may do so. */
static void end_leftovers(struct runner *r, struct channel *c) {
    if (now_ms() < c->hold_ms) {
        wake_at(r, c->hold_ms);
        return;
    }
    begin_kill(r, c, c->grace_ms);
    if (c->terminated) c->flags |= EXIT_TREE_ENDED;
}

static void finish_if_complete(struct runner *r, struct channel *c) {
    bool has_tree = c->worker && !(c->flags & EXIT_TREE_LEFT);
    if (c->ended && c->ends_tree && has_tree && c->kill == KILL_NONE) end_leftovers(r, c);
    bool must_empty = has_tree && (c->ends_tree || c->kill != KILL_NONE);
    bool held = is_open(&c->out) || is_open(&c->err);
    if (c->ended && !c->exit_sent && !must_empty && (!held || hold_is_over(r, c))) send_exit(r, c);
    retire_if_over(r, c);
}

/* ---- output ---------------------------------------------------------------------------------------------------- */

static void update_output(struct runner *r, struct channel *c, struct source *s) {
    bool full = link_is_full(&r->link);
    if (full) r->output_waits = true;
    bool wanted = !c->hung_up && (c->exit_sent || (c->credit > 0 && !full));
    watch(r, s, is_open(s) && wanted ? EPOLLIN : 0);
}

/* Somebody may have opened the terminal again; or the command has ended, and what is left of its output is read. */
static void look_again(struct runner *r, struct channel *c) {
    if (!c->hung_up) return;
    c->hung_up = false;
    update_output(r, c, &c->out);
}

static void resume_output(struct runner *r, struct channel *c) {
    update_output(r, c, &c->out);
    update_output(r, c, &c->err);
    finish_if_complete(r, c);
}

void channels_resume_output(struct runner *r) {
    if (!r->output_waits || link_is_full(&r->link)) return;
    r->output_waits = false;
    for (int i = 0; i < CHANNEL_BUCKETS; i++)
        for (struct channel *c = r->channels[i], *next; c; c = next) {
            next = c->next;
            resume_output(r, c);
        }
}

/* A terminal does not say how much waits in it, so as much is read of it as a pipe could hold. */
static size_t owed_bytes(const struct channel *c, const struct source *s) {
    int waiting = 0;
    if (!is_open(s)) return 0;
    if (c->pty) return PIPE_BYTES;
    return ioctl(s->fd, FIONREAD, &waiting) == 0 && waiting > 0 ? (size_t)waiting : 0;
}

static void settle(struct channel *c, const struct source *s, size_t bytes) {
    size_t *owed = s == &c->err ? &c->err_owed : &c->out_owed;
    *owed -= bytes < *owed ? bytes : *owed;
}

/* False at the end of the stream or when there is nothing more for now. */
static bool read_output(struct runner *r, struct channel *c, struct source *s) {
    size_t room = MAX_PAYLOAD_FROM_RUNNER;
    if (!c->exit_sent && (size_t)c->credit < room) room = (size_t)c->credit;
    if (room == 0 || (!c->exit_sent && link_is_full(&r->link))) return false;
    uint8_t *payload = link_begin(&r->link, room);
    if (!payload) return false;
    ssize_t n = read(s->fd, payload, room);
    if (n < 0 && errno == EINTR) return false;
    settle(c, s, n > 0 ? (size_t)n : SIZE_MAX);
    if (n < 0 && errno == EAGAIN) return false;
    if (n <= 0) { /* a pseudo-terminal that nobody has open reads as EIO */
        if (c->pty && !c->ended) { /* closing it now would send SIGHUP to a command that is just about to exit */
            c->hung_up = true;
            wake_at(r, now_ms() + TERMINAL_RETRY_MS);
            return false;
        }
        if (c->pty) close_input(r, c);
        close_source(r, s);
        return false;
    }
    if (!c->exit_sent) {
        c->credit -= n;
        link_finish(&r->link, s == &c->err ? FRAME_STDERR : FRAME_STDOUT, c->id, (size_t)n);
    } else if ((size_t)n <= c->late_left && !link_is_full(&r->link)) {
        c->late_left -= (size_t)n;
        link_finish(&r->link, FRAME_LATE, c->id, (size_t)n);
    }
    return true;
}

static void on_output(struct runner *r, struct source *s, uint32_t events) {
    (void)events;
    struct channel *c = s->owner;
    int reads = c->pty ? PTY_READS : 1; /* a terminal gives 4 KiB at most at a time */
    while (reads-- > 0 && is_open(s) && read_output(r, c, s)) continue;
    resume_output(r, c);
}

/* ---- input ----------------------------------------------------------------------------------------------------- */

static void grant(struct runner *r, struct channel *c, size_t bytes) {
    c->input_taken += (uint32_t)bytes;
    if (c->input_taken < GRANT_STEP) return;
    uint8_t payload[4];
    put32(payload, c->input_taken);
    link_send(&r->link, FRAME_CREDIT_FROM_RUNNER, c->id, payload, sizeof payload);
    c->input_taken = 0;
}

static void discard_input(struct runner *r, struct channel *c) {
    size_t length = buffer_length(&c->input);
    buffer_drop(&c->input, length);
    if (length) grant(r, c, length);
}

/* A terminal has one descriptor for both directions; it is closed as output. */
static void close_input(struct runner *r, struct channel *c) {
    if (c->pty) c->in.fd = -1;
    else close_source(r, &c->in);
}

static void write_input(struct runner *r, struct channel *c) {
    int fd = c->in.fd;
    while (fd >= 0 && buffer_length(&c->input) > 0) {
        ssize_t n = write(fd, buffer_front(&c->input), buffer_length(&c->input));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        if (n < 0) { /* nobody reads it any more */
            close_input(r, c);
            fd = -1;
            break;
        }
        buffer_drop(&c->input, (size_t)n);
        grant(r, c, (size_t)n);
    }
    if (fd < 0) discard_input(r, c);
    bool waiting = buffer_length(&c->input) > 0;
    if (c->input_ended && !waiting) close_input(r, c);
    /* A terminal's descriptor is watched as output already: its input is tried again on a timer. */
    if (!c->pty) watch(r, &c->in, waiting ? EPOLLOUT : 0);
    else if (waiting) wake_at(r, now_ms() + TERMINAL_RETRY_MS);
}

static void on_input_ready(struct runner *r, struct source *s, uint32_t events) {
    (void)events;
    write_input(r, s->owner);
}

static bool take_input(struct runner *r, struct channel *c, const struct frame *frame) {
    static const uint8_t end_of_transmission = 4;
    if (c->input_ended) return frame->length == 0;
    if (buffer_length(&c->input) + frame->length > INPUT_MAX) return false;
    if (frame->length == 0) {
        c->input_ended = true;
        if (c->pty) buffer_append(&c->input, &end_of_transmission, 1);
    } else if (buffer_append(&c->input, frame->payload, frame->length) != 0) {
        return false;
    }
    write_input(r, c);
    return true;
}

/* ---- starting -------------------------------------------------------------------------------------------------- */

static void not_started(struct runner *r, struct channel *c, uint32_t stage, int error) {
    uint32_t kind = c->is_command ? EXIT_NOT_STARTED : EXIT_FILE;
    channel_ended(r, c, &(struct worker_report){.what = REPORT_ENDED, .kind = kind, .stage = stage, .error = (uint32_t)error}, NULL);
}

/* Keeps one end, non-blocking, in `ours`; the other goes to `theirs` for the command. */
static bool open_pipe(struct runner *r, struct source *ours, int *theirs) {
    bool we_read = ours->on_event == on_output;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    if (!may_use_fd(r, ends[0] > ends[1] ? ends[0] : ends[1])) {
        close(ends[0]);
        close(ends[1]);
        return false;
    }
    ours->fd = ends[we_read ? 0 : 1];
    *theirs = ends[we_read ? 1 : 0];
    fcntl(ours->fd, F_SETFL, O_NONBLOCK);
    return true;
}

static int open_terminal_peer(int master) {
    int peer = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (peer >= 0) return peer;
    char name[64];
    unsigned number;
    if (ioctl(master, TIOCGPTN, &number) != 0) return -1;
    snprintf(name, sizeof name, "/dev/pts/%u", number);
    return open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

static bool open_terminal(struct runner *r, struct channel *c, const struct spawn_request *request, int *theirs) {
    int unlocked = 0;
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (master < 0) return false;
    if (!may_use_fd(r, master + 1)) {
        close(master);
        return false;
    }
    struct winsize size = {.ws_row = request->rows, .ws_col = request->cols};
    if (ioctl(master, TIOCSPTLCK, &unlocked) != 0 || ioctl(master, TIOCSWINSZ, &size) != 0 || (*theirs = open_terminal_peer(master)) < 0) {
        close(master);
        return false;
    }
    c->pty = true;
    c->out.fd = c->in.fd = master;
    return true;
}

/* The descriptors the command gets, in the order worker.c expects them. */
static bool open_pipes(struct runner *r, struct channel *c, uint8_t flags, struct channel_streams *theirs) {
    if (!(flags & SPAWN_NO_STDIN)) {
        if (!open_pipe(r, &c->in, &theirs->fds[theirs->count])) return false;
        theirs->count++;
    }
    if (!open_pipe(r, &c->out, &theirs->fds[theirs->count])) return false;
    theirs->count++;
    if (flags & SPAWN_MERGE) return true;
    if (!open_pipe(r, &c->err, &theirs->fds[theirs->count])) return false;
    theirs->count++;
    return true;
}

static void close_streams(const struct channel_streams *streams) {
    for (int i = 0; i < streams->count; i++) close(streams->fds[i]);
}

static struct channel_streams open_streams(struct runner *r, struct channel *c, const struct spawn_request *request) {
    struct channel_streams theirs = {0};
    if (request->flags & SPAWN_PTY) {
        theirs.count = open_terminal(r, c, request, &theirs.fds[0]) ? 1 : -1;
    } else if (!open_pipes(r, c, request->flags, &theirs)) {
        int error = errno;
        close_streams(&theirs);
        theirs.count = -1;
        errno = error;
    }
    return theirs;
}

static void start(struct runner *r, struct channel *c, const struct frame *request, const struct channel_streams *streams) {
    bool started = streams->count >= 0 && pool_dispatch(r, c, request, streams->fds, streams->count);
    int error = errno;
    close_streams(streams);
    if (started) {
        update_output(r, c, &c->out);
        update_output(r, c, &c->err);
        return;
    }
    close_source(r, &c->err);
    close_input(r, c);
    close_source(r, &c->out);
    not_started(r, c, streams->count < 0 ? STAGE_STREAMS : STAGE_FORK, error ? error : EAGAIN);
}

static bool enqueue(struct runner *r, struct channel *c, const struct frame *request, const struct channel_streams *streams) {
    struct queued_request *q = calloc(1, sizeof *q);
    if (!q || buffer_append(&q->payload, request->payload, request->length) != 0) {
        free(q);
        return false;
    }
    q->streams = *streams;
    q->since_ms = now_ms();
    c->queued = q;
    if (r->queue_last) r->queue_last->queued->next = c;
    else r->queue_first = c;
    r->queue_last = c;
    return true;
}

static struct queued_request *dequeue(struct runner *r, struct channel *c) {
    struct channel *before = NULL;
    for (struct channel *at = r->queue_first; at != c; at = at->queued->next) before = at;
    struct queued_request *q = c->queued;
    if (before) before->queued->next = q->next;
    else r->queue_first = q->next;
    if (r->queue_last == c) r->queue_last = before;
    c->queued = NULL;
    return q;
}

static void free_queued(struct queued_request *q) {
    buffer_free(&q->payload);
    free(q);
}

void channels_start_queued(struct runner *r) {
    /* A result may be large, and nothing holds it back once it is made; the host's next ACK comes round here. */
    while (r->queue_first && !link_is_full(&r->link)) {
        struct channel *c = r->queue_first;
        uint64_t since = c->queued->since_ms > r->file_ended_ms ? c->queued->since_ms : r->file_ended_ms;
        uint64_t patience = since + QUEUE_PATIENCE_MS;
        if (pool_file_workers(r) >= FILE_WORKERS && now_ms() < patience) {
            wake_at(r, patience);
            return;
        }
        struct queued_request *q = dequeue(r, c);
        struct frame request = {
            .type = FRAME_FILE, .channel = c->id, .payload = buffer_front(&q->payload), .length = (uint32_t)buffer_length(&q->payload)};
        start(r, c, &request, &q->streams);
        free_queued(q);
    }
}

static void cancel_queued(struct runner *r, struct channel *c) {
    struct queued_request *q = dequeue(r, c);
    close_streams(&q->streams);
    free_queued(q);
    close_source(r, &c->out);
    close_source(r, &c->in);
    not_started(r, c, 0, ECANCELED);
}

static bool start_command(struct runner *r, const struct frame *frame) {
    struct spawn_request request;
    if (!spawn_parse(frame->payload, frame->length, &request) || find(r, frame->channel)) return false;
    struct channel *c = open_channel(r, frame->channel);
    if (!c) return false;
    c->is_command = true;
    c->ends_tree = request.flags & SPAWN_ENDS_TREE;
    c->grace_ms = request.grace_ms;
    if (request.timeout_ms) wake_at(r, c->deadline_ms = now_ms() + request.timeout_ms);
    struct channel_streams streams = open_streams(r, c, &request);
    start(r, c, frame, &streams);
    return true;
}

static bool start_file_operation(struct runner *r, const struct frame *frame) {
    struct file_request request;
    if (!file_parse(frame->payload, frame->length, &request) || find(r, frame->channel)) return false;
    struct channel *c = open_channel(r, frame->channel);
    if (!c) return false;
    if (request.operation == FILE_RECEIPT) pool_end_commands(r);
    struct channel_streams streams = {.count = 0};
    if (file_has_output(&request)) streams.count = open_pipe(r, &c->out, &streams.fds[0]) ? 1 : -1;
    if (file_has_input(&request)) streams.count = open_pipe(r, &c->in, &streams.fds[0]) ? 1 : -1;
    bool is_busy = r->queue_first || pool_file_workers(r) >= FILE_WORKERS || link_is_full(&r->link);
    bool must_wait = streams.count >= 0 && is_busy;
    if (!must_wait || !enqueue(r, c, frame, &streams)) start(r, c, frame, &streams);
    return true;
}

/* ---- ending ---------------------------------------------------------------------------------------------------- */

/* The kernel's count of processes it killed for lack of memory in this container, under cgroup v2 or v1. */
static uint64_t out_of_memory_kills(void) {
    static const char *const files[] = {"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"};
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(files[i], "re");
        if (!file) continue;
        char line[128];
        unsigned long long count = 0;
        while (fgets(line, sizeof line, file))
            if (sscanf(line, "oom_kill %llu", &count) == 1) break;
        fclose(file);
        return count;
    }
    return 0;
}

void channel_ended(struct runner *r, struct channel *c, const struct worker_report *report, const uint8_t *result) {
    if (c->ended) return; /* given up on before: a supervisor that reports after all changes nothing */
    bool failed = report->kind == EXIT_SIGNALLED || report->kind == EXIT_LOST || (report->kind == EXIT_EXITED && report->code != 0);
    if (failed) {
        uint64_t kills = out_of_memory_kills();
        if (kills > r->out_of_memory_kills) c->flags |= EXIT_OUT_OF_MEMORY;
        r->out_of_memory_kills = kills;
    }
    uint8_t payload[EXIT_HEAD_BYTES] = {(uint8_t)report->kind};
    put16(payload + 2, (uint16_t)report->code);
    put32(payload + 4, report->error);
    put32(payload + 8, report->stage);
    put64(payload + 12, report->user_us);
    put64(payload + 20, report->system_us);
    put64(payload + 28, report->max_rss);
    put64(payload + 36, now_us() - c->started_us);
    if (!c->is_command) r->file_ended_ms = now_ms();
    buffer_append(&c->exit, payload, sizeof payload);
    if (report->result_length) buffer_append(&c->exit, result, report->result_length);
    c->ended = true;
    look_again(r, c);
    c->hold_ms = now_ms() + HOLD_MS;
    finish_if_complete(r, c);
}

void channel_tree_empty(struct runner *r, struct channel *c) {
    c->kill = KILL_NONE;
    finish_if_complete(r, c);
}

/* A command that was asked for a moment ago may have no process yet: then again a little later. */
static void terminate(struct runner *r, struct channel *c) {
    if (c->is_command) {
        c->terminated = tree_signal(c->worker->pid, SIGTERM) > 0;
        tree_signal(c->worker->pid, SIGCONT);
    } else {
        /* Its stream ends, and the worker looks here why. No signal: any command could send the same one. */
        c->worker->slot->cancelled = 1;
        close_source(r, &c->in);
        close_source(r, &c->out);
        c->terminated = true;
    }
    uint64_t again = now_ms() + KILL_STEP_MS;
    wake_at(r, c->terminated || again > c->kill_ms ? c->kill_ms : again);
}

static void begin_kill(struct runner *r, struct channel *c, uint32_t grace_ms) {
    if (!c->worker || c->kill != KILL_NONE) return;
    c->kill = KILL_TERMINATING;
    c->seemed_empty = false;
    c->kill_ms = now_ms() + grace_ms;
    terminate(r, c);
    c->kill_give_up_ms = c->kill_ms + KILL_GIVE_UP_MS;
}

static void kill_step(struct runner *r, struct channel *c, uint64_t now) {
    if (c->kill == KILL_NONE || !c->worker) return;
    if (now < c->kill_ms) {
        if (c->terminated) wake_at(r, c->kill_ms);
        else terminate(r, c);
        return;
    }
    c->kill = KILL_KILLING;
    bool seemed_empty = c->seemed_empty;
    c->seemed_empty = tree_kill(c->worker->pid) == 0;
    worker_continue(c->worker);
    if (now >= c->kill_give_up_ms) {
        c->flags |= EXIT_TREE_LEFT;
        if (!c->ended) channel_ended(r, c, &(struct worker_report){.kind = EXIT_LOST, .code = SIGKILL}, NULL);
        else finish_if_complete(r, c);
        c->kill_ms = UINT64_MAX;
        return;
    }
    /* With nothing left below it a worker reports soon; one that still has not by the next look is itself held up and goes too. */
    if (seemed_empty && c->seemed_empty) worker_kill(c->worker);
    wake_at(r, c->kill_ms = now + (c->seemed_empty ? 20 * KILL_STEP_MS : KILL_STEP_MS));
}

static pid_t process_group(const struct channel *c) {
    pid_t foreground = 0;
    if (c->pty && is_open(&c->out) && ioctl(c->out.fd, TIOCGPGRP, &foreground) == 0 && foreground > 0) return foreground;
    return c->worker ? c->worker->slot->child : 0;
}

/* A command that was asked for a moment ago may have no process yet: it gets the signal as soon as there is one. */
static void send_signals(struct runner *r, struct channel *c) {
    pid_t group = process_group(c);
    if (group <= 0 && c->worker && !c->ended) {
        wake_at(r, now_ms() + 1);
        return;
    }
    for (int number = 1; number <= 64 && group > 0; number++)
        if (c->pending_signals >> (number - 1) & 1) kill(-group, number);
    c->pending_signals = 0;
}

static void tick(struct runner *r, struct channel *c, uint64_t now) {
    if (c->deadline_ms && now >= c->deadline_ms) {
        c->deadline_ms = 0;
        c->deadline_passed = true;
        if (!c->ended) {
            c->flags |= EXIT_TIMED_OUT;
            begin_kill(r, c, c->grace_ms);
        }
    } else if (c->deadline_ms) {
        wake_at(r, c->deadline_ms);
    }
    kill_step(r, c, now);
    if (c->pending_signals) send_signals(r, c);
    look_again(r, c);
    if (c->pty && buffer_length(&c->input) > 0) write_input(r, c);
    finish_if_complete(r, c);
}

void channels_tick(struct runner *r, uint64_t now) {
    for (int i = 0; i < CHANNEL_BUCKETS; i++)
        for (struct channel *c = r->channels[i], *next; c; c = next) {
            next = c->next;
            tick(r, c, now);
        }
}

/* ---- frames ---------------------------------------------------------------------------------------------------- */


bool channel_take_frame(struct runner *r, const struct frame *frame) {
    if (frame->type == FRAME_SPAWN) return start_command(r, frame);
    if (frame->type == FRAME_FILE) return start_file_operation(r, frame);
    struct channel *c = find(r, frame->channel);
    bool over = !c; /* the host may not have seen the EXIT yet: what it still sends is in order and without effect */
    switch (frame->type) {
    case FRAME_INPUT: return over || take_input(r, c, frame);
    case FRAME_SIGNAL:
        if (frame->length != 1 || frame->payload[0] < 1 || frame->payload[0] > 64) return false;
        if (!over && c->is_command) {
            c->pending_signals |= UINT64_C(1) << (frame->payload[0] - 1);
            send_signals(r, c);
        }
        return true;
    case FRAME_RESIZE:
        if (frame->length != 4) return false;
        if (!over && c->pty && is_open(&c->out))
            ioctl(c->out.fd, TIOCSWINSZ, &(struct winsize){.ws_row = get16(frame->payload), .ws_col = get16(frame->payload + 2)});
        return true;
    case FRAME_KILL:
        if (frame->length != 4) return false;
        if (!over) {
            c->flags |= c->exit_sent ? 0 : EXIT_KILLED;
            if (c->queued) cancel_queued(r, c);
            else begin_kill(r, c, get32(frame->payload));
            finish_if_complete(r, c);
        }
        return true;
    case FRAME_CREDIT:
        if (frame->length != 4) return false;
        if (!over) {
            c->credit += get32(frame->payload);
            if (c->credit > (64 << 20)) return false;
            resume_output(r, c);
        }
        return true;
    default: return false;
    }
}
