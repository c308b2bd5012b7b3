import { patchOf } from "../unit/tools/patch/patches.js";
import type { PatchTree } from "./patch-engines.js";

/** A patch of a tree, and what has to come of it: by the tool, by the program in the sandbox and, where it agrees, by Codex. */
export interface PatchCase {
  what: string;
  tree: PatchTree;
  patch: string;
  /** What the program says, without the last line end. ROOT is the directory of the tree. */
  said: string;
  /** Default: the tree as it was. */
  left?: Readonly<Record<string, string | null>>;
  /** Codex comes to something else here; the table in docs/differences-from-codex.md says why. */
  isUnlikeCodex?: boolean;
}

type Options = Pick<PatchCase, "isUnlikeCodex">;

const unlikeCodex: Options = { isUnlikeCodex: true };

function success(...lines: string[]): string {
  return ["Success. Updated the following files:", ...lines].join("\n");
}

function change(from: string, to: string): string[] {
  return ["@@", `-${from}`, `+${to}`];
}

/** An update of the file `f`, and the text that it has then. */
function edit(
  what: string,
  [before, chunk, after]: [string, string[], string],
  options?: Options,
): PatchCase {
  const patch = patchOf("*** Update File: f", ...chunk);
  return { what, tree: { f: before }, patch, said: success("M f"), left: { f: after }, ...options };
}

/** An update of the file `f` that does not fit it. */
function misfit(
  what: string,
  [before, chunk, said]: [string, string[], string],
  options?: Options,
): PatchCase {
  return { what, tree: { f: before }, patch: patchOf("*** Update File: f", ...chunk), said, ...options };
}

const noLines = (...old: string[]) => `Failed to find expected lines in ROOT/f:\n${old.join("\n")}`;
const noContext = (anchor: string) => `Failed to find context '${anchor}' in ROOT/f`;

