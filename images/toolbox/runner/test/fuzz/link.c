/* link_*: whatever is sent, flushed, acknowledged, broken and resumed, the host gets every frame once, whole, in order. */
#define _GNU_SOURCE
#include "../../link.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "../../buffer.h"
#include "../../../common/wire.h"
#include "input.h"

#define MOST_FRAMES 2048

/* The other side of the stream, with all that it knows. */
struct host {
    struct buffer stream;    /* bytes of the present connection that are not a whole frame yet */
    uint64_t received;       /* counted frames, over all connections */
    uint64_t received_here;  /* `received` when the present connection began */
    uint64_t told;           /* the last ACK for what the runner has taken in */
};

struct session {
    struct link link;
    struct host host;
    int ends[2];
    uint32_t lengths[MOST_FRAMES];
    uint64_t sent;
    uint64_t counted_in; /* frames the runner took in */
};

/* The number of a frame determines its payload, so the host can check it. */
static uint8_t byte_of(uint64_t number, size_t at) { return (uint8_t)(number * 31 + at * 7 + 3); }

static void fill(uint8_t *payload, uint64_t number, size_t length) {
    for (size_t i = 0; i < length; i++) payload[i] = byte_of(number, i);
}

static void require_payload(const struct session *s, const struct frame *frame, uint64_t number) {
    REQUIRE(number < s->sent && frame->length == s->lengths[number]);
    for (size_t i = 0; i < frame->length; i++) REQUIRE(frame->payload[i] == byte_of(number, i));
}

/* `kept` contains the frames that are not acknowledged, each once and whole, and nothing else. */
static void require_kept(const struct session *s) {
    const uint8_t *at = buffer_front(&s->link.kept);
    size_t left = buffer_length(&s->link.kept), used;
    struct frame frame;
    for (uint64_t number = s->link.acknowledged; number < s->link.queued; number++) {
        REQUIRE(frame_parse(at, left, MAX_PAYLOAD_FROM_RUNNER, &frame, &used) == PARSE_FRAME);
        require_payload(s, &frame, number);
        at += used;
        left -= used;
    }
    REQUIRE(left == 0 && s->link.queued == s->sent && s->link.written <= buffer_length(&s->link.kept));
}

static void connect_streams(struct session *s) {
    REQUIRE(pipe2(s->ends, O_NONBLOCK | O_CLOEXEC) == 0);
    fcntl(s->ends[1], F_SETPIPE_SZ, 4096); /* small, so that frames are cut */
}

static void send_frame(struct session *s, uint32_t length, int in_place) {
    if (s->sent == MOST_FRAMES) return;
    uint8_t payload[6000];
    fill(payload, s->sent, length);
    s->lengths[s->sent] = length;
    if (in_place) {
        uint8_t *room = link_begin(&s->link, sizeof payload);
        REQUIRE(room);
        memcpy(room, payload, length);
        link_finish(&s->link, FRAME_STDOUT, 1 + (uint32_t)s->sent, length);
    } else {
        REQUIRE(link_send(&s->link, FRAME_STDERR, 1 + (uint32_t)s->sent, payload, length) == 0);
    }
    s->sent++;
}

static void take_frame(struct session *s, const struct frame *frame) {
    if (frame_is_counted(frame->type)) {
        REQUIRE(frame->channel == 1 + (uint32_t)s->host.received);
        require_payload(s, frame, s->host.received++);
    } else if (frame->type == FRAME_ACK_FROM_RUNNER) {
        REQUIRE(frame->length == 8 && get64(frame->payload) > s->host.told && get64(frame->payload) <= s->counted_in);
        s->host.told = get64(frame->payload);
    } else {
        REQUIRE(frame->type == FRAME_PONG && frame->length <= 64);
    }
}

