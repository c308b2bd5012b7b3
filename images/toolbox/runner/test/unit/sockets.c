/*
 * Sockets in the sandbox at the edges: when the kernel interrupts a call, does only a part of it or refuses it, when a request is one byte
 * too long or too short, and at the last place before a limit and the first one behind it.
 */
#include "play.h"

#include <netinet/tcp.h>

/* ---- connections with programs ------------------------------------------------------------------------------------ */

static void read_everything(struct program *p) {
    for (int i = 0; i < 4; i++) {
        everything_flows();
        while (program_reads(p, 4096)) continue;
    }
}

static void input_that_goes_in_pieces_arrives_whole(void) {
    open_welcomed();
    uint32_t channel = connect_program();
    const struct endpoint *c = endpoint_find(&s.r, channel);
    trouble[SEND].most = 700;
    send_input(channel, 4000);
    one_turn();
    REQUIRE(buffer_length(&c->input) == 0);
    /* After two pieces the socket takes no more, also when the rest is tried a second time, so that is kept. */
    trouble[SEND].after = 2;
    trouble[SEND].times = 2;
    trouble[SEND].error = EAGAIN;
    send_input(channel, 4000);
    one_turn();
    REQUIRE(buffer_length(&c->input) == 2600 && c->source.armed & EPOLLOUT);
    /* Input that comes now waits behind the rest. */
    trouble[SEND].after = 1;
    trouble[SEND].times = 1;
    send_input(channel, 100);
    one_turn();
    fail_next(SEND, EINTR);
    read_everything(&programs[0]);
    REQUIRE(programs[0].read == 8100 && c->input.capacity == 0 && !(c->source.armed & EPOLLOUT));
    finish();
    close_runner();
}

static void the_end_of_the_input_comes_behind_what_is_kept(void) {
    open_welcomed();
    uint32_t channel = connect_program();
    const struct endpoint *c = endpoint_find(&s.r, channel);
    trouble[SEND].times = 3; /* directly, as what is kept, and once more with the end */
    trouble[SEND].error = EAGAIN;
    send_input(channel, 500);
    host_input(channel, 0);
    one_turn();
    REQUIRE(buffer_length(&c->input) == 500 && c->input_ended && !c->is_shut);
    read_everything(&programs[0]);
    REQUIRE(programs[0].read == 500 && programs[0].has_read_end && c->is_shut && !records[channel].exited);
    /* A second end is no mistake. */
    host_send(FRAME_INPUT, channel, NULL, 0);
    everything_flows();
    REQUIRE(s.bridge->is_used);
    program_writes(&programs[0], 30);
    program_shuts(&programs[0]);
    everything_flows();
    REQUIRE(records[channel].exited && records[channel].error == 0 && records[channel].got[0] == 30);
    close_runner();
}

static void behind_the_end_of_the_input_there_is_no_more(void) {
    open_welcomed();
    uint32_t channel = connect_program();
    host_input(channel, 0);
    host_send(FRAME_INPUT, channel, "x", 1);
    everything_flows();
    REQUIRE(!s.bridge->is_used);
    close_runner();
}

/* The program may still have something to say, and says it. */
static void a_program_that_reads_no_more_is_still_listened_to(void) {
    open_welcomed();
    uint32_t channel = connect_program();
    const struct endpoint *c = endpoint_find(&s.r, channel);
    records[channel].killed = true; /* its input is lost */
    trouble[SEND].after = 1;
    trouble[SEND].times = 1;
    trouble[SEND].error = EPIPE;
    trouble[SEND].most = 10;
    send_input(channel, 100);
    everything_flows();
    REQUIRE(c->is_shut && c->error == EPIPE && c->input.capacity == 0 && !records[channel].exited);
    send_input(channel, 50);
    fail_next(SEND, ECONNRESET);
    everything_flows();
    REQUIRE(trouble[SEND].times == 1 && buffer_length(&c->input) == 0 && c->error == EPIPE && s.bridge->is_used);
    memset(trouble, 0, sizeof trouble);
    program_writes(&programs[0], 70);
    everything_flows();
    REQUIRE(records[channel].got[0] == 70 && !records[channel].exited);
    program_shuts(&programs[0]);
    everything_flows();
    REQUIRE(records[channel].exited && records[channel].error == EPIPE && records[channel].saw_end);
    close_runner();
}