const places: PatchCase[] = [
  edit("a chunk goes to the first place that fits", ["x\na\nx\nb\n", ["-x", "+y"], "y\na\nx\nb\n"]),
  edit("a chunk goes after the chunk before it", ["a\nx\na\nx\n", [" a", "@@", "-x", "@@", "-x"], "a\na\n"]),
  misfit("a chunk never goes before the chunk before it", ["a\nb\n", ["-b", "@@", "-a"], noLines("a")]),
  edit("an exact match wins over an earlier near one", ["x \nx\n", ["-x", "+y"], "x \ny\n"]),
  edit("blanks at line ends of the file do not matter", ["a \t\nb\n", ["-a", "+c"], "c\nb\n"]),
  edit("blanks at line ends of the patch do not matter", ["a\nb\n", ["-a  ", "+c"], "c\nb\n"]),
  edit("indentation does not matter", ["\t a\nb\n", ["-  a", "+c"], "c\nb\n"]),
  edit("ASCII matches typographic signs", ["“a” – it’s\u00a0b\n", ['-"a" - it\'s b', "+c"], "c\n"]),
  edit("typographic signs match ASCII", ['"a" − it\'s b\n', ["-„a“ − it‘s\u3000b", "+c"], "c\n"]),
  edit("every dash matches", ["‐‑‒–—―−\n", ["--------", "+c"], "c\n"]),
  edit("every quote matches", ["‘’‚‛“”„‟\n", [`-''''""""`, "+c"], "c\n"]),
  misfit("letters of the other case do not match", ["A\n", ["-a"], noLines("a")]),
  misfit("a block longer than the file does not match", ["a\n", ["-a", "-b"], noLines("a", "b")]),
  misfit("nothing matches in an empty file", ["", ["-a"], noLines("a")]),
  edit("a chunk starts after its anchor", ["f\nx\ng\nx\n", ["@@ g", "-x", "+y"], "f\nx\ng\ny\n"]),
  edit("a chunk starts after the first such anchor", ["g\nx\ng\nx\n", ["@@ g", "-x", "+y"], "g\ny\ng\nx\n"]),
  edit("an anchor is found like other lines", ["  def g():  \nx\n", ["@@ def g():", "-x"], "  def g():  \n"]),
  misfit("the anchor itself is not in the chunk", ["g\n", ["@@ g", "-g"], noLines("g")]),
  misfit("an anchor must be there", ["x\n", ["@@ g", "-x"], noContext("g")]),
  misfit("an anchor must come after the chunk before it", ["g\nx\n", ["-x", "@@ g", "+y"], noContext("g")]),
  misfit("an anchor may look like a unified diff", ["x\n", ["@@ -1 +1 @@", "-x"], noContext("-1 +1 @@")]),
  edit("an end marker means the end", ["a\nb\na\n", ["-a", "*** End of File"], "a\nb\n"]),
  misfit("an end marker means only the end", ["a\nb\n", ["-a", "*** End of File"], noLines("a")]),
  misfit("the end comes after the chunk before it", [
    "a\nb\n",
    [" a", " b", "@@", "-b", "*** End of File"],
    noLines("b"),
  ]),
  edit("the end may follow an anchor", ["a\nb\nc\nb\n", ["@@ a", "-b", "*** End of File"], "a\nb\nc\n"]),
  edit("the end may match nearly", ["b\nb \n", ["-b", "*** End of File"], "b\n"]),
  edit("a blank line may separate chunks", ["a\nb\nc\n", ["-a", "+x", "", "@@", "-b"], "x\nc\n"]),
  edit("a last blank line may be one too many", ["a\n", ["-a", "-", "+b", "+"], "b\n"]),
  edit("a blank line before new ones may be new itself", ["a\nb\nz\n", [" b", "", "+q"], "a\nb\n\nq\nz\n"]),
  misfit("only one blank line may be one too many", ["a\nz\n", [" a", "", ""], noLines("a", "", "")]),
  edit("without its only blank line a chunk goes to the place reached", [
    "a\nb\n",
    ["", "+q"],
    "\nq\na\nb\n",
  ]),
  edit("a blank line that is there is not ignored", ["a\n\nb\n", [" a", "-", "+x"], "a\nx\nb\n"]),
  edit("new lines alone go to the end", ["a\nb\n", ["@@", "+c"], "a\nb\nc\n"]),
  edit("new lines alone with an end marker go to the end", [
    "a\nb\n",
    ["@@ a", "+c", "*** End of File"],
    "a\nb\nc\n",
  ]),
  edit("new lines alone go after blank lines at the end", ["a\n\n\n", ["@@", "+c"], "a\n\n\nc\n"]),
  edit("new lines alone go to an empty file", ["", ["@@", "+c"], "c\n"]),
  edit("new lines at the end keep their order", [
    "a\n",
    ["@@", "+b", "@@", "-a", "+x", "@@", "+c"],
    "x\nb\nc\n",
  ]),
  edit("new lines at the end come before those of a later chunk with context", [
    "a\n",
    ["@@", "+b", "@@", " a", "+c"],
    "a\nb\nc\n",
  ]),
  edit("new lines alone go after their anchor", ["a\nb\n", ["@@ a", "+c"], "a\nc\nb\n"], unlikeCodex),
  edit("new lines alone go after the last line, if that is the anchor", [
    "a\nb",
    ["@@ b", "+c"],
    "a\nb\nc\n",
  ]),
  edit(
    "new lines alone go after each anchor its own",
    ["a\nb\n", ["@@ a", "+c", "@@ b", "+d"], "a\nc\nb\nd\n"],
    unlikeCodex,
  ),
  edit(
    "new lines alone go after an anchor behind earlier changes",
    ["x\na\nb\n", ["-x", "@@ a", "+c"], "a\nc\nb\n"],
    unlikeCodex,
  ),
  edit("new lines alone go after an anchor, before later changes", [
    "a\nb\n",
    ["@@ a", "+c", "@@", "-b"],
    "a\nc\n",
  ]),
];

