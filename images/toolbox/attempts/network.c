/* Attempts to reach somebody. */
#include "attempts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { ANSWER_MS = 3000 };

/* 0 when it is connected, else errno. */
static int connect_within(int one, const struct sockaddr *address, socklen_t length) {
    if (one < 0) return errno;
    fcntl(one, F_SETFL, O_NONBLOCK);
    if (connect(one, address, length) == 0) return 0;
    if (errno != EINPROGRESS) return errno;
    struct pollfd waiting = {.fd = one, .events = POLLOUT};
    if (poll(&waiting, 1, ANSWER_MS) <= 0) return ETIMEDOUT;
    int number = 0;
    socklen_t size = sizeof number;
    getsockopt(one, SOL_SOCKET, SO_ERROR, &number, &size);
    return number;
}

static int connect_to(const char *host, long port) {
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t) port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t) port)};
    bool is_six = inet_pton(AF_INET6, host, &six.sin6_addr) == 1;
    if (!is_six && inet_pton(AF_INET, host, &four.sin_addr) != 1) return EINVAL;
    int one = socket(is_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int refusal = is_six ? connect_within(one, (struct sockaddr *) &six, sizeof six)
                         : connect_within(one, (struct sockaddr *) &four, sizeof four);
    close(one);
    return refusal;
}

static int interfaces(void) {
    struct if_nameindex *all = if_nameindex();
    if (!all) return errno;
    for (const struct if_nameindex *one = all; one->if_index; one++)
        if (strcmp(one->if_name, "lo") != 0) found(one->if_name);
    return all_found();
}

static int host_loopback(void) {
    return connect_to("127.0.0.1", given_number("hostPort"));
}

static int ask_by_datagram(const char *host, long port, bool waits) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t) port)};
    inet_pton(AF_INET, host, &address.sin_addr);
    int one = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (one < 0) return errno;
    struct timeval limit = {.tv_sec = ANSWER_MS / 1000};
    setsockopt(one, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(one, (struct sockaddr *) &address, sizeof address) != 0) return errno;
    if (send(one, "?", 1, 0) < 0) return errno;
    char answer[16];
    return waits ? failure((int) recv(one, answer, sizeof answer, 0)) : DONE;
}

static int host_loopback_datagram(void) {
    return ask_by_datagram("127.0.0.1", given_number("hostDatagramPort"), true);
}

/* Some programs pad such a name with zeros to the greatest length. */
static int host_abstract_socket(void) {
    const char *name = need("abstractName");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", name);
    socklen_t exact = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    const socklen_t lengths[] = {exact, sizeof address};
    for (size_t i = 0; i < 2; i++)
        tried(connect_within(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), (struct sockaddr *) &address, lengths[i]));
    return all_tried();
}

static int host_sockets(void) {
    const char *name = need("abstractName");
    FILE *list = fopen("/proc/net/unix", "re");
    if (!list) return errno;
    char line[512];
    while (fgets(line, sizeof line, list))
        if (strstr(line, name)) {
            found("/proc/net/unix");
            break;
        }
    return all_found();
}

static int host_address(void) {
    need("hostAddress");
    const char *address;
    for (int i = 0; (address = given("hostAddress", i)); i++) tried(connect_to(address, given_number("hostPort")));
    return all_tried();
}

/* Leaves the attempt out unless the sandbox has to refuse it, because otherwise something would leave the machine. */
static void need_leave_to_leave(void) {
    if (!given("mayLeave", 0)) untried("the policy has the network, and nothing is to leave this machine");
}

static int connect_to_each(const char *const *hosts, long port) {
    need_leave_to_leave();
    for (; *hosts; hosts++) tried(connect_to(*hosts, port));
    return all_tried();
}

static int public_addresses(void) {
    return connect_to_each((const char *const[]) {"1.1.1.1", "192.0.2.1", "8.8.8.8", NULL}, 53);
}

static int public_addresses_6(void) {
    return connect_to_each((const char *const[]) {"2606:4700:4700::1111", "2001:db8::1", NULL}, 53);
}

static int metadata_service(void) {
    return connect_to_each((const char *const[]) {"169.254.169.254", "100.100.100.200", "169.254.170.2", NULL}, 80);
}

static int metadata_service_6(void) {
    return connect_to_each((const char *const[]) {"fd00:ec2::254", NULL}, 80);
}

static int datagram_out(void) {
    need_leave_to_leave();
    return ask_by_datagram("192.0.2.1", 53, false);
}

/* An answer of any kind means that somebody was asked. */
static int name_lookup(void) {
    need_leave_to_leave();
    struct addrinfo *addresses;
    int answer = getaddrinfo(need("lookup"), "80", NULL, &addresses);
    if (answer == 0) return DONE;
    if (answer == EAI_AGAIN || answer == EAI_NONAME) {
        puts(answer == EAI_AGAIN ? "EAI_AGAIN" : "EAI_NONAME");
    } else {
        printf("EAI %d\n", answer);
    }
    fflush(stdout);
    _exit(0);
}

static int kernel_events(void) {
    enum { UEVENTS = 15 };
    int one = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, UEVENTS);
    if (one < 0) return errno;
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = 1};
    return failure(bind(one, (struct sockaddr *) &address, sizeof address));
}

/* Asks for the MTU that loopback already has, which needs a capability all the same. */
static int interface_changes(void) {
    struct {
        struct nlmsghdr head;
        struct ifinfomsg about;
        struct rtattr attribute;
        unsigned mtu;
    } request = {.head = {.nlmsg_len = sizeof request, .nlmsg_type = RTM_SETLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK, .nlmsg_seq = 1},
                 .about = {.ifi_index = 1},
                 .attribute = {.rta_len = sizeof(struct rtattr) + sizeof(unsigned), .rta_type = IFLA_MTU}};
    FILE *file = fopen("/sys/class/net/lo/mtu", "re");
    if (!file || fscanf(file, "%u", &request.mtu) != 1) return errno ? errno : EIO;
    int one = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (one < 0) return errno;
    struct timeval limit = {.tv_sec = ANSWER_MS / 1000};
    setsockopt(one, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (send(one, &request, sizeof request, 0) < 0) return errno;
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char rest[4096];
    } answer;
    if (recv(one, &answer, sizeof answer, 0) < 0) return errno;
    return -answer.error.error;
}

const struct attempt network_attempts[] = {
    {.name = "interfaces", .run = interfaces},
    {.name = "host-loopback", .run = host_loopback},
    {.name = "host-loopback-datagram", .run = host_loopback_datagram},
    {.name = "host-abstract-socket", .run = host_abstract_socket},
    {.name = "host-sockets", .run = host_sockets},
    {.name = "host-address", .run = host_address},
    {.name = "public-addresses", .run = public_addresses},
    {.name = "public-addresses-6", .run = public_addresses_6},
    {.name = "metadata-service", .run = metadata_service},
    {.name = "metadata-service-6", .run = metadata_service_6},
    {.name = "datagram-out", .run = datagram_out},
    {.name = "name-lookup", .run = name_lookup, .waits = true},
    {.name = "kernel-events", .run = kernel_events},
    {.name = "interface-changes", .run = interface_changes},
    {0},
};
