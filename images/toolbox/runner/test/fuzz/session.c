/*
 * All of PID 1 but its processes: the real event loop, bridge, channels and pool on real pipes and sockets, under a clock
 * that the input moves. The input plays the host, the workers and the commands. Whatever they do:
 *   - a channel gets one EXIT, after the last byte its command wrote before it ended, and only LATE frames after it;
 *   - of a command that nothing may outlive it comes when its supervisor has nobody left;
 *   - the host is never sent more than it granted, and what it gets is what was written, in order;
 *   - a command reads what the host sent it, in order;
 *   - of a connection with a program the same is true in both directions, and it ends without an error only if nothing is missing;
 *   - once everybody does their part, everything ends and every descriptor is closed.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "input.h"
#include "../unit/digest.h"

/* Small limits, so that short inputs reach them. */
#include "../../../common/wire.h"
#undef INITIAL_CREDIT
#define INITIAL_CREDIT (16u << 10)
#undef MAX_PAYLOAD_FROM_RUNNER
#define MAX_PAYLOAD_FROM_RUNNER (8u << 10)
#include "../../link.h"
#undef LINK_HIGH_WATER
#define LINK_HIGH_WATER (32u << 10)

#define MOST_WORKERS 64
#define MOST_CHANNELS 24
#define INLINE_READ_MOST 6000u

static uint64_t clock_ms;

static int fake_clock_gettime(clockid_t id, struct timespec *out) {
    (void)id;
    *out = (struct timespec){.tv_sec = (time_t)(clock_ms / 1000), .tv_nsec = (long)(clock_ms % 1000) * 1000000};
    return 0;
}

static int fake_nanosleep(const struct timespec *wanted, struct timespec *left) {
    (void)left;
    clock_ms += (uint64_t)wanted->tv_nsec / 1000000;
    return 0;
}

static int fake_epoll_wait(int fd, struct epoll_event *events, int most, int wait_ms) {
    (void)wait_ms;
    return epoll_wait(fd, events, most, 0);
}

static int fake_socketpair(int family, int type, int protocol, int pair[2]);
static pid_t fake_fork(void);
static pid_t fake_waitpid(pid_t pid, int *status, int flags);
static int fake_kill(pid_t pid, int number);

static int fstatfs_or_fake(int fd, struct statfs *out);
/* The number of a system call that this kernel does not have, or -1. */
static long missing_call = -1;

#define fstatfs(...) fstatfs_or_fake(__VA_ARGS__)
#define syscall(number, ...) (missing_call == (number) ? (errno = ENOSYS, -1L) : syscall(number, __VA_ARGS__))
#define clock_gettime(...) fake_clock_gettime(__VA_ARGS__)
#define nanosleep(...) fake_nanosleep(__VA_ARGS__)
#define epoll_wait(...) fake_epoll_wait(__VA_ARGS__)
#define socketpair(...) fake_socketpair(__VA_ARGS__)
#define fork(...) fake_fork(__VA_ARGS__)
#define waitpid(...) fake_waitpid(__VA_ARGS__)
#define kill(...) fake_kill(__VA_ARGS__)

#include "calls.h"

#include "../../buffer.c"
#include "../../../common/sha256.c"
#include "../../../common/wire.c"
#include "../../link.c"
#include "../../../common/io.c"
#include "../../address.c"
#include "../../../common/job.c"
#include "../../loop.c"
#include "../../counters.c"
#include "../../uncounted.c"
#include "../../rooms.c"
#include "../../pool.c"
#include "../../causes.c"
#include "../../channel.c"
#include "../../network.c"
#undef READ_SIZE
#include "../../bridge.c"
#include "../../serve.c"

#undef fstatfs
#undef read
#undef write
#undef send
#undef recv
#undef recvfrom
#undef recvmsg
#undef accept4
#undef connect
#undef listen
#undef socket
#undef shutdown
#undef getsockopt
#undef pipe2
#undef malloc
#undef calloc

/* If this is set, every file system says it of itself instead of the truth. */
static const struct statfs *fake_file_system;

static int fstatfs_or_fake(int fd, struct statfs *out) {
    if (fake_file_system) *out = *fake_file_system;
    return fake_file_system ? 0 : fstatfs(fd, out);
}

/* ---- what is not there ------------------------------------------------------------------------------------------ */

