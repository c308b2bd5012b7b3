/* Limits of the event loop that short inputs of the fuzzer do not reach, tested with the runner, host and commands of fuzz/session.c. */
#include "../fuzz/session.c"

#include <sys/resource.h>
#include <sys/un.h>

static void open_welcomed(void) {
    open_runner();
    host_connect();
    one_turn();
    host_read(64 << 10);
    REQUIRE(s.is_welcome);
}

static void everything_flows(void) {
    for (int i = 0; i < 4; i++) {
        one_turn();
        while (host_read(64 << 10)) continue;
        host_acknowledge();
    }
}

/* Starts a command on a new channel and returns its worker. */
static struct fake *start_one(void) {
    static const uint8_t no_stdin[] = {SPAWN_NO_STDIN};
    struct input in = {no_stdin, no_stdin + sizeof no_stdin};
    everything_flows(); /* workers are forked ahead of time */
    host_spawn(&in);
    everything_flows();
    struct fake *started = NULL;
    for (int i = 0; i < fake_count; i++) {
        receive_job(&fakes[i]);
        if (fakes[i].channel == channel_count) started = &fakes[i];
    }
    REQUIRE(started);
    return started;
}

static void send_credit(uint32_t channel, uint32_t bytes) {
    uint8_t payload[4];
    put32(payload, bytes);
    host_send(FRAME_CREDIT, channel, payload, sizeof payload);
    one_turn();
}

static void a_host_that_grants_without_end_is_dropped(void) {
    open_welcomed();
    uint32_t channel = start_one()->channel;
    send_credit(channel, (64u << 20) - INITIAL_CREDIT);
    REQUIRE(s.bridge->is_used);
    send_credit(channel, 1);
    REQUIRE(!s.bridge->is_used && !s.r.host);
    finish();
    close_runner();
}

/* Whether a host that sends this to a command is kept. */
static bool may_send(uint8_t type, const void *payload, size_t length) {
    open_welcomed();
    uint32_t channel = start_one()->channel;
    host_send(type, channel, payload, length);
    one_turn();
    bool is_kept = s.bridge->is_used;
    finish();
    close_runner();
    return is_kept;
}

static void a_frame_for_a_command_has_one_size_and_a_signal_is_one_that_there_is(void) {
    static const uint8_t zeros[5] = {0};
    static const uint8_t numbers[] = {0, 1, 2, 63, 64, 65, 255};
    for (size_t i = 0; i < sizeof numbers; i++)
        REQUIRE(may_send(FRAME_SIGNAL, &numbers[i], 1) == (numbers[i] >= 1 && numbers[i] <= 64));
    REQUIRE(!may_send(FRAME_SIGNAL, "\1\1", 2) && !may_send(FRAME_SIGNAL, "", 0));
    static const uint8_t types[] = {FRAME_RESIZE, FRAME_CREDIT};
    for (size_t i = 0; i < sizeof types; i++)
        for (size_t length = 3; length <= 5; length++) REQUIRE(may_send(types[i], zeros, length) == (length == 4));
    REQUIRE(!may_send(FRAME_BOUND, zeros, 4) && !may_send(FRAME_STDOUT, zeros, 1));
}

/* host_take checks the same limit with every LATE frame. */
static void late_output_has_its_end_and_its_writer_does_not_wait(void) {
    open_welcomed();
    struct fake *f = start_one();
    struct record *record = &records[f->channel];
    end_command(f);
    clock_ms += HOLD_MS;
    everything_flows();
    clock_ms += HOLD_MS;
    everything_flows();
    REQUIRE(record->exited && f->out >= 0);
    for (uint64_t wrote = 0; record->wrote[0] < 3 * LATE_MAX; wrote = record->wrote[0]) {
        command_writes(f, 0, 32 << 10);
        REQUIRE(record->wrote[0] > wrote);
        for (int i = 0; i < 2; i++) everything_flows();
    }
    REQUIRE(record->late <= LATE_MAX && record->late + MAX_PAYLOAD_FROM_RUNNER > LATE_MAX);
    finish();
    close_runner();
}

/* Whether a connection is kept on which so far only the header of a HELLO of this length has come. */
static bool is_waited_for(uint32_t length) {
    uint8_t header[HEADER_BYTES];
    host_dial();
    frame_header(header, FRAME_HELLO, 0, length);
    host_write(header, sizeof header);
    one_turn();
    return s.bridge->is_used;
}

