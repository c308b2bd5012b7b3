#include "network.h"

#include <errno.h>

#include "channel-start.h"
#include "connection.h"
#include "datagrams.h"
#include "endpoint.h"
#include "listener.h"
#include "runner.h"

static bool is_request(uint8_t type) { return type == FRAME_LISTEN || type == FRAME_ACCEPT || type == FRAME_CONNECT; }

bool network_takes(const struct runner *r, const struct frame *frame) {
    return is_request(frame->type) || frame->type == FRAME_DATAGRAM || endpoint_find(r, frame->channel);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static bool take_listen(struct runner *r, const struct frame *frame) {
    union address at;
    if (frame->length != LISTEN_BYTES || get32(frame->payload) >> 8 != 0 || !address_parse(frame->payload + 4, &at)) return false;
    switch (frame->payload[0]) {
    case LISTEN_STREAM: listener_open(r, frame->channel, &at); return true;
    case LISTEN_DATAGRAMS: datagrams_open(r, frame->channel, &at); return true;
    default: return false;
    }
}

static bool take_accept(struct runner *r, const struct frame *frame) {
    if (frame->length != 4) return false;
    struct endpoint *listener = endpoint_find(r, get32(frame->payload));
    if (listener && listener->kind != ENDPOINT_LISTENER) return false;
    if (listener) return listener_add(r, listener, frame->channel);
    endpoint_refuse(r, frame->channel, ECANCELED); /* it was closed before this came */
    return true;
}

static bool take_connect(struct runner *r, const struct frame *frame) {
    union address to;
    if (frame->length != ADDRESS_BYTES || !address_parse(frame->payload, &to)) return false;
    connection_dial(r, frame->channel, &to);
    return true;
}

static bool take_request(struct runner *r, const struct frame *frame) {
    if (endpoint_find(r, frame->channel) || channel_find(r, frame->channel)) return false;
    switch (frame->type) {
    case FRAME_LISTEN: return take_listen(r, frame);
    case FRAME_ACCEPT: return take_accept(r, frame);
    default: return take_connect(r, frame);
    }
}

/* ---- other frames ------------------------------------------------------------------------------------------------ */

static void resume_endpoint(struct runner *r, struct endpoint *e) {
    if (e->kind == ENDPOINT_CONNECTION) connection_resume(r, e);
    if (e->kind == ENDPOINT_DATAGRAMS) datagrams_resume(r, e);
}

static void close_endpoint(struct runner *r, struct endpoint *e) {
    switch (e->kind) {
    case ENDPOINT_LISTENER: listener_close(r, e); return;
    case ENDPOINT_DATAGRAMS: endpoint_end(r, e, ECANCELED); return;
    case ENDPOINT_CONNECTION:
        if (e->listener) listener_forget(e);
        connection_reset(r, e);
    }
}

bool network_take_frame(struct runner *r, const struct frame *frame) {
    if (is_request(frame->type)) return take_request(r, frame);
    struct endpoint *e = endpoint_find(r, frame->channel);
    if (!e) return true; /* a datagram for a socket that is closed */
    switch (frame->type) {
    case FRAME_INPUT: return e->kind == ENDPOINT_CONNECTION && connection_take_input(r, e, frame);
    case FRAME_DATAGRAM: return e->kind == ENDPOINT_DATAGRAMS && datagrams_take(e, frame);
    case FRAME_KILL:
        if (frame->length != 4) return false;
        close_endpoint(r, e);
        return true;
    case FRAME_CREDIT:
        if (frame->length != 4 || !endpoint_take_credit(e, get32(frame->payload))) return false;
        resume_endpoint(r, e);
        return true;
    default: return false;
    }
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static void tick_listener(struct runner *r, struct endpoint *e) {
    if (e->kind == ENDPOINT_LISTENER) listener_tick(r, e, now_ms());
}

void network_tick(struct runner *r) {
    for_each_endpoint(r, tick_listener);
}

void network_resume(struct runner *r) {
    if (!r->network_waits || link_is_full(&r->link)) return;
    r->network_waits = false;
    for_each_endpoint(r, resume_endpoint);
}