const texts: PatchCase[] = [
  edit("a byte order mark stays", ["\ufeffa\nb\n", ["-a", "+x"], "\ufeffx\nb\n"], unlikeCodex),
  edit("a byte order mark stays before context", ["\ufeffa\nb\n", [" a", "-b"], "\ufeffa\n"], unlikeCodex),
  edit(
    "a byte order mark stays before an anchor",
    ["\ufeffa\nb\n", ["@@ a", "-b"], "\ufeffa\n"],
    unlikeCodex,
  ),
  edit("a byte order mark goes if the patch says so", ["\ufeffa\nb\n", ["-\ufeffa", "+x"], "x\nb\n"]),
  edit("a byte order mark stays if the patch says so", [
    "\ufeffa\nb\n",
    ["-\ufeffa", "+\ufeffx"],
    "\ufeffx\nb\n",
  ]),
  misfit("a byte order mark is no reason to find what is not there", ["\ufeffa\n", ["-c"], noLines("c")]),
  edit("CRLF stays", ["a\r\nb\r\n", ["-a", "+x", "+y"], "x\r\ny\r\nb\r\n"]),
  {
    ...edit("the line ends of the patch do not matter", ["a\nb\n", ["-a", "+x"], "x\nb\n"]),
    patch: patchOf("*** Update File: f", "@@", "-a", "+x").replaceAll("\n", "\r\n"),
  },
  edit("CR stays", ["a\rb\r", ["-a", "+x"], "x\rb\r"]),
  edit("new lines end like the first line", ["a\r\nb\nc\n", [" b", "+x"], "a\r\nb\nx\r\nc\n"]),
  edit("lines that stay keep their ends", ["a\nb\r\nc\r", [" b", "+x"], "a\nb\r\nx\nc\r"]),
  edit("a last line without an end gets one", ["a\nb", ["-a", "+x"], "x\nb\n"]),
  edit("a last line gets the file's end", ["a\r\nb", ["-a", "+x"], "x\r\nb\r\n"]),
  edit("an only line without an end gets LF", ["a", [" a", "+b"], "a\nb\n"]),
  edit("a file may become empty", ["a\n", ["-a"], ""]),
  edit("a last blank line stays", ["a\n\n", ["-a", "+b"], "b\n\n"]),
  edit("context keeps the file's blanks and signs", [
    "  a  \n“b”\nc\n",
    [" a", ' "b"', "-c", "+d"],
    "  a  \n“b”\nd\n",
  ]),
];

const added = patchOf("*** Add File: f", "+a");

/** A patch that adds the file `f` with the line `a`. */
function adds(how: string, patch: string, options?: Options): PatchCase {
  const left = { f: "a\n" };
  return { what: `a patch may come ${how}`, tree: {}, patch, said: success("A f"), left, ...options };
}

function refused(what: string, patch: string, said: string, options?: Options): PatchCase {
  return { what: `a patch is refused with ${what}`, tree: { f: "a\n" }, patch, said, ...options };
}

const first = "Invalid patch: The first line of the patch must be '*** Begin Patch'";
const last = "Invalid patch: The last line of the patch must be '*** End Patch'";

const envelopes: PatchCase[] = [
  adds("as it is", added),
  adds("with a final newline", `${added}\n`),
  adds("with blanks around", `  \n ${added}  \n\u0085\u00a0`),
  adds("with an indented last line", "*** Begin Patch\n*** Add File: f\n+a\n   *** End Patch"),
  adds("with CRLF", added.replaceAll("\n", "\r\n")),
  adds("with CR CR LF", added.replaceAll("\n", "\r\r\n")),
  adds("with a byte order mark", `\ufeff${added}`, unlikeCodex),
  adds("in what is left of a heredoc", `<<EOF\n${added}\nEOF`),
  adds("in what is left of a quoted heredoc", `<<'EOF'\n${added}\nEOF\n`),
  adds("in what is left of a doubly quoted heredoc", `<<"EOF"\n${added}\nEOF`),
  adds("in a heredoc whose last line only ends with the tag", `<<EOF\n${added}\nx EOF`),
  adds("with a second end", `${added}\n*** End Patch`),
  adds("with blank lines before a second end", `${added}\n\n  \n*** End Patch`),
  adds("with an environment", patchOf(" *** Environment ID:  box  ", "*** Add File: f", "+a")),
  refused(
    "an empty environment",
    patchOf("*** Environment ID: "),
    "Invalid patch: apply_patch environment_id cannot be empty",
  ),
  refused(
    "two environments",
    patchOf("*** Environment ID: a", "*** Environment ID: b"),
    "Invalid patch: apply_patch environment_id cannot be specified more than once",
  ),
  refused("no hunk", patchOf(), "No files were modified."),
  refused("blanks", " \n ", last),
  refused("a beginning alone", "*** Begin Patch", last),
  refused("an end alone", "*** End Patch", first),
  refused("text before it", `hello\n${added}`, first),
  refused("text after it", `${added}\nhello`, last),
  refused("a fence around it", `\`\`\`\n${added}\n\`\`\``, first),
  refused("two byte order marks before it", `\ufeff\ufeff${added}`, first),
  refused("a beginning in other letters", "*** begin patch\n*** End Patch", first),
  refused("a heredoc with another tag", `<<'X'\n${added}\nX`, first),
  refused("a heredoc with a blank before its tag", `<< EOF\n${added}\nEOF`, first),
  refused("a heredoc with blank lines inside", `<<EOF\n\n${added}\n\nEOF`, first),
  refused("a heredoc without an end inside", "<<'EOF'\n*** Begin Patch\n*** Add File: f\n+a\nEOF", last),
  refused("a heredoc of three lines", "<<EOF\n*** Begin Patch\nEOF", first),
  refused("text after a first end", `${added}\nhello\n*** End Patch`, last),
  refused("a second patch", `${added}\n${added}`, last),
];

