/*
 * The event loop at the edges: when the kernel interrupts a call, does only a part of it or refuses it, when a host or a worker says what
 * it must not, and at the last moment before a limit and the first one behind it.
 */
#include "play.h"

/* ---- the host ----------------------------------------------------------------------------------------------------- */

static void say(uint8_t type, const void *payload, size_t length) {
    uint8_t header[HEADER_BYTES];
    frame_header(header, type, 0, (uint32_t)length);
    host_write(header, sizeof header);
    host_write(payload, length);
    one_turn();
}

static bool may_say(uint8_t type, size_t length) {
    static const uint8_t zeros[128];
    open_welcomed();
    say(type, zeros, length);
    bool is_kept = s.bridge->is_used;
    close_runner();
    return is_kept;
}

static void a_host_says_only_what_a_host_may_say(void) {
    for (size_t length = 7; length <= 9; length++) REQUIRE(may_say(FRAME_ACK, length) == (length == 8));
    REQUIRE(may_say(FRAME_PING, 0) && may_say(FRAME_PING, 64) && !may_say(FRAME_PING, 65));
    REQUIRE(!may_say(FRAME_HELLO, 44) && !may_say(FRAME_WELCOME, 20) && !may_say(FRAME_ACK_FROM_RUNNER, 8) && !may_say(FRAME_PONG, 1));
}

/* Whether this is taken for the greeting of a host. */
static bool is_greeting(uint8_t type, const uint8_t *payload, size_t length) {
    open_runner();
    host_dial();
    say(type, payload, length);
    bool is = s.r.host == s.bridge;
    REQUIRE(is == s.bridge->is_used && is == s.bridge->is_host && is == s.r.was_connected);
    close_runner();
    return is;
}

static void a_greeting_has_the_version_and_the_whole_token_and_knows_no_more_than_there_was(void) {
    uint8_t hello[HELLO_BYTES + 1] = {PROTOCOL_VERSION};
    memcpy(hello + 4, token, TOKEN_BYTES);
    REQUIRE(is_greeting(FRAME_HELLO, hello, HELLO_BYTES) && !is_greeting(FRAME_HELLO, hello, HELLO_BYTES - 1) && !is_greeting(FRAME_HELLO, hello, HELLO_BYTES + 1));
    REQUIRE(!is_greeting(FRAME_PING, hello, HELLO_BYTES));
    for (size_t at = 0; at < HELLO_BYTES; at++) {
        hello[at] ^= 0x10;
        REQUIRE(!is_greeting(FRAME_HELLO, hello, HELLO_BYTES)); /* of the last eight bytes each says that frames have come */
        hello[at] ^= 0x10;
    }
}

static void each_byte_of_the_hash_counts(void) {
    for (int at = 0; at < 32; at++) {
        open_runner();
        s.r.token_hash[at] ^= 1;
        host_connect();
        one_turn();
        REQUIRE(!s.bridge->is_used && !s.r.host);
        close_runner();
    }
}

static void the_token_does_not_stay_in_memory(void) {
    open_runner();
    trouble[READ].most = 1; /* it comes byte by byte */
    host_connect();
    for (int i = 0; i < 60; i++) one_turn();
    trouble[READ].most = 0;
    host_read(64 << 10);
    REQUIRE(s.is_welcome && s.bridge->input.data && !memmem(s.bridge->input.data, s.bridge->input.capacity, token, 8));
    close_runner();
}

static void a_stream_that_is_only_interrupted_goes_on(void) {
    static const int errors[] = {EINTR, EAGAIN, EIO, ECONNRESET};
    for (size_t i = 0; i < 4; i++) {
        open_welcomed();
        one_turn();
        fail_next(READ, errors[i]);
        say(FRAME_PING, "x", 1);
        REQUIRE(trouble[READ].times == 0 && s.bridge->is_used == (i < 2));
        if (i >= 2) REQUIRE(!s.r.host && s.bridge->in.fd == -1 && s.bridge->out.fd == -1 && s.bridge->control.fd == -1 && !s.bridge->is_host);
        close_runner();
    }
    open_welcomed();
    buffer_free(&s.bridge->input);
    fail_next(MALLOC, ENOMEM);
    say(FRAME_PING, "x", 1);
    REQUIRE(trouble[MALLOC].times == 0 && !s.bridge->is_used);
    close_runner();
}

static void what_a_host_does_not_take_now_it_gets_later(void) {
    for (int after = 0; after < 40; after++) {
        open_welcomed();
        struct fake *f = start_one();
        trouble[WRITE].most = 7;
        trouble[WRITE].after = after;
        trouble[WRITE].times = 2;
        trouble[WRITE].error = after % 2 ? EAGAIN : EINTR;
        uint64_t before = records[f->channel].got[0];
        command_writes(f, 0, 100);
        one_turn();
        /* A frame of the session never comes in the middle of another one. */
        say(FRAME_PING, "12345678901234567890", 20);
        command_writes(f, 0, 50);
        one_turn();
        if (trouble[WRITE].times > 0 && after % 2 && after > 0) REQUIRE(s.bridge->out.armed == EPOLLOUT || trouble[WRITE].times == 2);
        memset(trouble, 0, sizeof trouble);
        everything_flows();
        REQUIRE(records[f->channel].got[0] == before + 150 && s.bridge->out.armed == 0);
        finish();
        close_runner();
    }
}

static void a_host_that_cannot_be_written_to_is_dropped(void) {
    static const int errors[] = {EPIPE, EAGAIN, EINTR, EIO};
    for (size_t i = 0; i < 4; i++) {
        bool is_kept = errors[i] == EAGAIN || errors[i] == EINTR;
        open_welcomed();
        one_turn();
        fail_next(WRITE, errors[i]);
        say(FRAME_PING, "x", 1);
        REQUIRE(trouble[WRITE].times == 0 && s.bridge->is_used == is_kept && (s.r.host == s.bridge) == is_kept);
        REQUIRE(!is_kept || s.bridge->out.armed == (errors[i] == EAGAIN ? EPOLLOUT : 0));
        close_runner();
    }
}

static void without_a_host_the_lease_runs(void) {
    open_welcomed();
    everything_flows();
    s.r.lease_ms = 5000;
    clock_ms += 10;
    s.r.next_deadline_ms = UINT64_MAX;
    bridge_drop(&s.r, s.r.host);
    REQUIRE(!s.r.host && s.r.alone_since_ms == clock_ms && s.r.next_deadline_ms == clock_ms + 5000);
    /* A connection that is no host leaves the host and its time alone. */
    host_connect();
    one_turn();
    host_read(64 << 10);
    struct bridge *host = s.r.host, *other = free_bridge(&s.r);
    REQUIRE(host && other);
    *other = (struct bridge){.is_used = true, .control.fd = -1, .in.fd = -1, .out.fd = -1};
    clock_ms += 10;
    bridge_drop(&s.r, other);
    bridge_drop(&s.r, other);
    REQUIRE(s.r.host == host && s.r.alone_since_ms == clock_ms - 10 && !other->is_used);
    s.r.lease_ms = 0;
    s.r.next_deadline_ms = UINT64_MAX;
    bridge_drop(&s.r, host);
    REQUIRE(s.r.next_deadline_ms == UINT64_MAX && s.r.alone_since_ms == clock_ms);
    close_runner();
}

/* ---- the door ----------------------------------------------------------------------------------------------------- */