static void kept_input_is_given_up_when_the_program_is_gone(void) {
    open_welcomed();
    uint32_t channel = connect_program();
    const struct endpoint *c = endpoint_find(&s.r, channel);
    records[channel].killed = true;
    trouble[SEND].times = 2;
    trouble[SEND].error = EAGAIN;
    send_input(channel, 100);
    one_turn();
    REQUIRE(buffer_length(&c->input) == 100);
    fail_next(SEND, ECONNRESET);
    everything_flows();
    REQUIRE(c->is_shut && c->error == ECONNRESET && c->input.capacity == 0);
    program_shuts(&programs[0]);
    everything_flows();
    REQUIRE(records[channel].exited && records[channel].error == ECONNRESET);
    close_runner();
}

static void the_first_error_of_a_connection_is_the_one_that_is_told(void) {
    open_welcomed();
    uint32_t channel = connect_program();
    fail_next(SHUTDOWN, ENOTCONN);
    host_input(channel, 0);
    everything_flows();
    REQUIRE(!records[channel].exited && endpoint_find(&s.r, channel)->error == ENOTCONN);
    program_writes(&programs[0], 5);
    fail_next(RECV, ETIMEDOUT);
    everything_flows();
    REQUIRE(records[channel].exited && records[channel].error == ENOTCONN && !records[channel].saw_end);
    close_runner();
}

static void an_interrupted_read_of_a_connection_ends_nothing(void) {
    static const int errors[] = {EINTR, EAGAIN};
    open_welcomed();
    uint32_t channel = connect_program();
    for (size_t i = 0; i < 2; i++) {
        program_writes(&programs[0], 100);
        fail_next(RECV, errors[i]);
        everything_flows();
        REQUIRE(trouble[RECV].times == 0 && records[channel].got[0] == 100 * (i + 1) && !endpoint_find(&s.r, channel)->output_ended);
    }
    program_writes(&programs[0], 100);
    fail_next(RECV, ECONNRESET);
    everything_flows();
    REQUIRE(records[channel].exited && records[channel].error == ECONNRESET && !records[channel].saw_end && records[channel].got[0] == 200);
    close_runner();
}

static void a_connection_waits_while_the_host_acknowledges_nothing(void) {
    open_welcomed();
    uint32_t channel = connect_program();
    struct endpoint *c = endpoint_find(&s.r, channel);
    host_grant(channel, 1 << 20);
    for (int i = 0; i < 200 && !link_is_full(&s.r.link); i++) {
        program_writes(&programs[0], 4096);
        one_turn();
    }
    REQUIRE(link_is_full(&s.r.link) && c->source.armed == EPOLLERR && s.r.network_waits && c->credit > 0);
    everything_flows();
    REQUIRE(!link_is_full(&s.r.link) && c->source.armed == EPOLLIN && !s.r.network_waits);
    everything_flows();
    REQUIRE(records[channel].got[0] == programs[0].wrote);
    finish();
    close_runner();
}

static void a_dialled_connection_refused_for_any_reason_leaves_nothing(void) {
    static const struct {
        enum call call;
        int error, told;
    } all[] = {
        {SOCKET, EMFILE, EMFILE},
        {SOCKET, EAFNOSUPPORT, EAFNOSUPPORT},
        {CONNECT, ECONNREFUSED, ECONNREFUSED},
        {CONNECT, ENETUNREACH, ENETUNREACH},
        {CONNECT, EADDRNOTAVAIL, EADDRNOTAVAIL},
        {CONNECT, EACCES, EACCES},
        {CALLOC, 0, ENOMEM},
        {GETSOCKOPT, ENOBUFS, ENOBUFS},
    };
    open_welcomed();
    everything_flows();
    size_t before = open_descriptors();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fail_next(all[i].call, all[i].error);
        host_dial_program(server_port);
        everything_flows();
        uint32_t channel = channel_count;
        REQUIRE(trouble[all[i].call].times == 0 && records[channel].exited && records[channel].error == (uint32_t)all[i].told && !records[channel].is_connected);
        REQUIRE(s.r.open_connections == 0 && !endpoint_find(&s.r, channel));
        if (all[i].call != GETSOCKOPT) REQUIRE(open_descriptors() == before); /* the last one was connected, and this process has its other end */
    }
    host_dial_program(server_port);
    everything_flows();
    REQUIRE(records[channel_count].is_connected && s.r.open_connections == 1);
    finish();
    close_runner();
}

