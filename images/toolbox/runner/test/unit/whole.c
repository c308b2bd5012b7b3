/* Tests of the whole runner: what a host asks it for is what commands get, and what they do is what the host is told. */
#define _GNU_SOURCE
#include <limits.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

int runner_main(int argc, char **argv);
#define main runner_main
#include "../../main.c"
#undef main

#include "host.h"

/* ---- what a command gets ------------------------------------------------------------------------------------------ */

static void set_environment(void) {
    clearenv();
    setenv("PATH", "/usr/bin:/bin", 1);
    setenv("KEPT", "as it was", 1);
    setenv("A", "old", 1);
    setenv("AB", "longer", 1);
    setenv("GONE", "x", 1);
    signal(SIGHUP, SIG_IGN); /* as below nohup */
    signal(SIGUSR1, SIG_IGN);
}

static char *const *const serve_arguments = (char *const[]){"runner", "serve", "--token-hash", TOKEN_HASH, "--lease", "0", "--first-stream", "stdio", NULL};

static void a_command_gets_its_arguments_its_directory_and_the_changed_environment(void) {
    open_sandbox_with(serve_arguments, set_environment);
    struct call *c = run_command((struct wanted){
        .argv = LIST("sh", "-c", "echo \"$0|$1|$2|$#\"; echo to stderr >&2; pwd; env | sort | grep -v ^_=; exit 7", "zero", "", "a b"),
        .changes = LIST("A=new", "GONE", "MISSING", "MORE=a=b"),
        .cwd = "/usr/bin",
        .flags = SPAWN_NO_STDIN,
    });
    REQUIRE(ended_with(c, 7) && is_text(&c->err, "to stderr\n"));
    REQUIRE(is_text(&c->out, "zero||a b|2\n/usr/bin\nA=new\nAB=longer\nKEPT=as it was\nMORE=a=b\nPATH=/usr/bin:/bin\nPWD=/usr/bin\n"));
    c = run_command((struct wanted){.argv = LIST("/bin/pwd"), .changes = LIST("AB=1", "A=")});
    REQUIRE(ended_with(c, 0) && is_text(&c->out, "/\n") && buffer_length(&c->err) == 0 && buffer_length(&c->exit) == EXIT_HEAD_BYTES);
    c = run_command((struct wanted){.argv = LIST("env"), .changes = LIST("KEPT", "GONE", "PATH", "A", "AB")});
    REQUIRE(ended_with(c, 0) && is_text(&c->out, ""));
    close_sandbox();
}

/* The value of a field of a file like /proc/self/status, behind the tabs and spaces. */
static bool has_field(const struct buffer *b, const char *name, const char *value) {
    char line[256];
    snprintf(line, sizeof line, "%s%s\n", name, value);
    return contains(b, line);
}

static void a_command_starts_as_if_nothing_had_been_before_it(void) {
    open_sandbox_with(serve_arguments, set_environment);
    struct call *c = run_script("umask; ls -l /proc/self/fd | sed 's/.* \\([0-9]* ->\\)/\\1/'; exec cat /proc/self/status");
    REQUIRE(ended_with(c, 0) && contains(&c->out, "0022\n") && contains(&c->out, "0 -> /dev/null\n1 -> pipe:") && contains(&c->out, "3 -> /proc/") && !contains(&c->out, "\n4 ->"));
    for (int i = 0; i < 3; i++) REQUIRE(has_field(&c->out, (const char *[]){"SigBlk:\t", "SigIgn:\t", "SigCgt:\t"}[i], "0000000000000000"));
    /* It leads a session and comes behind the runner, which it cannot change. Fields 1, 5, 6 and 19 of proc(5). */
    c = run_script("set -- $(cat /proc/$$/stat); shift 4; echo $(($1 == $$)) $(($2 == $$)) ${15}; grep nice /proc/$$/limits");
    REQUIRE(ended_with(c, 0) && contains(&c->out, "1 1 15\n") && contains(&c->out, "Max nice priority         0                    0 "));
    c = run_script("cat /proc/1/oom_score_adj >/dev/null; set -- $(cat /proc/1/stat); echo ${19}");
    REQUIRE(ended_with(c, 0) && is_text(&c->out, "0\n"));
    close_sandbox();
}