static void open_runner_with_door(void) {
    open_runner();
    open_door();
    one_turn(); /* workers are forked ahead of time */
}

static void close_runner_with_door(void) {
    close_source(&s.r, &s.r.listener);
    close_runner();
}

static void send_question(int fd) {
    REQUIRE(send(fd, "?", 1, MSG_NOSIGNAL) == 1);
    one_turn();
}

static bool has_answer(int fd) {
    char byte = 0;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 1 && byte == '!';
}

static const struct bridge *used_bridge(void) {
    for (int i = 0; i < MAX_BRIDGES; i++)
        if (s.r.bridges[i].is_used) return &s.r.bridges[i];
    return NULL;
}

static void who_asks_is_answered_and_then_gives_two_streams_and_nothing_more(void) {
    open_runner_with_door();
    int ends[2][2];
    for (int i = 0; i < 2; i++) REQUIRE(pipe2(ends[i], O_CLOEXEC) == 0);
    size_t before = open_descriptors();
    int fd = knock(0);
    on_control(&s.r, &s.r.bridges[0].control, EPOLLIN); /* an old event: there is nothing to read */
    REQUIRE(taken_places() == 1);
    static const int errors[] = {EAGAIN, EINTR};
    for (int i = 0; i < 2; i++) {
        fail_next(RECVMSG, errors[i]);
        REQUIRE(i > 0 || send(fd, "?", 1, MSG_NOSIGNAL) == 1);
        one_turn();
        REQUIRE(trouble[RECVMSG].times == 0 && taken_places() == 1 && !has_answer(fd));
    }
    one_turn();
    REQUIRE(has_answer(fd) && open_descriptors() == before + 2);
    hand_over_streams(fd, (int[]){ends[0][0], ends[1][1]}, 2);
    one_turn();
    const struct bridge *b = used_bridge();
    REQUIRE(b && b->in.fd >= 0 && b->out.fd >= 0 && b->in.armed == EPOLLIN && b->out.armed == 0 && open_descriptors() == before + 4 && !has_answer(fd));
    REQUIRE(fcntl(b->in.fd, F_GETFL) & O_NONBLOCK && fcntl(b->out.fd, F_GETFL) & O_NONBLOCK && s.r.highest_fd >= b->in.fd && s.r.highest_fd >= b->out.fd);
    REQUIRE(fcntl(b->in.fd, F_GETPIPE_SZ) == PIPE_SIZE && fcntl(b->out.fd, F_GETPIPE_SZ) == PIPE_SIZE && fcntl(b->in.fd, F_GETFD) == FD_CLOEXEC);
    /* Whoever hands over streams a second time loses them and the connection. */
    hand_over_streams(fd, ends[0], 2);
    one_turn();
    REQUIRE(taken_places() == 0 && open_descriptors() == before + 1);
    close(fd);
    for (int i = 0; i < 4; i++) close(ends[i / 2][i % 2]);
    close_runner_with_door();
}

static void who_goes_away_again_leaves_its_place(void) {
    open_runner_with_door();
    size_t before = open_descriptors();
    int fd = knock(0);
    REQUIRE(taken_places() == 1);
    close(fd);
    one_turn();
    REQUIRE(taken_places() == 0 && open_descriptors() == before);
    fd = knock(0);
    fail_next(RECVMSG, ECONNRESET);
    send_question(fd);
    REQUIRE(trouble[RECVMSG].times == 0 && taken_places() == 0 && is_turned_away(fd));
    close(fd);
    /* One that cannot be answered is not waited for. */
    fd = knock(0);
    fail_next(SEND, EAGAIN);
    send_question(fd);
    REQUIRE(trouble[SEND].times == 0 && taken_places() == 0 && is_turned_away(fd));
    close(fd);
    close_runner_with_door();
}

/* Two streams are expected: one is too few, of three it is not clear which two are meant. The runner closes all that it got, and keeps none open. */
static void streams_that_nobody_adopts_are_closed(void) {
    open_runner_with_door();
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    size_t before = open_descriptors();
    int fd = knock(0);
    hand_over_streams(fd, ends, 1);
    one_turn();
    REQUIRE(taken_places() == 1 && open_descriptors() == before + 2 && has_answer(fd));
    close(fd);
    one_turn();
    REQUIRE(taken_places() == 0 && open_descriptors() == before);
    fd = knock(0);
    parent_of_all = 7;
    hand_over_streams(fd, ends, 1);
    one_turn();
    REQUIRE(taken_places() == 0 && open_descriptors() == before + 1);
    close(fd);
    close(ends[0]);
    close(ends[1]);
    close_runner_with_door();
}

static void there_are_eight_places(void) {
    int fds[MAX_BRIDGES + 1];
    open_runner_with_door();
    for (int i = 0; i <= MAX_BRIDGES; i++) {
        fds[i] = knock(0);
        REQUIRE(taken_places() == (i < MAX_BRIDGES ? i + 1 : MAX_BRIDGES) && is_turned_away(fds[i]) == (i == MAX_BRIDGES));
    }
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0 && !bridges_adopt(&s.r, ends, 300));
    close(fds[3]);
    one_turn();
    REQUIRE(taken_places() == MAX_BRIDGES - 1);
    s.r.next_deadline_ms = UINT64_MAX;
    REQUIRE(bridges_adopt(&s.r, ends, 300) && taken_places() == MAX_BRIDGES);
    const struct bridge *b = &s.r.bridges[3];
    REQUIRE(b->deadline_ms == clock_ms + 300 && s.r.next_deadline_ms == clock_ms + 300 && b->in.armed == EPOLLIN && !b->is_host);
    clock_ms += 299;
    s.r.next_deadline_ms = clock_ms;
    one_turn();
    REQUIRE(taken_places() == MAX_BRIDGES && s.r.next_deadline_ms == clock_ms + 1);
    clock_ms++;
    one_turn();
    REQUIRE(taken_places() == MAX_BRIDGES - 1);
    for (int i = 0; i <= MAX_BRIDGES; i++) close(fds[i]);
    close_runner_with_door();
}

static void who_does_not_greet_in_time_is_dropped_and_a_host_is_not(void) {
    open_welcomed();
    open_door();
    int fd = knock(0);
    uint64_t until_ms = clock_ms + HELLO_WITHIN_MS;
    REQUIRE(taken_places() == 2 && s.r.next_deadline_ms <= until_ms);
    clock_ms = until_ms - 1;
    s.r.next_deadline_ms = clock_ms;
    one_turn();
    REQUIRE(taken_places() == 2 && s.r.next_deadline_ms == until_ms);
    clock_ms = until_ms;
    one_turn();
    REQUIRE(taken_places() == 1 && is_turned_away(fd) && s.r.host == s.bridge && s.r.next_deadline_ms == UINT64_MAX);
    close(fd);
    close_runner_with_door();
}

/* gVisor's kernel may not say who made a connection. Its messages say it then. */
static void who_may_have_come_from_outside_may_ask(void) {
    open_runner_with_door();
    fail_next(GETSOCKOPT, ENOPROTOOPT);
    int fd = knock(7);
    REQUIRE(trouble[GETSOCKOPT].times == 0 && taken_places() == 1);
    send_question(fd);
    REQUIRE(taken_places() == 0 && is_turned_away(fd));
    close(fd);
    close_runner_with_door();
}

