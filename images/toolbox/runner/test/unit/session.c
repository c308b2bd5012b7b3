/* Limits of the event loop that short inputs of the fuzzer do not reach, tested with the runner, host and commands of fuzz/session.c. */
#include "play.h"

#include <sys/resource.h>

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

static void a_host_may_send_what_the_command_has_read(void) {
    open_welcomed();
    everything_flows();
    struct input in = {NULL, NULL};
    host_spawn(&in);
    everything_flows();
    uint32_t channel = channel_count;
    struct record *record = &records[channel];
    struct fake *f = NULL;
    for (int i = 0; i < fake_count; i++) {
        receive_job(&fakes[i]);
        if (fakes[i].channel == channel) f = &fakes[i];
    }
    REQUIRE(f && f->in >= 0 && f->out >= 0 && f->err >= 0);
    for (uint64_t sent = 0; record->input_sent < 4 * INITIAL_CREDIT; sent = record->input_sent) {
        host_input(channel, 4000);
        REQUIRE(record->input_sent > sent);
        everything_flows();
        while (command_reads(f, 4096)) continue;
        everything_flows();
        REQUIRE(record->input_read == record->input_sent && record->input_granted + INITIAL_CREDIT / 2 > record->input_sent);
    }
    finish();
    close_runner();
}

/* SIGKILL is sent again every 10 ms, for 5 seconds. Then the host is told that something is left. */
static void a_command_that_cannot_be_killed_is_given_up_in_time(void) {
    open_welcomed();
    start_one();
    struct record *record = &records[channel_count];
    host_kill(channel_count, 0);
    one_turn();
    for (int i = 1; i <= 500; i++) {
        clock_ms += 10;
        one_turn();
        REQUIRE((channel_find(&s.r, channel_count)->tree.step == TREE_GIVEN_UP) == (i == 500));
    }
    clock_ms += 250; /* for its output, as of any command that has ended */
    everything_flows();
    REQUIRE(record->exited && record->exit_flags == (EXIT_KILLED | EXIT_TREE_LEFT | EXIT_PIPE_HELD));
    finish();
    close_runner();
}

static void a_signal_is_sent_to_the_group_of_the_command(void) {
    open_welcomed();
    struct fake *f = start_one();
    signalled = 0;
    for (int number = 1; number <= 64; number += 63) {
        uint8_t byte = (uint8_t)number;
        host_send(FRAME_SIGNAL, f->channel, &byte, 1);
        one_turn();
        REQUIRE(signalled == pid_of(f) && last_signal == number);
    }
    finish();
    close_runner();
}

/* How a command ended, from what the host is told. */
static uint8_t exit_flags_of(bool is_killed, bool is_late) {
    static const uint8_t request[] = {SPAWN_NO_STDIN, 200};
    open_welcomed();
    everything_flows();
    struct input in = {request, request + (is_late ? 2 : 1)};
    host_spawn(&in);
    everything_flows();
    uint32_t channel = channel_count;
    if (is_late) clock_ms += 200;
    if (is_killed) host_kill(channel, 0);
    finish();
    close_runner();
    return records[channel].exit_flags & (EXIT_KILLED | EXIT_TIMED_OUT);
}

static void the_end_of_a_command_says_who_brought_it_about(void) {
    REQUIRE(exit_flags_of(false, false) == 0);
    REQUIRE(exit_flags_of(true, false) == EXIT_KILLED);
    REQUIRE(exit_flags_of(false, true) == EXIT_TIMED_OUT);
}

static void without_descriptors_a_command_is_not_started_and_says_why(void) {
    static const uint8_t flags[] = {0, SPAWN_NO_STDIN, SPAWN_NO_STDIN | SPAWN_MERGE};
    size_t before = open_descriptors();
    for (size_t i = 0; i < sizeof flags; i++) {
        open_welcomed();
        everything_flows();
        s.r.fd_limit = 0;
        struct input in = {&flags[i], &flags[i] + 1};
        host_spawn(&in);
        everything_flows();
        const struct record *record = &records[channel_count];
        REQUIRE(record->exited && record->error == EMFILE && record->stage == STAGE_STREAMS);
        finish();
        close_runner();
        REQUIRE(open_descriptors() == before);
    }
}