/** A patch with a line that is not the header of a hunk. */
function badHeader(what: string, lines: string[], [number, line]: [number, string]): PatchCase {
  const reason = `'${line}' is not a valid hunk header. Valid hunk headers: '*** Add File: {path}', '*** Delete File: {path}', '*** Update File: {path}'`;
  return refused(what, patchOf(...lines), `Invalid patch hunk on line ${number}: ${reason}`);
}

const headers: PatchCase[] = [
  ...[
    ["*** Add File: a b.txt", "a b.txt"],
    ["   *** Add File: a  \t", "a"],
    ["\u00a0*** Add File: a\u3000", "a"],
    ["*** Add File:   a", "  a"],
    ['*** Add File: "a"', '"a"'],
    ["*** Add File: ünï\u001b[31m", "ünï\u001b[31m"],
  ].map(([header = "", path = ""]) => ({
    what: `${JSON.stringify(header)} names a file`,
    tree: {},
    patch: patchOf(header, "+x"),
    said: success(`A ${path}`),
    left: { [path]: "x\n" },
  })),
  ...[
    "*** add file: f",
    "***Add File: f",
    "***  Add File: f",
    "*** Add File:",
    "*** Rename File: f",
    "*** Move to: f",
    "*** Begin Patch",
    "hello",
    "",
  ].map((line) => badHeader(`${JSON.stringify(line)} for a header`, [line], [2, line])),
  badHeader("a header between blanks", ["*** Add File: g", "+a", "  +b  "], [4, "+b"]),
  badHeader("a blank line in an addition", ["*** Add File: g", "+a", "", "+b"], [4, ""]),
  badHeader("a line after a deletion", ["*** Delete File: f", "+a"], [3, "+a"]),
  badHeader("a late environment", ["*** Add File: g", "*** Environment ID: a"], [3, "*** Environment ID: a"]),
];

/** An update of the file `f` that is no valid hunk. */
function badUpdate(what: string, lines: string[], [number, reason]: [number, string]): PatchCase {
  return refused(
    what,
    patchOf("*** Update File: f", ...lines),
    `Invalid patch hunk on line ${number}: ${reason}`,
  );
}

const empty = "Update file hunk for path 'f' is empty";
const noChanges = "Update hunk does not contain any lines";
const unexpected = (line: string) =>
  `Unexpected line found in update hunk: '${line}'. Every line should start with ' ' (context line), '+' (added line), or '-' (removed line)`;
const noMarker = (line: string) => `Expected update hunk to start with a @@ context marker, got: '${line}'`;