static void the_door_opens_again_when_its_time_has_come(void) {
    open_runner_with_door();
    fail_next(ACCEPT, EMFILE);
    int fd = knock(0);
    uint64_t again_ms = clock_ms + ACCEPT_RETRY_MS;
    REQUIRE(s.r.accept_again_ms == again_ms && s.r.next_deadline_ms == again_ms && s.r.listener.armed == 0);
    clock_ms = again_ms - 1;
    s.r.next_deadline_ms = clock_ms;
    one_turn();
    REQUIRE(s.r.accept_again_ms == again_ms && s.r.next_deadline_ms == again_ms && s.r.listener.armed == 0);
    clock_ms = again_ms;
    one_turn();
    REQUIRE(s.r.accept_again_ms == 0 && s.r.listener.armed == EPOLLIN);
    one_turn();
    REQUIRE(taken_places() == 1);
    close(fd);
    close_runner_with_door();
}

/* ---- time --------------------------------------------------------------------------------------------------------- */

static bool is_over_after(uint64_t lease_ms, bool was_connected, uint64_t alone_ms) {
    static struct runner r;
    r = (struct runner){.lease_ms = lease_ms, .was_connected = was_connected, .alone_since_ms = 1000, .next_deadline_ms = UINT64_MAX};
    bool is_over_now = lease_is_over(&r, 1000 + alone_ms);
    uint64_t patience_ms = was_connected || lease_ms > 30000 ? lease_ms : 30000;
    REQUIRE(r.next_deadline_ms == (is_over_now || lease_ms == 0 ? UINT64_MAX : 1000 + patience_ms));
    return is_over_now;
}

static void a_lease_ends_in_time_and_the_first_host_has_half_a_minute(void) {
    REQUIRE(!is_over_after(2000, true, 1999) && is_over_after(2000, true, 2000) && is_over_after(2000, true, 9999));
    REQUIRE(!is_over_after(2000, false, 2000) && !is_over_after(2000, false, 29999) && is_over_after(2000, false, 30000));
    REQUIRE(!is_over_after(30001, false, 30000) && is_over_after(30001, false, 30001) && is_over_after(30000, false, 30000));
    REQUIRE(!is_over_after(0, true, 1u << 30) && !is_over_after(0, false, 1u << 30));
    struct runner r = {.lease_ms = 1, .host = &r.bridges[0]};
    REQUIRE(!lease_is_over(&r, 1000));
}

static void the_loop_sleeps_until_its_next_deadline(void) {
    static struct runner r;
    r = (struct runner){.next_deadline_ms = UINT64_MAX};
    REQUIRE(wait_ms(&r) == -1);
    r.next_deadline_ms = clock_ms + 7;
    REQUIRE(wait_ms(&r) == 7);
    r.next_deadline_ms = clock_ms;
    REQUIRE(wait_ms(&r) == 0);
    r.next_deadline_ms = clock_ms - 1;
    REQUIRE(wait_ms(&r) == 0);
    r.next_deadline_ms = clock_ms + INT_MAX;
    REQUIRE(wait_ms(&r) == INT_MAX);
    r.next_deadline_ms++;
    REQUIRE(wait_ms(&r) == INT_MAX);
    /* It also wakes to give memory back that the link (0) or the stream from the host (1) no longer needs. */
    for (int i = 0; i < 2; i++) {
        r.host = i ? &r.bridges[0] : NULL;
        struct buffer *b = i ? &r.host->input : &r.link.kept;
        b->capacity = 1u << 20;
        REQUIRE(is_loose(&r) && wait_ms(&r) == IDLE_TRIM_MS);
        r.next_deadline_ms = clock_ms + 3;
        REQUIRE(wait_ms(&r) == 3);
        r.next_deadline_ms = UINT64_MAX;
        REQUIRE(wait_ms(&r) == IDLE_TRIM_MS);
        b->capacity = 0;
        REQUIRE(!is_loose(&r) && wait_ms(&r) == -1);
        r.next_deadline_ms = clock_ms + INT_MAX;
    }
}

static void memory_is_given_back_when_nothing_happens(void) {
    static uint8_t bytes[1 << 20];
    open_welcomed();
    everything_flows();
    struct buffer *both[] = {&s.r.link.kept, &s.bridge->input};
    for (int i = 0; i < 2; i++) {
        REQUIRE(buffer_append(both[i], bytes, sizeof bytes) == 0);
        buffer_drop(both[i], sizeof bytes);
    }
    say(FRAME_PING, "x", 1); /* something happens */
    REQUIRE(both[0]->capacity >= sizeof bytes && both[1]->capacity >= sizeof bytes);
    one_turn();
    REQUIRE(both[0]->capacity == 0 && both[1]->capacity == 0);
    finish();
    close_runner();
}

/* ---- commands and file operations --------------------------------------------------------------------------------- */

static struct channel *channel_of_fake(const struct fake *f) { return channel_find(&s.r, f->channel); }

static void an_interrupted_read_of_output_loses_nothing(void) {
    static const int errors[] = {EINTR, EAGAIN};
    open_welcomed();
    struct fake *f = start_one();
    const struct record *record = &records[f->channel];
    for (size_t i = 0; i < 2; i++) {
        one_turn(); /* the host has nothing more to say */
        command_writes(f, 0, 100);
        fail_next(READ, errors[i]);
        one_turn();
        REQUIRE(trouble[READ].times == 0 && record->got[0] == i * 100);
        everything_flows();
        REQUIRE(record->got[0] == (i + 1) * 100 && !record->exited);
    }
    /* Nothing is lost either when there is no memory to keep the output in. */
    buffer_free(&s.r.link.kept);
    command_writes(f, 0, 100);
    fail_next(MALLOC, ENOMEM);
    one_turn();
    REQUIRE(trouble[MALLOC].times == 0);
    trouble[READ].most = 7;
    for (int i = 0; i < 5; i++) everything_flows();
    trouble[READ].most = 0;
    REQUIRE(record->got[0] == 300);
    finish();
    close_runner();
}

static void input_for_a_command_waits_until_its_pipe_takes_it(void) {
    open_welcomed();
    struct fake *f = start_with(0);
    const struct channel *c = channel_of_fake(f);
    const struct record *record = &records[f->channel];
    fail_next(WRITE, EAGAIN);
    send_input(f->channel, 1000);
    one_turn();
    REQUIRE(trouble[WRITE].times == 0 && buffer_length(&c->in.bytes) == 1000 && c->in.source.armed == EPOLLOUT);
    fail_next(WRITE, EINTR);
    one_turn();
    REQUIRE(buffer_length(&c->in.bytes) == 0 && c->in.source.armed == 0);
    /* The end comes behind what is kept. */
    trouble[WRITE].times = 2;
    trouble[WRITE].error = EAGAIN;
    send_input(f->channel, 500);
    host_input(f->channel, 0);
    one_turn();
    REQUIRE(trouble[WRITE].times == 0 && buffer_length(&c->in.bytes) == 500 && c->in.has_ended && c->in.source.fd >= 0);
    everything_flows();
    REQUIRE(c->in.source.fd == -1);
    while (command_reads(f, 4096)) continue;
    REQUIRE(record->input_read == 1500 && f->in == -1);
    host_send(FRAME_INPUT, f->channel, NULL, 0); /* a second end is no mistake */
    everything_flows();
    REQUIRE(s.bridge->is_used);
    host_send(FRAME_INPUT, f->channel, "x", 1);
    everything_flows();
    REQUIRE(!s.bridge->is_used);
    finish();
    close_runner();
}

