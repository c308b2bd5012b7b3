/*
 * A host for a real runner: all of its sources, as PID 1 of a PID namespace with a /proc of its own, with real workers and real commands.
 * The host speaks the protocol to it over pipes. Needs CAP_SYS_ADMIN, to make the namespace.
 */
#ifndef BRIG_UNIT_HOST_H
#define BRIG_UNIT_HOST_H

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../buffer.h"
#include "../../../common/wire.h"
#include "require.h"

/* A test that has to wait longer than this has failed. */
#define PATIENCE_MS 30000
#define MOST_CALLS 256

#define TOKEN "0123456789abcdef0123456789abcdef"
#define TOKEN_HASH "3eb1bd439947eb762998e566ccc2e099c791118b2f40579cc4f7da2b5061b7f9"

#define LIST(...) ((char *const[]){__VA_ARGS__, NULL})

/* A command, a file operation or a listener, by the number of its channel. */
struct call {
    struct buffer out, err, late, exit;
    bool has_exited;
    uint64_t input_granted;
};

static struct {
    pid_t runner;
    int to, from; /* the stream; -1 when it is closed */
    struct buffer stream, pong;
    bool is_welcome;
    uint64_t received, runner_received, boot_id;
    uint32_t last_channel;
    struct call calls[MOST_CALLS];
} host;