/* It has no worker that could keep anything of it, so nothing is waited for. */
static void a_file_operation_that_is_cancelled_in_the_queue_ends_at_once(void) {
    static const uint8_t kinds[] = {0, 1}; /* a read and a write */
    for (size_t k = 0; k < sizeof kinds; k++) {
        open_welcomed();
        for (int i = 0; i <= FILE_JOBS_AT_ONCE; i++) host_file(&(struct input){&kinds[k], &kinds[k] + 1});
        one_turn();
        REQUIRE(s.r.queue_first && s.r.queue_first->channel->id == channel_count);
        host_kill(channel_count, 1000);
        everything_flows();
        const struct record *record = &records[channel_count];
        REQUIRE(record->exited && record->exit_flags == EXIT_KILLED && record->error == ECANCELED && !s.r.queue_first);
        finish();
        close_runner();
    }
}

/* Starts so many file operations of which the host gets nothing but their end. */
static void many_file_operations_come_to_their_end_in_any_number(void) {
    for (int count = 1; count <= 12; count++) {
        static const uint8_t stat_kind[] = {2};
        open_welcomed();
        for (int i = 0; i < count; i++) {
            struct input in = {stat_kind, stat_kind + 1};
            host_file(&in);
        }
        one_turn();
        int queued = 0;
        for (const struct queued_file *q = s.r.queue_first; q; q = q->next) {
            queued++;
            REQUIRE(q->next || s.r.queue_end == &q->next);
        }
        REQUIRE(queued == (count > FILE_JOBS_AT_ONCE ? count - FILE_JOBS_AT_ONCE : 0));
        finish();
        close_runner();
    }
}

static void an_event_without_bytes_ends_no_connection(void) {
    open_welcomed();
    on_stream(&s.r, &s.bridge->in, EPOLLIN);
    REQUIRE(s.bridge->is_used && s.r.host == s.bridge);
    /* A stream that cannot be read any more does. */
    int directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(directory >= 0 && dup2(directory, s.bridge->in.fd) >= 0 && close(directory) == 0);
    on_stream(&s.r, &s.bridge->in, EPOLLIN);
    REQUIRE(!s.bridge->is_used && !s.r.host);
    close_runner();
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

static void datagrams_go_both_ways_whole_or_not_at_all(void) {
    enum { MOST = MAX_PAYLOAD_FROM_RUNNER - ADDRESS_BYTES };
    static uint8_t bytes[MOST + 1], payload[ADDRESS_BYTES + 5], got[16];
    open_welcomed();
    uint32_t channel = listen_for_datagrams();
    int program = open_program_for_datagrams();
    const struct endpoint *e = endpoint_find(&s.r, channel);
    struct sockaddr_in to = on_loopback(port_of(e->source.fd, false));
    static const size_t lengths[] = {0, 1, MOST, MOST + 1};
    int64_t left = e->credit;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i % 251);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        REQUIRE(sendto(program, bytes, lengths[i], 0, (struct sockaddr *)&to, sizeof to) == (ssize_t)lengths[i]);
        everything_flows();
        bool fits = lengths[i] <= MOST;
        REQUIRE(records[channel].datagrams == (fits ? i + 1 : i));
        if (!fits) continue;
        left -= (int64_t)(ADDRESS_BYTES + lengths[i]);
        REQUIRE(e->credit == left && last_datagram_length == ADDRESS_BYTES + lengths[i] && memcmp(last_datagram + ADDRESS_BYTES, bytes, lengths[i]) == 0);
        REQUIRE(get16(last_datagram + 2) == port_of(program, false));
    }
    loopback_bytes(payload, port_of(program, false));
    memcpy(payload + ADDRESS_BYTES, "hello", 5);
    host_send(FRAME_DATAGRAM, channel, payload, sizeof payload);
    everything_flows();
    REQUIRE(recv(program, got, sizeof got, 0) == 5 && memcmp(got, "hello", 5) == 0);
    host_send(FRAME_DATAGRAM, channel, payload, ADDRESS_BYTES);
    everything_flows();
    REQUIRE(recv(program, got, sizeof got, 0) == 0 && s.bridge->is_used);
    host_send(FRAME_DATAGRAM, channel, payload, ADDRESS_BYTES - 1);
    everything_flows();
    REQUIRE(!s.bridge->is_used);
    host_connect();
    everything_flows();
    payload[4] = 10; /* not loopback */
    host_send(FRAME_DATAGRAM, channel, payload, sizeof payload);
    everything_flows();
    REQUIRE(!s.bridge->is_used && recv(program, got, sizeof got, 0) < 0);
    close(program);
    finish();
    close_runner();
}