static void connections_have_half_of_the_descriptors(void) {
    open_welcomed();
    everything_flows();
    for (int is_odd = 0; is_odd < 2; is_odd++) {
        s.r.fd_limit = 400 + is_odd;
        s.r.open_connections = 200;
        host_dial_program(server_port);
        everything_flows();
        REQUIRE(records[channel_count].exited && records[channel_count].error == EMFILE);
        s.r.open_connections = 199;
        host_dial_program(server_port);
        everything_flows();
        REQUIRE(records[channel_count].is_connected && s.r.open_connections == 200);
        host_kill(channel_count, 0);
        everything_flows();
        REQUIRE(s.r.open_connections == 199);
    }
    host_listen(LISTEN_STREAM);
    host_accept();
    everything_flows();
    uint32_t channel = channel_count;
    s.r.open_connections = 200;
    program_connects();
    everything_flows();
    REQUIRE(!records[channel].is_connected && endpoint_find(&s.r, listener_channel)->accept_again_ms == clock_ms + 100);
    s.r.open_connections = 0;
    clock_ms += 100;
    everything_flows();
    REQUIRE(records[channel].is_connected && s.r.open_connections == 1);
    finish();
    close_runner();
}

/* Both ends of the connection, as the host is told them. */
static void require_ends(uint32_t channel, const struct program *p) {
    const struct endpoint *c = endpoint_find(&s.r, channel);
    uint8_t expected[CONNECTED_BYTES];
    int on = 0;
    socklen_t size = sizeof on;
    loopback_bytes(expected, port_of(p->fd, true));
    loopback_bytes(expected + ADDRESS_BYTES, port_of(p->fd, false));
    REQUIRE(memcmp(last_connected, expected, sizeof expected) == 0);
    REQUIRE(getsockopt(c->source.fd, IPPROTO_TCP, TCP_NODELAY, &on, &size) == 0 && on == 1);
    REQUIRE(fcntl(c->source.fd, F_GETFL) & O_NONBLOCK && fcntl(c->source.fd, F_GETFD) == FD_CLOEXEC);
}

static void the_host_is_told_both_ends_of_a_connection(void) {
    open_welcomed();
    uint32_t channel = connect_program();
    require_ends(channel, &programs[0]);
    host_dial_program(server_port);
    everything_flows();
    require_ends(channel_count, &programs[1]);
    finish();
    close_runner();
}

/* When the host has closed the connection, the program finds no end of it, but an error. */
static void a_connection_that_is_closed_is_reset(void) {
    char byte;
    open_welcomed();
    uint32_t channel = connect_program();
    host_kill(channel, 0);
    everything_flows();
    REQUIRE(records[channel].exited && records[channel].error == ECANCELED && s.r.open_connections == 0);
    REQUIRE(recv(programs[0].fd, &byte, 1, 0) == -1 && errno == ECONNRESET);
    /* One that waits has no socket yet. */
    host_accept();
    everything_flows();
    host_kill(channel_count, 0);
    everything_flows();
    REQUIRE(records[channel_count].exited && records[channel_count].error == ECANCELED && s.r.open_connections == 0);
    finish();
    close_runner();
}

/* Whether a host may send so much to a connection that nobody has made yet. */
static bool may_keep(uint32_t bytes) {
    static uint8_t piece[2 * INITIAL_CREDIT + 1];
    open_welcomed();
    host_listen(LISTEN_STREAM);
    host_accept();
    everything_flows();
    uint32_t channel = channel_count;
    host_send(FRAME_INPUT, channel, piece, bytes / 2);
    host_send(FRAME_INPUT, channel, piece, bytes - bytes / 2);
    everything_flows();
    bool may = s.bridge->is_used;
    if (may) REQUIRE(buffer_length(&endpoint_find(&s.r, channel)->input) == bytes);
    close_runner();
    return may;
}