int listen_for_bridges(void) { return -1; }
static pid_t parent_of_all; /* 0: the engine started them */
pid_t parent_of(pid_t pid) { return pid > 0 ? parent_of_all : -1; }
/* For how many calls orphans are still found, since when the runner asked for them, and a test of the function by which it knows its workers. */
static size_t orphans_left;
static uint64_t orphans_since;
static bool (*are_workers_known)(int (*is_ours)(pid_t));
size_t orphans_kill(int (*is_ours)(pid_t), uint64_t since) {
    orphans_since = since;
    if (are_workers_known) REQUIRE(are_workers_known(is_ours));
    return orphans_left ? orphans_left-- : 0;
}
_Noreturn void worker_main(const struct worker_place *place) {
    (void)place;
    abort(); /* fork never returns 0 here */
}

/* ---- workers and their commands --------------------------------------------------------------------------------- */

enum life { UNUSED, ALIVE, DYING, REAPED };

struct fake {
    enum life life;
    int control;
    uint32_t channel; /* of its job, or 0 if it has none */
    bool ended;       /* the main process of the job; others may be left */
    bool told_to_die;
    int looks;        /* how often the runner found nobody below it */
    bool killed;      /* it dies when it next gets to run */
    bool is_suspect;  /* the runner killed it, or saw another die that was killed at the same time */
    uint32_t last;    /* the channel of its job when it became suspect; it must not get another job */
    int in, out, err;
};

static struct fake fakes[MOST_WORKERS];
static int fake_count, pending_control;

static pid_t pid_of(const struct fake *f) { return 1000 + (pid_t)(f - fakes); }
static struct fake *fake_of(pid_t pid) { return pid >= 1000 && pid < 1000 + fake_count ? &fakes[pid - 1000] : NULL; }

static int fake_socketpair(int family, int type, int protocol, int pair[2]) {
    if (fake_count == MOST_WORKERS) {
        errno = EMFILE;
        return -1;
    }
    int result = (socketpair)(family, type, protocol, pair);
    pending_control = result == 0 ? fcntl(pair[1], F_DUPFD_CLOEXEC, 3) : -1;
    return result;
}

static pid_t fake_fork(void) {
    if (fails(FORK)) {
        close(pending_control);
        return -1;
    }
    struct fake *f = &fakes[fake_count++];
    *f = (struct fake){.life = ALIVE, .control = pending_control, .in = -1, .out = -1, .err = -1};
    return pid_of(f);
}