static void streams_go_where_the_flags_say(void) {
    open_sandbox();
    struct call *c = run_command((struct wanted){.argv = LIST("sh", "-c", "cat; echo 1; echo 2 >&2; echo 3"), .flags = SPAWN_NO_STDIN | SPAWN_MERGE});
    REQUIRE(ended_with(c, 0) && is_text(&c->out, "1\n2\n3\n") && buffer_length(&c->err) == 0);
    c = start_command((struct wanted){.argv = LIST("sh", "-c", "cat; echo 2 >&2"), .flags = SPAWN_MERGE});
    host_send(FRAME_INPUT, channel_of(c), "1\n", 2);
    host_send(FRAME_INPUT, channel_of(c), NULL, 0);
    await_exit(c);
    REQUIRE(ended_with(c, 0) && is_text(&c->out, "1\n2\n") && buffer_length(&c->err) == 0);
    c = start_command((struct wanted){.argv = LIST("sh", "-c", "cat; echo 2 >&2")});
    host_send(FRAME_INPUT, channel_of(c), "1\n", 2);
    host_send(FRAME_INPUT, channel_of(c), NULL, 0);
    await_exit(c);
    REQUIRE(ended_with(c, 0) && is_text(&c->out, "1\n") && is_text(&c->err, "2\n"));
    /* Its own numbers are those of the streams that it is to get. */
    c = run_script("exec 2>&- 1>&- 0>&-; exit 3");
    REQUIRE(ended_with(c, 3));
    close_sandbox();
}

static uint8_t byte_at(size_t at) { return (uint8_t)(at * 7 + at / 251); }

static void megabytes_pass_in_both_directions_as_credit_allows(void) {
    static uint8_t piece[64 << 10];
    enum { PIECES = 24 };
    open_sandbox();
    struct call *c = start_command((struct wanted){.argv = LIST("cat")});
    size_t sent = 0;
    uint64_t credit = INITIAL_CREDIT, granted = 0;
    while (sent < PIECES * sizeof piece) {
        if (sent + sizeof piece > INITIAL_CREDIT + c->input_granted || buffer_length(&c->out) - granted > 128 << 10) {
            REQUIRE(host_take());
            REQUIRE(buffer_length(&c->out) <= credit);
            host_acknowledge();
            if (buffer_length(&c->out) + (64 << 10) > credit) {
                host_send32(FRAME_CREDIT, channel_of(c), 128 << 10);
                credit += 128 << 10;
                granted += 128 << 10;
            }
            continue;
        }
        for (size_t i = 0; i < sizeof piece; i++) piece[i] = byte_at(sent + i);
        host_send(FRAME_INPUT, channel_of(c), piece, sizeof piece);
        sent += sizeof piece;
    }
    host_send(FRAME_INPUT, channel_of(c), NULL, 0);
    host_send32(FRAME_CREDIT, channel_of(c), PIECES * sizeof piece);
    await_exit(c);
    REQUIRE(ended_with(c, 0) && buffer_length(&c->out) == sent);
    for (size_t i = 0; i < sent; i++) REQUIRE(buffer_front(&c->out)[i] == byte_at(i));
    close_sandbox();
}

/* ---- finding the program ------------------------------------------------------------------------------------------ */

static void put_program(const char *path, const char *text, mode_t mode) {
    FILE *file = fopen(path, "w");
    REQUIRE(file && fputs(text, file) >= 0 && fclose(file) == 0 && chmod(path, mode) == 0);
}

static struct call *run_named(const char *name, const char *path) {
    char variable[PATH_MAX + 100];
    snprintf(variable, sizeof variable, "PATH=%s", path);
    return run_command((struct wanted){.argv = LIST((char *)(uintptr_t)name, "x", "y"), .changes = LIST(variable), .cwd = "/tmp/w", .flags = SPAWN_NO_STDIN});
}