static void before_a_connection_is_made_the_host_may_send_what_it_may_keep(void) {
    REQUIRE(may_keep(2) && may_keep(2 * INITIAL_CREDIT) && !may_keep(2 * INITIAL_CREDIT + 1));
}

/* ---- listeners ---------------------------------------------------------------------------------------------------- */

static void what_is_only_interrupted_accepts_at_once(void) {
    static const int errors[] = {EINTR, ECONNABORTED};
    open_welcomed();
    connect_program();
    for (size_t i = 0; i < 2; i++) {
        host_accept();
        everything_flows();
        program_connects();
        fail_next(ACCEPT, errors[i]);
        one_turn();
        REQUIRE(trouble[ACCEPT].times == 0 && s.r.open_connections == (int)i + 2 && endpoint_find(&s.r, listener_channel)->accept_again_ms == 0);
        everything_flows();
        REQUIRE(records[channel_count].is_connected);
    }
    finish();
    close_runner();
}

static void a_listener_that_cannot_accept_waits_for_a_moment(void) {
    static const int errors[] = {EMFILE, ENFILE, ENOMEM, ENOBUFS, EPERM};
    open_welcomed();
    connect_program();
    struct endpoint *listener = endpoint_find(&s.r, listener_channel);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        host_accept();
        everything_flows();
        uint32_t channel = channel_count;
        program_connects();
        fail_next(ACCEPT, errors[i]);
        one_turn();
        uint64_t again_ms = clock_ms + 100;
        REQUIRE(trouble[ACCEPT].times == 0 && listener->accept_again_ms == again_ms && listener->source.armed == 0 && s.r.next_deadline_ms <= again_ms);
        clock_ms += 99;
        s.r.next_deadline_ms = clock_ms;
        everything_flows();
        REQUIRE(!records[channel].is_connected && listener->accept_again_ms == again_ms && listener->source.armed == 0 && s.r.next_deadline_ms == again_ms);
        clock_ms++;
        everything_flows();
        REQUIRE(records[channel].is_connected && listener->accept_again_ms == 0);
    }
    /* An accept that finds nobody yet is no reason to wait. */
    host_accept();
    everything_flows();
    program_connects();
    fail_next(ACCEPT, EAGAIN);
    one_turn();
    REQUIRE(trouble[ACCEPT].times == 0 && listener->accept_again_ms == 0 && listener->source.armed == EPOLLIN);
    everything_flows();
    REQUIRE(records[channel_count].is_connected && listener->source.armed == 0);
    finish();
    close_runner();
}

static void a_listener_that_fails_to_open_says_why_and_leaves_nothing(void) {
    static const struct {
        enum call call;
        int error, told;
    } all[] = {{SOCKET, EMFILE, EMFILE}, {LISTEN, EADDRINUSE, EADDRINUSE}, {CALLOC, 0, ENOMEM}};
    open_welcomed();
    everything_flows();
    size_t before = open_descriptors();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (uint8_t kind = LISTEN_STREAM; kind <= LISTEN_DATAGRAMS; kind++) {
            if (all[i].call == LISTEN && kind == LISTEN_DATAGRAMS) continue;
            fail_next(all[i].call, all[i].error);
            host_listen(kind);
            everything_flows();
            REQUIRE(trouble[all[i].call].times == 0 && records[channel_count].exited && records[channel_count].error == (uint32_t)all[i].told);
            REQUIRE(!endpoint_find(&s.r, channel_count) && open_descriptors() == before);
        }
    finish();
    close_runner();
}

/* Asks for a socket on this port, and returns the error that the host is told, or 0. */
static uint32_t error_of_listening(uint8_t kind, uint16_t port) {
    uint8_t payload[LISTEN_BYTES] = {kind};
    loopback_bytes(payload + 4, port);
    uint32_t channel = open_socket_channel(FRAME_LISTEN, payload, sizeof payload);
    everything_flows();
    REQUIRE(records[channel].exited == !endpoint_find(&s.r, channel));
    return records[channel].exited ? records[channel].error : 0;
}