const updates: PatchCase[] = [
  edit("an update may have no marker", ["a\nb\n", ["-a"], "b\n"]),
  edit("a marker may have blanks after it", ["a\nb\n", ["@@ \t ", "-a"], "b\n"]),
  edit("an anchor may be indented", ["  x\na\n", ["@@   x  ", "-a"], "  x\n"]),
  edit("an end marker may have blanks after it", ["a\na\n", ["-a", "*** End of File  "], "a\n"]),
  edit("blank lines may follow an end marker", [
    "a\nb\n",
    [" a", " b", "*** End of File", "", " ", "@@", "+c"],
    "a\nb\nc\n",
  ]),
  edit("an end marker before any chunk says nothing", [
    "a\na\nb\n",
    ["*** End of File", "@@", "-a"],
    "a\nb\n",
  ]),
  edit("an indented header is context", [
    "*** Add File: g\n@@\nz\n",
    [" *** Add File: g", " @@", "-z"],
    "*** Add File: g\n@@\n",
  ]),
  ...[
    [["*** Move to: g", "-a"], "g"],
    [["*** Move to:  g  ", "-a"], " g"],
    [["*** End of File", "*** Move to: g", "-a"], "g"],
  ].map(([lines, name]) => ({
    what: `an update with ${JSON.stringify(lines)} moves`,
    tree: { f: "a\nb\n" },
    patch: patchOf("*** Update File: f", ...(lines as string[])),
    said: success(`M ${name}`),
    left: { [name as string]: "b\n" },
  })),
  badUpdate("an update without a chunk", [], [2, empty]),
  badUpdate("an update with only a move", ["*** Move to: g"], [2, empty]),
  badUpdate("an update with only an end", ["*** End of File"], [2, empty]),
  badUpdate("an update without a chunk before a hunk", ["*** Add File: g", "+a"], [2, empty]),
  badUpdate("an empty chunk", ["@@"], [4, noChanges]),
  badUpdate("an empty chunk with an end", ["@@", "*** End of File"], [4, noChanges]),
  badUpdate("an empty second chunk", ["-a", "@@"], [5, noChanges]),
  badUpdate("an empty chunk before a hunk", ["@@", "*** Add File: g  "], [4, unexpected("*** Add File: g")]),
  badUpdate("two markers in a row", ["@@ a", "@@ b", "-c"], [4, unexpected("@@ b")]),
  badUpdate("a marker without a blank", ["@@a", "-c"], [3, unexpected("@@a")]),
  badUpdate("a line that starts with a tab", ["@@", "\tb"], [4, unexpected("\tb")]),
  badUpdate("a line that starts with a star", ["@@", "* a"], [4, unexpected("* a")]),
  badUpdate("two moves", ["*** Move to: g", "*** Move to: h", "-a"], [4, unexpected("*** Move to: h")]),
  badUpdate("a move without a name", ["*** Move to: ", "-a"], [3, unexpected("*** Move to: ")]),
  badUpdate("a move after a chunk", ["-a", "*** Move to: g"], [4, noMarker("*** Move to: g")]),
  badUpdate("a stray line after a chunk", ["-a", "hello"], [4, noMarker("hello")]),
  badUpdate("a change after an end", ["-a", "*** End of File", "-b"], [5, noMarker("-b")]),
  badUpdate(
    "two ends in a row",
    ["-a", "*** End of File", "*** End of File"],
    [5, noMarker("*** End of File")],
  ),
  badUpdate("a beginning inside", ["-a", "*** Begin Patch"], [4, noMarker("*** Begin Patch")]),
];