static void close_one(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static void close_streams_of(struct fake *f) {
    close_one(&f->in);
    close_one(&f->out);
    close_one(&f->err);
}

static int death_bell; /* stands in for the signal descriptor of the real runner */

static void die(struct fake *f) {
    if (f->life != ALIVE) return;
    close_one(&f->control);
    close_streams_of(f);
    f->life = DYING;
    eventfd_write(death_bell, 1);
}

static void on_death(struct runner *r, struct source *source, uint32_t events) {
    (void)events;
    eventfd_t deaths;
    eventfd_read(source->fd, &deaths);
    pool_reap(r);
}

static uint32_t job_given(const struct fake *f);

static void suspect(struct fake *f) {
    if (f->is_suspect || f->life != ALIVE) return;
    f->is_suspect = true;
    f->last = job_given(f);
}

/* When one has died that a command killed, the runner must expect that others were killed too. */
static pid_t fake_waitpid(pid_t pid, int *status, int flags) {
    (void)pid;
    (void)flags;
    for (int i = 0; i < fake_count; i++)
        if (fakes[i].life == DYING) {
            fakes[i].life = REAPED;
            bool is_news = fakes[i].killed && !fakes[i].is_suspect;
            for (int k = 0; k < fake_count && is_news; k++)
                if (fakes[k].killed) suspect(&fakes[k]);
            *status = fakes[i].killed ? SIGKILL : 0;
            return pid_of(&fakes[i]);
        }
    return 0;
}

static pid_t signalled; /* the last process group that a signal was sent to */
static int last_signal, signals_sent;

static int fake_kill(pid_t pid, int number) {
    if (pid < 0) {
        signalled = -pid;
        last_signal = number;
        signals_sent++;
    }
    struct fake *f = fake_of(pid);
    REQUIRE(pid < 0 || !f || f->life != REAPED); /* its number may belong to another process by then */
    if (f && number == SIGKILL && f->life == ALIVE) {
        f->killed = true;
        suspect(f);
    }
    return 0;
}

/* A command must not be lost because workers were killed before it was asked for. */
static void die_if_killed(struct fake *f) {
    if (f->life != ALIVE || !f->killed) return;
    uint32_t job = job_given(f);
    REQUIRE(!f->is_suspect || job == 0 || job == f->last);
    die(f);
}

/* How many processes a signal to a command reaches, and how often one was sent. */
static size_t hearers = 1;
static int times_asked;

size_t tree_signal(pid_t root, int number) {
    struct fake *f = fake_of(root);
    if (f && f->life == ALIVE && number == SIGTERM) f->told_to_die = true;
    times_asked += number == SIGTERM;
    return hearers;
}

static void report_empty(struct fake *f);

/* SIGKILL works, and the worker has to report it. A slow one reports only while the runner looks for the second time. */
static uint64_t trees_killed; /* bit n: that of fake n */

size_t tree_kill(pid_t root) {
    if (root >= 1000) trees_killed |= UINT64_C(1) << (root - 1000);
    struct fake *f = fake_of(root);
    if (!f || f->life != ALIVE || f->killed || !f->channel) return 0;
    f->told_to_die = true;
    if (!f->ended) return 1;
    if (++f->looks > 1) report_empty(f);
    return 0;
}

/* ---- the host's and the commands' own records ------------------------------------------------------------------- */

struct record {
    bool is_command, ends_tree, used, exited, killed, ended, input_ended, input_lost;
    bool is_socket, is_connected, saw_end; /* the last: of what the program writes */
    int program;                            /* at the other end of a connection, or -1 */
    uint16_t dialled_from;                  /* the runner's own port of a connection that it made */
    uint32_t inline_bytes; /* that the worker sends with its report */
    uint32_t error, stage; /* with which it has ended */
    uint16_t code;
    uint8_t kind;
    uint8_t exit_flags;
    uint64_t datagrams;    /* that have come from programs */
    uint64_t deadline_ms, granted, got[2], wrote[2], owed[2], late, input_sent, input_read, input_granted;
};

static struct record records[MOST_CHANNELS + 1];
static uint32_t channel_count;

static uint8_t byte_of(uint32_t channel, int stream, uint64_t at) { return (uint8_t)(channel * 131 + (uint32_t)stream * 17 + at * 7); }

static struct {
    struct runner r;
    struct bridge *bridge;
    int to, from; /* the host's ends of the stream */
    int connect;  /* the end that `runner-files connect` would hold */
    struct buffer stream;
    uint64_t received, told;
    struct buffer sent[2048]; /* frames of the host, to be sent again */
    uint32_t sent_count, sent_acknowledged;
    bool is_welcome;
} s;

static uint32_t job_given(const struct fake *f) {
    const struct worker *w = find_worker(&s.r, pid_of(f));
    return w && w->channel ? w->channel->id : 0;
}

/* ---- the host --------------------------------------------------------------------------------------------------- */

static void host_write(const void *data, size_t size) {
    while (size > 0 && s.to >= 0) {
        ssize_t n = write(s.to, data, size);
        if (n < 0 && errno == EAGAIN) {
            turn(&s.r);
            if (!s.bridge->is_used) return; /* it was refused, and the rest is lost with the connection */
            continue;
        }
        if (n < 0) return;
        data = (const uint8_t *)data + n;
        size -= (size_t)n;
    }
}

static bool host_has_room(void) { return s.sent_count < sizeof s.sent / sizeof *s.sent; }

static void host_send(uint8_t type, uint32_t channel, const void *payload, size_t length) {
    if (!host_has_room()) return;
    uint8_t header[HEADER_BYTES];
    frame_header(header, type, channel, (uint32_t)length);
    struct buffer *kept = &s.sent[s.sent_count++];
    REQUIRE(buffer_append(kept, header, sizeof header) == 0 && buffer_append(kept, payload, length) == 0);
    if (s.is_welcome) host_write(buffer_front(kept), buffer_length(kept));
}

static const uint8_t token[TOKEN_BYTES] = "the token of the fuzzed session";

static void host_disconnect(void) {
    close_one(&s.to);
    close_one(&s.from);
    close_one(&s.connect);
    buffer_drop(&s.stream, buffer_length(&s.stream));
}

/* A new stream, on which nothing has been said yet. */
static void host_dial(void) {
    int down[2], up[2], control[2];
    host_disconnect();
    REQUIRE(pipe2(down, O_CLOEXEC) == 0 && pipe2(up, O_CLOEXEC) == 0);
    REQUIRE((socketpair)(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) == 0);
    struct bridge *b = free_bridge(&s.r);
    for (int i = 0; i < 2 && !b; i++) {
        turn(&s.r); /* the runner notices that earlier connections are gone */
        b = free_bridge(&s.r);
    }
    REQUIRE(b);
    *b = (struct bridge){.is_used = true, .deadline_ms = clock_ms + 5000};
    b->control = (struct source){.on_event = on_control, .owner = b, .fd = control[0]};
    b->in = (struct source){.on_event = on_stream, .owner = b, .fd = -1};
    b->out = (struct source){.on_event = on_writable, .owner = b, .fd = -1};
    watch(&s.r, &b->control, EPOLLIN);
    adopt_streams(&s.r, b, (int[2]){down[0], up[1]});
    s.bridge = b;
    s.to = down[1];
    s.from = up[0];
    s.connect = control[1];
    fcntl(s.to, F_SETFL, O_NONBLOCK);
    fcntl(s.from, F_SETFL, O_NONBLOCK);
    s.is_welcome = false;
}

static void host_connect(void) {
    host_dial();
    uint8_t hello[HEADER_BYTES + 44];
    frame_header(hello, FRAME_HELLO, 0, 44);
    put32(hello + HEADER_BYTES, PROTOCOL_VERSION);
    memcpy(hello + HEADER_BYTES + 4, token, TOKEN_BYTES);
    put64(hello + HEADER_BYTES + 36, s.received);
    host_write(hello, sizeof hello);
}

static void forget_sent(uint64_t until) {
    REQUIRE(until >= s.sent_acknowledged && until <= s.sent_count);
    while (s.sent_acknowledged < until) buffer_free(&s.sent[s.sent_acknowledged++]);
}

static void take_welcome(const struct frame *frame) {
    REQUIRE(frame->type == FRAME_WELCOME && frame->length == 20 && !s.is_welcome);
    forget_sent(get64(frame->payload + 4));
    s.is_welcome = true;
    for (uint32_t i = s.sent_acknowledged; i < s.sent_count; i++) host_write(buffer_front(&s.sent[i]), buffer_length(&s.sent[i]));
}

static void take_output(struct record *record, const struct frame *frame) {
    int stream = frame->type == FRAME_STDERR;
    REQUIRE(!record->exited && frame->length > 0 && frame->length <= MAX_PAYLOAD_FROM_RUNNER);
    for (uint32_t i = 0; i < frame->length; i++) REQUIRE(frame->payload[i] == byte_of(frame->channel, stream, record->got[stream] + i));
    record->got[stream] += frame->length;
    REQUIRE(record->got[0] + record->got[1] <= record->granted);
}

static void take_exit(struct record *record, const struct frame *frame) {
    REQUIRE(!record->exited && (frame->length == EXIT_HEAD_BYTES || frame->length == EXIT_HEAD_BYTES + record->inline_bytes));
    for (uint32_t i = EXIT_HEAD_BYTES; i < frame->length; i++) REQUIRE(frame->payload[i] == byte_of(frame->channel, 0, i));
    record->exited = true;
    record->kind = frame->payload[0];
    record->code = get16(frame->payload + 2);
    record->error = get32(frame->payload + 4);
    record->stage = get32(frame->payload + 8);
    record->exit_flags = frame->payload[1];
    for (int i = 0; i < fake_count && record->ends_tree && !(frame->payload[1] & EXIT_TREE_LEFT); i++)
        REQUIRE(fakes[i].life != ALIVE || fakes[i].channel != frame->channel);
    /* After its deadline a command does not wait for a host that does not read. */
    bool cut_short = frame->payload[1] & (EXIT_TIMED_OUT | EXIT_KILLED) || (record->deadline_ms && clock_ms >= record->deadline_ms);
    REQUIRE(cut_short || !record->ended || (record->got[0] >= record->owed[0] && record->got[1] >= record->owed[1]));
}

static void take_connected(uint32_t channel, const struct frame *frame);
static void take_socket_output(uint32_t channel, const struct frame *frame);
static void take_socket_exit(uint32_t channel, const struct frame *frame);
static void take_bound(uint32_t channel, const struct frame *frame);
static void take_datagram(uint32_t channel, const struct frame *frame);

static bool take_socket_frame(const struct frame *frame) {
    if (!records[frame->channel].is_socket) return false;
    switch (frame->type) {
    case FRAME_BOUND: take_bound(frame->channel, frame); return true;
    case FRAME_CONNECTED: take_connected(frame->channel, frame); return true;
    case FRAME_STDOUT: take_socket_output(frame->channel, frame); return true;
    case FRAME_EXIT: take_socket_exit(frame->channel, frame); return true;
    case FRAME_DATAGRAM_FROM_RUNNER: take_datagram(frame->channel, frame); return true;
    default: return false;
    }
}

static void host_take(const struct frame *frame) {
    if (!s.is_welcome) {
        take_welcome(frame);
        return;
    }
    if (frame->channel == 0) {
        REQUIRE(frame->type == FRAME_ACK_FROM_RUNNER || frame->type == FRAME_PONG);
        if (frame->type == FRAME_ACK_FROM_RUNNER) forget_sent(get64(frame->payload));
        return;
    }
    s.received++;
    REQUIRE(frame->channel <= channel_count);
    if (take_socket_frame(frame)) return;
    struct record *record = &records[frame->channel];
    switch (frame->type) {
    case FRAME_STDOUT:
    case FRAME_STDERR: take_output(record, frame); break;
    case FRAME_EXIT: take_exit(record, frame); break;
    case FRAME_LATE:
        REQUIRE(record->exited && (record->late += frame->length) <= LATE_MAX);
        break;
    default:
        REQUIRE(frame->type == FRAME_CREDIT_FROM_RUNNER && frame->length == 4);
        record->input_granted += get32(frame->payload);
        REQUIRE(record->input_granted <= record->input_sent);
    }
}

static bool host_read(size_t most) {
    static uint8_t bytes[64 << 10];
    if (s.from < 0) return false;
    ssize_t n = read(s.from, bytes, most < sizeof bytes ? most : sizeof bytes);
    if (n <= 0) return false;
    REQUIRE(buffer_append(&s.stream, bytes, (size_t)n) == 0);
    struct frame frame;
    size_t used;
    enum parse_result result;
    while ((result = frame_parse(buffer_front(&s.stream), buffer_length(&s.stream), MAX_PAYLOAD_FROM_RUNNER, &frame, &used)) == PARSE_FRAME) {
        host_take(&frame);
        buffer_drop(&s.stream, used);
    }
    REQUIRE(result == PARSE_MORE);
    return true;
}

static void host_acknowledge(void) {
    uint8_t header[HEADER_BYTES + 8];
    if (!s.is_welcome) return;
    frame_header(header, FRAME_ACK, 0, 8);
    put64(header + HEADER_BYTES, s.received);
    host_write(header, sizeof header);
}

static void host_grant(uint32_t channel, uint32_t bytes) {
    uint8_t payload[4];
    put32(payload, bytes);
    if (!host_has_room() || records[channel].granted > (1u << 20)) return;
    records[channel].granted += bytes;
    host_send(FRAME_CREDIT, channel, payload, sizeof payload);
}

static void host_spawn(struct input *in) {
    if (channel_count == MOST_CHANNELS || !host_has_room()) return;
    uint8_t payload[16 + 4 + 4 + 4 + 1 + 4] = {0};
    payload[0] = input_byte(in) & (SPAWN_NO_STDIN | SPAWN_MERGE | SPAWN_ENDS_TREE);
    uint8_t timeout = input_byte(in);
    uint32_t timeout_ms = timeout < 128 ? 0 : timeout;
    put32(payload + 8, timeout_ms);
    put32(payload + 12, 500);
    put32(payload + 20, 1);
    put32(payload + 24, 1);
    payload[28] = 'x';
    uint32_t channel = ++channel_count;
    records[channel] = (struct record){
        .used = true, .is_command = true, .ends_tree = payload[0] & SPAWN_ENDS_TREE, .granted = INITIAL_CREDIT, .deadline_ms = timeout_ms ? clock_ms + timeout_ms : 0};
    host_send(FRAME_SPAWN, channel, payload, sizeof payload);
}

static void host_file(struct input *in) {
    if (channel_count == MOST_CHANNELS || !host_has_room()) return;
    uint8_t payload[24 + 4 + 2 + 4] = {0};
    uint8_t kind = (uint8_t)input_below(in, 5); /* read, write, stat, inline read, inline write */
    payload[0] = (uint8_t)(kind == 3 ? FILE_READ : kind == 4 ? FILE_WRITE : FILE_READ + kind);
    if (kind >= 3) payload[1] = kind == 3 ? READ_INLINE : WRITE_INLINE;
    if (kind == 3) put64(payload + 16, 1 + input_below(in, INLINE_READ_MOST));
    put32(payload + 24, 2);
    memcpy(payload + 28, "/x", 2);
    uint32_t channel = ++channel_count;
    records[channel] = (struct record){.used = true, .granted = INITIAL_CREDIT, .inline_bytes = kind == 3 ? get32(payload + 16) : 0};
    host_send(FRAME_FILE, channel, payload, sizeof payload);
}

static void host_input(uint32_t channel, uint32_t length) {
    uint8_t payload[4096];
    struct record *record = &records[channel];
    if (!record->used || record->input_ended || !host_has_room()) return;
    uint64_t room = INITIAL_CREDIT + record->input_granted - record->input_sent;
    if (length > room) length = (uint32_t)room;
    if (length > sizeof payload) length = sizeof payload;
    for (uint32_t i = 0; i < length; i++) payload[i] = byte_of(channel, 2, record->input_sent + i);
    if (length == 0) record->input_ended = true;
    record->input_sent += length;
    host_send(FRAME_INPUT, channel, payload, length);
}

static void host_kill(uint32_t channel, uint32_t grace_ms) {
    uint8_t payload[4];
    if (!records[channel].used || !host_has_room()) return;
    put32(payload, grace_ms);
    records[channel].killed = true;
    host_send(FRAME_KILL, channel, payload, sizeof payload);
}

#include "sockets.h"

/* ---- the workers ------------------------------------------------------------------------------------------------ */

static void report(struct fake *f, const struct worker_report *what) { (void)!send(f->control, what, sizeof *what, MSG_NOSIGNAL | MSG_DONTWAIT); }

static void receive_job(struct fake *f) {
    struct job_header header;
    uint8_t payload[256];
    struct iovec parts[2] = {{&header, sizeof header}, {payload, sizeof payload}};
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(4 * sizeof(int))];
    } ancillary;
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = &ancillary, .msg_controllen = sizeof ancillary};
    die_if_killed(f);
    if (f->life != ALIVE || f->channel) return;
    ssize_t n = recvmsg(f->control, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n == 0) die(f); /* no longer needed */
    if (n <= 0) return;
    if (header.kind == JOB_ANSWER) {
        report(f, &(struct worker_report){.what = REPORT_EMPTY});
        return;
    }
    int fds[4] = {-1, -1, -1, -1};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    if (c) memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
    struct worker *w = find_worker(&s.r, pid_of(f));
    REQUIRE(w && w->channel);
    f->channel = w->channel->id;
    f->ended = f->told_to_die = false;
    f->looks = 0;
    int next = 0;
    bool is_spawn = header.kind == JOB_SPAWN;
    bool is_inline = !is_spawn && payload[1];
    if (is_spawn ? !(payload[0] & SPAWN_NO_STDIN) : payload[0] == FILE_WRITE && !is_inline) f->in = fds[next++];
    if (is_spawn || (payload[0] == FILE_READ && !is_inline)) f->out = fds[next++];
    if (is_inline) REQUIRE(!c);
    if (is_spawn && !(payload[0] & SPAWN_MERGE)) f->err = fds[next++];
    if (f->in >= 0) fcntl(f->in, F_SETFL, O_NONBLOCK);
    if (f->out >= 0) fcntl(f->out, F_SETFL, O_NONBLOCK);
    if (f->err >= 0) fcntl(f->err, F_SETFL, O_NONBLOCK);
    w->slot->child = pid_of(f);
}