/* The host gets credit for input that a command does not read, so that it can go on sending. */
static void input_that_nobody_reads_is_taken_and_dropped(void) {
    open_welcomed();
    struct fake *f = start_with(0);
    const struct channel *c = channel_of_fake(f);
    close_one(&f->in);
    for (int i = 1; i <= 9; i++) {
        send_input(f->channel, 4000);
        everything_flows();
        REQUIRE(c->in.source.fd == -1 && buffer_length(&c->in.bytes) == 0 && records[f->channel].input_granted == (uint64_t)(i / 3 * 12000));
    }
    finish();
    close_runner();
}

static bool may_keep_for_command(uint32_t bytes) {
    static uint8_t piece[2 * INITIAL_CREDIT + 1];
    open_welcomed();
    struct fake *f = start_with(0);
    records[f->channel].input_sent = bytes;
    trouble[WRITE].times = INT_MAX;
    trouble[WRITE].error = EAGAIN;
    host_send(FRAME_INPUT, f->channel, piece, bytes / 2);
    host_send(FRAME_INPUT, f->channel, piece, bytes - bytes / 2);
    one_turn();
    bool may = s.bridge->is_used;
    if (may) REQUIRE(buffer_length(&channel_of_fake(f)->in.bytes) == bytes);
    memset(trouble, 0, sizeof trouble);
    close_one(&f->in);
    finish();
    close_runner();
    return may;
}

static void for_a_command_the_host_may_send_what_may_be_kept(void) {
    REQUIRE(may_keep_for_command(2) && may_keep_for_command(2 * INITIAL_CREDIT) && !may_keep_for_command(2 * INITIAL_CREDIT + 1));
}

static void ask_for_file(uint8_t kind) {
    struct input in = {&kind, &kind + 1};
    host_file(&in);
}

static void ask_for_command(uint8_t flags) {
    struct input in = {&flags, &flags + 1};
    host_spawn(&in);
}

static void a_stream_that_cannot_be_made_leaves_none_of_the_others(void) {
    open_welcomed();
    everything_flows();
    size_t before = open_descriptors();
    for (int nth = 0; nth < 3; nth++) {
        fail_next(PIPE, ENFILE);
        trouble[PIPE].after = nth;
        ask_for_command(0);
        everything_flows();
        const struct record *record = &records[channel_count];
        REQUIRE(trouble[PIPE].times == 0 && record->exited && record->kind == EXIT_NOT_STARTED && record->stage == STAGE_STREAMS && record->error == ENFILE);
        REQUIRE(open_descriptors() == before && !channel_find(&s.r, channel_count));
    }
    for (uint8_t kind = 0; kind < 2; kind++) {
        fail_next(PIPE, ENFILE);
        ask_for_file(kind);
        everything_flows();
        const struct record *record = &records[channel_count];
        REQUIRE(trouble[PIPE].times == 0 && record->exited && record->kind == EXIT_FILE && record->stage == STAGE_STREAMS && record->error == ENFILE);
        REQUIRE(open_descriptors() == before);
    }
    finish();
    close_runner();
}

static void without_memory_for_a_request_the_host_is_dropped(void) {
    for (int is_file = 0; is_file < 2; is_file++) {
        open_welcomed();
        everything_flows();
        fail_next(CALLOC, ENOMEM);
        if (is_file) ask_for_file(2);
        else ask_for_command(0);
        one_turn();
        REQUIRE(trouble[CALLOC].times == 0 && !s.bridge->is_used && !channel_find(&s.r, channel_count));
        records[channel_count].exited = true; /* as there never was such a channel */
        finish();
        close_runner();
    }
}

static void without_memory_for_the_queue_a_file_operation_does_not_wait(void) {
    for (int nth = 0; nth < 3; nth++) {
        open_welcomed();
        everything_flows();
        for (int i = 0; i < FILE_JOBS_AT_ONCE; i++) ask_for_file(0);
        one_turn();
        REQUIRE(pool_jobs(&s.r, JOB_FILE) == FILE_JOBS_AT_ONCE);
        if (nth == 1) {
            fail_next(CALLOC, ENOMEM);
            trouble[CALLOC].after = 1; /* behind that for the channel */
        }
        if (nth == 2) {
            fail_next(MALLOC, ENOMEM);
            trouble[MALLOC].after = 1; /* behind that of the host */
        }
        ask_for_file(0);
        one_turn();
        REQUIRE(trouble[CALLOC].times == 0 && trouble[MALLOC].times == 0 && (s.r.queue_first != NULL) == (nth == 0) && s.bridge->is_used);
        REQUIRE(pool_jobs(&s.r, JOB_FILE) == FILE_JOBS_AT_ONCE + (nth > 0));
        finish();
        close_runner();
    }
}

/* An operation that has waited for some time, while none of those before it has ended, gets a worker of its own. */
static void a_file_operation_does_not_wait_for_ever_behind_others(void) {
    open_welcomed();
    everything_flows();
    for (int i = 0; i <= FILE_JOBS_AT_ONCE; i++) ask_for_file(0);
    one_turn();
    uint64_t until_ms = clock_ms + 20;
    REQUIRE(s.r.queue_first && s.r.queue_end == &s.r.queue_first->next && s.r.next_deadline_ms <= until_ms);
    clock_ms = until_ms - 1;
    one_turn();
    REQUIRE(s.r.queue_first && s.r.next_deadline_ms == until_ms);
    s.r.file_ended_ms = clock_ms; /* another one has just come to its end */
    clock_ms++;
    one_turn();
    REQUIRE(s.r.queue_first && s.r.next_deadline_ms == until_ms + 19);
    clock_ms = until_ms + 19;
    one_turn();
    REQUIRE(!s.r.queue_first && s.r.queue_end == &s.r.queue_first && pool_jobs(&s.r, JOB_FILE) == FILE_JOBS_AT_ONCE + 1);
    finish();
    close_runner();
}

static void a_timeout_is_kept_to_the_millisecond(void) {
    static const uint8_t request[] = {SPAWN_NO_STDIN, 200};
    open_welcomed();
    everything_flows();
    struct input in = {request, request + 2};
    host_spawn(&in);
    everything_flows();
    uint32_t channel = channel_count;
    for (int i = 0; i < fake_count; i++) receive_job(&fakes[i]);
    const struct channel *c = channel_find(&s.r, channel);
    uint64_t until_ms = c->deadline_ms;
    clock_ms = until_ms - 1;
    s.r.next_deadline_ms = clock_ms;
    one_turn();
    REQUIRE(c->timeout == TIMEOUT_AHEAD && c->exit_flags == 0 && c->tree.step == TREE_UNTOUCHED && s.r.next_deadline_ms == until_ms);
    clock_ms = until_ms;
    one_turn();
    REQUIRE(c->timeout == TIMEOUT_PASSED && c->exit_flags == EXIT_TIMED_OUT && c->tree.step == TREE_IN_GRACE);
    uint64_t kill_ms = c->tree.next_ms;
    REQUIRE(kill_ms == until_ms + 500);
    clock_ms = kill_ms - 1;
    s.r.next_deadline_ms = clock_ms;
    one_turn();
    REQUIRE(c->tree.step == TREE_IN_GRACE && s.r.next_deadline_ms == kill_ms);
    clock_ms = kill_ms;
    one_turn();
    REQUIRE(c->tree.step == TREE_KILLING && c->tree.next_ms == kill_ms + 10 && s.r.next_deadline_ms == kill_ms + 10);
    finish();
    close_runner();
}