static void a_program_that_is_dialled_is_reached_or_the_error_is_told(void) {
    static const uint8_t half[INITIAL_CREDIT / 2];
    open_welcomed();
    host_dial_program(server_port);
    uint32_t channel = channel_count;
    /* The host need not wait for the connection to be made. */
    host_input(channel, 1000);
    everything_flows();
    REQUIRE(records[channel].is_connected && records[channel].program == 0 && s.r.open_connections == 1);
    while (program_reads(&programs[0], 4096)) continue;
    REQUIRE(programs[0].read == 1000);
    for (int i = 0; i < 8; i++) {
        host_input(channel, 4000);
        everything_flows();
        while (program_reads(&programs[0], 4096)) continue;
        /* The host may send as much again as the program has taken, by halves of what may be under way. */
        REQUIRE(programs[0].read == records[channel].input_sent);
        REQUIRE(records[channel].input_granted == programs[0].read - programs[0].read % (sizeof half) || records[channel].input_granted + sizeof half > programs[0].read);
        REQUIRE(programs[0].read < sizeof half || records[channel].input_granted >= sizeof half);
    }
    program_writes(&programs[0], 100);
    everything_flows();
    REQUIRE(records[channel].got[0] == 100);
    host_input(channel, 0);
    program_shuts(&programs[0]);
    everything_flows();
    REQUIRE(records[channel].exited && records[channel].error == 0 && records[channel].saw_end && s.r.open_connections == 0);
    host_dial_program(1);
    everything_flows();
    REQUIRE(records[channel_count].exited && records[channel_count].error == ECONNREFUSED && !records[channel_count].is_connected);
    close_runner();
}

/* The host may have nothing to say, and say that at once. */
static void the_end_of_the_input_may_come_before_the_connection(void) {
    open_welcomed();
    host_dial_program(server_port);
    host_input(channel_count, 0);
    everything_flows();
    REQUIRE(records[channel_count].is_connected && !program_reads(&programs[0], 1) && programs[0].has_read_end);
    finish();
    close_runner();
}

static void who_waits_no_longer_gets_no_connection(void) {
    open_welcomed();
    connect_program();
    host_accept();
    uint32_t first = channel_count;
    host_accept();
    host_accept();
    everything_flows();
    host_kill(first, 0);
    host_kill(first + 2, 0);
    everything_flows();
    REQUIRE(records[first].exited && records[first + 2].exited && !records[first + 1].exited);
    program_connects();
    everything_flows();
    REQUIRE(records[first + 1].is_connected);
    finish();
    close_runner();
}

static void a_listener_goes_on_after_it_had_nobody_waiting(void) {
    open_welcomed();
    connect_program();
    for (int i = 0; i < 2; i++) {
        host_accept();
        everything_flows();
        uint32_t first = channel_count;
        host_accept();
        everything_flows();
        REQUIRE(channel_count == first + 1);
        program_connects();
        everything_flows();
        REQUIRE(records[first].is_connected && !records[first + 1].is_connected);
        program_connects();
        everything_flows();
        REQUIRE(records[first + 1].is_connected);
    }
    finish();
    close_runner();
}

