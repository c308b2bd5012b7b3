/* Means for tests of the event loop. The runner they drive, and the host and the commands they pretend to be, are those of fuzz/session.c. */
#ifndef BRIG_UNIT_PLAY_H
#define BRIG_UNIT_PLAY_H

#include "../fuzz/session.c"

#include <sys/un.h>

/* Runs a test, which ends the program if it fails, and says that it has passed. */
#define RUN(test)                 \
    do {                          \
        test();                   \
        printf("ok %s\n", #test); \
    } while (0)

/* Makes the next system call of this kind fail with an errno. */
static void fail_next(enum call call, int error) {
    trouble[call].after = 0;
    trouble[call].times = 1;
    trouble[call].error = error;
}

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
static struct fake *start_with(uint8_t flags) {
    struct input in = {&flags, &flags + 1};
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

static struct fake *start_one(void) { return start_with(SPAWN_NO_STDIN); }

/* host_input may send less than it is asked for, if there is no credit for more. Here all of it has to be sent. */
static void send_input(uint32_t channel, uint32_t length) {
    uint64_t before = records[channel].input_sent;
    host_input(channel, length);
    REQUIRE(records[channel].input_sent == before + length);
}

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

/* Asks for a socket that datagrams can be sent to, and returns its channel. */
static uint32_t listen_for_datagrams(void) {
    host_listen(LISTEN_DATAGRAMS);
    everything_flows();
    REQUIRE(endpoint_find(&s.r, channel_count));
    return channel_count;
}

static int open_program_for_datagrams(void) {
    struct sockaddr_in at = on_loopback(0);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
    return fd;
}

/* ---- the door --------------------------------------------------------------------------------------------------- */

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_length = sizeof(sa_family_t); /* the kernel chooses a name */

static void open_door(void) {
    int on = 1;
    s.r.listener = (struct source){.on_event = bridges_accept, .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
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
    ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno == ECONNRESET); /* the latter if something that it has said was not read */
}

/* Sends one byte with these descriptors (SCM_RIGHTS), as `runner-files connect` hands over its streams. */
static void hand_over_streams(int to, const int *fds, size_t count) {
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(4 * sizeof(int))];
    } ancillary = {0};
    struct iovec part = {(void *)(uintptr_t)"!", 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &ancillary, .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(c), fds, count * sizeof(int));
    REQUIRE(sendmsg(to, &message, MSG_NOSIGNAL) == 1);
}

#endif
