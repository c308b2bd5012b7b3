import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CommandSafety } from "../../../../src/tools/command/command-safety.js";
import { runs } from "../../../support/fuzz.js";

/**
 * What a script that is called safe makes a real shell run. PATH has nothing but programs that write down how they were called, under
 * the names of safe programs and under others, so that whatever a script smuggles in is seen and does no harm.
 */
const safeNames = ["ls", "cat", "echo", "head", "wc", "grep", "pwd", "true", "cd"];
const otherNames = ["evil", "rm", "touch", "x", "a"];
const builtins = [
  "echo",
  "pwd",
  "true",
  "false",
  "cd",
  "test",
  "printf",
  "eval",
  "exec",
  "command",
  "source",
  "type",
];

let folder: string;
let bin: string;
let environmentFile: string;
let batches = 0;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "brig-shell-"));
  bin = join(folder, "bin");
  environmentFile = join(folder, "environment");
  mkdirSync(bin);
  for (const name of [...safeNames, ...otherNames]) {
    writeFileSync(join(bin, name), `#!/bin/sh\nprintf '%s\\0' "$#" "\${0##*/}" "$@" >> "$LOG"\n`);
    chmodSync(join(bin, name), 0o755);
  }
  writeFileSync(environmentFile, `enable -n ${builtins.join(" ")}\n`);
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** What a shell did with a script: the calls it made, and what it left in a directory of its own that had two files. */
interface Run {
  shell: "bash" | "sh";
  script: string;
  calls: string[][];
  made: string[];
}

/**
 * Runs each script of its standard input, after the directory and the shell for it. One shell starts them all, because Node takes many times as long
 * to start a process. Privileged, so that it does not read BASH_ENV, which is for the others.
 */
const driver = `while IFS= read -r -d '' work && IFS= read -r -d '' shell && IFS= read -r -d '' script; do
  (cd "$work" && unset OLDPWD && LOG="$work.log" exec "/bin/$shell" -c "$script") < /dev/null > /dev/null 2>&1
done`;

function run(scripts: readonly string[]): Run[] {
  const batch = join(folder, `batch-${batches++}`);
  mkdirSync(batch);
  const started = scripts
    .flatMap((script) => (["bash", "sh"] as const).map((shell) => ({ shell, script })))
    .map((one, at) => ({ ...one, work: join(batch, `${at}`) }));
  for (const { work } of started) {
    mkdirSync(work);
    writeFileSync(join(work, "-evil"), "");
    writeFileSync(join(work, "file"), "");
    writeFileSync(`${work}.log`, "");
  }
  const found = spawnSync("/bin/bash", ["-p", "-c", driver], {
    env: { PATH: bin, BASH_ENV: environmentFile, HOME: "/proc/nonexistent", LANG: "C.UTF-8" },
    input: started.map(({ work, shell, script }) => `${work}\0${shell}\0${script}\0`).join(""),
    timeout: 240_000,
  });
  if (found.error !== undefined) throw found.error;
  const runs = started.map(({ work, shell, script }) => ({
    ...{ shell, script },
    calls: callsIn(readFileSync(`${work}.log`, "utf8")),
    made: readdirSync(work).filter((name) => name !== "-evil" && name !== "file"),
  }));
  rmSync(batch, { recursive: true, force: true });
  return runs;
}

/** Each call is the number of its arguments, its name and they. */
function callsIn(text: string): string[][] {
  const words = text.split("\0").slice(0, -1);
  const calls: string[][] = [];
  for (let at = 0; at < words.length; ) {
    const length = Number(words[at]) + 1;
    calls.push(words.slice(at + 1, at + 1 + length));
    at += 1 + length;
  }
  return calls;
}

const pieces = [
  ..."ls cat echo evil rm file".split(" "),
  ...[" ", "  ", "\t", "\n", "\\\n", "\r", "\f", "\v", "\u00a0", "\u2028", "é", "𝒳"],
  ...["'", '"', "\\", "`", "$", "$(", ")", "(", "${", "}", "{", "$'", '$"', "$((", "))", "<(", ">("],
  ...[
    ";",
    "&",
    "&&",
    "||",
    "|",
    "|&",
    ";;",
    "!",
    "#",
    "~",
    "=",
    "+=",
    "*",
    "?",
    "[",
    "]",
    "[[",
    "]]",
    ",",
    "-",
    "--",
    "^",
    "%",
    "@",
    ":",
  ],
  ...["<", ">", ">>", "<<", "<<<", "<<-", ">&", "&>", "2>", ">|", "<>"],
  ...[
    "x=1",
    "evil=",
    "a[0]=1",
    "x",
    "if ",
    "then ",
    "fi",
    "do ",
    "done",
    "for ",
    "time ",
    "coproc ",
    "function ",
    "case ",
    "esac",
    "in ",
  ],
  ...[
    "$(evil)",
    "`evil`",
    `\${x:-evil}`,
    "{evil,ls}",
    "$'\\x3b'",
    "\\x65vil",
    "<<evil\nevil\n",
    "$IFS",
    "$@",
    "\\;",
    "\\&",
    "\\ ",
  ],
];
const piece = fc.constantFrom(...pieces);
const soup = fc.array(piece, { maxLength: 14 }).map((parts) => parts.join(""));