static void a_program_is_found_as_a_shell_would(void) {
    REQUIRE(system("mkdir -p /tmp/w/no /tmp/w/yes && ln -s loop /tmp/w/loop") == 0);
    put_program("/tmp/w/no/tool", "echo wrong\n", 0644);
    put_program("/tmp/w/yes/tool", "#!/bin/sh\necho found $0 $*\n", 0755);
    put_program("/tmp/w/here", "echo \"$0|$1|$2|$#\"\n", 0755); /* without a first line that names its interpreter */
    open_sandbox();
    struct call *c = run_named("tool", "/missing:/tmp/w/here:/tmp/w/no:/tmp/w/yes");
    REQUIRE(ended_with(c, 0) && is_text(&c->out, "found /tmp/w/yes/tool x y\n"));
    REQUIRE(ended_with(run_named("tool", "yes"), 0));
    c = run_named("here", "/missing::/bin");
    REQUIRE(ended_with(c, 0) && is_text(&c->out, "here|x|y|2\n"));
    c = run_named("/tmp/w/here", "/bin");
    REQUIRE(ended_with(c, 0) && is_text(&c->out, "/tmp/w/here|x|y|2\n"));
    REQUIRE(was_not_started(run_named("tool", "/tmp/w/no:/missing"), STAGE_EXEC, EACCES));
    REQUIRE(was_not_started(run_named("tool", "/missing:/tmp/w/here"), STAGE_EXEC, ENOENT));
    REQUIRE(was_not_started(run_named("tool", "/tmp/w/loop:/tmp/w/yes"), STAGE_EXEC, ELOOP));
    REQUIRE(was_not_started(run_named("tool", ""), STAGE_EXEC, ENOENT));
    REQUIRE(was_not_started(run_named("", "/tmp/w/yes"), STAGE_EXEC, ENOENT));
    REQUIRE(was_not_started(run_named("no/tool", "/tmp/w/yes"), STAGE_EXEC, EACCES));
    REQUIRE(was_not_started(run_named("./tool", "/tmp/w/yes"), STAGE_EXEC, ENOENT));
    c = run_command((struct wanted){.argv = LIST("sh", "-c", "echo $PATH"), .changes = LIST("PATH"), .flags = SPAWN_NO_STDIN});
    REQUIRE(ended_with(c, 0) && buffer_length(&c->out) > 1);
    REQUIRE(was_not_started(run_command((struct wanted){.argv = LIST("true"), .cwd = "/missing"}), STAGE_CWD, ENOENT));
    REQUIRE(was_not_started(run_command((struct wanted){.argv = LIST("true"), .cwd = "/tmp/w/here"}), STAGE_CWD, ENOTDIR));
    close_sandbox();
}

/* The longest name that the kernel takes is still tried, and a longer one is left out. */
static void a_directory_in_path_may_be_as_long_as_a_path_may_be(void) {
    char path[2 * PATH_MAX];
    open_sandbox();
    for (size_t more = 0; more < 2; more++) {
        size_t length = PATH_MAX - strlen("/true") - 1 + more;
        memcpy(path, "/bin", 5);
        while (strlen(path) + 2 <= length) strcat(path, "/.");
        if (strlen(path) < length) strcat(path, "/");
        REQUIRE(strlen(path) == length);
        struct call *c = run_named("true", path);
        REQUIRE(more ? was_not_started(c, STAGE_EXEC, ENOENT) : ended_with(c, 0));
    }
    close_sandbox();
}

/* ---- how it ends -------------------------------------------------------------------------------------------------- */

static bool was_signalled(const struct call *c, uint16_t number, uint8_t flags) {
    return kind_of(c) == EXIT_SIGNALLED && code_of(c) == number && flags_of(c) == flags;
}