const trees: PatchCase[] = [
  {
    what: "files are added, updated, moved and deleted, and listed in this order",
    tree: { "u.txt": "a\n", "m.txt": "b\n", "d.txt": "c\n", "o.txt": "old\n" },
    patch: patchOf(
      ...["*** Delete File: d.txt", "*** Update File: u.txt", ...change("a", "A")],
      ...["*** Update File: m.txt", "*** Move to: new/place/m.txt", ...change("b", "B")],
      ...["*** Add File: ./new/a.txt", "+x", "+y", "*** Add File: o.txt", "+new", "*** Add File: empty.txt"],
    ),
    said: success("A ./new/a.txt", "A o.txt", "A empty.txt", "M u.txt", "M new/place/m.txt", "D d.txt"),
    left: {
      "empty.txt": "",
      "new/": null,
      "new/a.txt": "x\ny\n",
      "new/place/": null,
      "new/place/m.txt": "B\n",
      "o.txt": "new\n",
      "u.txt": "A\n",
    },
  },
  {
    what: "a path may go through a name that is not there and back",
    tree: { "sub/f": "a\n" },
    patch: patchOf("*** Update File: nowhere/../sub/f", ...change("a", "b")),
    said: success("M nowhere/../sub/f"),
    left: { "sub/": null, "sub/f": "b\n" },
  },
  {
    what: "links are followed when a file is written, and removed when it is deleted",
    tree: { f: "a\n", g: "a\n", u: "-> f", d: "-> g", n: "-> nothing" },
    patch: patchOf("*** Update File: u", ...change("a", "b"), "*** Delete File: d", "*** Add File: n", "+x"),
    said: success("A n", "M u", "D d"),
    left: { f: "b\n", g: "a\n", u: "-> f", n: "-> nothing", nothing: "x\n" },
  },
  {
    what: "of a moved link the target stays",
    tree: { f: "a\n", m: "-> f" },
    patch: patchOf("*** Update File: m", "*** Move to: moved", ...change("a", "b")),
    said: success("M moved"),
    left: { f: "a\n", moved: "b\n" },
  },
  {
    what: "each hunk changes what the hunks before it left",
    tree: { f: "a\n", g: "x\n" },
    patch: patchOf(
      ...["*** Update File: f", ...change("a", "b"), "*** Update File: ./f", ...change("b", "c")],
      ...["*** Add File: n", "+1", "*** Update File: n", "*** Move to: g", ...change("1", "2")],
      ...["*** Update File: g", ...change("2", "3"), "*** Delete File: f", "*** Add File: f", "+again"],
    ),
    said: success("A n", "A f", "M f", "M ./f", "M g", "M g", "D f"),
    left: { f: "again\n", g: "3\n" },
  },
  {
    what: "no change is lost of a file that has two names",
    tree: { f: "a\nb\n", l: "-> f" },
    patch: patchOf("*** Update File: f", ...change("a", "A"), "*** Update File: l", ...change("b", "B")),
    said: success("M f", "M l"),
    left: { f: "A\nB\n", l: "-> f" },
  },
  {
    what: "what is about to be added is not seen through a link",
    tree: { l: "-> f" },
    patch: patchOf("*** Add File: l", "+a", "*** Update File: f", ...change("a", "b")),
    said: "Failed to read file to update ROOT/f: No such file or directory (os error 2)",
    isUnlikeCodex: true,
  },
  ...[
    ["itself", "./f", { f: "a\n" }, { f: "b\n" }],
    ["a link to it", "l", { f: "a\n", l: "-> f" }, { f: "b\n", l: "-> f" }],
    ["its name through a link", "e/f", { f: "a\n", e: "-> ." }, { f: "b\n", e: "-> ." }],
  ].map(([what, to, tree, left]) => ({
    what: `a file that is moved to ${what} is kept`,
    tree: tree as PatchTree,
    patch: patchOf("*** Update File: f", `*** Move to: ${to}`, ...change("a", "b")),
    said: success(`M ${to}`),
    left: left as Record<string, string>,
    isUnlikeCodex: true,
  })),
  {
    what: "a file that is not UTF-8 may be replaced",
    tree: { f: "a\n", g: Buffer.of(0xff), o: Buffer.of(0xff) },
    patch: patchOf("*** Add File: o", "+x", "*** Update File: f", "*** Move to: g", ...change("a", "b")),
    said: success("A o", "M g"),
    left: { g: "b\n", o: "x\n" },
  },
];

const none = "No such file or directory (os error 2)";
const longName = "n".repeat(300);

