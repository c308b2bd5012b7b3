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

enum parse_result frame_parse(const uint8_t *data, size_t size, size_t max_payload, struct frame *out, size_t *used) {
    if (size < HEADER_BYTES) return PARSE_MORE;
    uint32_t length = get32(data);
    uint8_t type = data[4];
    uint32_t channel = get32(data + 8);
    if (length > max_payload || data[5] != 0 || get16(data + 6) != 0) return PARSE_BAD;
    if (frame_is_counted(type) != (channel != 0)) return PARSE_BAD;
    if (size - HEADER_BYTES < length) return PARSE_MORE;
    *out = (struct frame){.type = type, .channel = channel, .payload = data + HEADER_BYTES, .length = length};
    *used = HEADER_BYTES + length;
    return PARSE_FRAME;
}

bool take_bytes(const uint8_t **at, const uint8_t *end, const uint8_t **bytes, uint32_t *length) {
    if (end - *at < 4) return false;
    *length = get32(*at);
    *bytes = *at + 4;
    if ((size_t)(end - *bytes) < *length) return false;
    *at = *bytes + *length;
    return true;
}

static bool take_strings(const uint8_t **at, const uint8_t *end, uint32_t count) {
    const uint8_t *text;
    uint32_t length;
    for (; count > 0; count--)
        if (!take_bytes(at, end, &text, &length) || memchr(text, 0, length)) return false;
    return true;
}

static bool take_list(const uint8_t **at, const uint8_t *end, uint32_t *count) {
    if (end - *at < 4) return false;
    *count = get32(*at);
    *at += 4;
    return take_strings(at, end, *count);
}

bool spawn_parse(const uint8_t *data, size_t size, struct spawn_request *out) {
    memset(out, 0, sizeof *out);
    if (size < SPAWN_HEAD_BYTES) return false;
    out->flags = data[0];
    out->rows = get16(data + 2);
    out->cols = get16(data + 4);
    out->timeout_ms = get32(data + 8);
    out->grace_ms = get32(data + 12);
    const uint8_t *at = data + SPAWN_HEAD_BYTES, *end = data + size;
    out->args = at; /* spawn_strings reads them from here */
    if (!take_strings(&at, end, 1) || !take_list(&at, end, &out->argc) || !take_list(&at, end, &out->envc)) return false;
    return at == end && out->argc > 0;
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
