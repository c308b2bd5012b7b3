#include "buffer.h"

#include <stdlib.h>
#include <string.h>

#define LOOSE_ABOVE (256u << 10)

size_t buffer_length(const struct buffer *b) { return b->end - b->start; }

/* An empty queue may have no memory yet, and adding to NULL is undefined in C. */
uint8_t *buffer_front(const struct buffer *b) { return b->start ? b->data + b->start : b->data; }

/* Makes room for bytes that do not fit behind the end. */
static int make_room(struct buffer *b, size_t size) {
    size_t length = buffer_length(b);
    if (length + size <= b->capacity) {
        memmove(b->data, b->data + b->start, length);
        b->start = 0;
        b->end = length;
        return 0;
    }
    size_t capacity = b->capacity ? b->capacity : 4096;
    while (capacity < length + size) capacity *= 2;
    uint8_t *data = malloc(capacity);
    if (!data) return -1;
    if (length) memcpy(data, b->data + b->start, length);
    free(b->data);
    *b = (struct buffer){data, 0, length, capacity};
    return 0;
}

uint8_t *buffer_reserve(struct buffer *b, size_t size) {
    if (b->capacity - b->end < size && make_room(b, size) != 0) return NULL;
    return b->data + b->end;
}

void buffer_commit(struct buffer *b, size_t size) { b->end += size; }

int buffer_append(struct buffer *b, const void *data, size_t size) {
    if (size == 0) return 0; /* there may be no memory yet, and no data */
    uint8_t *room = buffer_reserve(b, size);
    if (!room) return -1;
    memcpy(room, data, size);
    b->end += size;
    return 0;
}

void buffer_drop(struct buffer *b, size_t size) {
    b->start += size;
    if (b->start == b->end) b->start = b->end = 0;
}

bool buffer_is_loose(const struct buffer *b) { return b->capacity > LOOSE_ABOVE && buffer_length(b) < b->capacity / 4; }

void buffer_tighten(struct buffer *b) {
    struct buffer small = {0};
    if (buffer_length(b) > 0 && buffer_append(&small, buffer_front(b), buffer_length(b)) != 0) return;
    free(b->data);
    *b = small;
}

void buffer_free(struct buffer *b) {
    free(b->data);
    *b = (struct buffer){0};
}
