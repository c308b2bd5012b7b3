/* Finds the places of a patch in a text, and changes them. */
#include "patch.h"

#include <stdlib.h>

struct line {
    struct text text, ending; /* empty only for a last line that nothing ends */
};

struct lines {
    struct line *at;
    size_t count;
};

/* Splits after LF, CRLF and CR. A final ending adds no empty line. */
static struct lines split(struct text text) {
    struct lines lines = {0};
    for (size_t start = 0, at = 0; start < text.length; start = at) {
        while (at < text.length && text.at[at] != '\n' && text.at[at] != '\r') at++;
        size_t end = at, ending = at == text.length ? 0 : 1 + (starts_with(without_start(text, at), TEXT("\r\n")) ? 1 : 0);
        at += ending;
        lines.at = room_for_one(lines.at, lines.count, sizeof *lines.at);
        lines.at[lines.count++] = (struct line){{text.at + start, end - start}, {text.at + end, ending}};
    }
    return lines;
}

/* ---- finding --------------------------------------------------------------------------------------------------- */

#define NOWHERE SIZE_MAX

static struct text as_it_is(struct text line) {
    return line;
}

static struct text trimmed_and_folded(struct text line) {
    return fold_punctuation(trim(line));
}

/* The passes go from strict to lax: a strict match anywhere wins over a lax match before it. */
static struct text (*const passes[])(struct text) = {as_it_is, trim_end, trim, trimmed_and_folded};
enum { PASSES = sizeof passes / sizeof *passes };

/* Lines get numbers, and equal lines get the same number, so that a comparison costs nothing. */
struct search {
    struct lines lines;
    struct numbers numbers[PASSES];
    size_t *numbered[PASSES]; /* NULL before a pass is used */
};

static void number_lines(struct search *s, int pass) {
    if (s->numbered[pass]) return;
    s->numbered[pass] = allocate(s->lines.count, sizeof **s->numbered);
    for (size_t i = 0; i < s->lines.count; i++) s->numbered[pass][i] = number_of(&s->numbers[pass], passes[pass](s->lines.at[i].text));
}

/* The first place from `from` on (Knuth, Morris, Pratt). */
static size_t find_in_pass(struct search *s, int pass, const struct text *block, size_t count, size_t from) {
    number_lines(s, pass);
    size_t *wanted = allocate(count, sizeof *wanted), *border = allocate(count, sizeof *border), found = NOWHERE;
    bool is_possible = true;
    for (size_t i = 0; i < count; i++) {
        wanted[i] = known_number(&s->numbers[pass], passes[pass](block[i]));
        is_possible = is_possible && wanted[i] != NOT_NUMBERED;
    }
    for (size_t at = 1, length = 0; at < count; at++) {
        while (length > 0 && wanted[length] != wanted[at]) length = border[length - 1];
        if (wanted[length] == wanted[at]) length++;
        border[at] = length;
    }
    for (size_t at = from, matched = 0; is_possible && found == NOWHERE && at < s->lines.count; at++) {
        while (matched > 0 && wanted[matched] != s->numbered[pass][at]) matched = border[matched - 1];
        if (wanted[matched] == s->numbered[pass][at]) matched++;
        if (matched == count) found = at + 1 - count;
    }
    free(wanted);
    free(border);
    return found;
}

static size_t find_block(struct search *s, const struct text *block, size_t count, size_t from, bool is_at_end) {
    if (count == 0) return from;
    if (count > s->lines.count) return NOWHERE;
    size_t start = is_at_end && s->lines.count - count > from ? s->lines.count - count : from;
    if (start + count > s->lines.count) return NOWHERE;
    for (int pass = 0; pass < PASSES; pass++) {
        size_t found = find_in_pass(s, pass, block, count, start);
        if (found != NOWHERE) return found;
    }
    return NOWHERE;
}

/* ---- changing -------------------------------------------------------------------------------------------------- */

/* New lines that come before line `start` of the file, instead of it and the next `length - 1` lines. */
struct replacement {
    size_t start, length, order;
    struct text *lines;
    size_t count;
};

struct replacements {
    struct replacement *at;
    size_t count;
};

/* A chunk as its old lines and its new lines; a line that stays is in both. */
struct block {
    struct text *old;
    size_t old_count;
    struct new_line {
        struct text text;
        size_t keeps; /* index of the old line that stays, NOWHERE for a line that is new */
    } *new;
    size_t new_count;
};

static struct block block_of(const struct chunk *chunk) {
    struct block block = {.old = allocate(chunk->count, sizeof *block.old), .new = allocate(chunk->count, sizeof *block.new)};
    for (size_t i = 0; i < chunk->count; i++) {
        const struct change *change = &chunk->changes[i];
        if (change->kind != REMOVED)
            block.new[block.new_count++] = (struct new_line){change->text, change->kind == CONTEXT ? block.old_count : NOWHERE};
        if (change->kind != ADDED) block.old[block.old_count++] = change->text;
    }
    return block;
}

/* A last empty line may be one too many, as when a blank line separates two chunks of a patch. */
static void drop_last_empty_line(struct block *block) {
    block->old_count--;
    if (block->new_count && block->new[block->new_count - 1].text.length == 0) block->new_count--;
    for (size_t i = 0; i < block->new_count; i++)
        if (block->new[i].keeps != NOWHERE && block->new[i].keeps >= block->old_count) block->new[i].keeps = NOWHERE;
}