static void before_the_greeting_nothing_longer_is_waited_for(void) {
    open_runner();
    REQUIRE(is_waited_for(44) && !is_waited_for(65) && !is_waited_for(MAX_PAYLOAD_TO_RUNNER));
    close_runner();
}

/* ---- sockets ------------------------------------------------------------------------------------------------------ */

/* A listener, and a program that has connected to it. Returns the channel of the connection. */
static uint32_t connect_program(void) {
    host_listen(LISTEN_STREAM);
    everything_flows();
    host_accept();
    everything_flows();
    program_connects();
    everything_flows();
    REQUIRE(program_count == 1 && records[channel_count].is_connected);
    return channel_count;
}

static void a_connection_keeps_no_more_than_it_may_and_drops_a_host_that_sends_more(void) {
    static uint8_t piece[INITIAL_CREDIT];
    open_welcomed();
    uint32_t channel = connect_program();
    const struct endpoint *c = endpoint_find(&s.r, channel);
    /* The program reads nothing, and the host pays no heed to its credit. */
    for (int i = 0; i < 400 && s.bridge->is_used; i++) {
        records[channel].input_sent += sizeof piece;
        host_send(FRAME_INPUT, channel, piece, sizeof piece);
        REQUIRE(buffer_length(&c->input) <= ENDPOINT_INPUT_MAX);
    }
    everything_flows();
    REQUIRE(!s.bridge->is_used);
    close_runner();
}

static bool may_listen(const uint8_t *host) {
    uint8_t payload[LISTEN_BYTES] = {LISTEN_STREAM};
    open_welcomed();
    loopback_bytes(payload + 4, 0);
    memcpy(payload + 8, host, 4);
    open_socket_channel(FRAME_LISTEN, payload, sizeof payload);
    everything_flows();
    bool is_open = s.bridge->is_used;
    close_runner();
    return is_open;
}

static void only_loopback_may_be_listened_on(void) {
    REQUIRE(may_listen((const uint8_t[]){127, 9, 8, 7}));
    REQUIRE(!may_listen((const uint8_t[]){0, 0, 0, 0}) && !may_listen((const uint8_t[]){10, 0, 0, 1}));
}

/* Asks for a socket that datagrams can be sent to, and returns its channel. */
static uint32_t listen_for_datagrams(void) {
    host_listen(LISTEN_DATAGRAMS);
    everything_flows();
    REQUIRE(endpoint_find(&s.r, channel_count));
    return channel_count;
}

static void without_descriptors_a_socket_is_refused_and_says_why(void) {
    open_welcomed();
    s.r.fd_limit = 0;
    for (uint8_t kind = LISTEN_STREAM; kind <= LISTEN_DATAGRAMS; kind++) {
        host_listen(kind);
        everything_flows();
        REQUIRE(!endpoint_find(&s.r, channel_count) && records[channel_count].exited && records[channel_count].error == EMFILE);
    }
    host_dial_program(server_port);
    everything_flows();
    REQUIRE(records[channel_count].exited && records[channel_count].error == EMFILE);
    close_runner();
}

