/*
 * Tests of how the runner is started, by whom it can be spoken to, and when it ends; and of what is easier to see with its functions at hand
 * than through a stream.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

static int nanosleep_or_do(const struct timespec *wanted);

#define nanosleep(wanted, left) nanosleep_or_do(wanted)
#include "../../../runner-files/connect.c"
#undef nanosleep
#include "../../worker.c"

int runner_main(int argc, char **argv);
#define main runner_main
#include "../../main.c"
#undef main

#include "host.h"

/* This happens whenever something waits for a moment, which it has done so many times. */
static void (*in_pause)(void);
static int pauses;

static int nanosleep_or_do(const struct timespec *wanted) {
    pauses++;
    if (in_pause) in_pause();
    return in_pause ? 0 : nanosleep(wanted, NULL);
}

/* ---- the command line --------------------------------------------------------------------------------------------- */

static char printed[4096];

static int main_with(char *const *argv) {
    int code = runner_main(count_of(argv), (char **)(uintptr_t)argv);
    REQUIRE(prctl(PR_GET_DUMPABLE) == 0); /* no command can look into it */
    return code;
}

static int connect_with(char *const *argv) {
    (void)argv;
    return run_bridge();
}

/* Runs a program's main in a child, and keeps what it prints. */
static int code_of_run(int (*run)(char *const *argv), char *const *argv) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        place(ends[1], 1);
        place(ends[1], 2);
        int code = run(argv);
        fflush(stdout);
        _exit(code);
    }
    close(ends[1]);
    size_t used = 0;
    ssize_t n;
    while ((n = read(ends[0], printed + used, sizeof printed - 1 - used)) > 0) used += (size_t)n;
    printed[used] = '\0';
    close(ends[0]);
    int status = status_of(pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int code_of_main(char *const *argv) { return code_of_run(main_with, argv); }

static bool is_refused(char *const *argv) { return code_of_main(argv) == 2 && strncmp(printed, "usage: runner serve ", 20) == 0; }

static bool takes_hash(const char *hash) {
    uint8_t bytes[32];
    return parse_hash(hash, bytes);
}

static void a_command_line_is_understood_whole_or_not_at_all(void) {
    REQUIRE(code_of_main(LIST("runner", "version")) == 0 && strcmp(printed, "brig runner, protocol 1\n") == 0);
    REQUIRE(is_refused(LIST("runner")) && is_refused(LIST("runner", "")) && is_refused(LIST("runner", "Serve")) && is_refused(LIST("runner", "connect")) && is_refused(LIST("runner", "serve")));
    REQUIRE(is_refused(LIST("runner", "serve", "--token-hash", "00")) && is_refused(LIST("runner", "serve", "--lease", "5")));
    REQUIRE(is_refused(LIST("runner", "serve", "--token-hash", TOKEN_HASH, "--first-stream", "other")));
    REQUIRE(is_refused(LIST("runner", "serve", "--token-hash", TOKEN_HASH, "--bridges", "some")));
    REQUIRE(is_refused(LIST("runner", "serve", "--token-hash", TOKEN_HASH, "--unknown", "none")));
    REQUIRE(is_refused(LIST("runner", "serve", "stdio", "--first-stream", "--token-hash", TOKEN_HASH)));
    REQUIRE(is_refused(LIST("runner", "serve", "none", "--bridges", "--token-hash", TOKEN_HASH)));
    REQUIRE(is_refused(LIST("runner", "serve", "--token-hash", TOKEN_HASH, "--token-hash", TOKEN_HASH "0")));
}

static void a_hash_is_64_small_hexadecimal_digits(void) {
    uint8_t hash[32];
    memset(hash, 0xee, sizeof hash);
    REQUIRE(parse_hash("00010f10f09f99a9aaffabcdef0123456789fedcba98765432100a0b0c0d0e0f", hash));
    REQUIRE(memcmp(hash, "\x00\x01\x0f\x10\xf0\x9f\x99\xa9\xaa\xff\xab\xcd\xef\x01\x23\x45\x67\x89\xfe\xdc\xba\x98\x76\x54\x32\x10\x0a\x0b\x0c\x0d\x0e\x0f", 32) == 0);
    char text[65] = TOKEN_HASH;
    REQUIRE(takes_hash(text) && !takes_hash(TOKEN_HASH "0") && !takes_hash(text + 1));
    for (int at = 0; at < 64; at++) {
        text[at] = 'g';
        REQUIRE(!takes_hash(text));
        text[at] = TOKEN_HASH[at];
    }
    for (const char *other = "/:`gAFz"; *other; other++) {
        text[63] = *other;
        REQUIRE(!takes_hash(text));
    }
}

static bool is_like(const char *path, mode_t mode, uid_t user, gid_t group) {
    struct stat st;
    return stat(path, &st) == 0 && (st.st_mode & 07777) == mode && st.st_uid == user && st.st_gid == group;
}

static void a_directory_gets_the_owner_and_the_mode_of_another_one(void) {
    REQUIRE(mkdir("/tmp/from", 0700) == 0 && chown("/tmp/from", 12, 34) == 0 && chmod("/tmp/from", 03751) == 0 && mkdir("/tmp/to", 0700) == 0);
    REQUIRE(is_refused(LIST("runner", "serve", "--copy-rights", (char[]){"/tmp/from:/tmp/to"})) && is_like("/tmp/to", 03751, 12, 34));
    REQUIRE(is_like("/tmp/from", 03751, 12, 34));
    REQUIRE(code_of_main(LIST("runner", "serve", "--copy-rights", (char[]){"/tmp/missing:/tmp/to"})) == 1);
    REQUIRE(strcmp(printed, "brig: /tmp/to cannot be given the owner and mode of /tmp/missing: No such file or directory\n") == 0);
    REQUIRE(code_of_main(LIST("runner", "serve", "--copy-rights", (char[]){"/tmp/from:/tmp/missing"})) == 1);
    REQUIRE(strcmp(printed, "brig: /tmp/missing cannot be given the owner and mode of /tmp/from: No such file or directory\n") == 0);
    REQUIRE(code_of_main(LIST("runner", "serve", "--copy-rights", (char[]){"/tmp/from"})) == 1 && printed[0] == '\0');
}

/* ---- who answers to `connect` ------------------------------------------------------------------------------------- */

static int listening_fd;

static void listen_after_three(void) {
    if (pauses == 3) listening_fd = listen_for_bridges();
}

static void nothing_happens(void) {}

static void a_runner_that_does_not_listen_yet_is_waited_for(void) {
    struct sockaddr_un address;
    socklen_t length = bridge_address(&address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(length == offsetof(struct sockaddr_un, sun_path) + 1 + strlen("brig-runner") && memcmp(address.sun_path, "\0brig-runner", 12) == 0);
    in_pause = listen_after_three;
    listening_fd = -1;
    pauses = 0;
    REQUIRE(connect_patiently(fd, &address, length) == 0 && pauses == 3);
    close(fd);
    /* Only one can have the name, and the kernel adds to what comes there who it is from. */
    int on = 0;
    socklen_t size = sizeof on;
    REQUIRE(listen_for_bridges() == -1 && errno == EADDRINUSE);
    REQUIRE(fcntl(listening_fd, F_GETFL) & O_NONBLOCK && fcntl(listening_fd, F_GETFD) == FD_CLOEXEC);
    REQUIRE(getsockopt(listening_fd, SOL_SOCKET, SO_PASSCRED, &on, &size) == 0 && on == 1);
    close(listening_fd);
    in_pause = nothing_happens;
    pauses = 0;
    REQUIRE(code_of_run(connect_with, NULL) == 1 && strcmp(printed, "brig: the runner does not answer: Connection refused\n") == 0);
    REQUIRE(connect_patiently(-1, &address, length) == -1 && errno == EBADF && pauses == 0);
    in_pause = NULL;
}

/* In a child: takes one connection and its question, and answers it or does not. */
static pid_t take_one_question(bool answers) {
    int listener = listen_for_bridges();
    REQUIRE(listener >= 0);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid > 0) {
        close(listener);
        return pid;
    }
    char question;
    struct pollfd ready = {.fd = listener, .events = POLLIN};
    REQUIRE(poll(&ready, 1, PATIENCE_MS) == 1);
    int fd = accept(listener, NULL, NULL);
    REQUIRE(fd >= 0 && read(fd, &question, 1) == 1 && question == '?');
    if (answers) REQUIRE(send(fd, "!", 1, 0) == 1 && read(fd, &question, 1) == 0); /* until the other side goes */
    _exit(0);
}

static void connect_says_why_nobody_takes_its_streams(void) {
    char expected[100];
    pid_t pid = take_one_question(true);
    snprintf(expected, sizeof expected, "brig: the runner's socket is held by process %d, not by PID 1\n", (int)pid);
    REQUIRE(code_of_run(connect_with, NULL) == 1 && strcmp(printed, expected) == 0 && has_exited_with(pid, 0));
    /* In its own namespace a process of another one has no number. */
    pid = take_one_question(true);
    int told[2];
    REQUIRE(pipe(told) == 0);
    pid_t inside = fork_into_namespace();
    if (inside == 0) {
        place(told[1], 2);
        _exit(run_bridge());
    }
    close(told[1]);
    REQUIRE(has_exited_with(inside, 1) && has_exited_with(pid, 0));
    ssize_t length = read(told[0], printed, sizeof printed - 1);
    REQUIRE(length > 0);
    printed[length] = '\0';
    REQUIRE(strcmp(printed, "brig: the runner's socket is held by process 0, not by PID 1\n") == 0);
    close(told[0]);
    pid = take_one_question(false);
    REQUIRE(code_of_run(connect_with, NULL) == 1 && strcmp(printed, "brig: the runner takes no connection now\n") == 0 && has_exited_with(pid, 0));
    /* It is PID 1 that answers here, and it ends between the two. */
    int errors[2];
    REQUIRE(pipe(errors) == 0);
    pid = fork_into_namespace();
    if (pid == 0) {
        if (fork() == 0) {
            place(errors[1], 2);
            _exit(run_bridge() == 1 ? 0 : 3);
        }
        int listener = listen_for_bridges();
        struct pollfd ready = {.fd = listener, .events = POLLIN};
        REQUIRE(poll(&ready, 1, PATIENCE_MS) == 1);
        int fd = accept(listener, NULL, NULL), status = -1;
        char question;
        REQUIRE(fd >= 0 && read(fd, &question, 1) == 1 && shutdown(fd, SHUT_RD) == 0 && send(fd, "!", 1, 0) == 1);
        REQUIRE(wait(&status) > 0);
        _exit(status == 0 ? 0 : 4);
    }
    close(errors[1]);
    REQUIRE(has_exited_with(pid, 0));
    ssize_t n = read(errors[0], printed, sizeof printed - 1);
    REQUIRE(n > 0);
    printed[n] = '\0';
    REQUIRE(strcmp(printed, "brig: cannot hand over the stream: Broken pipe\n") == 0);
    close(errors[0]);
}

/* ---- connections to a runner -------------------------------------------------------------------------------------- */

/* `docker exec … runner-files connect`: in the runner's namespace, with a parent outside of it. */
static pid_t start_connect(void) {
    int theirs[2];
    char path[64];
    open_stream(theirs);
    snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)host.runner);
    pid_t outer = fork();
    REQUIRE(outer >= 0);
    if (outer == 0) {
        REQUIRE(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && setns(open(path, O_RDONLY | O_CLOEXEC), CLONE_NEWPID) == 0);
        pid_t inner = fork();
        REQUIRE(inner >= 0);
        if (inner > 0) _exit(has_exited_with(inner, 0) ? 0 : 1);
        place(theirs[0], 0);
        place(theirs[1], 1);
        host_disconnect();
        close(theirs[0]);
        close(theirs[1]);
        _exit(run_bridge());
    }
    close(theirs[0]);
    close(theirs[1]);
    return outer;
}