static void command_writes(struct fake *f, int stream, size_t length) {
    static uint8_t bytes[64 << 10];
    int fd = stream ? f->err : f->out;
    if (!f->channel || fd < 0) return;
    struct record *record = &records[f->channel];
    for (size_t i = 0; i < length; i++) bytes[i] = byte_of(f->channel, stream, record->wrote[stream] + i);
    ssize_t n = write(fd, bytes, length);
    if (n > 0) record->wrote[stream] += (uint64_t)n;
}

static bool command_reads(struct fake *f, size_t most) {
    uint8_t bytes[4096];
    if (!f->channel || f->in < 0) return false;
    ssize_t n = read(f->in, bytes, most < sizeof bytes ? most : sizeof bytes);
    struct record *record = &records[f->channel];
    if (n < 0) return false;
    if (n == 0) {
        /* A runner that has sent the EXIT, or that is ending the operation, closes the stream early. */
        const struct channel *c = channel_find(&s.r, f->channel);
        bool is_given_up = clock_ms >= record->deadline_ms && record->deadline_ms && (!c || c->phase >= CHANNEL_EXITED);
        REQUIRE(is_given_up || record->exited || record->killed || f->ended || f->told_to_die || (record->input_ended && record->input_read == record->input_sent));
        close_one(&f->in);
        return false;
    }
    for (ssize_t i = 0; i < n; i++) REQUIRE(bytes[i] == byte_of(f->channel, 2, record->input_read + (uint64_t)i));
    record->input_read += (uint64_t)n;
    REQUIRE(record->input_read <= record->input_sent);
    return true;
}

