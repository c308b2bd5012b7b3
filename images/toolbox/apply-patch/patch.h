/* A patch in the Begin/End format, and its effect on a text. src/tools/patch has the same rules for the host; its README says why. */
#ifndef BRIG_PATCH_H
#define BRIG_PATCH_H

#include "text.h"

enum change_kind { CONTEXT, ADDED, REMOVED };

struct change {
    enum change_kind kind;
    struct text text;
};

/* One place of a file to change. */
struct chunk {
    struct text anchor; /* a line that comes somewhere before the place, or NO_TEXT */
    struct change *changes;
    size_t count;
    bool is_at_end; /* the place is the end of the file */
};

enum hunk_kind { ADD_FILE, DELETE_FILE, UPDATE_FILE };

/* The changes of one file. Paths are as written in the patch. */
struct hunk {
    enum hunk_kind kind;
    struct text path, move_to; /* NO_TEXT if the file is not moved */
    struct text added;         /* the text of a new file */
    struct chunk *chunks;
    size_t count;
};

struct patch {
    struct hunk *hunks;
    size_t count;
};

/* Returns NO_TEXT, or the reason why the text is no patch. */
struct text parse_patch(struct text source, struct patch *patch);

/* Returns NO_TEXT and sets `edited`, or returns why the chunks do not fit; `name` is the file's name in that message. */
struct text edit_text(struct text text, const struct hunk *update, struct text name, struct text *edited);

#endif