#define SERVE "runner", "serve", "--token-hash", TOKEN_HASH

static void a_broken_stream_loses_nothing(void) {
    open_sandbox();
    uint64_t boot = host.boot_id;
    struct call *c = start_command((struct wanted){.argv = LIST("cat")});
    host_send(FRAME_INPUT, channel_of(c), "before", 6);
    TAKE_UNTIL(is_text(&c->out, "before"));
    host_disconnect();
    pid_t connect = start_connect();
    host_hello();
    REQUIRE(host.boot_id == boot && host.runner_received == 2);
    host_send(FRAME_INPUT, channel_of(c), " and after", 10);
    TAKE_UNTIL(is_text(&c->out, "before and after"));
    /* A frame that the host does not say that it has is sent again, and the next host gets the stream. */
    host.received--;
    struct buffer all = c->out;
    c->out = (struct buffer){0};
    int to = host.to, from = host.from;
    pid_t other = start_connect();
    host_hello();
    TAKE_UNTIL(is_text(&c->out, " and after"));
    char byte;
    struct pollfd closed = {.fd = from, .events = POLLIN};
    REQUIRE(poll(&closed, 1, PATIENCE_MS) == 1 && read(from, &byte, 1) == 0 && has_exited_with(connect, 0));
    close(to);
    close(from);
    buffer_free(&all);
    host_send(FRAME_INPUT, channel_of(c), NULL, 0);
    REQUIRE(ended_with(await_exit(c), 0));
    close_sandbox();
    REQUIRE(waitpid(other, NULL, 0) == other); /* the end of its namespace has ended it */
}

