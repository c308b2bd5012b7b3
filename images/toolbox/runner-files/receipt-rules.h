/*
 * Names that programs run or obey by themselves. The host sends them, one a line, and the first line that fits a path counts. A line
 * fits if its names are the last ones of the path: "Makefile", ".github/copilot-instructions.md". In a name, one "*" stands for
 * anything; the name "**" stands for any number of names. A line that ends with "/" is about everything below such a directory. Nothing
 * obeys a file that fits a line with "!" in front. Upper and lower case are the same, as they are on some file systems.
 */
#ifndef BRIG_RECEIPT_RULES_H
#define BRIG_RECEIPT_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rule {
    const char *text;
    size_t length;
    uint32_t number; /* the number of its line, from 1 */
    uint32_t next;   /* the next one whose last name begins alike, or RULE_NONE */
};

/* Rules by the first character of their last names; those that begin with "*" are apart. */
struct rule_table {
    struct rule *rules;
    uint32_t count;
    uint32_t first[257], last[257];
};

struct rules {
    uint32_t count;
    bool *is_exempt;                            /* by number */
    struct rule_table files, directories, ways; /* ways: the directories that lead to the files of a rule */
};

/* The lines have to stay until rules_free. False when there is no memory. */
bool rules_read(struct rules *rules, const char *lines, size_t length);
void rules_free(struct rules *rules);

/* The number of the first rule that fits, or 0. Paths are relative, without "." or "..". */
uint32_t rules_of_file(const struct rules *rules, const char *path, size_t length);
uint32_t rules_below(const struct rules *rules, const char *directory, size_t length);
uint32_t rules_by_way_of(const struct rules *rules, const char *directory, size_t length);

/* The number that counts, of two numbers of rules, each of which may be 0. */
uint32_t rules_first(uint32_t one, uint32_t other);

#endif
