import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { approvalQuestion } from "../../../../src/cli/questions/approval-question.js";
import { displayWidth } from "../../../../src/lib/terminal/display-width.js";
import { type AskedCommand, approvalRequest } from "../../../support/approval-request.js";
import { runs } from "../../../support/fuzz.js";

const shown = (asked: AskedCommand, columns = 80) =>
  approvalQuestion(approvalRequest(asked), { columns }).lines.map(({ text }) => text);
const script = (text: string) => ({ argv: ["bash", "-lc", text] });

describe("the question", () => {
  it("shows the command, its directory, the model's reason and brig's", () => {
    expect(
      shown({
        ...script("npm install\nnpm test"),
        justification: "May I install the packages?",
        reason: "command failed; retry without sandbox?",
        denial: { errno: "EROFS", evidence: "npm: Read-only file system", toldBy: "command" },
      }),
    ).toEqual([
      "The agent asks to run a command OUTSIDE the sandbox: as root, with a network,",
      "and with full access to the workspace.",
      "  ╭ script of bash -lc: 2 lines, 20 characters",
      "  │ npm install",
      "  │ npm test",
      "  ╰ end",
      "  in      /work",
      "  why     command failed; retry without sandbox?",
      "  failed  EROFS, going by the command's own output, which can say anything: npm:",
      "          Read-only file system",
      "  agent   “May I install the packages?”",
    ]);
  });

  it("breaks inside of no word that fits on a line of 40 columns", () => {
    const request = {
      ...approvalRequest({
        argv: ["bash", "-lc", "npm install --save-development typescript prettier eslint"],
      }),
      reason: "command failed; retry without sandbox?",
      denial: { errno: "EROFS", evidence: "npm: Read-only file system", toldBy: "command" as const },
    };
    const wordsAt = (columns: number) => {
      const { lines } = approvalQuestion(request, { columns });
      return lines.flatMap(({ text }) => text.split(/[\s│┆╭]+/).filter((word) => word !== ""));
    };
    expect(wordsAt(40)).toEqual(wordsAt(400));
  });

  it("shows all of a shell's path, however long it is, and where it ends", () => {
    const path = `/usr/bin/${"../bin/".repeat(20)}../../work/evil/bash`;
    const lines = shown({ argv: [path, "-lc", "git status"] });
    const head = lines.slice(2, lines.indexOf("  │ git status")).map((line) => line.slice(4));
    expect(head.join("")).toBe(`script of ${path} -lc: 1 line, 10 characters`);
    const endless = shown({ argv: [`/usr/bin/${"../bin/".repeat(20_000)}bash`, "-lc", "ls"] });
    expect(endless.length).toBeLessThan(70);
    expect(endless.join("\n")).toMatch(/NOT SHOWN: \d+ lines/);
    expect(shown({ argv: ["/work/a b/bash", "-c", "ls"] })).toContain(
      "  ╭ script of '/work/a b/bash' -c: 1 line, 2 characters",
    );
  });

  it.each([
    ["an annotation mark", "\ufff9"],
    ["a mark of Arabic numbers", "\u0600"],
    ["a hieroglyph's control", "\u{13430}"],
    ["a character of nobody's", "\ue000"],
    ["one that is not assigned", "\u0378"],
    ["half a character", "\ud800"],
  ])("shows %s by its number", (_what, character) => {
    const number = character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0");
    expect(shown(script(`./run${character} me`))).toContain(`  │ ./run<U+${number}> me`);
  });

  it("says where the command is to run", () => {
    expect(shown({ place: "sandbox" })[0]).toBe("The agent asks to run a command in the sandbox.");
    expect(shown({ place: "escalated" })[0]).toContain("OUTSIDE the sandbox");
  });

  it("says who told of the failure: the command, which can print anything, or the kernel", () => {
    const failedLine = (toldBy: "command" | "kernel", evidence: string) =>
      shown({ denial: { errno: "EACCES", evidence, toldBy } }, 200).find((line) =>
        line.startsWith("  failed"),
      );
    expect(failedLine("command", "permission denied")).toBe(
      "  failed  EACCES, going by the command's own output, which can say anything: permission denied",
    );
    expect(failedLine("command", "")).toBe(
      "  failed  EACCES, going by how the command ended, which it can choose",
    );
    expect(failedLine("kernel", "Failed to write file /etc/x")).toBe(
      "  failed  EACCES: Failed to write file /etc/x",
    );
  });

  it("says of a command that takes input that it goes on", () => {
    const { action } = approvalRequest();
    if (action.kind !== "command") throw new Error("a command was asked about");
    const { lines } = approvalQuestion(
      { ...approvalRequest(), action: { ...action, takesInput: true } },
      { columns: 80 },
    );
    expect(lines.map(({ text }) => text)).toContain(
      "  note    it stays open: the agent can type into it later without asking",
    );
  });

  it("quotes the words of a command that no shell reads", () => {
    expect(shown({ argv: ["touch", "a b", "", "c\nd"] })).toContain("  │ touch 'a b' '' 'c");
    // A shell with anything but one script is a command like any other.
    expect(shown({ argv: ["bash", "-c", "a", "b"] })[2]).toMatch(/╭ command:/);
  });

  it("shows a patch as it is", () => {
    const patch = "*** Begin Patch\n*** Delete File: x\n*** End Patch";
    const action = { kind: "patch" as const, tool: "apply_patch", patch, changes: [], cwd: "/work" };
    const { lines, choices } = approvalQuestion({ ...approvalRequest(), action }, { columns: 80 });
    expect(lines.map(({ text }) => text)).toContain("  │ *** Delete File: x");
    expect(choices.find(({ key }) => key === "a")?.label).toContain("patches of the same files");
  });

  it("offers the prefix in full, and none that cannot be taken in at a glance", () => {
    const { choices } = approvalQuestion(approvalRequest({ prefix: ["npm", "in stall"] }), { columns: 80 });
    expect(choices).toEqual([
      { key: "y", label: "yes, this once", answer: "approved" },
      {
        key: "a",
        label: "yes, and for this command in this directory until the session ends",
        answer: "approved_for_session",
      },
      {
        key: "p",
        label: "yes, and for every command that begins with: npm 'in stall'",
        answer: { approvedPrefix: ["npm", "in stall"] },
      },
      { key: "n", label: "no, go on without it", answer: "denied" },
    ]);
    const long = approvalQuestion(approvalRequest({ prefix: ["npm", "x".repeat(200)] }), { columns: 80 });
    expect(long.choices.map(({ key }) => key)).toEqual(["y", "a", "n"]);
  });
});