/* A signal that comes before the command's first process has been started reaches nobody, so it is sent again. */
static void who_does_not_hear_that_it_shall_end_is_asked_again(void) {
    open_welcomed();
    struct fake *f = start_one();
    const struct channel *c = channel_of_fake(f);
    hearers = 0;
    times_asked = 0;
    host_kill(f->channel, 35);
    one_turn();
    REQUIRE(times_asked == 1 && !c->tree.was_heard && s.r.next_deadline_ms == clock_ms + 10);
    for (int i = 2; i <= 4; i++) {
        clock_ms += 9;
        s.r.next_deadline_ms = clock_ms + 1;
        one_turn();
        REQUIRE(times_asked == i - 1);
        clock_ms++;
        one_turn();
        REQUIRE(times_asked == i && s.r.next_deadline_ms == clock_ms + (i < 4 ? 10 : 5));
    }
    hearers = 1;
    s.r.next_deadline_ms = clock_ms;
    one_turn();
    REQUIRE(times_asked == 5 && c->tree.was_heard && s.r.next_deadline_ms == clock_ms + 5);
    s.r.next_deadline_ms = clock_ms;
    one_turn();
    REQUIRE(times_asked == 5 && c->tree.step == TREE_IN_GRACE);
    finish();
    close_runner();
}

static void a_signal_waits_for_the_process_that_it_is_for(void) {
    open_welcomed();
    everything_flows();
    ask_for_command(SPAWN_NO_STDIN);
    uint32_t channel = channel_count;
    uint8_t numbers[] = {SIGUSR1, 64};
    signalled = 0;
    signals_sent = 0;
    for (int i = 0; i < 2; i++) host_send(FRAME_SIGNAL, channel, &numbers[i], 1);
    one_turn();
    const struct channel *c = channel_find(&s.r, channel);
    REQUIRE(signalled == 0 && c->pending_signals == (UINT64_C(1) << (SIGUSR1 - 1) | UINT64_C(1) << 63) && s.r.next_deadline_ms == clock_ms + 1);
    for (int i = 0; i < fake_count; i++) receive_job(&fakes[i]);
    clock_ms++;
    one_turn();
    REQUIRE(signalled > 0 && signals_sent == 2 && last_signal == 64 && c->pending_signals == 0);
    finish();
    close_runner();
}

static void a_file_operation_gets_no_signal_and_is_told_in_its_slot_to_stop(void) {
    open_welcomed();
    everything_flows();
    ask_for_file(0);
    everything_flows();
    uint32_t channel = channel_count;
    for (int i = 0; i < fake_count; i++) receive_job(&fakes[i]);
    struct channel *c = channel_find(&s.r, channel);
    uint8_t number = SIGTERM;
    signals_sent = times_asked = 0;
    host_send(FRAME_SIGNAL, channel, &number, 1);
    one_turn();
    REQUIRE(c->pending_signals == 0 && signals_sent == 0 && c->worker->slot->cancelled == 0 && c->worker->slot->channel == channel && is_open(&c->out.source));
    host_kill(channel, 1000);
    one_turn();
    REQUIRE(times_asked == 0 && c->worker->slot->cancelled == 1 && !is_open(&c->out.source) && c->tree.was_heard && c->exit_flags == EXIT_KILLED);
    finish();
    close_runner();
}

/* Starts a command that ends, while something of it is still there. */
static struct fake *start_and_end(uint8_t flags) {
    struct fake *f = start_with(flags);
    command_writes(f, 0, 10);
    end_command(f);
    everything_flows();
    REQUIRE(!records[f->channel].exited);
    return f;
}

static void an_end_waits_a_moment_for_streams_that_are_held_open(void) {
    open_welcomed();
    struct fake *f = start_and_end(SPAWN_NO_STDIN);
    uint32_t channel = f->channel;
    uint64_t until_ms = channel_of_fake(f)->hold_ms;
    clock_ms = until_ms - 1;
    s.r.next_deadline_ms = clock_ms;
    one_turn();
    REQUIRE(!records[channel].exited && channel_of_fake(f)->phase == CHANNEL_ENDED && s.r.next_deadline_ms == until_ms);
    clock_ms = until_ms;
    one_turn();
    everything_flows();
    REQUIRE(records[channel].exited && records[channel].exit_flags == EXIT_PIPE_HELD && records[channel].got[0] == 10 && channel_find(&s.r, channel));
    report_empty(f);
    everything_flows();
    REQUIRE(!channel_find(&s.r, channel));
    finish();
    close_runner();
}

static void what_may_not_outlive_its_command_is_ended_after_a_moment(void) {
    open_welcomed();
    struct fake *f = start_and_end(SPAWN_NO_STDIN | SPAWN_ENDS_TREE);
    uint32_t channel = f->channel;
    const struct channel *c = channel_of_fake(f);
    clock_ms = c->hold_ms - 1;
    s.r.next_deadline_ms = clock_ms;
    one_turn();
    REQUIRE(c->tree.step == TREE_UNTOUCHED && s.r.next_deadline_ms == c->hold_ms);
    clock_ms++;
    one_turn();
    REQUIRE(c->tree.step == TREE_IN_GRACE && c->tree.next_ms == clock_ms + 500 && c->exit_flags == EXIT_TREE_ENDED);
    /* No process of the command is left, but its worker does not say so: after a while the worker is killed. */
    clock_ms += 500;
    one_turn();
    REQUIRE(c->tree.step == TREE_SEEMS_EMPTY && c->tree.next_ms == clock_ms + 200 && !f->killed);
    clock_ms += 199;
    s.r.next_deadline_ms = clock_ms;
    one_turn();
    REQUIRE(!f->killed && s.r.next_deadline_ms == clock_ms + 1);
    clock_ms++;
    one_turn();
    REQUIRE(f->killed);
    everything_flows();
    REQUIRE(records[channel].exited && records[channel].exit_flags == EXIT_TREE_ENDED);
    finish();
    close_runner();
}

static void what_leaves_by_itself_in_time_was_not_ended(void) {
    open_welcomed();
    struct fake *f = start_and_end(SPAWN_NO_STDIN | SPAWN_ENDS_TREE);
    uint32_t channel = f->channel;
    report_empty(f);
    everything_flows();
    REQUIRE(records[channel].exited && records[channel].exit_flags == 0);
    f = start_and_end(SPAWN_NO_STDIN | SPAWN_ENDS_TREE);
    channel = f->channel;
    hearers = 0; /* the last process goes just before it is asked */
    clock_ms = channel_of_fake(f)->hold_ms;
    one_turn();
    report_empty(f);
    everything_flows();
    REQUIRE(records[channel].exited && records[channel].exit_flags == 0);
    hearers = 1;
    finish();
    close_runner();
}

