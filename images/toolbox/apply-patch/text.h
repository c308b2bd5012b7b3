/* Pieces of text, which are bytes of UTF-8 without an end of their own. Nothing is freed: the program ends soon. */
#ifndef BRIG_TEXT_H
#define BRIG_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    const char *at; /* NULL stands for no text at all, where that has a meaning */
    size_t length;
};

#define TEXT(literal) ((struct text){literal, sizeof literal - 1})
#define NO_TEXT ((struct text){NULL, 0})
/* Joins the texts into a new one. */
#define CONCAT(...) concat((const struct text[]){__VA_ARGS__}, sizeof((const struct text[]){__VA_ARGS__}) / sizeof(struct text))

/* Zeroed memory for `count` things. Ends the program if there is none. */
void *allocate(size_t count, size_t size);
/* Returns `items`, `used` of which are in use, with room for one more. */
void *room_for_one(void *items, size_t used, size_t size);

bool same_text(struct text a, struct text b);
bool starts_with(struct text text, struct text start);
bool ends_with(struct text text, struct text end);
struct text without_start(struct text text, size_t length);
/* Editors put this mark before a text. It is not a part of the text. */
#define BYTE_ORDER_MARK TEXT("\xEF\xBB\xBF")
struct text without_mark(struct text text);
struct text concat(const struct text *parts, size_t count);
struct text text_of(const char *string);
struct text text_of_number(size_t number);
/* A copy with a NUL behind it. */
char *string_of(struct text text);

/* These remove Unicode's White_Space from the ends. The text has to be valid UTF-8. */
struct text trim_start(struct text text);
struct text trim_end(struct text text);
struct text trim(struct text text);
/* Typographic dashes, quotes and spaces become the ASCII ones. */
struct text fold_punctuation(struct text text);

/* NO_TEXT if the text is valid UTF-8, otherwise a description of the fault. */
struct text utf8_fault(struct text text);

/* Gives numbers from 0 on to texts, the same number to equal texts. */
struct numbers {
    struct text *keys;
    uint32_t *slots; /* 1 + the number, 0: free */
    size_t used, capacity;
};
#define NOT_NUMBERED SIZE_MAX
size_t number_of(struct numbers *numbers, struct text key);
size_t known_number(const struct numbers *numbers, struct text key);

#endif