describe("nothing in it hides", () => {
  it.each([
    ["a colour, or any sequence for a terminal", "ls\x1b[8m; evil\x1b[0m", "ls␛[8m; evil␛[0m"],
    ["a title, in which a shell would see commands", "echo \x1b]0;; evil;\x07", "echo ␛]0;; evil;␇"],
    ["an 8-bit sequence", "ls\x9b8mevil", "ls<U+009B>8mevil"],
    ["a return that overwrites the line", "evil\rls", "evil␍ls"],
    ["backspaces", "evil\b\b\b\bls", "evil␈␈␈␈ls"],
    ["a change of direction", "ls \u202Elive", "ls <U+202E>live"],
    ["a character without width", "l\u200Bs\u2060\uFEFF", "l<U+200B>s<U+2060><U+FEFF>"],
    ["a filler", "ls\u3164\u115F", "ls<U+3164><U+115F>"],
    ["a change of the sign before", "ls\uFE0F", "ls<U+FE0F>"],
    ["blanks that are none to a shell", "ls\u00A0-l\u2003x\u2800", "ls<U+00A0>-l<U+2003>x<U+2800>"],
    ["a tab", "ls\tevil", "ls␉evil"],
    ["a run of spaces", `ls${" ".repeat(500)}; evil`, "ls<500 spaces>; evil"],
    ["spaces at the end", "ls   ", "ls␠␠␠"],
    ["a line separator", "ls\u2028evil", "ls<U+2028>evil"],
    ["a tag character", "ls\u{E0041}", "ls<U+E0041>"],
  ])("%s", (_name, text, seen) => {
    expect(shown(script(text))).toContain(`  │ ${seen}`);
    expect(shown({ argv: ["true"], justification: text }).at(-1)).toBe(
      `  agent   “${seen.replace(/␠+$/, "   ")}”`,
    );
  });

  it("a long line goes on behind another bar, so that no part of it can pass for a line of brig's", () => {
    const lines = shown(script(`echo ${"x".repeat(100)}  y    yes, this once`), 60);
    const rows = lines.filter((line) => /^ {2}[│┆]/.test(line));
    expect(rows).toHaveLength(3);
    expect(rows.map((row) => row.slice(2, 3))).toEqual(["│", "┆", "┆"]);
    expect(rows.map((row) => row.slice(4)).join("")).toBe(`echo ${"x".repeat(100)}  y    yes, this once`);
  });

  it("of what is too long the beginning and the end are shown, and the rest counted", () => {
    const lines = Array.from({ length: 500 }, (_, at) => `line ${at}`);
    const rows = shown(script(lines.join("\n")));
    expect(rows).toContain("  │ line 29");
    expect(rows).toContain("  ⋮ NOT SHOWN: 440 lines, 3450 characters");
    expect(rows).toContain("  │ line 470");
    expect(rows).toContain("  │ line 499");
    expect(rows).not.toContain("  │ line 30");
    expect(rows.find((row) => row.includes("╭"))).toContain("500 lines, 4389 characters");
  });

  it("the model's reason has an end too", () => {
    const rows = shown({ justification: "why not? ".repeat(200) });
    expect(rows.filter((row) => row.startsWith("  agent") || row.startsWith("          "))).toHaveLength(7);
    expect(rows.at(-1)).toMatch(/… \d+ more lines/);
  });
});

it("whatever a command, a directory and a reason are made of, every line begins as brig begins it, and fits", () => {
  const unit = fc.oneof(
    fc.string({ unit: "binary", maxLength: 3 }),
    fc.constantFrom(
      "\x1b[2J",
      "\x1b]0;",
      "\x07",
      "\r",
      "\n",
      "\t",
      "  y    yes",
      "\u202e",
      "界",
      "👩‍👩‍👧‍👦",
      "e\u0301",
      " ".repeat(20),
    ),
  );
  const text = fc.array(unit, { maxLength: 30 }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(
      text,
      text,
      text,
      fc.integer({ min: 20, max: 200 }),
      fc.constantFrom("command" as const, "kernel" as const),
      (command, cwd, justification, columns, toldBy) => {
        const { lines } = approvalQuestion(
          approvalRequest({
            ...script(command),
            cwd,
            justification,
            denial: { errno: "EROFS", evidence: command, toldBy },
          }),
          { columns },
        );
        for (const { text: line, kind } of lines) {
          expect(line).toMatch(
            {
              title: /^\S/,
              quote: /^ {2}(?:in|why|failed|agent|note| {8})/,
              command: /^ {2}[│┆] /,
              frame: /^ {2}[╭╰⋮] /,
            }[kind],
          );
          expect(line).not.toMatch(/\p{Cc}|\p{Bidi_Control}|[\u200b-\u200f\u2060]/u);
          expect(displayWidth(line)).toBeLessThanOrEqual(Math.max(columns, 40));
        }
      },
    ),
    { numRuns: runs({ short: 200, deep: 5000 }) },
  );
});