/* A worker sends this when a file operation is over. It started no process, so one message says that it has ended and that nothing is left running. */
static void report_file_operation(struct fake *f, uint32_t inline_bytes) {
    static uint8_t result[INLINE_READ_MOST];
    struct worker_report what = {.what = REPORT_ENDED | REPORT_EMPTY, .kind = EXIT_FILE, .result_length = inline_bytes};
    struct iovec parts[2] = {{&what, sizeof what}, {result, inline_bytes}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = inline_bytes ? 2 : 1};
    for (uint32_t i = 0; i < inline_bytes; i++) result[i] = byte_of(f->channel, 0, EXIT_HEAD_BYTES + i);
    close_streams_of(f);
    struct worker *w = find_worker(&s.r, pid_of(f));
    if (w) w->slot->child = 0;
    f->channel = 0;
    sendmsg(f->control, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The main process ends. It may leave others behind that hold its streams. */
static void end_command(struct fake *f) {
    if (f->life != ALIVE || !f->channel || f->ended) return;
    struct record *record = &records[f->channel];
    f->ended = record->ended = true;
    record->owed[0] = record->wrote[0];
    record->owed[1] = record->wrote[1];
    if (!record->is_command) {
        report_file_operation(f, record->inline_bytes);
        return;
    }
    report(f, &(struct worker_report){.what = REPORT_ENDED, .kind = EXIT_EXITED});
}

static void report_empty(struct fake *f) {
    if (f->life != ALIVE || !f->channel || !f->ended) return;
    close_streams_of(f);
    struct worker *w = find_worker(&s.r, pid_of(f));
    if (w) w->slot->child = 0;
    f->channel = 0;
    report(f, &(struct worker_report){.what = REPORT_EMPTY});
}

/* ---- the play --------------------------------------------------------------------------------------------------- */

static uint32_t some_channel(struct input *in) { return channel_count ? 1 + input_below(in, channel_count) : 0; }

static struct fake *some_fake(struct input *in) {
    struct fake *f = fake_count ? &fakes[input_below(in, (uint32_t)fake_count)] : NULL;
    if (f) receive_job(f);
    return f;
}

static void host_step(struct input *in, uint8_t choice) {
    uint32_t channel;
    switch (choice) {
    case 0:
    case 1: host_spawn(in); break;
    case 2: host_file(in); break;
    case 3: host_input(some_channel(in), input_below(in, 5000)); break;
    case 4:
        channel = some_channel(in);
        if (channel) host_grant(channel, input_below(in, 40000));
        break;
    case 5: host_kill(some_channel(in), input_byte(in)); break;
    case 6: host_read(1 + input_below(in, 60000)); break;
    case 7: host_acknowledge(); break;
    case 8: host_disconnect(); break;
    default: host_connect();
    }
}

static void command_step(struct input *in, uint8_t choice) {
    struct fake *f = some_fake(in);
    if (!f) return;
    switch (choice) {
    case 0:
    case 1: command_writes(f, 0, 1 + input_below(in, 65000)); break;
    case 2: command_writes(f, 1, 1 + input_below(in, 65000)); break;
    case 3: command_reads(f, 1 + input_below(in, 4096)); break;
    case 4: close_one(&f->out); break;
    case 5: close_one(&f->err); break;
    case 6: close_one(&f->in); break;
    case 7: end_command(f); break;
    case 8: report_empty(f); break;
    default:
        if (f->channel) records[f->channel].ended = false; /* nobody waits for the output of a lost command */
        die(f);
    }
}

/* A command kills everything its user may kill. Each dies when it next gets to run. */
static void everybody_is_killed(void) {
    for (int i = 0; i < fake_count; i++) {
        if (fakes[i].life != ALIVE) continue;
        fakes[i].killed = true;
        if (fakes[i].channel) records[fakes[i].channel].ended = false;
    }
}

/* The loop must watch every stream that may be read, or its writer could wait for ever. */
static void require_watched(void) {
    for (int i = 0; i < CHANNEL_BUCKETS; i++)
        for (struct channel *c = s.r.channels[i]; c; c = c->next) {
            bool is_late = c->phase >= CHANNEL_EXITED, has_hung_up = c->terminal == TERMINAL_HUNG_UP;
            bool wanted = !has_hung_up && (is_late || (c->credit > 0 && !link_is_full(&s.r.link)));
            struct source *streams[2] = {&c->out.source, &c->err.source};
            for (int k = 0; k < 2; k++)
                if (is_open(streams[k]) && c->phase != CHANNEL_QUEUED) REQUIRE(streams[k]->armed != 0 || !wanted);
        }
}

static void one_turn(void) {
    turn(&s.r);
    require_watched();
}

static void step(struct input *in) {
    uint8_t choice = input_byte(in);
    if (choice >= 10 && choice < 30) host_socket_step(in, choice % 10);
    else if (choice >= 110 && choice < 140) program_step(in, choice % 10);
    else if (choice < 100) host_step(in, choice % 10);
    else if (choice < 200) command_step(in, choice % 10);
    else if (choice < 245) one_turn();
    else if (choice < 250) everybody_is_killed();
    else clock_ms += input_below(in, 1000);
}

static bool is_over(void) {
    for (uint32_t i = 1; i <= channel_count; i++)
        if (!records[i].exited) return false;
    for (int i = 0; i < CHANNEL_BUCKETS; i++)
        if (s.r.channels[i] || s.r.endpoints[i]) return false;
    return buffer_length(&s.r.link.kept) == 0;
}

/* From here on everybody does their part, and everything must end. */
static void finish(void) {
    host_connect();
    for (int round = 0; round < 3000 && !is_over(); round++) {
        one_turn();
        while (host_read(64 << 10)) continue;
        host_acknowledge();
        for (uint32_t i = 1; i <= channel_count; i++)
            if (round % 4 == 0 && records[i].got[0] + records[i].got[1] == records[i].granted) host_grant(i, 32 << 10);
        for (int i = 0; i < fake_count; i++) {
            receive_job(&fakes[i]);
            while (command_reads(&fakes[i], 4096)) continue;
            if (round > 2) end_command(&fakes[i]);
            if (round > 20) report_empty(&fakes[i]);
        }
        finish_sockets(round);
        clock_ms += 20;
        if (!s.bridge->is_used) host_connect();
    }
    REQUIRE(is_over());
    REQUIRE(!s.r.queue_first && s.r.queue_end == &s.r.queue_first);
}

static size_t open_descriptors(void) {
    size_t count = 0;
    for (int fd = 0; fd < 512; fd++) count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void open_runner(void) {
    memset(&s, 0, sizeof s);
    memset(trouble, 0, sizeof trouble);
    memset(records, 0, sizeof records);
    fake_count = 0;
    channel_count = 0;
    clock_ms = 1000000;
    parent_of_all = 0;
    s.to = s.from = s.connect = -1;
    s.r.next_deadline_ms = UINT64_MAX;
    s.r.listener.fd = -1;
    s.r.fd_limit = 4096;
    s.r.uncounted.reads_proc = false;
    for (int i = 0; i < KERNEL_TABLES; i++) s.r.uncounted.tables[i] = -1;
    s.r.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    s.r.boot_id = 7;
    s.r.queue_end = &s.r.queue_first;
    digest_of(token, TOKEN_BYTES, s.r.token_hash);
    death_bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s.r.signals = (struct source){.on_event = on_death, .fd = death_bell};
    REQUIRE(s.r.epoll_fd >= 0 && pool_share_memory(&s.r) && death_bell >= 0);
    watch(&s.r, &s.r.signals, EPOLLIN);
    open_server();
}

static void close_runner(void) {
    close_sockets();
    host_disconnect();
    for (int i = 0; i < MAX_BRIDGES; i++) bridge_drop(&s.r, &s.r.bridges[i]);
    for (int i = 0; i < fake_count; i++) die(&fakes[i]);
    pool_reap(&s.r);
    for_each_endpoint(&s.r, close_endpoint);
    free_what_is_over(&s.r);
    REQUIRE(!s.r.workers && s.r.open_connections == 0);
    close(death_bell);
    close(s.r.epoll_fd);
    munmap(s.r.shared, sizeof *s.r.shared);
    close(s.r.shared_fd);
    buffer_free(&s.r.link.kept);
    buffer_free(&s.r.link.control);
    buffer_free(&s.stream);
    for (uint32_t i = 0; i < s.sent_count; i++) buffer_free(&s.sent[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input in = {data, data + size};
    signal(SIGPIPE, SIG_IGN);
    size_t before = open_descriptors();
    open_runner();
    host_connect();
    one_turn();
    host_read(64 << 10);
    REQUIRE(s.is_welcome);
    for (int steps = 0; steps < 1000 && !input_is_empty(&in); steps++) step(&in);
    finish();
    close_runner();
    REQUIRE(open_descriptors() == before);
    return 0;
}
