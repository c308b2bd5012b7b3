#define _GNU_SOURCE
#include "datagrams.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runner.h"

#define READS_AT_ONCE 16

/* If nothing is read, the kernel keeps a few datagrams and drops the others. */
void datagrams_resume(struct runner *r, struct endpoint *e) {
    bool is_full = link_is_full(&r->link);
    if (is_full) r->network_waits = true;
    watch(r, &e->source, e->credit > 0 && !is_full ? EPOLLIN : 0);
}

/* False when there is no further datagram for now. */
static bool receive_one(struct runner *r, struct endpoint *e) {
    union address from = {0};
    socklen_t size = sizeof from;
    size_t room = MAX_PAYLOAD_FROM_RUNNER - ADDRESS_BYTES;
    uint8_t *payload = link_begin(&r->link, MAX_PAYLOAD_FROM_RUNNER);
    if (!payload) return false;
    ssize_t n = recvfrom(e->source.fd, payload + ADDRESS_BYTES, room, MSG_DONTWAIT | MSG_TRUNC, &from.any, &size);
    if (n < 0) return errno == EINTR;
    if ((size_t)n > room) return true; /* half of a datagram is of no use */
    address_write(&from, payload);
    size_t length = ADDRESS_BYTES + (size_t)n;
    e->credit -= (int64_t)length;
    link_finish(&r->link, FRAME_DATAGRAM_FROM_RUNNER, e->id, length);
    return true;
}

static void on_datagrams(struct runner *r, struct source *s, uint32_t events) {
    (void)events;
    struct endpoint *e = s->owner;
    for (int i = 0; i < READS_AT_ONCE && e->credit > 0 && !link_is_full(&r->link) && receive_one(r, e); i++) continue;
    datagrams_resume(r, e);
}

void datagrams_open(struct runner *r, uint32_t id, const union address *at) {
    union address bound = *at;
    uint8_t payload[ADDRESS_BYTES];
    int fd = endpoint_bind(r, SOCK_DGRAM, &bound);
    int error = fd < 0 ? errno : 0;
    struct endpoint *e = error ? NULL : endpoint_open(r, id, ENDPOINT_DATAGRAMS);
    if (!e) {
        if (fd >= 0) close(fd);
        endpoint_refuse(r, id, error ? error : ENOMEM);
        return;
    }
    e->source.fd = fd;
    e->source.on_event = on_datagrams;
    address_write(&bound, payload);
    link_send(&r->link, FRAME_BOUND, id, payload, sizeof payload);
    datagrams_resume(r, e);
}

bool datagrams_take(const struct endpoint *e, const struct frame *frame) {
    union address to;
    if (frame->length < ADDRESS_BYTES || !address_parse(frame->payload, &to)) return false;
    /* The kernel's answer does not matter, because datagrams may be lost. */
    (void)!sendto(e->source.fd, frame->payload + ADDRESS_BYTES, frame->length - ADDRESS_BYTES, MSG_DONTWAIT | MSG_NOSIGNAL, &to.any, address_size(&to));
    return true;
}