static void a_reset_is_told_to_a_host_that_sends_and_wants_nothing(void) {
    open_welcomed();
    uint32_t channel = connect_program();
    const struct endpoint *c = endpoint_find(&s.r, channel);
    program_shuts(&programs[0]);
    everything_flows();
    REQUIRE(records[channel].saw_end && !records[channel].exited && c->source.armed == EPOLLERR);
    host_input(channel, 100);
    everything_flows();
    program_resets(&programs[0]);
    everything_flows();
    REQUIRE(records[channel].exited && records[channel].error == EPIPE); /* as the kernel calls it once the program has ended its output */
    close_runner();
}

static void the_host_gets_no_more_than_it_has_granted_and_then_the_rest(void) {
    open_welcomed();
    uint32_t channel = connect_program();
    const struct endpoint *c = endpoint_find(&s.r, channel);
    while (programs[0].wrote < INITIAL_CREDIT + 10) program_writes(&programs[0], INITIAL_CREDIT + 10 - programs[0].wrote);
    everything_flows();
    REQUIRE(c->credit == 0 && records[channel].got[0] == INITIAL_CREDIT && c->source.armed == EPOLLERR);
    host_grant(channel, 3);
    everything_flows();
    REQUIRE(c->credit == 0 && records[channel].got[0] == INITIAL_CREDIT + 3);
    host_grant(channel, 20);
    everything_flows();
    REQUIRE(c->credit == 13 && records[channel].got[0] == INITIAL_CREDIT + 10 && c->source.armed == EPOLLIN);
    finish();
    close_runner();
}