/** Hunks that do not fit this tree. The patch adds a file before, which has to be missing after. */
const misfits: PatchCase[] = (
  [
    [
      "updates a missing file",
      ["*** Update File: no", ...change("a", "b")],
      `Failed to read file to update ROOT/no: ${none}`,
    ],
    [
      "updates a file in a missing directory",
      ["*** Update File: no/f", ...change("a", "b")],
      `Failed to read file to update ROOT/no/f: ${none}`,
    ],
    [
      "updates a file below a file",
      ["*** Update File: f/g", ...change("a", "b")],
      "Failed to read file to update ROOT/f/g: Not a directory (os error 20)",
    ],
    [
      "updates a directory",
      ["*** Update File: dir", ...change("a", "b")],
      "Failed to read file to update ROOT/dir: path `ROOT/dir` is not a file",
    ],
    [
      "updates what is not UTF-8",
      ["*** Update File: bin", ...change("a", "b")],
      "Failed to read file to update ROOT/bin: invalid utf-8 sequence of 1 bytes from index 2",
    ],
    [
      "updates a link to nothing",
      ["*** Update File: dangling", ...change("a", "b")],
      `Failed to read file to update ROOT/dangling: ${none}`,
    ],
    [
      "updates a file with a long name",
      [`*** Update File: ${longName}`, ...change("a", "b")],
      `Failed to read file to update ROOT/${longName}: Filename too long (os error 36)`,
    ],
    [
      "updates a file that it deleted",
      ["*** Delete File: f", "*** Update File: f", ...change("a", "b")],
      `Failed to read file to update ROOT/f: ${none}`,
    ],
    [
      "updates a file that it moved",
      [
        "*** Update File: f",
        "*** Move to: g",
        ...change("a", "b"),
        "*** Update File: f",
        ...change("b", "c"),
      ],
      `Failed to read file to update ROOT/f: ${none}`,
    ],
    ["deletes a missing file", ["*** Delete File: no"], `Failed to read ROOT/no: ${none}`],
    [
      "deletes a directory",
      ["*** Delete File: dir"],
      "Failed to read ROOT/dir: path `ROOT/dir` is not a file",
    ],
    [
      "deletes what is not UTF-8",
      ["*** Delete File: bin"],
      "Failed to read ROOT/bin: invalid utf-8 sequence of 1 bytes from index 2",
    ],
    ["deletes a link to nothing", ["*** Delete File: dangling"], `Failed to read ROOT/dangling: ${none}`],
    [
      "deletes a link in a circle",
      ["*** Delete File: circle"],
      "Failed to read ROOT/circle: Symbolic link loop (os error 40)",
    ],
    ["deletes a file twice", ["*** Delete File: f", "*** Delete File: f"], `Failed to read ROOT/f: ${none}`],
    ["changes lines that are not there", ["*** Update File: f", ...change("x", "b")], noLines("x")],
    ["follows an anchor that is not there", ["*** Update File: f", "@@ x", "-a"], noContext("x")],
    [
      "changes lines that it changed before",
      ["*** Update File: f", ...change("a", "b"), "*** Update File: f", ...change("a", "c")],
      noLines("a"),
    ],
    ["names a file with NUL", ["*** Update File: f\0", ...change("a", "b")], "'f\0' is invalid on 'linux'"],
    [
      "moves to a name with NUL",
      ["*** Update File: f", "*** Move to: g\0", ...change("a", "b")],
      "'g\0' is invalid on 'linux'",
    ],
  ] as const
).map(([what, lines, said]) => ({
  what: `a patch that ${what} changes nothing`,
  tree: {
    f: "a\n",
    bin: Buffer.from([0x61, 0x0a, 0xff]),
    "dir/x": "",
    dangling: "-> nothing",
    circle: "-> circle",
  },
  patch: patchOf("*** Add File: first", "+x", ...lines),
  said,
  isUnlikeCodex: true,
}));

/** A hunk that fails when it is applied, between two that would not. */
const failures: PatchCase[] = (
  [
    [
      "a directory is in the way",
      ["*** Add File: dir", "+x"],
      "Failed to write file ROOT/dir: path `ROOT/dir` is not a file",
    ],
    [
      "a file is where a directory should be",
      ["*** Add File: f/g", "+x"],
      "Failed to write file ROOT/f/g: Not a directory (os error 20)",
    ],
    [
      "a file cannot be moved there",
      ["*** Update File: f", "*** Move to: dir", ...change("a", "b")],
      "Failed to write file ROOT/dir: path `ROOT/dir` is not a file",
    ],
  ] as const
).map(([what, lines, said]) => ({
  what: `a patch that fails because ${what} keeps what it did before`,
  tree: { f: "a\n", "dir/x": "" },
  patch: patchOf("*** Add File: before", "+x", ...lines, "*** Add File: after", "+x"),
  said,
  left: { before: "x\n", f: "a\n", "dir/": null, "dir/x": "" },
  isUnlikeCodex: true,
}));

export const patchCases: readonly PatchCase[] = [
  ...places,
  ...texts,
  ...envelopes,
  ...headers,
  ...updates,
  ...trees,
  ...misfits,
  ...failures,
];