static void calls_of_one_bucket_are_told_apart(void) {
    open_welcomed();
    for (uint32_t first_to_end = 0; first_to_end < 3; first_to_end++) {
        struct channel *all[3];
        for (uint32_t i = 0; i < 3; i++) all[i] = open_channel(&s.r, 5 + i * CHANNEL_BUCKETS, CHANNEL_COMMAND);
        for (uint32_t i = 0; i < 3; i++) REQUIRE(channel_find(&s.r, 5 + i * CHANNEL_BUCKETS) == all[i] && all[i]->credit == INITIAL_CREDIT && all[i]->late_left == LATE_MAX);
        REQUIRE(!channel_find(&s.r, 5 + 3 * CHANNEL_BUCKETS) && !channel_find(&s.r, 6));
        for (uint32_t i = 0; i < 3; i++) {
            retire(&s.r, all[(first_to_end + i) % 3]);
            for (uint32_t k = 0; k < 3; k++) REQUIRE((channel_find(&s.r, 5 + k * CHANNEL_BUCKETS) != NULL) == ((k + 3 - first_to_end) % 3 > i));
        }
        free_what_is_over(&s.r);
        REQUIRE(!s.r.over);
    }
    close_runner();
}

/* ---- workers ------------------------------------------------------------------------------------------------------ */

static int count_workers(enum worker_state state) {
    int count = 0;
    for (const struct worker *w = s.r.workers; w; w = w->next) count += w->state == state;
    return count;
}

static void let_workers_run(void) {
    for (int i = 0; i < fake_count; i++) receive_job(&fakes[i]);
    everything_flows();
}

static void two_workers_are_ready_and_six_stay_at_most(void) {
    struct fake *all[10];
    open_welcomed();
    one_turn();
    REQUIRE(count_workers(WORKER_IDLE) == 2 && fake_count == 2);
    for (int i = 0; i < 10; i++) {
        all[i] = start_one();
        REQUIRE(count_workers(WORKER_BUSY) == i + 1 && count_workers(WORKER_IDLE) == 2);
    }
    for (int i = 0; i < 10; i++) {
        end_command(all[i]);
        report_empty(all[i]);
        everything_flows();
        REQUIRE(count_workers(WORKER_IDLE) == (i < 4 ? 3 + i : 6) && count_workers(WORKER_DISMISSED) == (i < 4 ? 0 : i - 3));
    }
    let_workers_run();
    REQUIRE(count_workers(WORKER_IDLE) == 6 && count_workers(WORKER_DISMISSED) == 0 && count_workers(WORKER_BUSY) == 0 && count_workers(WORKER_GIVEN_UP) == 0);
    finish();
    close_runner();
}

/* The runner need not have been told yet that the others are dead. */
static void a_job_goes_to_a_worker_that_lives(void) {
    open_welcomed();
    one_turn();
    for (int i = 0; i < 2; i++) {
        close_one(&fakes[i].control);
        fakes[i].life = DYING;
    }
    const struct worker *w = pool_start_job(&s.r, NULL, &(struct job){.kind = JOB_ANSWER, .channel = 9}, NULL);
    REQUIRE(w && w->pid == pid_of(&fakes[2]) && w->state == WORKER_BUSY && w->slot->channel == 9 && w->slot->supervisor == w->pid);
    /* The first dead worker is given up. The second one could not be sent the question whether it lives, and counts as busy for now. */
    REQUIRE(count_workers(WORKER_GIVEN_UP) == 1 && count_workers(WORKER_BUSY) == 2 && count_workers(WORKER_IDLE) == 0);
    eventfd_write(death_bell, 1);
    for (int i = 0; i < 2; i++) let_workers_run(); /* it is asked once more whether it lives, because others have died */
    REQUIRE(count_workers(WORKER_GIVEN_UP) == 0 && w->state == WORKER_IDLE && w->slot->channel == 0);
    finish();
    close_runner();
}

static void when_a_worker_was_killed_the_others_are_asked_whether_they_live(void) {
    open_welcomed();
    struct fake *busy = start_one();
    struct worker *w = find_worker(&s.r, pid_of(busy)), *idle = NULL;
    struct fake *lost = NULL;
    for (int i = 0; i < fake_count; i++) {
        if (&fakes[i] == busy) continue;
        if (lost) idle = find_worker(&s.r, pid_of(&fakes[i]));
        else lost = &fakes[i];
    }
    REQUIRE(lost && idle && idle->state == WORKER_IDLE && !w->is_suspect);
    lost->killed = true;
    die(lost);
    one_turn();
    REQUIRE(!find_worker(&s.r, pid_of(lost)) && idle->state == WORKER_BUSY && !idle->channel && !idle->is_suspect && w->is_suspect && count_workers(WORKER_IDLE) == 2);
    let_workers_run();
    REQUIRE(idle->state == WORKER_IDLE && count_workers(WORKER_IDLE) == 3);
    /* One that has a job is asked when that is done. */
    end_command(busy);
    report_empty(busy);
    everything_flows();
    REQUIRE(w->state == WORKER_BUSY && !w->channel && !w->is_suspect && w->slot->channel == 0);
    let_workers_run();
    REQUIRE(w->state == WORKER_IDLE);
    finish();
    close_runner();
}

/* The runner has dismissed this worker itself. Its end is no reason to check whether other workers are dead. */
static void when_a_dismissed_worker_ends_nobody_is_asked(void) {
    struct fake *all[6];
    for (int is_killed = 0; is_killed < 2; is_killed++) {
        open_welcomed();
        for (int i = 0; i < 6; i++) all[i] = start_one();
        for (int i = 0; i < 6; i++) {
            end_command(all[i]);
            report_empty(all[i]);
        }
        everything_flows();
        REQUIRE(count_workers(WORKER_DISMISSED) == 2 && count_workers(WORKER_IDLE) == 6);
        for (int i = 0; i < fake_count; i++) {
            const struct worker *w = find_worker(&s.r, pid_of(&fakes[i]));
            if (w->state != WORKER_DISMISSED) continue;
            fakes[i].killed = is_killed;
            die(&fakes[i]);
        }
        one_turn();
        REQUIRE(count_workers(WORKER_DISMISSED) == 0 && count_workers(WORKER_BUSY) == (is_killed ? 6 : 0) && count_workers(WORKER_IDLE) == (is_killed ? 2 : 6));
        finish();
        close_runner();
    }
}

static void a_worker_that_reports_nonsense_is_killed_and_its_command_is_lost(void) {
    open_welcomed();
    struct fake *f = start_one();
    uint32_t channel = f->channel;
    const struct worker *w = find_worker(&s.r, pid_of(f));
    REQUIRE(send(f->control, "x", 1, MSG_NOSIGNAL) == 1);
    one_turn();
    REQUIRE(f->killed && w->state == WORKER_GIVEN_UP && w->control.armed == 0);
    let_workers_run();
    REQUIRE(records[channel].exited && records[channel].kind == EXIT_LOST && records[channel].code == SIGKILL && records[channel].exit_flags == 0);
    finish();
    close_runner();
}

static void a_command_for_which_there_is_no_process_says_so(void) {
    static const int errors[] = {EAGAIN, ENOMEM};
    for (size_t i = 0; i < 2; i++) {
        open_welcomed();
        start_one();
        trouble[FORK].times = INT_MAX;
        trouble[FORK].error = errors[i];
        start_one();
        start_one(); /* two were ready */
        REQUIRE(count_workers(WORKER_IDLE) == 0);
        size_t before = open_descriptors();
        uint64_t refused = s.r.refused_forks;
        ask_for_command(0);
        everything_flows();
        const struct record *record = &records[channel_count];
        REQUIRE(record->exited && record->kind == EXIT_NOT_STARTED && record->stage == STAGE_FORK && record->error == (uint32_t)errors[i]);
        REQUIRE(open_descriptors() == before && (s.r.refused_forks > refused) == (errors[i] == EAGAIN));
        memset(trouble, 0, sizeof trouble);
        start_one();
        REQUIRE(count_workers(WORKER_IDLE) == 2);
        finish();
        close_runner();
    }
}