static void the_host_is_told_how_a_command_ended(void) {
    open_sandbox();
    REQUIRE(was_signalled(run_script("kill -TERM $$"), SIGTERM, 0));
    REQUIRE(was_signalled(run_script("kill -KILL $$"), SIGKILL, 0));
    REQUIRE(ended_with(run_script("exit 255"), 255));
    /* One that takes some time and some memory. */
    struct call *c = run_script("i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done");
    const uint8_t *head = buffer_front(&c->exit);
    REQUIRE(ended_with(c, 0) && get64(head + 12) + get64(head + 20) > 0 && get64(head + 28) > 512 << 10 && get64(head + 36) > 0);
    close_sandbox();
}

/* A FIFO that processes of the sandbox hold open for writing: reading it comes to an end when the last one is gone. */
static int open_witness(void) {
    unlink("/tmp/witness");
    REQUIRE(mkfifo("/tmp/witness", 0600) == 0);
    return open("/tmp/witness", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

static bool is_alone(int witness) {
    char byte;
    struct pollfd p = {.fd = witness, .events = POLLIN};
    return poll(&p, 1, 0) == 1 && read(witness, &byte, 1) == 0;
}

static void what_outlives_its_command_is_ended_if_the_host_wants_that(void) {
    open_sandbox();
    int witness = open_witness();
    struct wanted command = script("(exec 3>/tmp/witness; : >/tmp/up; exec setsid sleep 1000 >/dev/null 2>&1) & while [ ! -e /tmp/up ]; do sleep 0.01; done");
    command.flags |= SPAWN_ENDS_TREE;
    command.grace_ms = 20000;
    struct call *c = run_command(command);
    REQUIRE(kind_of(c) == EXIT_EXITED && code_of(c) == 0 && flags_of(c) == EXIT_TREE_ENDED && is_alone(witness));
    REQUIRE(unlink("/tmp/up") == 0);
    /* One that takes no notice of SIGTERM is killed after the grace. */
    command = script("(trap '' TERM; exec 3>/tmp/witness; : >/tmp/up; exec sleep 1000 >/dev/null 2>&1) & while [ ! -e /tmp/up ]; do sleep 0.01; done; exit 4");
    command.flags |= SPAWN_ENDS_TREE;
    command.grace_ms = 30;
    c = run_command(command);
    REQUIRE(kind_of(c) == EXIT_EXITED && code_of(c) == 4 && flags_of(c) == EXIT_TREE_ENDED && is_alone(witness));
    REQUIRE(unlink("/tmp/up") == 0);
    close(witness);
    close_sandbox();
}

static void what_is_left_goes_on_and_its_output_is_late(void) {
    open_sandbox();
    int witness = open_witness();
    struct call *c = run_script("(trap 'echo asked; exit' TERM; exec 3>/tmp/witness; echo ready >/tmp/up; while :; do sleep 0.01; done) & exit 2");
    REQUIRE(kind_of(c) == EXIT_EXITED && code_of(c) == 2 && flags_of(c) == EXIT_PIPE_HELD && buffer_length(&c->out) == 0);
    AWAIT(access("/tmp/up", F_OK) == 0);
    unlink("/tmp/up");
    host_send32(FRAME_KILL, channel_of(c), 20000);
    TAKE_UNTIL(contains(&c->late, "asked\n"));
    AWAIT(is_alone(witness));
    close(witness);
    close_sandbox();
}

static struct call *start_and_await(const char *text, const char *ready) {
    struct call *c = start_command(script(text));
    TAKE_UNTIL(contains(&c->out, ready));
    return c;
}

/*
 * A background process holds the command's stdout open here, so the runner cannot wait for the end of that pipe. It sends the bytes that lie in the
 * pipe, for which the host has to grant credit, and then EXIT. When nothing lies there, EXIT comes although the host has no credit left to use.
 */
static void a_stream_that_is_held_open_keeps_the_end_back_for_what_lies_in_it(void) {
    open_sandbox();
    struct call *c = run_script("sleep 1000 & head -c 262144 /dev/zero; exit 4");
    REQUIRE(kind_of(c) == EXIT_EXITED && code_of(c) == 4 && flags_of(c) == EXIT_PIPE_HELD && buffer_length(&c->out) == INITIAL_CREDIT);
    host_send32(FRAME_KILL, channel_of(c), 0);
    c = start_command(script("sleep 1000 & head -c 262145 /dev/zero; echo end >&2; exit 4"));
    TAKE_UNTIL(buffer_length(&c->out) + buffer_length(&c->err) == INITIAL_CREDIT);
    host_send32(FRAME_CREDIT, channel_of(c), 5);
    await_exit(c);
    REQUIRE(kind_of(c) == EXIT_EXITED && code_of(c) == 4 && flags_of(c) == EXIT_PIPE_HELD && buffer_length(&c->out) == INITIAL_CREDIT + 1 && is_text(&c->err, "end\n"));
    host_send32(FRAME_KILL, channel_of(c), 0);
    close_sandbox();
}

static void kill_asks_first_and_then_does_not(void) {
    open_sandbox();
    struct call *c = start_and_await("trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done", "ready");
    host_send32(FRAME_KILL, channel_of(c), 20000);
    await_exit(c);
    REQUIRE(kind_of(c) == EXIT_EXITED && code_of(c) == 3 && flags_of(c) == EXIT_KILLED);
    c = start_and_await("trap '' TERM; echo ready; while :; do sleep 0.01; done", "ready");
    host_send32(FRAME_KILL, channel_of(c), 30);
    REQUIRE(was_signalled(await_exit(c), SIGKILL, EXIT_KILLED));
    c = start_and_await("trap 'exit 3' TERM; echo ready; kill -STOP $$; while :; do sleep 0.01; done", "ready");
    host_send32(FRAME_KILL, channel_of(c), 20000);
    await_exit(c);
    REQUIRE(kind_of(c) == EXIT_EXITED && code_of(c) == 3 && flags_of(c) == EXIT_KILLED);
    /* One that has only just been asked for, and may have no process yet. */
    c = start_command(script("sleep 1000"));
    host_send32(FRAME_KILL, channel_of(c), 20000);
    REQUIRE(was_signalled(await_exit(c), SIGTERM, EXIT_KILLED));
    struct wanted command = script("sleep 1000 & sleep 1000");
    command.timeout_ms = 50;
    command.grace_ms = 20000;
    REQUIRE(was_signalled(run_command(command), SIGTERM, EXIT_TIMED_OUT));
    command = script("exit 1");
    command.timeout_ms = 100000;
    REQUIRE(ended_with(run_command(command), 1));
    close_sandbox();
}

static void signals_reach_the_whole_group(void) {
    open_sandbox();
    struct call *c = start_and_await("(trap 'echo child' USR1; echo a >&2; while :; do sleep 0.01; done) & trap 'echo parent; exit 5' USR1; echo ready; while :; do sleep 0.01; done", "ready");
    TAKE_UNTIL(is_text(&c->err, "a\n"));
    host_send(FRAME_SIGNAL, channel_of(c), (uint8_t[]){SIGUSR1}, 1);
    TAKE_UNTIL(contains(&c->out, "child\n") && contains(&c->out, "parent\n"));
    await_exit(c);
    REQUIRE(kind_of(c) == EXIT_EXITED && code_of(c) == 5 && flags_of(c) == EXIT_PIPE_HELD);
    host_send32(FRAME_KILL, channel_of(c), 0);
    for (uint8_t number = 63; number <= 64; number++) {
        c = start_command(script("exec sleep 1000"));
        host_send(FRAME_SIGNAL, channel_of(c), (uint8_t[]){number}, 1); /* it may have no process yet */
        REQUIRE(was_signalled(await_exit(c), number, 0));
    }
    close_sandbox();
}

/* ---- terminals ---------------------------------------------------------------------------------------------------- */

static void type_text(const struct call *c, const char *text) { host_send(FRAME_INPUT, channel_of(c), text, strlen(text)); }

static void a_terminal_is_the_commands_own(void) {
    open_sandbox();
    struct call *c = start_command((struct wanted){
        .argv = LIST("sh", "-c", "stty size; stty -echo; trap 'stty size; echo resized' WINCH; echo to the terminal >/dev/tty; echo err >&2; while :; do read line; echo \"<$line>\"; done"),
        .flags = SPAWN_PTY,
        .rows = 31,
        .cols = 97,
    });
    TAKE_UNTIL(contains(&c->out, "err\r\n"));
    REQUIRE(is_text(&c->out, "31 97\r\nto the terminal\r\nerr\r\n") && buffer_length(&c->err) == 0);
    type_text(c, "typed\n");
    TAKE_UNTIL(contains(&c->out, "<typed>\r\n"));
    uint8_t size[4];
    put16(size, 12);
    put16(size + 2, 34);
    host_send(FRAME_RESIZE, channel_of(c), size, 4);
    type_text(c, "more\n");
    TAKE_UNTIL(contains(&c->out, "resized\r\n"));
    REQUIRE(contains(&c->out, "12 34\r\nresized\r\n"));
    type_text(c, "\003");
    REQUIRE(was_signalled(await_exit(c), SIGINT, 0));
    c = start_command((struct wanted){.argv = LIST("cat"), .flags = SPAWN_PTY, .rows = 5, .cols = 5});
    host_send(FRAME_INPUT, channel_of(c), NULL, 0); /* cat gets to its end as if somebody had pressed Ctrl-D */
    REQUIRE(ended_with(await_exit(c), 0));
    close_sandbox();
}

static void a_signal_goes_to_whatever_a_terminal_has_in_the_foreground(void) {
    open_sandbox();
    struct call *c = start_command((struct wanted){
        .argv = LIST("bash", "-c", "set -m; (trap 'echo inner; exit 0' INT; echo ready; while :; do sleep 0.01; done); echo outer goes on; exit 6"),
        .flags = SPAWN_PTY,
    });
    TAKE_UNTIL(contains(&c->out, "ready"));
    host_send(FRAME_SIGNAL, channel_of(c), (uint8_t[]){SIGINT}, 1);
    await_exit(c);
    REQUIRE(ended_with(c, 6) && contains(&c->out, "inner\r\n") && contains(&c->out, "outer goes on\r\n"));
    close_sandbox();
}

/* ---- why commands fail -------------------------------------------------------------------------------------------- */

static void mount_a_small_room(void) {
    REQUIRE(mkdir("/tmp/room", 0700) == 0 || errno == EEXIST);
    REQUIRE(mount("room", "/tmp/room", "tmpfs", 0, "size=65536") == 0);
}

#define FILL_THE_ROOM "head -c 100000 /dev/zero >/tmp/room/full; exit 1"

/* As PID 1, the runner knows all commands. So what has become full while only one of them ran was filled by that one. */
static void what_a_command_alone_has_filled_is_told(void) {
    static const char room[] = "/tmp/room";
    open_sandbox_with(serve_arguments, mount_a_small_room);
    for (int in_company = 0; in_company < 2; in_company++) {
        struct call *other = in_company ? start_command((struct wanted){.argv = LIST("cat")}) : NULL;
        if (other) host_send(FRAME_INPUT, channel_of(other), "x", 1);
        if (other) TAKE_UNTIL(buffer_length(&other->out) == 1);
        struct call *c = run_script(FILL_THE_ROOM);
        REQUIRE(kind_of(c) == EXIT_EXITED && code_of(c) == 1);
        const uint8_t *cause = buffer_front(&c->exit) + EXIT_HEAD_BYTES;
        size_t length = buffer_length(&c->exit) - EXIT_HEAD_BYTES;
        if (in_company) REQUIRE(length == 0);
        else REQUIRE(length == CAUSE_HEAD_BYTES + strlen(room) && cause[0] == CAUSE_FULL_MEMORY && cause[1] == 0 && get64(cause + 4) == 65536);
        if (!in_company) REQUIRE(memcmp(cause + CAUSE_HEAD_BYTES, room, strlen(room)) == 0);
        if (other) host_send(FRAME_INPUT, channel_of(other), NULL, 0);
        if (other) REQUIRE(ended_with(await_exit(other), 0));
        REQUIRE(ended_with(run_script("rm /tmp/room/full"), 0));
    }
    close_sandbox();
}

/* ---- workers ------------------------------------------------------------------------------------------------------ */

/* The pids of the runner's children, as its namespace has them, in words. */
static size_t count_words(const struct buffer *b) {
    size_t words = 0;
    for (size_t i = 0; i < buffer_length(b); i++) words += buffer_front(b)[i] == ' ' || buffer_front(b)[i] == '\n';
    return words;
}

static size_t count_workers(void) {
    struct call *c = run_script("for p in /proc/[0-9]*; do [ \"$(cut -d' ' -f4 $p/stat 2>/dev/null)\" = 1 ] && printf '%s ' ${p#/proc/}; done; :");
    return count_words(&c->out);
}

static void many_commands_run_at_once_and_few_workers_stay(void) {
    enum { MANY = 12 };
    struct call *calls[MANY];
    open_sandbox();
    REQUIRE(count_workers() >= 2);
    for (int i = 0; i < MANY; i++) calls[i] = start_command((struct wanted){.argv = LIST("cat")});
    for (int i = 0; i < MANY; i++) host_send(FRAME_INPUT, channel_of(calls[i]), &i, sizeof i);
    for (int i = 0; i < MANY; i++) TAKE_UNTIL(buffer_length(&calls[i]->out) == sizeof i);
    REQUIRE(count_workers() >= MANY + 2);
    for (int i = 0; i < MANY; i++) host_send(FRAME_INPUT, channel_of(calls[i]), NULL, 0);
    for (int i = 0; i < MANY; i++) REQUIRE(ended_with(await_exit(calls[i]), 0) && memcmp(buffer_front(&calls[i]->out), &i, sizeof i) == 0);
    int rounds = 0;
    while (count_workers() > 7 && ++rounds < 100) pause_briefly();
    REQUIRE(rounds < 100);
    close_sandbox();
}

static void a_command_that_kills_its_worker_is_lost_with_all_that_it_started(void) {
    open_sandbox();
    int witness = open_witness();
    struct call *c = run_script("exec 3>/tmp/witness; sleep 1000 & kill -KILL $PPID; sleep 1000");
    REQUIRE(kind_of(c) == EXIT_LOST && code_of(c) == SIGKILL);
    AWAIT(is_alone(witness));
    REQUIRE(ended_with(run_script("exit 9"), 9));
    /* So are others when it kills everybody that it may. The runner stays, and goes on. */
    struct call *other = start_and_await("echo ready; while :; do sleep 0.01; done", "ready");
    c = run_script("kill -KILL -1");
    REQUIRE(kind_of(await_exit(other)) != EXIT_EXITED);
    for (uint16_t i = 0; i < 4; i++) REQUIRE(ended_with(run_script("kill -TERM 1; kill -INT 1; kill -HUP 1; kill -CHLD 1; kill -KILL 1; exit 8"), 8));
    /* A worker that was stopped is sent on. */
    c = run_script("kill -STOP $PPID; exit 3");
    REQUIRE(ended_with(c, 3));
    close(witness);
    close_sandbox();
}

/* The runner's processes may be bound to a single processor while they run. A command still gets all the processors that the runner started with. */
static void commands_get_the_processors_that_the_runner_began_with(void) {
    open_sandbox();
    struct call *before = run_script("exec grep Cpus_allowed: /proc/self/status");
    struct call *bound = run_script("first=$(taskset -c -p 1 | sed 's/.*: //; s/[-,].*//'); for p in /proc/[0-9]*; do taskset -c -p $first ${p#/proc/}; done >/dev/null 2>&1; taskset -c -p 1");
    struct call *after = run_script("exec grep Cpus_allowed: /proc/self/status");
    REQUIRE(ended_with(before, 0) && ended_with(bound, 0) && !contains(&bound->out, ",") && !contains(&bound->out, "-"));
    REQUIRE(ended_with(after, 0) && buffer_length(&before->out) == buffer_length(&after->out));
    REQUIRE(memcmp(buffer_front(&before->out), buffer_front(&after->out), buffer_length(&after->out)) == 0);
    close_sandbox();
}

/* ---- file operations ---------------------------------------------------------------------------------------------- */

static struct call *look_at_root(void) {
    static const uint8_t request[FILE_HEAD_BYTES + 9] = {[0] = FILE_STAT, [FILE_HEAD_BYTES] = 1, [FILE_HEAD_BYTES + 4] = '/'};
    uint32_t channel = ++host.last_channel;
    host_send(FRAME_FILE, channel, request, sizeof request);
    return await_exit(&host.calls[channel]);
}

static void the_program_of_file_operations_has_nothing_open_but_its_socket(void) {
    open_sandbox();
    for (int i = 0; i < 3; i++) {
        struct call *c = look_at_root();
        REQUIRE(kind_of(c) == EXIT_FILE && error_of(c) == 0 && buffer_length(&c->exit) > EXIT_HEAD_BYTES);
    }
    struct call *c = run_script("cd /proc; for p in [0-9]*; do read name < $p/comm; [ $name != unit-whole-file ] || { set -- $(ls $p/fd); echo $# $(grep Gid: $p/status); }; done");
    REQUIRE(ended_with(c, 0) && is_text(&c->out, "4 Gid: 0 0 0 0\n"));
    close_sandbox();
}

/* A path must not seem to be missing because the program is. */
static void without_its_program_a_file_operation_fails_and_commands_do_not(void) {
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof "-files");
    REQUIRE(length > 0);
    strcpy(path + length, "-files");
    REQUIRE(mount("/dev/null", path, NULL, MS_BIND, NULL) == 0);
    open_sandbox();
    for (int i = 0; i < 3; i++) {
        struct call *c = look_at_root();
        REQUIRE(kind_of(c) == EXIT_FILE && error_of(c) == EIO && buffer_length(&c->exit) == EXIT_HEAD_BYTES);
    }
    REQUIRE(ended_with(run_script("exit 3"), 3));
    close_sandbox();
    REQUIRE(umount(path) == 0);
}

int main(void) {
    stand_alone();
    RUN(a_command_gets_its_arguments_its_directory_and_the_changed_environment);
    RUN(a_command_starts_as_if_nothing_had_been_before_it);
    RUN(streams_go_where_the_flags_say);
    RUN(megabytes_pass_in_both_directions_as_credit_allows);
    RUN(a_program_is_found_as_a_shell_would);
    RUN(a_directory_in_path_may_be_as_long_as_a_path_may_be);
    RUN(the_host_is_told_how_a_command_ended);
    RUN(what_outlives_its_command_is_ended_if_the_host_wants_that);
    RUN(what_is_left_goes_on_and_its_output_is_late);
    RUN(a_stream_that_is_held_open_keeps_the_end_back_for_what_lies_in_it);
    RUN(kill_asks_first_and_then_does_not);
    RUN(signals_reach_the_whole_group);
    RUN(a_terminal_is_the_commands_own);
    RUN(a_signal_goes_to_whatever_a_terminal_has_in_the_foreground);
    RUN(what_a_command_alone_has_filled_is_told);
    RUN(many_commands_run_at_once_and_few_workers_stay);
    RUN(a_command_that_kills_its_worker_is_lost_with_all_that_it_started);
    RUN(commands_get_the_processors_that_the_runner_began_with);
    RUN(the_program_of_file_operations_has_nothing_open_but_its_socket);
    RUN(without_its_program_a_file_operation_fails_and_commands_do_not);
    forget_host();
    return 0;
}
