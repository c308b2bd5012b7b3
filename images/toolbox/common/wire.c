#include "wire.h"

#include <string.h>

uint16_t get16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }

uint32_t get32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint64_t get64(const uint8_t *p) { return get32(p) | (uint64_t)get32(p + 4) << 32; }

void put16(uint8_t *p, uint16_t v) {
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

void put32(uint8_t *p, uint32_t v) {
    put16(p, (uint16_t)v);
    put16(p + 2, (uint16_t)(v >> 16));
}

void put64(uint8_t *p, uint64_t v) {
    put32(p, (uint32_t)v);
    put32(p + 4, (uint32_t)(v >> 32));
}

void frame_header(uint8_t *out, uint8_t type, uint32_t channel, uint32_t length) {
    put32(out, length);
    out[4] = type;
    out[5] = 0;
    put16(out + 6, 0);
    put32(out + 8, channel);
}

bool frame_is_counted(uint8_t type) {
    switch (type) {
    case FRAME_HELLO:
    case FRAME_ACK:
    case FRAME_PING:
    case FRAME_END:
    case FRAME_WELCOME:
    case FRAME_ACK_FROM_RUNNER:
    case FRAME_PONG:
        return false;
    default:
        return true;
    }
}

static bool is_session_frame(uint8_t type) { return !frame_is_counted(type); }

enum parse_result frame_parse(const uint8_t *data, size_t size, size_t max_payload, struct frame *out, size_t *used) {
    if (size < HEADER_BYTES) return PARSE_MORE;
    uint32_t length = get32(data);
    uint8_t type = data[4];
    uint32_t channel = get32(data + 8);
    if (length > max_payload || data[5] != 0 || get16(data + 6) != 0) return PARSE_BAD;
    if (is_session_frame(type) != (channel == 0)) return PARSE_BAD;
    if (size - HEADER_BYTES < length) return PARSE_MORE;
    *out = (struct frame){.type = type, .flags = data[5], .channel = channel, .payload = data + HEADER_BYTES, .length = length};
    *used = HEADER_BYTES + length;
    return PARSE_FRAME;
}

/* Reads a payload from front to back. Once something does not fit, `ok` is false and every later take fails too. */
struct cursor {
    const uint8_t *at, *end;
    bool ok;
};

static const uint8_t *take(struct cursor *c, size_t n) {
    if (!c->ok || (size_t)(c->end - c->at) < n) {
        c->ok = false;
        return NULL;
    }
    const uint8_t *p = c->at;
    c->at += n;
    return p;
}

static uint32_t take32(struct cursor *c) {
    const uint8_t *p = take(c, 4);
    return p ? get32(p) : 0;
}

static const uint8_t *take_string(struct cursor *c, uint32_t *length) {
    *length = take32(c);
    const uint8_t *p = take(c, *length);
    if (p && memchr(p, 0, *length)) c->ok = false;
    return p;
}

bool spawn_parse(const uint8_t *data, size_t size, struct spawn_request *out) {
    struct cursor c = {data, data + size, true};
    memset(out, 0, sizeof *out);
    const uint8_t *head = take(&c, SPAWN_HEAD_BYTES);
    if (!head) return false;
    out->flags = head[0];
    out->rows = get16(head + 2);
    out->cols = get16(head + 4);
    out->timeout_ms = get32(head + 8);
    out->grace_ms = get32(head + 12);
    out->args = c.at; /* spawn_strings reads them from here */
    uint32_t length;
    take_string(&c, &length);
    out->argc = take32(&c);
    for (uint32_t i = 0; c.ok && i < out->argc; i++) take_string(&c, &length);
    out->envc = take32(&c);
    for (uint32_t i = 0; c.ok && i < out->envc; i++) take_string(&c, &length);
    return c.ok && c.at == c.end && out->argc > 0;
}

static char *copy_string(const uint8_t **at, char **store) {
    uint32_t length = get32(*at);
    char *copy = *store;
    memcpy(copy, *at + 4, length);
    copy[length] = 0;
    *at += 4 + (size_t)length;
    *store += (size_t)length + 1;
    return copy;
}

void spawn_strings(const struct spawn_request *request, char *store, char **argv, char **envp, char **cwd) {
    const uint8_t *at = request->args;
    *cwd = copy_string(&at, &store);
    at += 4;
    for (uint32_t i = 0; i < request->argc; i++) argv[i] = copy_string(&at, &store);
    argv[request->argc] = NULL;
    at += 4;
    for (uint32_t i = 0; i < request->envc; i++) envp[i] = copy_string(&at, &store);
    envp[request->envc] = NULL;
}

bool file_head_parse(const uint8_t *data, size_t size, struct file_head *out) {
    if (size < FILE_HEAD_BYTES || data[0] < FILE_READ || data[0] > FILE_WAITS) return false;
    *out = (struct file_head){.operation = data[0], .flags = data[1]};
    return true;
}

bool file_has_output(const struct file_head *head) {
    switch (head->operation) {
    case FILE_READ: return !(head->flags & READ_INLINE);
    case FILE_LIST: return !(head->flags & LIST_INLINE);
    case FILE_REPORT:
    case FILE_RECEIPT:
    case FILE_CHANGES:
    case FILE_COPY: return true;
    default: return false;
    }
}

bool file_has_input(const struct file_head *head) {
    return head->operation == FILE_COMMIT || (head->operation == FILE_WRITE && !(head->flags & WRITE_INLINE));
}

bool hello_parse(const uint8_t *data, size_t size, struct hello *out) {
    if (size != HELLO_BYTES) return false;
    *out = (struct hello){.version = get32(data), .token = data + 4, .received = get64(data + 4 + TOKEN_BYTES)};
    return true;
}