static void each_worker_has_a_slot_of_its_own(void) {
    static struct worker all[WORKER_SLOTS];
    open_runner();
    for (int i = 0; i < WORKER_SLOTS; i++) {
        if (i < 3) REQUIRE(free_slot(&s.r) == &s.r.shared->slots[i]);
        all[i] = (struct worker){.slot = &s.r.shared->slots[i], .next = s.r.workers};
        s.r.workers = &all[i];
    }
    errno = 0;
    REQUIRE(!free_slot(&s.r) && errno == EAGAIN);
    all[701].next = all[700].next;
    REQUIRE(free_slot(&s.r) == &s.r.shared->slots[700]);
    s.r.workers = NULL;
    close_runner();
}

/* ---- frames to the host ------------------------------------------------------------------------------------------- */

static void a_link_without_memory_says_so_and_keeps_what_it_has(void) {
    struct link link = {0};
    fail_next(MALLOC, ENOMEM);
    REQUIRE(!link_begin(&link, 10));
    fail_next(MALLOC, ENOMEM);
    REQUIRE(link_send(&link, FRAME_STDOUT, 1, "x", 1) == -1 && link.queued == 0);
    fail_next(MALLOC, ENOMEM);
    REQUIRE(link_send_control(&link, FRAME_PONG, "x", 1) == -1 && buffer_length(&link.control) == 0);
    REQUIRE(link_send(&link, FRAME_STDOUT, 1, "x", 1) == 0 && link.queued == 1 && buffer_length(&link.kept) == HEADER_BYTES + 1);
    buffer_free(&link.kept);
    memset(trouble, 0, sizeof trouble);
}

static void a_link_is_full_from_its_mark_on(void) {
    struct link link = {0};
    static uint8_t bytes[LINK_HIGH_WATER];
    REQUIRE(link_send(&link, FRAME_STDOUT, 1, bytes, LINK_HIGH_WATER - HEADER_BYTES - 1) == 0 && !link_is_full(&link));
    REQUIRE(buffer_append(&link.kept, bytes, 1) == 0 && link_is_full(&link));
    buffer_free(&link.kept);
}

/*
 * The pipe takes `most` bytes and is then full. The rest is written from there on, and the host may acknowledge only as many frames as it has got
 * whole.
 */
static void only_whole_frames_that_were_written_are_acknowledged(void) {
    for (size_t most = 1; most < 2 * (HEADER_BYTES + 3); most++) {
        struct link link = {0};
        int ends[2];
        REQUIRE(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
        for (int i = 0; i < 3; i++) REQUIRE(link_send(&link, FRAME_STDOUT, 1, "abc", 3) == 0);
        memset(trouble, 0, sizeof trouble);
        trouble[WRITE].most = most;
        trouble[WRITE].after = 1;
        trouble[WRITE].times = 1;
        trouble[WRITE].error = EAGAIN;
        REQUIRE(link_flush(&link, ends[1]) == 1 && link.written == most);
        uint64_t whole = most / (HEADER_BYTES + 3);
        REQUIRE(!link_acknowledge(&link, whole + 1) && link.written == most && link.acknowledged == 0);
        REQUIRE(link_acknowledge(&link, whole) && link.written == most - whole * (HEADER_BYTES + 3));
        REQUIRE(link_flush(&link, ends[1]) == 0 && link.written == buffer_length(&link.kept) && link.frame_left == 0);
        uint8_t got[3 * (HEADER_BYTES + 3) + 1];
        REQUIRE(read(ends[0], got, sizeof got) == sizeof got - 1);
        for (size_t i = 0; i < 3; i++) REQUIRE(get32(got + i * (HEADER_BYTES + 3)) == 3 && memcmp(got + i * (HEADER_BYTES + 3) + HEADER_BYTES, "abc", 3) == 0);
        REQUIRE(link_acknowledge(&link, 3) && buffer_length(&link.kept) == 0 && link.written == 0);
        close(ends[0]);
        close(ends[1]);
        buffer_free(&link.kept);
    }
    memset(trouble, 0, sizeof trouble);
}

/* A PONG is queued while a frame is half written: it must come after the whole of that frame, before the frames that wait. */
static void a_frame_of_the_session_comes_where_the_next_frame_would_begin(void) {
    enum { SIZE = HEADER_BYTES + 3 };
    static const uint8_t order[] = {FRAME_STDOUT, FRAME_PONG, FRAME_STDOUT, FRAME_STDOUT};
    struct link link = {0};
    int ends[2];
    uint8_t got[4 * SIZE + 1];
    REQUIRE(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    for (int i = 0; i < 3; i++) REQUIRE(link_send(&link, FRAME_STDOUT, 1, "abc", 3) == 0);
    trouble[WRITE].most = 4; /* of a frame of 15 bytes */
    trouble[WRITE].after = 1;
    trouble[WRITE].times = 1;
    trouble[WRITE].error = EAGAIN;
    REQUIRE(link_flush(&link, ends[1]) == 1 && link_send_control(&link, FRAME_PONG, "def", 3) == 0 && link_flush(&link, ends[1]) == 0);
    REQUIRE(read(ends[0], got, sizeof got) == 4 * SIZE);
    for (int i = 0; i < 4; i++) REQUIRE(got[i * SIZE + 4] == order[i]);
    close(ends[0]);
    close(ends[1]);
    buffer_free(&link.kept);
    buffer_free(&link.control);
    memset(trouble, 0, sizeof trouble);
}

/* ---- all of them -------------------------------------------------------------------------------------------------- */

static int visited;

static void visit_channel(struct runner *r, struct channel *c) {
    (void)r;
    visited += 1 << c->id % 7;
}

static void visit_endpoint(struct runner *r, struct endpoint *e) {
    (void)r;
    visited += 1 << e->id % 7;
}

static void no_bucket_is_left_out(void) {
    static const uint32_t ids[] = {CHANNEL_BUCKETS - 1, CHANNEL_BUCKETS, CHANNEL_BUCKETS + 1, 2 * CHANNEL_BUCKETS - 1, 2 * CHANNEL_BUCKETS};
    int all = 0;
    open_runner();
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        all += 1 << ids[i] % 7;
        REQUIRE(open_channel(&s.r, ids[i], CHANNEL_COMMAND) && endpoint_open(&s.r, ids[i], ENDPOINT_LISTENER));
    }
    visited = 0;
    for_each_channel(&s.r, visit_channel);
    REQUIRE(visited == all);
    visited = 0;
    for_each_endpoint(&s.r, visit_endpoint);
    REQUIRE(visited == all);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) retire(&s.r, channel_find(&s.r, ids[i]));
    close_runner();
}

static bool are_fakes_known(int (*is_ours)(pid_t)) { return is_ours(pid_of(&fakes[0])) && is_ours(pid_of(&fakes[1])) && !is_ours(1) && !is_ours(999); }