/* The kernel itself has no descriptor left either. */
static void without_any_descriptor_a_socket_is_refused_too(void) {
    struct rlimit limit, none;
    open_welcomed();
    REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    none = (struct rlimit){0, limit.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    host_listen(LISTEN_DATAGRAMS);
    everything_flows();
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    REQUIRE(records[channel_count].exited && records[channel_count].error == EMFILE);
    close_runner();
}

static void datagrams_wait_while_the_host_reads_nothing(void) {
    static uint8_t bytes[4096];
    open_welcomed();
    uint32_t channel = listen_for_datagrams();
    struct endpoint *e = endpoint_find(&s.r, channel);
    struct sockaddr_in to = on_loopback(port_of(e->source.fd, false));
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    e->credit = 1 << 20;
    REQUIRE(fd >= 0);
    for (int i = 0; i < 200 && !link_is_full(&s.r.link); i++) {
        REQUIRE(sendto(fd, bytes, sizeof bytes, 0, (struct sockaddr *)&to, sizeof to) == sizeof bytes);
        one_turn();
    }
    REQUIRE(link_is_full(&s.r.link) && e->source.armed == 0 && s.r.network_waits);
    everything_flows();
    REQUIRE(!link_is_full(&s.r.link) && e->source.armed == EPOLLIN && !s.r.network_waits);
    uint64_t before = records[channel].datagrams;
    REQUIRE(sendto(fd, bytes, 1, 0, (struct sockaddr *)&to, sizeof to) == 1);
    everything_flows();
    REQUIRE(records[channel].datagrams == before + 1);
    close(fd);
    finish();
    close_runner();
}

static void what_came_before_a_reset_arrives_once_there_is_credit_for_it(void) {
    open_welcomed();
    uint32_t channel = connect_program();
    while (programs[0].wrote < 3 * INITIAL_CREDIT) program_writes(&programs[0], INITIAL_CREDIT);
    everything_flows();
    program_resets(&programs[0]);
    everything_flows();
    REQUIRE(!records[channel].exited && records[channel].got[0] == INITIAL_CREDIT);
    for (int i = 0; i < 3; i++) {
        host_grant(channel, INITIAL_CREDIT);
        everything_flows();
    }
    REQUIRE(records[channel].exited && !records[channel].saw_end && records[channel].got[0] == programs[0].wrote);
    finish();
    close_runner();
}

/* ---- the door --------------------------------------------------------------------------------------------------- */

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_length = sizeof(sa_family_t); /* the kernel chooses a name */

static void open_door(void) {
    int on = 1;
    s.r.listener = (struct source){.on_event = on_listener, .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    int fd = s.r.listener.fd;
    REQUIRE(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
    REQUIRE(bind(fd, (struct sockaddr *)&address, address_length) == 0 && listen(fd, 16) == 0);
    address_length = sizeof address;
    REQUIRE(getsockname(fd, (struct sockaddr *)&address, &address_length) == 0);
    watch(&s.r, &s.r.listener, EPOLLIN);
}

static int knock(pid_t parent) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    parent_of_all = parent;
    REQUIRE(fd >= 0 && connect(fd, (struct sockaddr *)&address, address_length) == 0);
    one_turn();
    return fd;
}

static int taken_places(void) {
    int count = 0;
    for (int i = 0; i < MAX_BRIDGES; i++) count += s.r.bridges[i].is_used;
    return count;
}

static bool is_turned_away(int fd) {
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void who_has_a_parent_inside_gets_no_place(void) {
    open_runner();
    open_door();
    int inside = knock(7);
    REQUIRE(taken_places() == 0 && is_turned_away(inside));
    int outside = knock(0);
    REQUIRE(taken_places() == 1 && !is_turned_away(outside));
    /* If the connection does not show who made it, its first message does. */
    parent_of_all = 7;
    REQUIRE(send(outside, "?", 1, MSG_NOSIGNAL) == 1);
    one_turn();
    REQUIRE(taken_places() == 0 && is_turned_away(outside));
    close(inside);
    close(outside);
    close_source(&s.r, &s.r.listener);
    close_runner();
}

static int accept_error;

/* The connection stays in the queue of the listener when accept fails for want of something. */
static int accept_if_there_is_room(int fd) {
    errno = accept_error;
    return accept_error ? -1 : accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

static void while_nothing_is_left_nobody_is_let_in_and_then_all_are(void) {
    static const int lacks[] = {EMFILE, ENFILE, ENOMEM, ENOBUFS, EAGAIN, ECONNABORTED};
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) {
        bool is_lack = i < 4;
        open_runner();
        open_door();
        accept_bridge = accept_if_there_is_room;
        accept_error = lacks[i];
        int fd = knock(0);
        REQUIRE(taken_places() == 0 && s.r.listener.armed == (is_lack ? 0 : EPOLLIN) && (s.r.accept_again_ms != 0) == is_lack);
        clock_ms += ACCEPT_RETRY_MS - 1;
        one_turn();
        REQUIRE(s.r.listener.armed == (is_lack ? 0 : EPOLLIN));
        accept_error = 0;
        clock_ms++;
        one_turn();
        one_turn();
        REQUIRE(taken_places() == 1 && s.r.accept_again_ms == 0 && !is_turned_away(fd));
        accept_bridge = NULL;
        close(fd);
        close_source(&s.r, &s.r.listener);
        close_runner();
    }
}

/* ---- why commands fail -------------------------------------------------------------------------------------------- */

static struct watched watched;

static void set_counter(int *fd, const char *text) {
    if (*fd >= 0) close(*fd);
    *fd = memfd_create("counter", MFD_CLOEXEC);
    REQUIRE(*fd >= 0 && write(*fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static void open_watched(void) {
    open_welcomed();
    watched = (struct watched){.counters = {-1, -1, {-1, -1}, -1, -1, -1, -1, -1, -1, -1}};
    set_counter(&watched.counters.memory_events, "oom 0\noom_kill 0\n");
    set_counter(&watched.counters.refused_forks, "max 0\n");
    set_counter(&watched.counters.memory_limit, "1048576\n");
    set_counter(&watched.counters.process_limit, "64\n");
    set_counter(&watched.counters.cpu_stat, "nr_periods 9\nnr_throttled 7\nthrottled_time 1\n");
    set_counter(&watched.counters.cpu_limit, "150000 100000\n");
    s.r.watched = &watched;
}

static void close_watched(void) {
    s.r.watched = NULL;
    finish();
    close_runner();
    const struct counters *c = &watched.counters;
    const int files[] = {c->memory_events, c->refused_forks, c->memory_limit, c->process_limit, c->cpu_stat, c->cpu_limit, c->cpu_period};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i] >= 0) close(files[i]);
}

/* The kinds and flags of the causes of such an end of the command, "" for none. */
static const char *causes_of(const struct fake *f, struct worker_report report) {
    static char text[64];
    struct buffer out = {.data = NULL};
    bool lacked_memory = causes_append(&s.r, channel_find(&s.r, f->channel), &report, &out);
    size_t at = 0;
    text[0] = 0;
    for (size_t i = 0; i < buffer_length(&out); i += CAUSE_HEAD_BYTES)
        at += (size_t)snprintf(text + at, sizeof text - at, "%u:%u:%u ", buffer_front(&out)[i], buffer_front(&out)[i + 1],
                               (unsigned)get64(buffer_front(&out) + i + 4));
    buffer_free(&out);
    REQUIRE(lacked_memory == (text[0] == '1'));
    return text;
}

#define REQUIRE_CAUSES(f, expected, ...) REQUIRE(strcmp(causes_of(f, (struct worker_report){__VA_ARGS__}), expected) == 0)

static void a_command_alone_has_what_was_counted_while_it_ran(void) {
    open_watched();
    set_counter(&watched.counters.memory_events, "oom 5\noom_kill 5\n");
    set_counter(&watched.counters.refused_forks, "max 5\n");
    struct fake *f = start_one();
    s.r.channels[f->channel % CHANNEL_BUCKETS]->before.had_company = false; /* this process is not PID 1 */
    REQUIRE_CAUSES(f, "", .kind = EXIT_EXITED, .code = 1);
    set_counter(&watched.counters.memory_events, "oom 6\noom_kill 6\n");
    set_counter(&watched.counters.refused_forks, "max 6\n");
    REQUIRE_CAUSES(f, "1:0:1048576 2:0:64 ", .kind = EXIT_EXITED, .code = 1);
    REQUIRE_CAUSES(f, "", .kind = EXIT_EXITED, .code = 0);
    set_counter(&watched.counters.memory_events, "oom 5\noom_kill 6\n");
    set_counter(&watched.counters.refused_forks, "max 5\n");
    REQUIRE_CAUSES(f, "1:1:0 ", .kind = EXIT_EXITED, .code = 1);
    close_watched();
}

static void what_was_refused_to_the_runner_itself_is_no_cause(void) {
    open_watched();
    struct fake *f = start_one();
    s.r.channels[f->channel % CHANNEL_BUCKETS]->before.had_company = false;
    set_counter(&watched.counters.refused_forks, "max 3\n");
    s.r.refused_forks += 3;
    REQUIRE_CAUSES(f, "", .kind = EXIT_EXITED, .code = 1);
    REQUIRE_CAUSES(f, "2:0:64 ", .kind = EXIT_NOT_STARTED, .stage = STAGE_FORK, .error = EAGAIN);
    REQUIRE_CAUSES(f, "", .kind = EXIT_NOT_STARTED, .stage = STAGE_FORK, .error = ENOMEM);
    REQUIRE_CAUSES(f, "", .kind = EXIT_NOT_STARTED, .stage = STAGE_EXEC, .error = EAGAIN);
    set_counter(&watched.counters.refused_forks, "max 4\n");
    REQUIRE_CAUSES(f, "2:0:64 ", .kind = EXIT_EXITED, .code = 1);
    close_watched();
}

static void in_company_a_command_has_only_what_is_certainly_its_own(void) {
    open_watched();
    struct fake *f = start_one();
    s.r.channels[f->channel % CHANNEL_BUCKETS]->before.had_company = false;
    start_one();
    set_counter(&watched.counters.memory_events, "oom 1\noom_kill 1\n");
    set_counter(&watched.counters.refused_forks, "max 1\n");
    REQUIRE_CAUSES(f, "", .kind = EXIT_EXITED, .code = 1);
    REQUIRE_CAUSES(f, "", .kind = EXIT_SIGNALLED, .code = SIGTERM);
    REQUIRE_CAUSES(f, "1:0:1048576 ", .kind = EXIT_SIGNALLED, .code = SIGKILL);
    REQUIRE_CAUSES(f, "1:0:1048576 ", .kind = EXIT_EXITED, .code = 137);
    channel_find(&s.r, f->channel)->exit_flags |= EXIT_TIMED_OUT;
    REQUIRE_CAUSES(f, "", .kind = EXIT_SIGNALLED, .code = SIGKILL);
    close_watched();
}

static void only_a_command_whose_time_is_over_and_that_was_much_held_back_has_the_limit_of_processors(void) {
    open_watched();
    struct channel *c = channel_find(&s.r, start_one()->channel);
    struct fake *f = &(struct fake){.channel = c->id};
    c->before.had_company = false;
    c->before.throttled = 7;
    c->exit_flags |= EXIT_TIMED_OUT;
    c->started_us = now_us() - 1000000;
    REQUIRE_CAUSES(f, "", .kind = EXIT_SIGNALLED, .code = SIGKILL);
    set_counter(&watched.counters.cpu_stat, "nr_throttled 9\n");
    REQUIRE_CAUSES(f, "", .kind = EXIT_SIGNALLED, .code = SIGKILL);
    set_counter(&watched.counters.cpu_stat, "nr_throttled 12\n");
    REQUIRE_CAUSES(f, "5:0:1500 ", .kind = EXIT_SIGNALLED, .code = SIGKILL);
    c->before.had_company = true;
    REQUIRE_CAUSES(f, "", .kind = EXIT_SIGNALLED, .code = SIGKILL);
    c->before.had_company = false;
    c->exit_flags = 0;
    REQUIRE_CAUSES(f, "", .kind = EXIT_SIGNALLED, .code = SIGKILL);
    c->exit_flags |= EXIT_TIMED_OUT;
    set_counter(&watched.counters.cpu_limit, "max 100000\n");
    REQUIRE_CAUSES(f, "", .kind = EXIT_SIGNALLED, .code = SIGKILL);
    /* Version 1 has the period in a file of its own. */
    set_counter(&watched.counters.cpu_limit, "25000\n");
    REQUIRE_CAUSES(f, "", .kind = EXIT_SIGNALLED, .code = SIGKILL);
    set_counter(&watched.counters.cpu_period, "50000\n");
    set_counter(&watched.counters.cpu_stat, "nr_throttled 100\n");
    REQUIRE_CAUSES(f, "5:0:500 ", .kind = EXIT_SIGNALLED, .code = SIGKILL);
    set_counter(&watched.counters.cpu_period, "0\n");
    REQUIRE_CAUSES(f, "", .kind = EXIT_SIGNALLED, .code = SIGKILL);
    close_watched();
}

/* ----------------------------------------------------------------------------------------------------------------- */

#define TEST(name) {#name, name}

static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {
    TEST(a_host_that_grants_without_end_is_dropped),
    TEST(a_frame_for_a_command_has_one_size_and_a_signal_is_one_that_there_is),
    TEST(without_descriptors_a_socket_is_refused_and_says_why),
    TEST(without_any_descriptor_a_socket_is_refused_too),
    TEST(datagrams_wait_while_the_host_reads_nothing),
    TEST(while_nothing_is_left_nobody_is_let_in_and_then_all_are),
    TEST(late_output_has_its_end_and_its_writer_does_not_wait),
    TEST(before_the_greeting_nothing_longer_is_waited_for),
    TEST(who_has_a_parent_inside_gets_no_place),
    TEST(a_connection_keeps_no_more_than_it_may_and_drops_a_host_that_sends_more),
    TEST(only_loopback_may_be_listened_on),
    TEST(what_came_before_a_reset_arrives_once_there_is_credit_for_it),
    TEST(a_command_alone_has_what_was_counted_while_it_ran),
    TEST(what_was_refused_to_the_runner_itself_is_no_cause),
    TEST(only_a_command_whose_time_is_over_and_that_was_much_held_back_has_the_limit_of_processors),
    TEST(in_company_a_command_has_only_what_is_certainly_its_own),
};

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IONBF, 0);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        tests[i].run();
        printf("ok %s\n", tests[i].name);
    }
    return 0;
}
