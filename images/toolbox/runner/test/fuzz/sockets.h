/*
 * Programs that connect to the runner's listener or are connected to, on this machine's real loopback, and the host's requests for
 * sockets. What a program writes is told by its number, what the host writes by its channel.
 */
#define MOST_PROGRAMS 24
#define PROGRAM_BYTES 1000 /* added to the number of a program, to make its bytes differ from those of channels */

struct program {
    int fd;        /* -1 once it is closed */
    uint16_t port; /* its own */
    uint32_t channel; /* 0 until the runner has said which */
    bool has_shut, has_reset, has_read_end;
    uint64_t wrote, read;
};

static struct program programs[MOST_PROGRAMS];
static int program_count, server = -1;
static uint16_t server_port, listener_port;
static uint32_t listener_channel;

static uint32_t open_socket_channel(uint8_t type, const void *payload, size_t length) {
    uint32_t channel = ++channel_count;
    records[channel] = (struct record){.used = true, .is_socket = true, .granted = INITIAL_CREDIT, .program = -1};
    host_send(type, channel, payload, length);
    return channel;
}

static bool has_place_for_socket(void) { return channel_count < MOST_CHANNELS && host_has_room(); }

static void loopback_bytes(uint8_t *bytes, uint16_t port) {
    memset(bytes, 0, ADDRESS_BYTES);
    bytes[0] = ADDRESS_IPV4;
    put16(bytes + 2, port);
    bytes[4] = 127;
    bytes[7] = 1;
}

static void host_listen(uint8_t kind) {
    uint8_t payload[LISTEN_BYTES] = {kind};
    if (!has_place_for_socket()) return;
    loopback_bytes(payload + 4, 0);
    uint32_t channel = open_socket_channel(FRAME_LISTEN, payload, sizeof payload);
    if (kind == LISTEN_STREAM) {
        listener_channel = channel;
        listener_port = 0; /* BOUND will say it */
    }
}

static void host_accept(void) {
    uint8_t payload[4];
    if (!has_place_for_socket() || !listener_channel) return;
    put32(payload, listener_channel);
    open_socket_channel(FRAME_ACCEPT, payload, sizeof payload);
}

static void host_dial_program(uint16_t port) {
    uint8_t payload[ADDRESS_BYTES];
    if (!has_place_for_socket()) return;
    loopback_bytes(payload, port);
    open_socket_channel(FRAME_CONNECT, payload, sizeof payload);
}

static int add_program(int fd, uint16_t port) {
    fcntl(fd, F_SETFL, O_NONBLOCK);
    programs[program_count] = (struct program){.fd = fd, .port = port};
    return program_count++;
}

static uint16_t port_of(int fd, bool is_peer) {
    struct sockaddr_in address = {0};
    socklen_t size = sizeof address;
    int failed = is_peer ? getpeername(fd, (struct sockaddr *)&address, &size) : getsockname(fd, (struct sockaddr *)&address, &size);
    return failed ? 0 : ntohs(address.sin_port);
}