static inline void pause_briefly(void) { nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

/* Waits for something that no descriptor tells of. */
#define AWAIT(condition)                                                       \
    do {                                                                       \
        int rounds = 0;                                                        \
        for (; !(condition) && rounds < PATIENCE_MS; rounds++) pause_briefly(); \
        REQUIRE(rounds < PATIENCE_MS);                                         \
    } while (0)

/* For the beginning of a test program: it and others may run at the same time, and none of them shares a name of a file or a socket. */
static inline void stand_alone(void) {
    setvbuf(stdout, NULL, _IONBF, 0); /* what is not written yet would be written by every child too */
    signal(SIGPIPE, SIG_IGN);
    REQUIRE(unshare(CLONE_NEWNS | CLONE_NEWNET) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    REQUIRE(mount("tmpfs", "/tmp", "tmpfs", 0, NULL) == 0);
}

/* ---- processes ---------------------------------------------------------------------------------------------------- */

/* The status with which a child of this process ends. */
static inline int status_of(pid_t pid) {
    int status = 0;
    AWAIT(waitpid(pid, &status, WNOHANG) == pid);
    return status;
}

static inline bool has_exited_with(pid_t pid, int code) {
    int status = status_of(pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == code;
}

/* A child that is PID 1 of a namespace, and ends with this process. Returns 0 in the child. */
static pid_t fork_into_namespace(void) {
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, NULL, NULL, NULL, NULL);
    REQUIRE(pid >= 0);
    if (pid > 0) return pid;
    REQUIRE(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    REQUIRE(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 && mount("proc", "/proc", "proc", 0, NULL) == 0);
    return 0;
}

static void place(int fd, int number) { REQUIRE(dup2(fd, number) == number); }

static inline int count_of(char *const *list) {
    int count = 0;
    while (list[count]) count++;
    return count;
}

/* ---- frames ------------------------------------------------------------------------------------------------------- */

static void host_send(uint8_t type, uint32_t channel, const void *payload, size_t length) {
    uint8_t header[HEADER_BYTES];
    struct buffer frame = {0};
    frame_header(header, type, channel, (uint32_t)length);
    REQUIRE(buffer_append(&frame, header, sizeof header) == 0 && buffer_append(&frame, payload, length) == 0);
    while (buffer_length(&frame) > 0) {
        ssize_t n = write(host.to, buffer_front(&frame), buffer_length(&frame));
        REQUIRE(n > 0);
        buffer_drop(&frame, (size_t)n);
    }
    buffer_free(&frame);
}

static inline void host_send32(uint8_t type, uint32_t channel, uint32_t number) {
    uint8_t payload[4];
    put32(payload, number);
    host_send(type, channel, payload, sizeof payload);
}

static void take_session_frame(const struct frame *frame) {
    if (frame->type == FRAME_WELCOME) {
        REQUIRE(!host.is_welcome && frame->length == WELCOME_BYTES && get32(frame->payload) == PROTOCOL_VERSION);
        host.is_welcome = true;
        host.runner_received = get64(frame->payload + 4);
        host.boot_id = get64(frame->payload + 12);
    } else if (frame->type == FRAME_PONG) {
        REQUIRE(buffer_append(&host.pong, frame->payload, frame->length) == 0);
    } else {
        REQUIRE(frame->type == FRAME_ACK_FROM_RUNNER && frame->length == 8);
        host.runner_received = get64(frame->payload);
    }
}

static void take_frame(const struct frame *frame) {
    if (frame->channel == 0) {
        take_session_frame(frame);
        return;
    }
    REQUIRE(host.is_welcome && frame->channel <= host.last_channel);
    struct call *c = &host.calls[frame->channel];
    host.received++;
    struct buffer *to = frame->type == FRAME_STDOUT ? &c->out : frame->type == FRAME_STDERR ? &c->err : frame->type == FRAME_LATE ? &c->late : NULL;
    if (to) {
        REQUIRE(c->has_exited == (to == &c->late) && frame->length > 0 && buffer_append(to, frame->payload, frame->length) == 0);
    } else if (frame->type == FRAME_EXIT) {
        REQUIRE(!c->has_exited && frame->length >= EXIT_HEAD_BYTES && buffer_append(&c->exit, frame->payload, frame->length) == 0);
        c->has_exited = true;
    } else {
        REQUIRE(frame->type == FRAME_CREDIT_FROM_RUNNER && frame->length == 4);
        c->input_granted += get32(frame->payload);
    }
}

static void host_acknowledge(void) {
    uint8_t payload[8];
    put64(payload, host.received);
    host_send(FRAME_ACK, 0, payload, sizeof payload);
}

/* Takes what the runner sends next. False at the end of the stream. */
static bool host_take(void) {
    static uint8_t bytes[64 << 10];
    struct pollfd readable = {.fd = host.from, .events = POLLIN};
    REQUIRE(poll(&readable, 1, PATIENCE_MS) == 1);
    ssize_t n = read(host.from, bytes, sizeof bytes);
    REQUIRE(n >= 0);
    if (n == 0) return false;
    REQUIRE(buffer_append(&host.stream, bytes, (size_t)n) == 0);
    struct frame frame;
    size_t used;
    enum parse_result result;
    while ((result = frame_parse(buffer_front(&host.stream), buffer_length(&host.stream), MAX_PAYLOAD_FROM_RUNNER, &frame, &used)) == PARSE_FRAME) {
        take_frame(&frame);
        buffer_drop(&host.stream, used);
    }
    REQUIRE(result == PARSE_MORE);
    return true;
}

#define TAKE_UNTIL(condition) \
    while (!(condition)) REQUIRE(host_take())

static inline bool is_text(const struct buffer *b, const char *text) {
    size_t length = strlen(text);
    return buffer_length(b) == length && (length == 0 || memcmp(buffer_front(b), text, length) == 0);
}

static inline bool contains(const struct buffer *b, const char *text) {
    return buffer_length(b) >= strlen(text) && memmem(buffer_front(b), buffer_length(b), text, strlen(text)) != NULL;
}

/* ---- the sandbox -------------------------------------------------------------------------------------------------- */

static void host_hello(void) {
    uint8_t payload[HELLO_BYTES];
    put32(payload, PROTOCOL_VERSION);
    memcpy(payload + 4, TOKEN, TOKEN_BYTES);
    put64(payload + 4 + TOKEN_BYTES, host.received);
    host.is_welcome = false;
    host_send(FRAME_HELLO, 0, payload, sizeof payload);
    TAKE_UNTIL(host.is_welcome);
}

static inline void host_disconnect(void) {
    close(host.to);
    close(host.from);
    host.to = host.from = -1;
    buffer_drop(&host.stream, buffer_length(&host.stream));
}

/* The stream's pipes; `theirs` gets the other ends. */
static void open_stream(int theirs[2]) {
    int down[2], up[2];
    REQUIRE(pipe2(down, O_CLOEXEC) == 0 && pipe2(up, O_CLOEXEC) == 0);
    host.to = down[1];
    host.from = up[0];
    theirs[0] = down[0];
    theirs[1] = up[1];
}

/* The runner's own main, in a namespace: `prepare` is called there before. What it prints goes to `errors`, if that is not -1. */
static pid_t start_runner(char *const *argv, const int streams[2], int errors, void (*prepare)(void)) {
    pid_t pid = fork_into_namespace();
    if (pid > 0) return pid;
    host_disconnect(); /* or the runner itself would keep its streams open */
    place(streams[0], 0);
    place(streams[1], 1);
    if (errors >= 0) place(errors, 2);
    if (prepare) prepare();
    exit(runner_main(count_of(argv), (char **)(uintptr_t)argv));
}

static void forget_host(void) {
    for (uint32_t i = 0; i < MOST_CALLS; i++) {
        struct call *c = &host.calls[i];
        buffer_free(&c->out);
        buffer_free(&c->err);
        buffer_free(&c->late);
        buffer_free(&c->exit);
    }
    buffer_free(&host.stream);
    buffer_free(&host.pong);
    memset(&host, 0, sizeof host);
}

static void open_sandbox_with(char *const *argv, void (*prepare)(void)) {
    int theirs[2];
    forget_host();
    open_stream(theirs);
    host.runner = start_runner(argv, theirs, -1, prepare);
    close(theirs[0]);
    close(theirs[1]);
    host_hello();
}

static void open_sandbox(void) { open_sandbox_with(LIST("runner", "serve", "--token-hash", TOKEN_HASH, "--lease", "0", "--first-stream", "stdio"), NULL); }

/* The runner ends without an error, which it would not if the sanitizers had found one. */
static void close_sandbox(void) {
    host_send(FRAME_END, 0, NULL, 0);
    REQUIRE(has_exited_with(host.runner, 0));
    host_disconnect();
}

/* ---- calls -------------------------------------------------------------------------------------------------------- */

struct wanted {
    uint8_t flags;
    uint16_t rows, cols;
    uint32_t timeout_ms, grace_ms;
    const char *cwd;
    char *const *argv, *const *changes;
};

static void append_string(struct buffer *b, const char *text) {
    uint8_t length[4];
    put32(length, (uint32_t)strlen(text));
    REQUIRE(buffer_append(b, length, 4) == 0 && buffer_append(b, text, strlen(text)) == 0);
}

static void append_list(struct buffer *b, char *const *list) {
    uint8_t count[4];
    put32(count, list ? (uint32_t)count_of(list) : 0);
    REQUIRE(buffer_append(b, count, 4) == 0);
    while (list && *list) append_string(b, *list++);
}

static struct call *start_command(struct wanted command) {
    uint8_t head[SPAWN_HEAD_BYTES] = {command.flags};
    struct buffer payload = {0};
    put16(head + 2, command.rows);
    put16(head + 4, command.cols);
    put32(head + 8, command.timeout_ms);
    put32(head + 12, command.grace_ms);
    REQUIRE(buffer_append(&payload, head, sizeof head) == 0);
    append_string(&payload, command.cwd ? command.cwd : "");
    append_list(&payload, command.argv);
    append_list(&payload, command.changes);
    REQUIRE(++host.last_channel < MOST_CALLS);
    host_send(FRAME_SPAWN, host.last_channel, buffer_front(&payload), buffer_length(&payload));
    buffer_free(&payload);
    return &host.calls[host.last_channel];
}

static inline uint32_t channel_of(const struct call *c) { return (uint32_t)(c - host.calls); }

static struct call *await_exit(struct call *c) {
    TAKE_UNTIL(c->has_exited);
    host_acknowledge();
    return c;
}

static inline struct call *run_command(struct wanted command) { return await_exit(start_command(command)); }

static inline struct wanted script(const char *text) {
    static char *argv[] = {"sh", "-c", NULL, NULL};
    argv[2] = (char *)(uintptr_t)text;
    return (struct wanted){.flags = SPAWN_NO_STDIN, .argv = argv};
}

static inline struct call *run_script(const char *text) { return run_command(script(text)); }

static inline uint8_t kind_of(const struct call *c) { return buffer_front(&c->exit)[0]; }
static inline uint8_t flags_of(const struct call *c) { return buffer_front(&c->exit)[1]; }
static inline uint16_t code_of(const struct call *c) { return get16(buffer_front(&c->exit) + 2); }
static inline uint32_t error_of(const struct call *c) { return get32(buffer_front(&c->exit) + 4); }
static inline uint32_t stage_of(const struct call *c) { return get32(buffer_front(&c->exit) + 8); }

/* It ended by itself, with this code, and nothing else is to be said of its end. */
static inline bool ended_with(const struct call *c, uint16_t code) {
    return kind_of(c) == EXIT_EXITED && flags_of(c) == 0 && code_of(c) == code && error_of(c) == 0 && stage_of(c) == 0;
}

static inline bool was_not_started(const struct call *c, uint32_t stage, uint32_t error) {
    return kind_of(c) == EXIT_NOT_STARTED && flags_of(c) == 0 && code_of(c) == 0 && stage_of(c) == stage && error_of(c) == error;
}

#endif
