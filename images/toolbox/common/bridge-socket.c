#define _GNU_SOURCE
#include "bridge-socket.h"

#include <stddef.h>
#include <string.h>

static const char socket_name[] = "brig-runner";

socklen_t bridge_address(struct sockaddr_un *address) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path + 1, socket_name, sizeof socket_name - 1);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof socket_name);
}

int listen_for_bridges(void) {
    struct sockaddr_un address;
    socklen_t length = bridge_address(&address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* Every accepted connection inherits this option, with which the kernel adds the sender to each message. */
    int on = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) return -1;
    return bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, 16) == 0 ? fd : -1;
}