static void host_reads(struct session *s, size_t most) {
    uint8_t bytes[8192];
    ssize_t n = read(s->ends[0], bytes, most < sizeof bytes ? most : sizeof bytes);
    if (n <= 0) return;
    REQUIRE(buffer_append(&s->host.stream, bytes, (size_t)n) == 0);
    struct frame frame;
    size_t used;
    enum parse_result result;
    while ((result = frame_parse(buffer_front(&s->host.stream), buffer_length(&s->host.stream), MAX_PAYLOAD_FROM_RUNNER, &frame, &used)) == PARSE_FRAME) {
        take_frame(s, &frame);
        buffer_drop(&s->host.stream, used);
    }
    REQUIRE(result == PARSE_MORE);
}

static void acknowledge(struct session *s) {
    uint64_t before = s->link.acknowledged;
    REQUIRE(link_acknowledge(&s->link, s->host.received));
    REQUIRE(s->link.acknowledged == s->host.received && s->link.acknowledged >= before);
}

/* How many frames have been written to the present connection to their last byte. */
static uint64_t written_whole(const struct link *link) {
    size_t at = 0;
    uint64_t frames = 0;
    while (at < link->written) {
        at += HEADER_BYTES + get32(buffer_front(&link->kept) + at);
        frames += at <= link->written;
    }
    return frames;
}

/* A host may lie: acknowledge less than before, or more than it can have received. */
static void acknowledge_falsely(struct session *s, uint64_t frames) {
    struct link before = s->link;
    if (link_acknowledge(&s->link, frames)) {
        /* It was written, and the runner cannot know whether it was read, so it has to believe the host. */
        REQUIRE(frames >= before.acknowledged && frames - before.acknowledged <= written_whole(&before));
        s->link = before; /* the buffer was only advanced, so the old state is whole */
        return;
    }
    REQUIRE(memcmp(&before, &s->link, sizeof before) == 0);
}

static void reconnect(struct session *s) {
    close(s->ends[0]);
    close(s->ends[1]);
    connect_streams(s);
    buffer_drop(&s->host.stream, buffer_length(&s->host.stream));
    REQUIRE(!link_resume(&s->link, s->sent + 1));
    if (s->link.acknowledged > 0) REQUIRE(!link_resume(&s->link, s->link.acknowledged - 1));
    REQUIRE(link_resume(&s->link, s->host.received));
    s->host.received_here = s->host.received;
    s->host.told = s->link.received; /* as WELCOME says */
}

static void step(struct session *s, struct input *in) {
    switch (input_byte(in) % 10) {
    case 0: send_frame(s, input_below(in, 6000), 0); break;
    case 1: send_frame(s, input_below(in, 64), 1); break;
    case 2: {
        uint8_t echo[64] = {0};
        REQUIRE(link_send_control(&s->link, FRAME_PONG, echo, input_below(in, 65)) == 0);
        break;
    }
    case 3:
    case 4: REQUIRE(link_flush(&s->link, s->ends[1]) >= 0); break;
    case 5: host_reads(s, 1 + input_below(in, 8192)); break;
    case 6: acknowledge(s); break;
    case 7: acknowledge_falsely(s, s->link.acknowledged + input_byte(in) - 2); break;
    case 8: reconnect(s); break;
    default:
        s->counted_in++;
        link_count_received(&s->link, input_below(in, 50000));
        if (input_byte(in) & 1) buffer_tighten(&s->link.kept);
    }
}

/* At the end the host must get everything by reading on. */
static void finish(struct session *s) {
    for (int i = 0; i < 100000 && link_flush(&s->link, s->ends[1]) == 1; i++) host_reads(s, 8192);
    for (int i = 0; i < 4; i++) host_reads(s, 8192);
    REQUIRE(s->host.received == s->sent && buffer_length(&s->host.stream) == 0);
    acknowledge(s);
    REQUIRE(buffer_length(&s->link.kept) == 0 && buffer_length(&s->link.control) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct session s;
    memset(&s, 0, sizeof s);
    struct input in = {data, data + size};
    connect_streams(&s);
    while (!input_is_empty(&in)) {
        step(&s, &in);
        require_kept(&s);
    }
    finish(&s);
    close(s.ends[0]);
    close(s.ends[1]);
    buffer_free(&s.link.kept);
    buffer_free(&s.link.control);
    buffer_free(&s.host.stream);
    return 0;
}