static void a_host_that_does_not_know_the_token_is_not_listened_to(void) {
    uint8_t hello[HELLO_BYTES] = {PROTOCOL_VERSION};
    open_sandbox();
    int to = host.to, from = host.from;
    pid_t connect = start_connect();
    memcpy(hello + 4, TOKEN, TOKEN_BYTES);
    hello[4 + TOKEN_BYTES - 1] ^= 1;
    host_send(FRAME_HELLO, 0, hello, sizeof hello);
    REQUIRE(!host_take() && has_exited_with(connect, 0));
    host_disconnect();
    host.to = to;
    host.from = from;
    host_send(FRAME_PING, 0, "still there", 11);
    TAKE_UNTIL(is_text(&host.pong, "still there"));
    close_sandbox();
}

/* Commands that are to be this program find it here. */
static char own_path[] = "/tmp/own";

static void copy_own_program(void) {
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = open(own_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
    ssize_t n;
    while ((n = sendfile(to, from, NULL, 1 << 20)) > 0) continue;
    REQUIRE(n == 0 && close(from) == 0 && close(to) == 0);
}

/* The name of the socket is no secret. What asks from inside is told nothing. */
static void a_command_cannot_connect(void) {
    open_sandbox();
    for (int i = 0; i < 10; i++) {
        struct call *c = run_command((struct wanted){.argv = LIST(own_path, "connect")});
        REQUIRE(ended_with(c, 1) && is_text(&c->err, "brig: the runner takes no connection now\n"));
    }
    struct call *c = run_command((struct wanted){.argv = LIST(own_path, "serve-here"), .flags = SPAWN_NO_STDIN});
    REQUIRE(ended_with(c, 1) && is_text(&c->err, "brig: the runner cannot start: Address already in use\n"));
    close_sandbox();
}

/* ---- when it ends ------------------------------------------------------------------------------------------------- */

static void it_ends_with_its_lease_or_when_the_engine_says_so(void) {
    open_sandbox_with(LIST(SERVE, "--first-stream", "stdio", "--lease", "1"), NULL);
    host_disconnect();
    REQUIRE(has_exited_with(host.runner, LEASE_OVER_STATUS));
    static const int numbers[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP};
    for (int i = 0; i < 4; i++) {
        open_sandbox();
        REQUIRE(ended_with(run_script("kill -TERM 1; kill -INT 1; kill -QUIT 1; kill -HUP 1; exit 6"), 6));
        REQUIRE(kill(host.runner, SIGUSR1) == 0 && ended_with(run_script("exit 5"), 5));
        REQUIRE(kill(host.runner, numbers[i]) == 0 && has_exited_with(host.runner, 0));
        host_disconnect();
    }
}

static void a_host_that_comes_back_within_the_lease_finds_everything(void) {
    unlink("/tmp/witness");
    REQUIRE(mkfifo("/tmp/witness", 0600) == 0);
    int witness = open("/tmp/witness", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    open_sandbox_with(LIST(SERVE, "--first-stream", "stdio", "--lease", "600"), NULL);
    struct wanted command = script("exec sleep 1000 3>/tmp/witness");
    command.timeout_ms = 2000;
    struct call *c = start_command(command);
    host_disconnect();
    char byte;
    struct pollfd ended = {.fd = witness, .events = POLLIN};
    REQUIRE(poll(&ended, 1, PATIENCE_MS) == 1 && read(witness, &byte, 1) == 0);
    start_connect();
    host_hello();
    await_exit(c);
    REQUIRE(kind_of(c) == EXIT_SIGNALLED && code_of(c) == SIGTERM && flags_of(c) == EXIT_TIMED_OUT);
    close(witness);
    close_sandbox();
}

static void use_other_null(void) {
    REQUIRE(mknod("/tmp/zero", S_IFCHR | 0666, makedev(1, 5)) == 0 && mount("/tmp/zero", "/dev/null", NULL, MS_BIND, NULL) == 0);
}

static void use_a_file_as_null(void) {
    REQUIRE(close(open("/tmp/file", O_CREAT | O_WRONLY, 0666)) == 0 && mount("/tmp/file", "/dev/null", NULL, MS_BIND, NULL) == 0);
}

static void an_image_cannot_put_something_else_in_the_place_of_dev_null(void) {
    int streams[2] = {open("/dev/null", O_RDWR | O_CLOEXEC), open("/dev/null", O_RDWR | O_CLOEXEC)};
    void (*const prepare[])(void) = {use_other_null, use_a_file_as_null};
    for (int i = 0; i < 2; i++) REQUIRE(has_exited_with(start_runner(LIST(SERVE, "--lease", "0"), streams, streams[0], prepare[i]), 1));
    close(streams[0]);
    close(streams[1]);
}

/* A second runner: nobody can connect to it, and the name stays free for another. */
static void without_bridges_its_first_stream_is_its_only_one(void) {
    open_sandbox_with(LIST(SERVE, "--first-stream", "stdio", "--bridges", "none", "--lease", "0"), NULL);
    REQUIRE(ended_with(run_script("exit 3"), 3));
    int listener = listen_for_bridges();
    REQUIRE(listener >= 0);
    close(listener);
    close_sandbox();
}

static int originals[2];

static void close_originals(void) {
    for (int i = 0; i < 2; i++) close(originals[i]);
}

/* Nobody has attached to its standard streams, so whoever has their other ends sees that they are closed. */
static void without_a_first_stream_its_standard_streams_are_left_alone(void) {
    forget_host();
    open_stream(originals);
    host.runner = start_runner(LIST(SERVE, "--lease", "0"), originals, -1, close_originals);
    close_originals();
    REQUIRE(!host_take());
    host_disconnect();
    start_connect();
    host_hello();
    REQUIRE(ended_with(run_script("exit 3"), 3));
    close_sandbox();
}

static void have_few_descriptors(void) {
    struct rlimit few = {64, 64};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
}

static void a_want_of_descriptors_refuses_commands_and_passes(void) {
    enum { MANY = 24 };
    struct call *calls[MANY];
    open_sandbox_with(LIST(SERVE, "--first-stream", "stdio", "--lease", "0"), have_few_descriptors);
    for (int i = 0; i < MANY; i++) calls[i] = start_command((struct wanted){.argv = LIST("cat")});
    for (int i = 0; i < MANY; i++) host_send(FRAME_INPUT, channel_of(calls[i]), NULL, 0);
    int refused = 0;
    for (int i = 0; i < MANY; i++) {
        await_exit(calls[i]);
        if (ended_with(calls[i], 0)) continue;
        REQUIRE(kind_of(calls[i]) == EXIT_NOT_STARTED && error_of(calls[i]) == EMFILE && (stage_of(calls[i]) == STAGE_STREAMS || stage_of(calls[i]) == STAGE_FORK));
        refused++;
    }
    REQUIRE(refused > 0 && ended_with(calls[0], 0) && ended_with(run_script("exit 4"), 4));
    close_sandbox();
}

/* ---- a worker's functions ----------------------------------------------------------------------------------------- */

static void the_end_of_a_process_is_described_as_the_kernel_has_it(void) {
    struct worker_report report = {0};
    struct rusage usage = {.ru_utime = {.tv_sec = 3, .tv_usec = 17}, .ru_stime = {.tv_sec = 5, .tv_usec = 19}, .ru_maxrss = 7};
    describe_end(&report, 0x2a00, &usage);
    REQUIRE(report.kind == EXIT_EXITED && report.code == 42 && report.user_us == 3000017 && report.system_us == 5000019 && report.max_rss == 7168);
    describe_end(&report, SIGSEGV | 0x80, &usage);
    REQUIRE(report.kind == EXIT_SIGNALLED && report.code == SIGSEGV);
}

static bool is_changed_by(const char *variable, const char *change) { return is_changed(variable, (char *[]){(char[]){"ZZ=1"}, (char *)(uintptr_t)change, NULL}); }

static void a_variable_is_changed_by_its_whole_name(void) {
    REQUIRE(is_changed_by("A=1", "A=2") && is_changed_by("A=1", "A") && is_changed_by("A=", "A="));
    REQUIRE(!is_changed_by("A=1", "AB=1") && !is_changed_by("AB=1", "A=1") && !is_changed_by("AB=1", "A") && !is_changed_by("A=1", "AB"));
    char *variables[] = {(char[]){"PATHS=x"}, (char[]){"PATH"}, (char[]){"XPATH=y"}, (char[]){"PATH=z"}, (char[]){"PATH=later"}, NULL};
    REQUIRE(strcmp(environment_value(variables, "PATH"), "z") == 0 && !environment_value(variables, "PAT") && !environment_value(variables + 5, "PATH"));
}

/* A request that cannot be read, or for which there is no memory, is refused with nothing left of it. */
static void a_request_that_cannot_be_read_is_refused(void) {
    int pair[2];
    struct worker_slot slot = {0};
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    uint8_t *payloads[] = {MAP_FAILED, (uint8_t[]){1, 2, 3}};
    for (int i = 0; i < 2; i++) {
        struct received_job job = {.header = {.kind = JOB_SPAWN, .length = 3}, .payload = payloads[i], .fds = {dup(0), -1, -1}};
        int fd = job.fds[0];
        struct worker_report report;
        command_run(pair[0], &job, &slot);
        REQUIRE(recv(pair[1], &report, sizeof report, MSG_DONTWAIT) == sizeof report && recv(pair[1], &report, sizeof report, MSG_DONTWAIT) == -1);
        REQUIRE(report.what == (REPORT_ENDED | REPORT_EMPTY) && report.kind == EXIT_NOT_STARTED && report.stage == STAGE_REQUEST && report.error == EINVAL);
        REQUIRE(fcntl(fd, F_GETFD) == -1 && slot.child == 0);
    }
    close(pair[0]);
    close(pair[1]);
}

/* In a sandbox this program is a command that does as the tests say. */
static int act(const char *part) {
    if (strcmp(part, "connect") == 0) return run_bridge();
    return runner_main(6, (char *[]){(char[]){"runner"}, (char[]){"serve"}, (char[]){"--token-hash"}, (char[]){TOKEN_HASH}, (char[]){"--lease"}, (char[]){"0"}, NULL});
}

int main(int argc, char **argv) {
    if (argc > 1) _exit(act(argv[1])); /* without a search for leaks, which an end in the middle leaves */
    stand_alone();
    copy_own_program();
    RUN(a_command_line_is_understood_whole_or_not_at_all);
    RUN(a_hash_is_64_small_hexadecimal_digits);
    RUN(a_directory_gets_the_owner_and_the_mode_of_another_one);
    RUN(a_runner_that_does_not_listen_yet_is_waited_for);
    RUN(connect_says_why_nobody_takes_its_streams);
    RUN(a_broken_stream_loses_nothing);
    RUN(a_host_that_does_not_know_the_token_is_not_listened_to);
    RUN(a_command_cannot_connect);
    RUN(it_ends_with_its_lease_or_when_the_engine_says_so);
    RUN(a_host_that_comes_back_within_the_lease_finds_everything);
    RUN(an_image_cannot_put_something_else_in_the_place_of_dev_null);
    RUN(without_bridges_its_first_stream_is_its_only_one);
    RUN(without_a_first_stream_its_standard_streams_are_left_alone);
    RUN(a_want_of_descriptors_refuses_commands_and_passes);
    RUN(the_end_of_a_process_is_described_as_the_kernel_has_it);
    RUN(a_variable_is_changed_by_its_whole_name);
    RUN(a_request_that_cannot_be_read_is_refused);
    forget_host();
    return 0;
}