static void a_port_has_one_listener_at_a_time(void) {
    open_welcomed();
    uint32_t channel = connect_program(), listener = listener_channel;
    uint16_t port = listener_port;
    REQUIRE(error_of_listening(LISTEN_STREAM, port) == EADDRINUSE);
    /* The runner's side ends first, so it is the one on which the kernel keeps the port for a while. */
    host_input(channel, 0);
    everything_flows();
    while (program_reads(&programs[0], 4096)) continue;
    program_shuts(&programs[0]);
    everything_flows();
    REQUIRE(records[channel].exited && records[channel].error == 0);
    host_kill(listener, 0);
    everything_flows();
    REQUIRE(records[listener].exited && error_of_listening(LISTEN_STREAM, port) == 0);
    uint32_t datagrams = listen_for_datagrams();
    port = port_of(endpoint_find(&s.r, datagrams)->source.fd, false);
    REQUIRE(error_of_listening(LISTEN_DATAGRAMS, port) == EADDRINUSE);
    host_kill(datagrams, 0);
    everything_flows();
    REQUIRE(records[datagrams].error == ECANCELED && error_of_listening(LISTEN_DATAGRAMS, port) == 0);
    finish();
    close_runner();
}

static void who_waits_gets_a_connection_in_turn(void) {
    for (uint32_t left_out = 0; left_out < 4; left_out++) {
        open_welcomed();
        host_listen(LISTEN_STREAM);
        everything_flows();
        uint32_t first = channel_count + 1;
        for (int i = 0; i < 4; i++) host_accept();
        everything_flows();
        host_kill(first + left_out, 0);
        everything_flows();
        host_accept();
        everything_flows();
        for (uint32_t i = 0; i < 5; i++) {
            if (i == left_out) continue;
            REQUIRE(!records[first + i].is_connected);
            program_connects();
            everything_flows();
            REQUIRE(records[first + i].is_connected);
        }
        const struct endpoint *listener = endpoint_find(&s.r, listener_channel);
        REQUIRE(!listener->first_waiting && listener->waiting_end == &listener->first_waiting && listener->source.armed == 0);
        finish();
        close_runner();
    }
}

static void a_listener_that_is_closed_ends_all_that_wait(void) {
    open_welcomed();
    connect_program();
    uint32_t listener = listener_channel, first = channel_count + 1;
    for (int i = 0; i < 3; i++) host_accept();
    everything_flows();
    host_kill(listener, 0);
    everything_flows();
    for (uint32_t i = 0; i < 3; i++) REQUIRE(records[first + i].exited && records[first + i].error == ECANCELED);
    REQUIRE(records[listener].exited && records[listener].error == ECANCELED && !records[first - 1].exited);
    /* A request to accept that was under way meanwhile ends in the same way. */
    listener_channel = listener;
    host_accept();
    everything_flows();
    REQUIRE(records[channel_count].exited && records[channel_count].error == ECANCELED && s.bridge->is_used);
    finish();
    close_runner();
}

/* ---- requests for sockets ----------------------------------------------------------------------------------------- */

enum open_kind { NOTHING, A_LISTENER, DATAGRAMS, WAITING, CONNECTED, A_COMMAND, A_FREE_ONE, KINDS };

static uint32_t opened[KINDS];

static void open_one_of_each(void) {
    open_welcomed();
    opened[CONNECTED] = connect_program();
    opened[A_LISTENER] = listener_channel;
    host_accept();
    everything_flows();
    opened[WAITING] = channel_count;
    opened[DATAGRAMS] = listen_for_datagrams();
    opened[A_COMMAND] = start_one()->channel;
    opened[A_FREE_ONE] = channel_count + 1;
}

/* Whether the host is kept. A frame for which it is dropped is counted all the same, so that it does not come again. */
static bool finish_after_request(uint32_t channel) {
    bool is_kept = s.bridge->is_used;
    if (!is_kept && channel == opened[A_FREE_ONE]) records[channel].exited = true; /* as there never was such a channel */
    finish();
    close_runner();
    return is_kept;
}