static struct sockaddr_in on_loopback(uint16_t port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static void program_connects(void) {
    if (program_count == MOST_PROGRAMS || !listener_port) return;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = on_loopback(listener_port);
    REQUIRE(fd >= 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0) add_program(fd, port_of(fd, false));
    else close(fd);
}

static void open_server(void) {
    struct sockaddr_in at = on_loopback(0);
    server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    REQUIRE(server >= 0 && bind(server, (struct sockaddr *)&at, sizeof at) == 0 && listen(server, 64) == 0);
    server_port = port_of(server, false);
}

static void close_sockets(void) {
    for (int i = 0; i < program_count; i++) close_one(&programs[i].fd);
    close_one(&server);
    program_count = 0;
    listener_channel = listener_port = 0;
}

/* The runner's connections to the server get a program each. The port at their other end tells which is whose. */
static void server_accepts(void) {
    int fd;
    while (program_count < MOST_PROGRAMS && (fd = accept4(server, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        uint16_t port = port_of(fd, true);
        int program = add_program(fd, port);
        for (uint32_t i = 1; i <= channel_count; i++)
            if (records[i].is_socket && records[i].dialled_from == port && port) {
                records[i].program = program;
                programs[program].channel = i;
            }
    }
}

static void take_bound(uint32_t channel, const struct frame *frame) {
    REQUIRE(frame->length == ADDRESS_BYTES && !records[channel].is_connected && !records[channel].exited);
    if (channel == listener_channel) listener_port = get16(frame->payload + 2);
}

static uint8_t last_connected[CONNECTED_BYTES];

static void take_connected(uint32_t channel, const struct frame *frame) {
    struct record *record = &records[channel];
    REQUIRE(frame->length == CONNECTED_BYTES && record->is_socket && !record->is_connected);
    memcpy(last_connected, frame->payload, sizeof last_connected);
    REQUIRE(frame->payload[0] == ADDRESS_IPV4 && frame->payload[4] == 127 && frame->payload[ADDRESS_BYTES + 4] == 127);
    record->is_connected = true;
    uint16_t own = get16(frame->payload + 2), other = get16(frame->payload + ADDRESS_BYTES + 2);
    if (other == server_port) record->dialled_from = own;
    for (int i = 0; i < program_count; i++)
        if (programs[i].port == (other == server_port ? own : other) && !programs[i].channel) {
            programs[i].channel = channel;
            record->program = i;
        }
    server_accepts();
}

static void take_socket_output(uint32_t channel, const struct frame *frame) {
    struct record *record = &records[channel];
    REQUIRE(record->is_connected && !record->exited && !record->saw_end && frame->length <= MAX_PAYLOAD_FROM_RUNNER);
    if (record->program < 0) return; /* there was no place for it */
    struct program *p = &programs[record->program];
    if (frame->length == 0) {
        record->saw_end = true;
        REQUIRE(p->has_shut || p->fd < 0);
        return;
    }
    for (uint32_t i = 0; i < frame->length; i++)
        REQUIRE(frame->payload[i] == byte_of((uint32_t)record->program + PROGRAM_BYTES, 0, record->got[0] + i));
    record->got[0] += frame->length;
    REQUIRE(record->got[0] <= record->granted && record->got[0] <= p->wrote);
}

static uint8_t last_datagram[MAX_PAYLOAD_FROM_RUNNER];
static size_t last_datagram_length;

static void take_datagram(uint32_t channel, const struct frame *frame) {
    REQUIRE(frame->length >= ADDRESS_BYTES && frame->length <= MAX_PAYLOAD_FROM_RUNNER && records[channel].is_socket && !records[channel].exited);
    REQUIRE(frame->payload[0] == ADDRESS_IPV4 && frame->payload[4] == 127);
    last_datagram_length = frame->length;
    memcpy(last_datagram, frame->payload, frame->length);
    records[channel].datagrams++;
}

static void take_socket_exit(uint32_t channel, const struct frame *frame) {
    struct record *record = &records[channel];
    REQUIRE(!record->exited && frame->length == EXIT_HEAD_BYTES && frame->payload[0] == EXIT_SOCKET);
    record->exited = true;
    if (channel == listener_channel) listener_channel = listener_port = 0;
    uint32_t error = record->error = get32(frame->payload + 4);
    if (!record->is_connected || record->killed || record->program < 0) return;
    /* An exit without an error says that every byte was passed on, in both directions. */
    REQUIRE(error || (record->saw_end && record->input_ended && record->got[0] == programs[record->program].wrote));
}

static void program_writes(struct program *p, size_t length) {
    static uint8_t bytes[64 << 10];
    if (p->fd < 0 || p->has_shut) return;
    for (size_t i = 0; i < length; i++) bytes[i] = byte_of((uint32_t)(p - programs) + PROGRAM_BYTES, 0, p->wrote + i);
    ssize_t n = send(p->fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) p->wrote += (uint64_t)n;
}

static bool program_reads(struct program *p, size_t most) {
    uint8_t bytes[4096];
    if (p->fd < 0 || !p->channel || p->has_read_end) return false;
    struct record *record = &records[p->channel];
    ssize_t n = recv(p->fd, bytes, most < sizeof bytes ? most : sizeof bytes, MSG_DONTWAIT);
    if (n == 0) {
        p->has_read_end = true;
        REQUIRE(record->killed || (record->input_ended && p->read == record->input_sent));
    }
    if (n <= 0) return false;
    for (ssize_t i = 0; i < n; i++) REQUIRE(bytes[i] == byte_of(p->channel, 2, p->read + (uint64_t)i));
    p->read += (uint64_t)n;
    REQUIRE(p->read <= record->input_sent);
    return true;
}

static void program_shuts(struct program *p) {
    if (p->fd >= 0) shutdown(p->fd, SHUT_WR);
    p->has_shut = true;
}

static void program_resets(struct program *p) {
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    if (p->fd >= 0) setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close_one(&p->fd);
    p->has_reset = true;
}

static void host_socket_step(struct input *in, uint8_t choice) {
    switch (choice) {
    case 0: host_listen(LISTEN_STREAM); break;
    case 1:
    case 2: host_accept(); break;
    case 3: host_dial_program(server_port); break;
    case 4: host_dial_program(1); break;
    case 5: host_listen(LISTEN_DATAGRAMS); break;
    default: host_input(channel_count ? 1 + input_below(in, channel_count) : 0, input_below(in, 5000));
    }
}

static void program_step(struct input *in, uint8_t choice) {
    if (choice < 2) program_connects();
    server_accepts();
    struct program *p = program_count ? &programs[input_below(in, (uint32_t)program_count)] : NULL;
    if (choice < 2 || !p) return;
    switch (choice) {
    case 2:
    case 3: program_writes(p, 1 + input_below(in, 65000)); break;
    case 4:
    case 5: program_reads(p, 1 + input_below(in, 4096)); break;
    case 6: program_shuts(p); break;
    case 7: program_resets(p); break;
    default:
        program_shuts(p);
        close_one(&p->fd);
    }
}

/* Everybody does their part: programs read all and end, then the host closes what is left. */
static void finish_sockets(int round) {
    server_accepts();
    for (int i = 0; i < program_count; i++) {
        while (program_reads(&programs[i], 4096)) continue;
        if (round > 2) program_shuts(&programs[i]);
    }
    for (uint32_t i = 1; i <= channel_count; i++)
        if (round > 20 && records[i].is_socket && !records[i].exited && !records[i].killed) host_kill(i, 0);
}