static void a_connection_for_which_there_is_no_descriptor_is_closed_and_others_wait(void) {
    open_welcomed();
    host_listen(LISTEN_STREAM);
    everything_flows();
    host_accept();
    everything_flows();
    uint32_t channel = channel_count;
    const struct endpoint *listener = endpoint_find(&s.r, listener_channel);
    s.r.fd_limit = 20;
    size_t before = open_descriptors();
    program_connects();
    everything_flows();
    REQUIRE(program_count == 1 && open_descriptors() == before + 1 && !records[channel].is_connected);
    REQUIRE(listener->accept_again_ms != 0 && listener->source.armed == 0);
    s.r.fd_limit = 4096;
    program_connects();
    everything_flows();
    REQUIRE(!records[channel].is_connected);
    clock_ms += 100;
    everything_flows();
    REQUIRE(records[channel].is_connected && listener->accept_again_ms == 0);
    finish();
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

/* ---- what a new process has open ---------------------------------------------------------------------------------- */

static bool is_null_device(int fd) {
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

/* Runs this in a process of its own, and returns its exit status. */
static int in_a_process(int (*act)(int), int given) {
    int status;
    pid_t pid = (fork)();
    if (pid == 0) _exit(act(given));
    REQUIRE(pid > 0 && (waitpid)(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int leave_streams_with_some_closed(int closed) {
    for (int fd = 0; fd < 3; fd++)
        if (closed >> fd & 1) close(fd);
    if (!leave_standard_streams()) return 1;
    for (int fd = 0; fd < 3; fd++)
        if (!is_null_device(fd)) return 2;
    for (int fd = 3; fd < 64; fd++)
        if (fcntl(fd, F_GETFD) >= 0) return 3;
    return (fcntl(0, F_GETFL) & O_ACCMODE) == O_RDONLY && (fcntl(1, F_GETFL) & O_ACCMODE) == O_RDWR && (fcntl(2, F_GETFL) & O_ACCMODE) == O_RDWR ? 0 : 4;
}

static char jail[64];

/* An image can have anything at /dev/null. */
static int leave_streams_in_a_jail(int kind) {
    if (kind == 1 && mknod("dev/null", S_IFREG | 0666, 0) != 0) return 9;
    if (kind == 2 && symlink("nowhere", "dev/null") != 0) return 9;
    if (kind == 3 && mkdir("dev/null", 0700) != 0) return 9;
    if (chroot(kind == 4 ? "/" : ".") != 0) return 9;
    /* It has the right one, but a descriptor for one of the two streams only. */
    for (int fd = 3; kind == 4 && fd < 64; fd++) close(fd);
    if (kind == 4 && setrlimit(RLIMIT_NOFILE, &(struct rlimit){4, 4}) != 0) return 9;
    return leave_standard_streams() || errno != ENODEV;
}

static void the_standard_streams_become_the_null_device(void) {
    for (int closed = 0; closed < 7; closed++) REQUIRE(in_a_process(leave_streams_with_some_closed, closed) == 0);
    for (int kind = 0; kind < 5; kind++) {
        snprintf(jail, sizeof jail, "/tmp/brig-jail-XXXXXX");
        REQUIRE(mkdtemp(jail) && chdir(jail) == 0 && mkdir("dev", 0700) == 0);
        REQUIRE(in_a_process(leave_streams_in_a_jail, kind) == 0);
        REQUIRE(chdir("/") == 0);
    }
}

/* Opens descriptors around the two that are kept, which may have any number. */
static int close_others(int keep) {
    struct runner r = {.highest_fd = missing_call < 0 ? 3 : 60};
    static const int numbers[] = {3, 4, 5, 6, 7, 8, 9, 30, 31, 32, 60};
    for (int fd = 3; fd < 200; fd++) close(fd);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (dup2(1, numbers[i]) != numbers[i]) return 1;
    if (missing_call < 0 && dup2(1, 150) != 150) return 1;
    dup2(1, keep + 1);
    close_all_but(&r, keep, keep + 1);
    for (int fd = 0; fd < 200; fd++)
        if ((fcntl(fd, F_GETFD) >= 0) != (fd < 3 || fd == keep || fd == keep + 1)) return 2;
    return 0;
}

static void a_new_worker_has_nothing_open_but_what_it_is_given(void) {
    static const int kept[] = {4, 5, 31, 60};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        REQUIRE(in_a_process(close_others, kept[i]) == 0);
        missing_call = SYS_close_range;
        REQUIRE(in_a_process(close_others, kept[i]) == 0);
        missing_call = -1;
    }
}

static int take_signal_from(int number) {
    static const struct signalfd_siginfo all[] = {
        {.ssi_signo = SIGTERM, .ssi_code = SI_USER},
        {.ssi_signo = SIGTERM, .ssi_code = SI_KERNEL},
        {.ssi_signo = SIGTERM, .ssi_code = SI_USER, .ssi_pid = 7},
        {.ssi_signo = SIGCHLD, .ssi_code = SI_USER},
        {.ssi_signo = SIGTERM, .ssi_code = SI_QUEUE},
    };
    int ends[2];
    struct source source = {.fd = -1};
    if (pipe2(ends, O_NONBLOCK) != 0 || write(ends[1], &all[number], sizeof *all) != sizeof *all) return 9;
    source.fd = ends[0];
    on_signal(&s.r, &source, EPOLLIN);
    return 7;
}

static void only_a_signal_of_the_engine_ends_the_runner(void) {
    memset(&s, 0, sizeof s);
    fake_count = 0;
    for (int i = 0; i < 5; i++) REQUIRE(in_a_process(take_signal_from, i) == (i < 2 ? 0 : 7));
}

/* ---- the door --------------------------------------------------------------------------------------------------- */

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

/* A process inside may say that it comes from outside until the kernel tells who sent its message. */
static void streams_of_somebody_inside_are_closed(void) {
    open_runner();
    open_door();
    int ends[2];
    one_turn(); /* workers are forked ahead of time */
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    size_t before = open_descriptors();
    int fd = knock(0);
    parent_of_all = 7;
    hand_over_streams(fd, ends, 2);
    one_turn();
    REQUIRE(taken_places() == 0 && is_turned_away(fd) && open_descriptors() == before + 1);
    close(fd);
    fd = knock(0);
    hand_over_streams(fd, ends, 1); /* one stream is not two */
    one_turn();
    REQUIRE(open_descriptors() <= before + 2);
    close(fd);
    one_turn();
    REQUIRE(taken_places() == 0 && open_descriptors() == before);
    close(ends[0]);
    close(ends[1]);
    close_source(&s.r, &s.r.listener);
    close_runner();
}

static void while_nothing_is_left_nobody_is_let_in_and_then_all_are(void) {
    static const int lacks[] = {EMFILE, ENFILE, ENOMEM, ENOBUFS, EAGAIN, ECONNABORTED};
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) {
        bool is_lack = i < 4;
        open_runner();
        open_door();
        trouble[ACCEPT].error = lacks[i];
        trouble[ACCEPT].times = INT_MAX;
        int fd = knock(0);
        REQUIRE(taken_places() == 0 && s.r.listener.armed == (is_lack ? 0 : EPOLLIN) && (s.r.accept_again_ms != 0) == is_lack);
        clock_ms += ACCEPT_RETRY_MS - 1;
        one_turn();
        REQUIRE(s.r.listener.armed == (is_lack ? 0 : EPOLLIN));
        trouble[ACCEPT].times = 0;
        clock_ms++;
        one_turn();
        one_turn();
        REQUIRE(taken_places() == 1 && s.r.accept_again_ms == 0 && !is_turned_away(fd));
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
    for (size_t i = 0; i < buffer_length(&out); i += CAUSE_HEAD_BYTES + get16(buffer_front(&out) + i + 2))
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

static void a_room_is_opened_only_where_it_was_found(void) {
    struct stat st;
    char here[] = "/tmp", nowhere[] = "/nowhere";
    REQUIRE(stat("/tmp", &st) == 0);
    uint64_t device = (uint64_t)major(st.st_dev) << 32 | minor(st.st_dev);
    size_t before = open_descriptors();
    struct room room = {.path = here, .device = device + 1};
    REQUIRE(!open_room(&room) && !open_room(&(struct room){.path = nowhere, .device = device}) && open_descriptors() == before);
    room.device = device;
    REQUIRE(open_room(&room) && close(room.fd) == 0);
}

/* The causes that are given for a failed command when file systems are like that, in memory and on a disk. */
static const char *causes_with(const struct fake *f, const struct statfs *fs) {
    fake_file_system = fs;
    const char *text = causes_of(f, (struct worker_report){.kind = EXIT_EXITED, .code = 1});
    fake_file_system = NULL;
    return text;
}

static void a_file_system_without_room_is_told_to_what_filled_it(void) {
    static char path[] = "/tmp";
    static const struct {
        struct statfs fs;
        const char *causes;
    } all[] = {
        {{.f_bsize = 4096, .f_blocks = 1000, .f_bavail = 256, .f_files = 10, .f_ffree = 1}, ""},
        {{.f_bsize = 4096, .f_blocks = 1000, .f_bavail = 255, .f_files = 10, .f_ffree = 1}, "4:0:4096000 "},
        {{.f_bsize = 4096, .f_blocks = 1000, .f_bavail = 1, .f_files = 10, .f_ffree = 1}, "4:0:4096000 "},
        {{.f_bsize = 4096, .f_blocks = 1000, .f_bavail = 0, .f_files = 10, .f_ffree = 1}, "3:0:4096000 4:0:4096000 "},
        {{.f_bsize = 1, .f_frsize = 4096, .f_blocks = 1000, .f_bavail = 0, .f_files = 10, .f_ffree = 1}, "3:0:4096000 4:0:4096000 "},
        {{.f_bsize = 4096, .f_blocks = 1000, .f_bavail = 1000, .f_files = 10, .f_ffree = 0}, "3:2:10 4:2:10 "},
        {{.f_bsize = 4096, .f_blocks = 0, .f_bavail = 0, .f_files = 0, .f_ffree = 0}, ""},
    };
    open_watched();
    watched.rooms.list[0] = (struct room){.path = path, .fd = open("/tmp", O_PATH | O_CLOEXEC), .is_in_memory = true};
    watched.rooms.list[1] = (struct room){.path = path, .fd = open("/tmp", O_PATH | O_CLOEXEC)};
    watched.rooms.count = 2;
    struct fake *f = start_one();
    struct channel *c = channel_find(&s.r, f->channel);
    c->before.had_company = false;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) REQUIRE(strcmp(causes_with(f, &all[i].fs), all[i].causes) == 0);
    c->before.had_company = true;
    REQUIRE(strcmp(causes_with(f, &all[3].fs), "") == 0);
    c->before.had_company = false;
    /* One that was full when the command began has to have changed since then. */
    fake_file_system = &all[3].fs;
    f = start_one();
    fake_file_system = NULL;
    c = channel_find(&s.r, f->channel);
    REQUIRE(c->before.full_rooms == 3);
    c->before.had_company = false;
    REQUIRE(strcmp(causes_with(f, &all[3].fs), "") == 0);
    watched.rooms.list[1].free_files++;
    REQUIRE(strcmp(causes_with(f, &all[3].fs), "4:4:4096000 ") == 0);
    watched.rooms.list[1].free_files--;
    watched.rooms.list[0].changed.s++;
    REQUIRE(strcmp(causes_with(f, &all[3].fs), "3:4:4096000 ") == 0);
    watched.rooms.list[0].changed.s--;
    watched.rooms.list[0].changed.ns++;
    REQUIRE(strcmp(causes_with(f, &all[5].fs), "3:6:10 4:6:10 ") == 0); /* another number of free files */
    for (int i = 0; i < 2; i++) close(watched.rooms.list[i].fd);
    watched.rooms.count = 0;
    close_watched();
}

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IONBF, 0);
    RUN(a_host_that_grants_without_end_is_dropped);
    RUN(a_frame_for_a_command_has_one_size_and_a_signal_is_one_that_there_is);
    RUN(without_descriptors_a_socket_is_refused_and_says_why);
    RUN(without_any_descriptor_a_socket_is_refused_too);
    RUN(datagrams_wait_while_the_host_reads_nothing);
    RUN(while_nothing_is_left_nobody_is_let_in_and_then_all_are);
    RUN(a_host_may_send_what_the_command_has_read);
    RUN(a_command_that_cannot_be_killed_is_given_up_in_time);
    RUN(a_signal_is_sent_to_the_group_of_the_command);
    RUN(the_end_of_a_command_says_who_brought_it_about);
    RUN(the_end_of_the_input_may_come_before_the_connection);
    RUN(who_waits_no_longer_gets_no_connection);
    RUN(a_listener_goes_on_after_it_had_nobody_waiting);
    RUN(streams_of_somebody_inside_are_closed);
    RUN(a_room_is_opened_only_where_it_was_found);
    RUN(without_descriptors_a_command_is_not_started_and_says_why);
    RUN(a_file_operation_that_is_cancelled_in_the_queue_ends_at_once);
    RUN(many_file_operations_come_to_their_end_in_any_number);
    RUN(an_event_without_bytes_ends_no_connection);
    RUN(datagrams_go_both_ways_whole_or_not_at_all);
    RUN(a_program_that_is_dialled_is_reached_or_the_error_is_told);
    RUN(a_reset_is_told_to_a_host_that_sends_and_wants_nothing);
    RUN(the_host_gets_no_more_than_it_has_granted_and_then_the_rest);
    RUN(a_connection_for_which_there_is_no_descriptor_is_closed_and_others_wait);
    RUN(the_standard_streams_become_the_null_device);
    RUN(a_new_worker_has_nothing_open_but_what_it_is_given);
    RUN(only_a_signal_of_the_engine_ends_the_runner);
    RUN(late_output_has_its_end_and_its_writer_does_not_wait);
    RUN(before_the_greeting_nothing_longer_is_waited_for);
    RUN(who_has_a_parent_inside_gets_no_place);
    RUN(a_connection_keeps_no_more_than_it_may_and_drops_a_host_that_sends_more);
    RUN(only_loopback_may_be_listened_on);
    RUN(what_came_before_a_reset_arrives_once_there_is_credit_for_it);
    RUN(a_command_alone_has_what_was_counted_while_it_ran);
    RUN(what_was_refused_to_the_runner_itself_is_no_cause);
    RUN(only_a_command_whose_time_is_over_and_that_was_much_held_back_has_the_limit_of_processors);
    RUN(a_file_system_without_room_is_told_to_what_filled_it);
    RUN(in_company_a_command_has_only_what_is_certainly_its_own);
    return 0;
}