/* Sends a frame on the channel of the given kind. False if the runner drops the host for it, as it does for a frame against the protocol. */
static bool is_allowed(uint8_t type, enum open_kind kind, const void *payload, size_t length) {
    open_one_of_each();
    uint32_t channel = opened[kind];
    if (kind == A_FREE_ONE && type != FRAME_DATAGRAM) open_socket_channel(type, payload, length);
    else host_send(type, channel, payload, length);
    if (type == FRAME_INPUT) records[channel].input_ended = true;
    if (type == FRAME_KILL && length == 4) records[channel].killed = true;
    everything_flows();
    return finish_after_request(channel);
}

static void a_request_to_listen_is_whole_and_for_something_known(void) {
    uint8_t payload[LISTEN_BYTES + 1] = {LISTEN_STREAM};
    loopback_bytes(payload + 4, 0);
    for (size_t length = LISTEN_BYTES - 1; length <= LISTEN_BYTES + 1; length++)
        REQUIRE(is_allowed(FRAME_LISTEN, A_FREE_ONE, payload, length) == (length == LISTEN_BYTES));
    for (uint8_t kind = 0; kind < 5; kind++) {
        payload[0] = kind;
        REQUIRE(is_allowed(FRAME_LISTEN, A_FREE_ONE, payload, LISTEN_BYTES) == (kind == LISTEN_STREAM || kind == LISTEN_DATAGRAMS));
    }
    payload[0] = LISTEN_STREAM;
    for (size_t at = 1; at < 4; at++) {
        payload[at] = 1;
        REQUIRE(!is_allowed(FRAME_LISTEN, A_FREE_ONE, payload, LISTEN_BYTES));
        payload[at] = 0;
    }
}

static void a_request_to_connect_is_whole_and_for_loopback(void) {
    uint8_t payload[ADDRESS_BYTES + 1] = {0};
    loopback_bytes(payload, 1);
    for (size_t length = ADDRESS_BYTES - 1; length <= ADDRESS_BYTES + 1; length++)
        REQUIRE(is_allowed(FRAME_CONNECT, A_FREE_ONE, payload, length) == (length == ADDRESS_BYTES));
    payload[4] = 10;
    REQUIRE(!is_allowed(FRAME_CONNECT, A_FREE_ONE, payload, ADDRESS_BYTES));
}

static bool may_accept(enum open_kind kind, size_t length) {
    uint8_t payload[5] = {0};
    open_one_of_each();
    put32(payload, kind == A_FREE_ONE ? opened[kind] + 1 : opened[kind]);
    open_socket_channel(FRAME_ACCEPT, payload, length);
    everything_flows();
    /* Without a listener there is nobody to wait for. */
    if (s.bridge->is_used) REQUIRE(records[channel_count].exited == (kind != A_LISTENER));
    return finish_after_request(channel_count);
}

static void only_a_listener_accepts(void) {
    REQUIRE(may_accept(A_LISTENER, 4) && !may_accept(A_LISTENER, 3) && !may_accept(A_LISTENER, 5));
    REQUIRE(!may_accept(DATAGRAMS, 4) && !may_accept(WAITING, 4) && !may_accept(CONNECTED, 4));
    REQUIRE(may_accept(A_FREE_ONE, 4) && may_accept(A_COMMAND, 4));
}

static void a_request_is_for_a_channel_of_its_own(void) {
    uint8_t listen_bytes[LISTEN_BYTES] = {LISTEN_STREAM}, connect_bytes[ADDRESS_BYTES], accept_bytes[4] = {1};
    loopback_bytes(listen_bytes + 4, 0);
    loopback_bytes(connect_bytes, 1);
    for (enum open_kind kind = A_LISTENER; kind <= A_COMMAND; kind++) {
        REQUIRE(!is_allowed(FRAME_LISTEN, kind, listen_bytes, sizeof listen_bytes));
        REQUIRE(!is_allowed(FRAME_CONNECT, kind, connect_bytes, sizeof connect_bytes));
        REQUIRE(!is_allowed(FRAME_ACCEPT, kind, accept_bytes, sizeof accept_bytes));
    }
}