static void who_has_lost_its_worker_is_killed_until_nobody_is_left_or_for_five_seconds(void) {
    open_welcomed();
    one_turn();
    are_workers_known = are_fakes_known;
    uint64_t begin_ms = clock_ms;
    REQUIRE(pool_kill_orphans(&s.r, 33) && orphans_since == 33 && clock_ms == begin_ms);
    orphans_left = 5;
    REQUIRE(pool_kill_orphans(&s.r, 33) && clock_ms == begin_ms + 5);
    begin_ms = clock_ms;
    orphans_left = 1000000;
    REQUIRE(!pool_kill_orphans(&s.r, 33) && clock_ms == begin_ms + ORPHAN_PATIENCE_MS);
    orphans_left = 0;
    are_workers_known = NULL;
    finish();
    close_runner();
}

static void before_a_receipt_all_commands_are_ended_and_nothing_else(void) {
    open_welcomed();
    struct fake *command = start_one();
    ask_for_file(0);
    let_workers_run();
    are_workers_known = are_fakes_known;
    trees_killed = 0;
    orphans_since = 1;
    uint64_t begin_ms = clock_ms;
    pool_end_commands(&s.r);
    REQUIRE(trees_killed == UINT64_C(1) << (command - fakes) && orphans_since == 0 && clock_ms == begin_ms + ORPHAN_PATIENCE_MS);
    end_command(command);
    begin_ms = clock_ms;
    pool_end_commands(&s.r);
    REQUIRE(clock_ms == begin_ms);
    orphans_left = 3;
    pool_end_commands(&s.r);
    REQUIRE(clock_ms == begin_ms + 3);
    are_workers_known = NULL;
    finish();
    close_runner();
}

/* Some kernels give orphans to PID 1. Which of them a command has left is then told by whether they began after it. */
static void orphans_of_a_command_are_killed_with_it(void) {
    for (int is_lost = 0; is_lost < 2; is_lost++)
        for (int left = 0; left < 2; left++) {
            open_welcomed();
            struct fake *f = start_with(SPAWN_NO_STDIN | SPAWN_ENDS_TREE);
            uint32_t channel = f->channel;
            find_worker(&s.r, pid_of(f))->slot->orphans_since = 4444;
            orphans_since = 1;
            orphans_left = left ? 1000000 : 0;
            if (is_lost) {
                die(f);
            } else {
                end_command(f);
                report_empty(f);
            }
            everything_flows();
            orphans_left = 0;
            REQUIRE(orphans_since == 4444 && records[channel].exited && (records[channel].exit_flags & EXIT_TREE_LEFT) == (left ? EXIT_TREE_LEFT : 0));
            REQUIRE(records[channel].kind == (is_lost ? EXIT_LOST : EXIT_EXITED));
            finish();
            close_runner();
        }
    /* Processes that may outlive their command are not killed. */
    open_welcomed();
    struct fake *f = start_one();
    find_worker(&s.r, pid_of(f))->slot->orphans_since = 4444;
    orphans_since = 1;
    end_command(f);
    report_empty(f);
    everything_flows();
    REQUIRE(orphans_since == 1);
    finish();
    close_runner();
}

static void when_a_file_operation_ends_those_that_wait_have_more_patience(void) {
    open_welcomed();
    everything_flows();
    for (int i = 0; i <= FILE_JOBS_AT_ONCE + 1; i++) ask_for_file(0);
    one_turn();
    for (int i = 0; i < fake_count; i++) receive_job(&fakes[i]);
    clock_ms += 15;
    for (int i = 0; i < fake_count; i++)
        if (fakes[i].channel) {
            end_command(&fakes[i]);
            break;
        }
    one_turn();
    REQUIRE(s.r.file_ended_ms == clock_ms && s.r.queue_first && !s.r.queue_first->next);
    clock_ms += 19;
    one_turn();
    REQUIRE(s.r.queue_first);
    clock_ms++;
    one_turn();
    REQUIRE(!s.r.queue_first);
    finish();
    close_runner();
}

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IONBF, 0);
    RUN(a_host_says_only_what_a_host_may_say);
    RUN(a_greeting_has_the_version_and_the_whole_token_and_knows_no_more_than_there_was);
    RUN(each_byte_of_the_hash_counts);
    RUN(the_token_does_not_stay_in_memory);
    RUN(a_stream_that_is_only_interrupted_goes_on);
    RUN(what_a_host_does_not_take_now_it_gets_later);
    RUN(a_host_that_cannot_be_written_to_is_dropped);
    RUN(without_a_host_the_lease_runs);
    RUN(who_asks_is_answered_and_then_gives_two_streams_and_nothing_more);
    RUN(who_goes_away_again_leaves_its_place);
    RUN(streams_that_nobody_adopts_are_closed);
    RUN(there_are_eight_places);
    RUN(who_does_not_greet_in_time_is_dropped_and_a_host_is_not);
    RUN(who_may_have_come_from_outside_may_ask);
    RUN(the_door_opens_again_when_its_time_has_come);
    RUN(a_lease_ends_in_time_and_the_first_host_has_half_a_minute);
    RUN(the_loop_sleeps_until_its_next_deadline);
    RUN(memory_is_given_back_when_nothing_happens);
    RUN(an_interrupted_read_of_output_loses_nothing);
    RUN(input_for_a_command_waits_until_its_pipe_takes_it);
    RUN(input_that_nobody_reads_is_taken_and_dropped);
    RUN(for_a_command_the_host_may_send_what_may_be_kept);
    RUN(a_stream_that_cannot_be_made_leaves_none_of_the_others);
    RUN(without_memory_for_a_request_the_host_is_dropped);
    RUN(without_memory_for_the_queue_a_file_operation_does_not_wait);
    RUN(a_file_operation_does_not_wait_for_ever_behind_others);
    RUN(a_timeout_is_kept_to_the_millisecond);
    RUN(who_does_not_hear_that_it_shall_end_is_asked_again);
    RUN(a_signal_waits_for_the_process_that_it_is_for);
    RUN(a_file_operation_gets_no_signal_and_is_told_in_its_slot_to_stop);
    RUN(an_end_waits_a_moment_for_streams_that_are_held_open);
    RUN(what_may_not_outlive_its_command_is_ended_after_a_moment);
    RUN(what_leaves_by_itself_in_time_was_not_ended);
    RUN(calls_of_one_bucket_are_told_apart);
    RUN(two_workers_are_ready_and_six_stay_at_most);
    RUN(a_job_goes_to_a_worker_that_lives);
    RUN(when_a_worker_was_killed_the_others_are_asked_whether_they_live);
    RUN(when_a_dismissed_worker_ends_nobody_is_asked);
    RUN(a_worker_that_reports_nonsense_is_killed_and_its_command_is_lost);
    RUN(a_command_for_which_there_is_no_process_says_so);
    RUN(each_worker_has_a_slot_of_its_own);
    RUN(a_link_without_memory_says_so_and_keeps_what_it_has);
    RUN(a_link_is_full_from_its_mark_on);
    RUN(only_whole_frames_that_were_written_are_acknowledged);
    RUN(a_frame_of_the_session_comes_where_the_next_frame_would_begin);
    RUN(no_bucket_is_left_out);
    RUN(who_has_lost_its_worker_is_killed_until_nobody_is_left_or_for_five_seconds);
    RUN(before_a_receipt_all_commands_are_ended_and_nothing_else);
    RUN(orphans_of_a_command_are_killed_with_it);
    RUN(when_a_file_operation_ends_those_that_wait_have_more_patience);
    return 0;
}
