#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *allocate(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (memory) return memory;
    fputs("apply_patch: out of memory\n", stderr);
    exit(1);
}

/* The memory grows at every power of two. */
void *room_for_one(void *items, size_t used, size_t size) {
    if (used & (used - 1)) return items;
    void *grown = reallocarray(items, used ? used * 2 : 1, size);
    if (grown) return grown;
    fputs("apply_patch: out of memory\n", stderr);
    exit(1);
}

bool same_text(struct text a, struct text b) {
    return a.length == b.length && (a.length == 0 || memcmp(a.at, b.at, a.length) == 0);
}

bool starts_with(struct text text, struct text start) {
    return text.length >= start.length && memcmp(text.at, start.at, start.length) == 0;
}

bool ends_with(struct text text, struct text end) {
    return text.length >= end.length && memcmp(text.at + text.length - end.length, end.at, end.length) == 0;
}

struct text without_start(struct text text, size_t length) {
    return (struct text){text.at + length, text.length - length};
}

struct text without_mark(struct text text) {
    return starts_with(text, BYTE_ORDER_MARK) ? without_start(text, BYTE_ORDER_MARK.length) : text;
}

struct text concat(const struct text *parts, size_t count) {
    size_t length = 0;
    for (size_t i = 0; i < count; i++) length += parts[i].length;
    char *whole = allocate(length + 1, 1), *end = whole;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].length) memcpy(end, parts[i].at, parts[i].length);
        end += parts[i].length;
    }
    return (struct text){whole, length};
}

struct text text_of(const char *string) {
    return (struct text){string, strlen(string)};
}

struct text text_of_number(size_t number) {
    char digits[32];
    snprintf(digits, sizeof digits, "%zu", number);
    return CONCAT(text_of(digits));
}

char *string_of(struct text text) {
    char *copy = allocate(text.length + 1, 1);
    if (text.length) memcpy(copy, text.at, text.length);
    return copy;
}

/* ---- white space ----------------------------------------------------------------------------------------------- */

/* The length of the white space character that begins here, or 0. */
static size_t white_space(const char *at, size_t left) {
    const unsigned char *byte = (const unsigned char *)at;
    if (left >= 1 && (byte[0] == ' ' || (byte[0] >= '\t' && byte[0] <= '\r'))) return 1;
    if (left >= 2 && byte[0] == 0xc2) return byte[1] == 0x85 || byte[1] == 0xa0 ? 2 : 0;
    if (left < 3) return 0;
    unsigned three = (unsigned)byte[0] << 16 | (unsigned)byte[1] << 8 | byte[2];
    bool is_space = three == 0xe19a80 || (three >= 0xe28080 && three <= 0xe2808a) || three == 0xe280a8 || three == 0xe280a9 ||
                    three == 0xe280af || three == 0xe2819f || three == 0xe38080;
    return is_space ? 3 : 0;
}

struct text trim_start(struct text text) {
    for (size_t length; (length = white_space(text.at, text.length)) > 0;) text = without_start(text, length);
    return text;
}

struct text trim_end(struct text text) {
    for (;;) {
        size_t length = 1;
        while (length <= 3 && !(length <= text.length && white_space(text.at + text.length - length, length) == length)) length++;
        if (length > 3) return text;
        text.length -= length;
    }
}

struct text trim(struct text text) {
    return trim_start(trim_end(text));
}

/* The plain character that replaces a character of `length` bytes, or 0. */
static char plain(const unsigned char *byte, size_t length) {
    if (length == 2) return byte[0] == 0xc2 && byte[1] == 0xa0 ? ' ' : 0;
    unsigned three = (unsigned)byte[0] << 16 | (unsigned)byte[1] << 8 | byte[2];
    if ((three >= 0xe28090 && three <= 0xe28095) || three == 0xe28892) return '-';
    if (three >= 0xe28098 && three <= 0xe2809b) return '\'';
    if (three >= 0xe2809c && three <= 0xe2809f) return '"';
    bool is_space = (three >= 0xe28082 && three <= 0xe2808a) || three == 0xe280af || three == 0xe2819f || three == 0xe38080;
    return is_space ? ' ' : 0;
}

static size_t character_length(unsigned char lead) {
    return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

struct text fold_punctuation(struct text text) {
    char *folded = allocate(text.length + 1, 1);
    size_t used = 0;
    for (size_t at = 0, length; at < text.length; at += length) {
        const unsigned char *byte = (const unsigned char *)text.at + at;
        length = character_length(*byte);
        char instead = length == 2 || length == 3 ? plain(byte, length) : 0;
        if (instead) folded[used++] = instead;
        else memcpy(folded + used, byte, length), used += length;
    }
    return (struct text){folded, used};
}

/* ---- UTF-8 (Unicode, table 3-7) -------------------------------------------------------------------------------- */

static bool continues(unsigned char byte, unsigned char lead) {
    unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    return byte >= low && byte <= high;
}

/* The number of bytes from here on that belong to one character. `*whole` tells whether they are all of it. */
static size_t valid_bytes(const unsigned char *byte, size_t left, bool *whole) {
    unsigned char lead = byte[0];
    size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
    size_t valid = length ? 1 : 0;
    while (valid < length && valid < left && continues(byte[valid], valid == 1 ? lead : 0)) valid++;
    *whole = length > 0 && valid == length;
    return valid;
}

struct text utf8_fault(struct text text) {
    for (size_t at = 0; at < text.length;) {
        bool whole;
        size_t valid = valid_bytes((const unsigned char *)text.at + at, text.length - at, &whole);
        if (!whole && at + valid >= text.length) return CONCAT(TEXT("incomplete utf-8 byte sequence from index "), text_of_number(at));
        if (!whole)
            return CONCAT(TEXT("invalid utf-8 sequence of "), text_of_number(valid ? valid : 1), TEXT(" bytes from index "),
                          text_of_number(at));
        at += valid;
    }
    return NO_TEXT;
}

/* ---- numbers for texts ----------------------------------------------------------------------------------------- */

static uint64_t hash_of(struct text key) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < key.length; i++) hash = (hash ^ (unsigned char)key.at[i]) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

/* The key's slot, or the free slot for it. */
static uint32_t *slot_of(const struct numbers *numbers, struct text key) {
    for (size_t at = hash_of(key) & (numbers->capacity - 1);; at = (at + 1) & (numbers->capacity - 1)) {
        uint32_t *slot = &numbers->slots[at];
        if (!*slot || same_text(numbers->keys[*slot - 1], key)) return slot;
    }
}

static void make_room(struct numbers *numbers) {
    if (numbers->used * 2 < numbers->capacity) return;
    numbers->capacity = numbers->capacity ? numbers->capacity * 2 : 64;
    numbers->slots = allocate(numbers->capacity, sizeof *numbers->slots);
    for (size_t i = 0; i < numbers->used; i++) *slot_of(numbers, numbers->keys[i]) = (uint32_t)i + 1;
}

size_t number_of(struct numbers *numbers, struct text key) {
    make_room(numbers);
    uint32_t *slot = slot_of(numbers, key);
    if (*slot) return *slot - 1;
    numbers->keys = room_for_one(numbers->keys, numbers->used, sizeof *numbers->keys);
    numbers->keys[numbers->used++] = key;
    *slot = (uint32_t)numbers->used;
    return numbers->used - 1;
}

size_t known_number(const struct numbers *numbers, struct text key) {
    if (!numbers->capacity) return NOT_NUMBERED;
    uint32_t slot = *slot_of(numbers, key);
    return slot ? slot - 1 : NOT_NUMBERED;
}