static void each_socket_takes_only_what_is_for_its_kind(void) {
    uint8_t datagram[ADDRESS_BYTES], zeros[8] = {0};
    loopback_bytes(datagram, 9);
    for (enum open_kind kind = A_LISTENER; kind <= CONNECTED; kind++) {
        REQUIRE(is_allowed(FRAME_INPUT, kind, NULL, 0) == (kind == WAITING || kind == CONNECTED));
        REQUIRE(is_allowed(FRAME_DATAGRAM, kind, datagram, sizeof datagram) == (kind == DATAGRAMS));
        REQUIRE(!is_allowed(FRAME_SIGNAL, kind, "\1", 1) && !is_allowed(FRAME_RESIZE, kind, zeros, 4) && !is_allowed(FRAME_STDOUT, kind, zeros, 1));
        for (size_t length = 3; length <= 5; length++) {
            REQUIRE(is_allowed(FRAME_KILL, kind, zeros, length) == (length == 4));
            REQUIRE(is_allowed(FRAME_CREDIT, kind, zeros, length) == (length == 4));
        }
        put32(zeros, (64u << 20) - INITIAL_CREDIT);
        REQUIRE(is_allowed(FRAME_CREDIT, kind, zeros, 4));
        put32(zeros, (64u << 20) - INITIAL_CREDIT + 1);
        REQUIRE(!is_allowed(FRAME_CREDIT, kind, zeros, 4));
        put32(zeros, 0);
    }
    /* A datagram that was on its way when its socket was closed. */
    REQUIRE(is_allowed(FRAME_DATAGRAM, A_FREE_ONE, datagram, sizeof datagram));
}

static void sockets_of_one_bucket_are_told_apart(void) {
    open_welcomed();
    for (uint32_t first_to_end = 0; first_to_end < 3; first_to_end++) {
        struct endpoint *all[3];
        for (uint32_t i = 0; i < 3; i++) all[i] = endpoint_open(&s.r, 5 + i * CHANNEL_BUCKETS, ENDPOINT_LISTENER);
        for (uint32_t i = 0; i < 3; i++) REQUIRE(endpoint_find(&s.r, 5 + i * CHANNEL_BUCKETS) == all[i] && all[i]->phase == ENDPOINT_OPEN && all[i]->credit == INITIAL_CREDIT);
        REQUIRE(!endpoint_find(&s.r, 5 + 3 * CHANNEL_BUCKETS) && !endpoint_find(&s.r, 6));
        for (uint32_t i = 0; i < 3; i++) {
            uint32_t which = (first_to_end + i) % 3;
            endpoint_end(&s.r, all[which], 0);
            for (uint32_t k = 0; k < 3; k++) REQUIRE((endpoint_find(&s.r, 5 + k * CHANNEL_BUCKETS) != NULL) == ((k + 3 - first_to_end) % 3 > i));
        }
        free_what_is_over(&s.r);
        REQUIRE(!s.r.over);
    }
    close_runner();
}

static int option_of(int fd, int option) {
    int value = 0;
    socklen_t size = sizeof value;
    REQUIRE(getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0);
    return value;
}