static void add_replacement(struct replacements *all, struct replacement one) {
    if (one.length == 0 && one.count == 0) return;
    all->at = room_for_one(all->at, all->count, sizeof *all->at);
    one.order = all->count;
    all->at[all->count++] = one;
}

/* Adds one replacement for each stretch between lines that stay. */
static void replace_block(struct replacements *all, const struct block *block, size_t start) {
    size_t at = 0;
    struct replacement stretch = {.lines = allocate(block->new_count, sizeof *stretch.lines)};
    for (size_t i = 0; i <= block->new_count; i++) {
        size_t keeps = i < block->new_count ? block->new[i].keeps : block->old_count;
        if (keeps == NOWHERE) {
            stretch.lines[stretch.count++] = block->new[i].text;
            continue;
        }
        stretch.start = start + at;
        stretch.length = keeps - at;
        add_replacement(all, stretch);
        stretch = (struct replacement){.lines = stretch.lines + stretch.count};
        at = keeps + 1;
    }
}

static int by_start(const void *one, const void *other) {
    const struct replacement *a = one, *b = other;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

struct output {
    struct text *parts;
    size_t count;
    struct text ending;
};

static void print(struct output *out, struct text text, struct text ending) {
    out->parts[out->count++] = text;
    out->parts[out->count++] = ending.length ? ending : out->ending;
}

/* Additions to the end of the file may come from any chunk, so the replacements are sorted first; equal places keep their order. */
static struct text replaced(const struct lines *lines, struct replacements *all, struct text ending) {
    size_t most = lines->count, copied = 0;
    for (size_t i = 0; i < all->count; i++) most += all->at[i].count;
    struct output out = {.parts = allocate(2 * most, sizeof *out.parts), .ending = ending};
    if (all->count) qsort(all->at, all->count, sizeof *all->at, by_start);
    for (size_t i = 0; i < all->count; i++) {
        const struct replacement *one = &all->at[i];
        for (; copied < one->start; copied++) print(&out, lines->at[copied].text, lines->at[copied].ending);
        for (size_t line = 0; line < one->count; line++) print(&out, one->lines[line], ending);
        copied = one->start + one->length;
    }
    for (; copied < lines->count; copied++) print(&out, lines->at[copied].text, lines->at[copied].ending);
    return concat(out.parts, out.count);
}

static struct text missing_lines(const struct block *block, struct text name) {
    struct text *parts = allocate(2 * block->old_count + 3, sizeof *parts);
    size_t count = 0;
    parts[count++] = TEXT("Failed to find expected lines in ");
    parts[count++] = name;
    parts[count++] = TEXT(":");
    for (size_t i = 0; i < block->old_count; i++) {
        parts[count++] = TEXT("\n");
        parts[count++] = block->old[i];
    }
    return concat(parts, count);
}

/* Finds the chunk's block from `*cursor` on, and moves the cursor behind it. */
static struct text place_chunk(struct search *s, const struct chunk *chunk, struct text name, size_t *cursor, struct replacements *all) {
    if (chunk->anchor.at) {
        size_t at = find_block(s, &chunk->anchor, 1, *cursor, false);
        if (at == NOWHERE) return CONCAT(TEXT("Failed to find context '"), chunk->anchor, TEXT("' in "), name);
        *cursor = at + 1;
    }
    struct block block = block_of(chunk);
    if (block.old_count == 0) {
        replace_block(all, &block, chunk->anchor.at && !chunk->is_at_end ? *cursor : s->lines.count);
        return NO_TEXT;
    }
    size_t start = find_block(s, block.old, block.old_count, *cursor, chunk->is_at_end);
    if (start == NOWHERE && block.old[block.old_count - 1].length == 0) {
        struct block shorter = block;
        drop_last_empty_line(&shorter);
        start = find_block(s, shorter.old, shorter.old_count, *cursor, chunk->is_at_end);
        if (start != NOWHERE) block = shorter;
    }
    if (start == NOWHERE) return missing_lines(&block, name);
    replace_block(all, &block, start);
    *cursor = start + block.old_count;
    return NO_TEXT;
}

static struct text edit_lines(struct text text, const struct hunk *update, struct text name, struct text *edited) {
    struct search s = {.lines = split(text)};
    struct replacements all = {0};
    struct text ending = s.lines.count && s.lines.at[0].ending.length ? s.lines.at[0].ending : TEXT("\n");
    size_t cursor = 0;
    for (size_t i = 0; i < update->count; i++) {
        struct text reason = place_chunk(&s, &update->chunks[i], name, &cursor, &all);
        if (reason.at) return reason;
    }
    *edited = replaced(&s.lines, &all, ending);
    return NO_TEXT;
}

/* The patch may take the first line with the byte order mark or without it. */
struct text edit_text(struct text text, const struct hunk *update, struct text name, struct text *edited) {
    struct text reason = edit_lines(text, update, name, edited);
    if (!reason.at || !starts_with(text, BYTE_ORDER_MARK)) return reason;
    if (edit_lines(without_mark(text), update, name, edited).at) return reason;
    *edited = CONCAT(BYTE_ORDER_MARK, *edited);
    return NO_TEXT;
}