/** A word that a shell reads as these characters, in one of the ways to write it. */
const text = fc
  .array(fc.oneof(piece, fc.string({ unit: "grapheme", maxLength: 3 })), { maxLength: 3 })
  .map((parts) => parts.join("").replaceAll("\0", ""));
const written = fc.oneof(
  text.map((value) => `'${value.replaceAll("'", `'\\''`)}'`),
  text.map((value) => `"${value.replace(/["\\$`]/g, "\\$&")}"`),
  text.map((value) => value.replace(/[^A-Za-z0-9_]/gu, (one) => (one === "\n" ? "'\n'" : `\\${one}`))),
  fc.constantFrom(
    "-n",
    "file",
    "*",
    "fi*",
    "./?ile",
    "[a-z]*",
    "~",
    "a'b'\"c\"",
    "''",
    '""',
    "a=b",
    "%x",
    "@{u}",
    "HEAD^",
  ),
);
const command = fc
  .tuple(fc.constantFrom(...safeNames, "'ls'", 'c"a"t', "\\ls"), fc.array(written, { maxLength: 3 }))
  .map(([name, args]) => [name, ...args].join(" "));
const joint = fc.constantFrom(" && ", " || ", "; ", " | ", "\n", ";", "&&", "|");
const plain = fc
  .tuple(command, fc.array(fc.tuple(joint, command), { maxLength: 3 }))
  .map(([first, rest]) => first + rest.map(([join_, next]) => join_ + next).join(""));
/** A plain script that something was put into, somewhere. */
const tampered = fc
  .tuple(plain, fc.nat(), fc.array(piece, { minLength: 1, maxLength: 2 }))
  .map(([script, at, parts]) => {
    const position = at % (script.length + 1);
    return script.slice(0, position) + parts.join("") + script.slice(position);
  });

const ours = new Set(safeNames);

function expectOnlyWhatIsListed(scripts: readonly string[]): void {
  for (const { shell, script, calls, made } of run(scripts)) {
    const commands = new CommandSafety(["bash", "-c", script]).commands ?? [];
    const listed = new Set(commands.map((words) => JSON.stringify(words)));
    expect(made, `${shell} made files for ${JSON.stringify(script)}`).toEqual([]);
    for (const call of calls) {
      expect(ours.has(call[0] ?? ""), `${shell} ran ${call[0]} for ${JSON.stringify(script)}`).toBe(true);
      expect(listed, `${shell} ran it for ${JSON.stringify(script)}`).toContain(JSON.stringify(call));
    }
  }
}

const isCalledSafe = (script: string) => new CommandSafety(["bash", "-c", script]).risk === "safe";

describe("what is called safe makes a real shell run nothing but what is listed", () => {
  it.each([
    ["a soup of everything a shell knows", soup, { short: 40, deep: 300 }],
    ["plain scripts", plain, { short: 50, deep: 500 }],
    ["plain scripts that were tampered with", tampered, { short: 100, deep: 2000 }],
  ] as const)(
    "%s",
    (_name, scripts, howMany) => {
      const safe = scripts.filter(isCalledSafe);
      const settings = { numRuns: runs(howMany), seed: Math.floor(Math.random() * 2 ** 31) };
      try {
        expectOnlyWhatIsListed(fc.sample(safe, settings));
      } catch (error) {
        // The same scripts one by one, so that fast-check finds and prints the shortest, with its seed.
        const one = fc.property(safe, (script) => expectOnlyWhatIsListed([script]));
        fc.assert(one, settings);
        throw error;
      }
    },
    300_000,
  );

  it("sees it where something else is run: the check is none that always passes", () => {
    expect(() => expectOnlyWhatIsListed(["ls", "ls; evil"])).toThrow(/ran evil/);
    expect(() => expectOnlyWhatIsListed(["ls > made"])).toThrow(/made files/);
    expect(run(["ls 'a b' \"\" $'x'"])[0]?.calls).toEqual([["ls", "a b", "", "x"]]);
  });
});