/* The kernel rounds these sizes, so they are compared with what it makes of them. */
static void the_kernel_keeps_little_of_each_socket(void) {
    int bytes = 256 << 10;
    open_welcomed();
    uint32_t datagrams = listen_for_datagrams();
    host_listen(LISTEN_STREAM);
    everything_flows();
    for (int is_stream = 0; is_stream < 2; is_stream++) {
        int fd = endpoint_find(&s.r, is_stream ? listener_channel : datagrams)->source.fd;
        int other = socket(AF_INET, (is_stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0);
        REQUIRE(other >= 0 && setsockopt(other, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) == 0 && setsockopt(other, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) == 0);
        REQUIRE(option_of(fd, SO_SNDBUF) == option_of(other, SO_SNDBUF) && option_of(fd, SO_RCVBUF) == option_of(other, SO_RCVBUF));
        close(other);
    }
    finish();
    close_runner();
}

/* ---- datagrams ---------------------------------------------------------------------------------------------------- */

static void datagrams_are_read_while_there_is_credit(void) {
    open_welcomed();
    uint32_t channel = listen_for_datagrams();
    struct endpoint *e = endpoint_find(&s.r, channel);
    struct sockaddr_in to = on_loopback(port_of(e->source.fd, false));
    int fd = open_program_for_datagrams();
    e->credit = 2 * (ADDRESS_BYTES + 1);
    for (int i = 0; i < 5; i++) REQUIRE(sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof to) == 1);
    fail_next(RECVFROM, EINTR);
    uint64_t queued = s.r.link.queued;
    one_turn();
    REQUIRE(trouble[RECVFROM].times == 0 && s.r.link.queued == queued + 2);
    everything_flows();
    REQUIRE(records[channel].datagrams == 2 && e->credit == 0 && e->source.armed == 0);
    host_grant(channel, 1); /* one is read whole, though that is more than was granted */
    everything_flows();
    REQUIRE(records[channel].datagrams == 3 && e->credit == -(int64_t)ADDRESS_BYTES && e->source.armed == 0);
    host_grant(channel, 1000);
    everything_flows();
    REQUIRE(records[channel].datagrams == 5 && e->source.armed == EPOLLIN);
    /* An error is no datagram, and no end either. */
    REQUIRE(sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof to) == 1);
    fail_next(RECVFROM, ECONNREFUSED);
    one_turn();
    REQUIRE(trouble[RECVFROM].times == 0 && e->source.armed == EPOLLIN);
    everything_flows();
    REQUIRE(records[channel].datagrams == 6);
    close(fd);
    finish();
    close_runner();
}

static void a_flood_of_datagrams_leaves_time_for_others(void) {
    open_welcomed();
    uint32_t channel = listen_for_datagrams();
    struct endpoint *e = endpoint_find(&s.r, channel);
    struct sockaddr_in to = on_loopback(port_of(e->source.fd, false));
    int fd = open_program_for_datagrams();
    for (int i = 0; i < 40; i++) REQUIRE(sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof to) == 1);
    uint64_t queued = s.r.link.queued;
    for (uint64_t count = 16; count < 40; count += 16) {
        one_turn();
        REQUIRE(s.r.link.queued == queued + count);
    }
    everything_flows();
    REQUIRE(records[channel].datagrams == 40);
    close(fd);
    finish();
    close_runner();
}

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IONBF, 0);
    RUN(input_that_goes_in_pieces_arrives_whole);
    RUN(the_end_of_the_input_comes_behind_what_is_kept);
    RUN(behind_the_end_of_the_input_there_is_no_more);
    RUN(a_program_that_reads_no_more_is_still_listened_to);
    RUN(kept_input_is_given_up_when_the_program_is_gone);
    RUN(the_first_error_of_a_connection_is_the_one_that_is_told);
    RUN(an_interrupted_read_of_a_connection_ends_nothing);
    RUN(a_connection_waits_while_the_host_acknowledges_nothing);
    RUN(a_dialled_connection_refused_for_any_reason_leaves_nothing);
    RUN(connections_have_half_of_the_descriptors);
    RUN(the_host_is_told_both_ends_of_a_connection);
    RUN(a_connection_that_is_closed_is_reset);
    RUN(before_a_connection_is_made_the_host_may_send_what_it_may_keep);
    RUN(what_is_only_interrupted_accepts_at_once);
    RUN(a_listener_that_cannot_accept_waits_for_a_moment);
    RUN(a_listener_that_fails_to_open_says_why_and_leaves_nothing);
    RUN(a_port_has_one_listener_at_a_time);
    RUN(who_waits_gets_a_connection_in_turn);
    RUN(a_listener_that_is_closed_ends_all_that_wait);
    RUN(a_request_to_listen_is_whole_and_for_something_known);
    RUN(a_request_to_connect_is_whole_and_for_loopback);
    RUN(only_a_listener_accepts);
    RUN(a_request_is_for_a_channel_of_its_own);
    RUN(each_socket_takes_only_what_is_for_its_kind);
    RUN(sockets_of_one_bucket_are_told_apart);
    RUN(the_kernel_keeps_little_of_each_socket);
    RUN(datagrams_are_read_while_there_is_credit);
    RUN(a_flood_of_datagrams_leaves_time_for_others);
    return 0;
}
