#define _GNU_SOURCE
#include "receipt-rules.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define RULE_NONE UINT32_MAX
#define STAR 256

/* The position at which the last name begins. */
static size_t last_name(const char *path, size_t length) {
    const char *slash = memrchr(path, '/', length);
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* The length of the path without the name that begins at `name`. */
static size_t without(size_t name) { return name ? name - 1 : 0; }

static bool is_any_number(const char *name, size_t length) { return length == 2 && memcmp(name, "**", 2) == 0; }

static bool fits_name(const char *rule, size_t length, const char *name, size_t size) {
    const char *star = memchr(rule, '*', length);
    if (!star) return length == size && strncasecmp(rule, name, size) == 0;
    size_t before = (size_t)(star - rule), after = length - before - 1;
    return size >= before + after && strncasecmp(rule, name, before) == 0 && strncasecmp(star + 1, name + size - after, after) == 0;
}

static bool fits(const char *rule, size_t length, const char *path, size_t size) {
    if (length == 0) return true;
    size_t part = last_name(rule, length), name = last_name(path, size);
    if (!is_any_number(rule + part, length - part))
        return size > 0 && fits_name(rule + part, length - part, path + name, size - name) && fits(rule, without(part), path, without(name));
    for (;; size = without(last_name(path, size))) {
        if (fits(rule, without(part), path, size)) return true;
        if (size == 0) return false;
    }
}

static unsigned place_of(const char *name) {
    if (*name == '*') return STAR;
    return (unsigned char)(*name >= 'A' && *name <= 'Z' ? *name + ('a' - 'A') : *name);
}

static uint32_t find_at(const struct rule_table *table, unsigned place, const char *path, size_t length) {
    if (table->count == 0) return 0;
    for (uint32_t at = table->first[place]; at != RULE_NONE; at = table->rules[at].next) {
        const struct rule *rule = &table->rules[at];
        if (fits(rule->text, rule->length, path, length)) return rule->number;
    }
    return 0;
}

uint32_t rules_first(uint32_t one, uint32_t other) { return one == 0 || (other != 0 && other < one) ? other : one; }

static uint32_t find(const struct rule_table *table, const char *path, size_t length) {
    uint32_t named = find_at(table, place_of(path + last_name(path, length)), path, length);
    return rules_first(named, find_at(table, STAR, path, length));
}

uint32_t rules_of_file(const struct rules *rules, const char *path, size_t length) { return find(&rules->files, path, length); }
uint32_t rules_below(const struct rules *rules, const char *directory, size_t length) { return find(&rules->directories, directory, length); }
uint32_t rules_by_way_of(const struct rules *rules, const char *directory, size_t length) { return find(&rules->ways, directory, length); }

static bool add(struct rule_table *table, const char *text, size_t length, uint32_t number) {
    if (table->count == 0) memset(table->first, 0xff, sizeof table->first);
    if ((table->count & (table->count - 1)) == 0) {
        struct rule *rules = realloc(table->rules, (table->count ? table->count * 2 : 1) * sizeof *rules);
        if (!rules) return false;
        table->rules = rules;
    }
    unsigned place = place_of(text + last_name(text, length));
    table->rules[table->count] = (struct rule){.text = text, .length = length, .number = number, .next = RULE_NONE};
    if (table->first[place] == RULE_NONE) table->first[place] = table->count;
    else table->rules[table->last[place]].next = table->count;
    table->last[place] = table->count++;
    return true;
}

/* Adds every directory on the way to the files that the rule names. A directory that ends with "**" may be any. */
static bool add_ways(struct rules *rules, const char *text, size_t length, uint32_t number) {
    for (size_t name = last_name(text, length); name > 0; name = last_name(text, length)) {
        length = without(name);
        size_t last = last_name(text, length);
        if (!is_any_number(text + last, length - last) && !add(&rules->ways, text, length, number)) return false;
    }
    return true;
}

static bool read_rule(struct rules *rules, const char *text, size_t length, uint32_t number) {
    rules->is_exempt[number] = *text == '!';
    if (rules->is_exempt[number]) {
        text++;
        length--;
    }
    bool is_directory = length > 0 && text[length - 1] == '/';
    if (is_directory) length--;
    if (length == 0) return true;
    if (!add(is_directory ? &rules->directories : &rules->files, text, length, number)) return false;
    return rules->is_exempt[number] || add_ways(rules, text, length, number);
}

bool rules_read(struct rules *rules, const char *lines, size_t length) {
    *rules = (struct rules){0};
    const char *end = lines + length;
    uint32_t most = 1;
    for (const char *at = lines; at < end; at++) most += *at == '\n';
    rules->is_exempt = calloc(most + 1, sizeof *rules->is_exempt);
    if (!rules->is_exempt) return false;
    for (const char *at = lines; at < end;) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        size_t size = (size_t)((line_end ? line_end : end) - at);
        if (size > 0 && !read_rule(rules, at, size, ++rules->count)) return false;
        at += size + 1;
    }
    return true;
}

void rules_free(struct rules *rules) {
    free(rules->is_exempt);
    free(rules->files.rules);
    free(rules->directories.rules);
    free(rules->ways.rules);
    *rules = (struct rules){0};
}
