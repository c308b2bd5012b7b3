/* frame_parse: the same frames come out however the bytes are cut into pieces, and nothing is read outside of them. */
#include <string.h>

#include "../../buffer.h"
#include "../../../common/wire.h"
#include "input.h"

#define LIMIT 4096u

/* A digest of the parsed frames, to compare two ways of parsing. */
struct trace {
    uint64_t hash;
    size_t frames, bytes;
    enum parse_result last;
};

static void note(struct trace *trace, const uint8_t *data, size_t size) {
    for (size_t i = 0; i < size; i++) trace->hash = (trace->hash ^ data[i]) * 0x100000001b3u;
}

static void take(struct trace *trace, const struct frame *frame, const uint8_t *from, size_t used) {
    uint8_t header[HEADER_BYTES];
    frame_header(header, frame->type, frame->channel, frame->length);
    REQUIRE(used == HEADER_BYTES + frame->length && frame->length <= LIMIT);
    REQUIRE(memcmp(header, from, HEADER_BYTES) == 0);
    REQUIRE(frame_is_counted(frame->type) == (frame->channel != 0));
    note(trace, header, sizeof header);
    note(trace, frame->payload, frame->length);
    trace->frames++;
    trace->bytes += used;
}

static struct trace parse_at_once(const uint8_t *data, size_t size) {
    struct trace trace = {0};
    struct frame frame;
    size_t used;
    while ((trace.last = frame_parse(data, size, LIMIT, &frame, &used)) == PARSE_FRAME) {
        REQUIRE(used <= size);
        take(&trace, &frame, data, used);
        data += used;
        size -= used;
    }
    return trace;
}

static struct trace parse_in_pieces(const uint8_t *data, size_t size, size_t piece) {
    struct trace trace = {.last = PARSE_MORE};
    struct buffer buffer = {0};
    for (size_t at = 0; at < size && trace.last != PARSE_BAD; at += piece) {
        size_t n = size - at < piece ? size - at : piece;
        REQUIRE(buffer_append(&buffer, data + at, n) == 0);
        struct frame frame;
        size_t used;
        while ((trace.last = frame_parse(buffer_front(&buffer), buffer_length(&buffer), LIMIT, &frame, &used)) == PARSE_FRAME) {
            take(&trace, &frame, buffer_front(&buffer), used);
            buffer_drop(&buffer, used);
        }
    }
    buffer_free(&buffer);
    return trace;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input in = {data, data + size};
    size_t piece = 1 + input_below(&in, 64);
    size_t length = (size_t)(in.end - in.at);
    struct trace whole = parse_at_once(in.at, length);
    struct trace cut = parse_in_pieces(in.at, length, piece);
    REQUIRE(whole.hash == cut.hash && whole.frames == cut.frames && whole.bytes == cut.bytes && whole.last == cut.last);
    return 0;
}
