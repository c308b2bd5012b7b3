import { chmod, lstat, mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import { execa } from "execa";
import fc from "fast-check";
import type { Sandbox } from "../../src/sandbox/sandbox.js";
import { summary } from "../../src/tools/patch/apply-patch-tool.js";
import type { PatchFiles } from "../../src/tools/patch/patch-files.js";
import { fileText, line, mutatedPatch } from "../unit/tools/patch/patches.js";
import { readTree } from "./host-tree.js";
import type { PatchCase } from "./patch-cases.js";
import { textPatcher } from "./text-patcher.js";

/** Files by their names; a link says `-> ` and where it leads, a name that ends with a slash is an empty directory. */
export type PatchTree = Readonly<Record<string, string | Buffer>>;

/** What is left of a tree, and what was said. */
export interface Patched {
  exitCode: number;
  said: string;
  tree: Record<string, string | null>;
  modes: Record<string, string>;
}

/** Applies a patch in a directory and says what the program is to say. */
export type PatchEngine = (patch: string, directory: string) => Promise<{ exitCode: number; said: string }>;

/** The engine of the tools on the files of a sandbox, in the words of the program. */
export const toolsEngine =
  (files: PatchFiles): PatchEngine =>
  async (patch, directory) => {
    const outcome = await textPatcher(() => files).applyPatch(patch, { cwd: directory });
    if (outcome.kind === "applied") return { exitCode: 0, said: summary(outcome.changes) };
    const reason = outcome.kind === "empty" ? "No files were modified." : outcome.reason;
    const said = reason
      .replace(/^invalid patch: /, "Invalid patch: ")
      .replace(/^invalid hunk at line (\d+), /, "Invalid patch hunk on line $1: ");
    return { exitCode: 1, said: `${said}\n` };
  };

/** The program on the PATH of a sandbox. */
export const programIn =
  (sandbox: Sandbox): PatchEngine =>
  async (patch, cwd) => {
    const { exitCode, stdout, stderr } = await sandbox.exec(["apply_patch"], { cwd, stdin: patch });
    return { exitCode: exitCode ?? -1, said: stdout + stderr };
  };

/** The real Codex, which is such a program under that name. */
export async function codexEngine(launcher: string): Promise<PatchEngine> {
  // The launcher from npm is a script, and does not pass its name on to the program that it starts.
  const packages = join(await realpath(launcher), "../../..");
  const names = await readdir(packages, { recursive: true });
  const program = names.find((name) => /\/vendor\/[^/]+\/bin\/codex$/.test(name));
  const codex = program === undefined ? launcher : join(packages, program);
  return async (patch, cwd) => {
    const options = { argv0: "apply_patch", cwd, input: patch, reject: false, stripFinalNewline: false };
    const { exitCode, stdout, stderr } = await execa(codex, [], options);
    return { exitCode: exitCode ?? -1, said: stdout + stderr };
  };
}

/** Makes the tree below `parent`, lets the engine patch it, and looks at what is left. */
export async function patched(
  engine: PatchEngine,
  { parent, tree, patch }: { parent: string; tree: PatchTree; patch: string },
): Promise<Patched> {
  const own = await mkdtemp(join(parent, "patched-"));
  // A patch may lead out of its directory.
  const directory = join(own, "root");
  try {
    await mkdir(directory);
    for (const [name, content] of Object.entries(tree)) await make(join(directory, name), content);
    const { exitCode, said } = await engine(patch, directory);
    const shown = said.replaceAll(directory, "ROOT").replaceAll(own, "ABOVE");
    const left = await readTree(directory);
    return { exitCode, said: shown, tree: left, modes: await modesOf(directory, Object.keys(left)) };
  } finally {
    await rm(own, { recursive: true, force: true });
  }
}

/** What the engine makes of a case, and what it has to make of it. */
export async function tried(
  engine: PatchEngine,
  { parent, ...given }: PatchCase & { parent: string },
): Promise<{ seen: Omit<Patched, "modes">; wanted: Omit<Patched, "modes"> }> {
  const { exitCode, said, tree } = await patched(engine, { parent, ...given });
  const wanted = {
    exitCode: given.said.startsWith("Success") ? 0 : 1,
    said: `${given.said}\n`,
    tree: asRead(given.left ?? given.tree),
  };
  return { seen: { exitCode, said, tree }, wanted };
}

/** A tree as `readTree` describes it: with every directory, and with a character for each byte. */
function asRead(tree: Readonly<Record<string, string | Buffer | null>>): Record<string, string | null> {
  const read: Record<string, string | null> = {};
  for (const [name, content] of Object.entries(tree)) {
    for (let above = posix.dirname(name); above !== "."; above = posix.dirname(above))
      read[`${above}/`] = null;
    read[name] = content === null ? null : Buffer.from(content).toString("latin1");
  }
  return read;
}

async function make(path: string, content: string | Buffer): Promise<void> {
  if (path.endsWith("/")) {
    await mkdir(path, { recursive: true });
    return;
  }
  await mkdir(dirname(path), { recursive: true });
  if (typeof content === "string" && content.startsWith("-> ")) await symlink(content.slice(3), path);
  else await writeFile(path, content);
  if (path.endsWith(".sh")) await chmod(path, 0o755);
}

async function modesOf(root: string, names: readonly string[]): Promise<Record<string, string>> {
  const modes = names.map(async (name) => {
    const { mode } = await lstat(join(root, name));
    return [name, (mode & 0o7777).toString(8)] as const;
  });
  return Object.fromEntries(await Promise.all(modes));
}

const name = fc.constantFrom(
  ..."a.txt|b.txt|./a.txt|sub/c.txt|sub/../a.txt|link|chain|dangling|dir|run.sh|new|new/deep/x|a.txt/x|bytes|twin|sub//c.txt|gone".split(
    "|",
  ),
);

const changeLines = fc.array(
  fc.tuple(fc.constantFrom(" ", "+", "-"), line).map(([sign, text]) => sign + text),
  { minLength: 1, maxLength: 4 },
);
const chunkLines = fc
  .tuple(fc.constantFrom("@@", "@@ a", "@@ b", "@@  x"), changeLines, fc.boolean())
  .map(([head, lines, isAtEnd]) => [head, ...lines, ...(isAtEnd ? ["*** End of File"] : [])]);

/** One line of the file becomes another, so that many hunks fit. */
const fitting = fc
  .tuple(fc.constantFrom("a", "b", "x"), line)
  .map(([from, to]) => ["@@", `-${from}`, `+${to}`]);

const hunk = fc.oneof(
  fc
    .tuple(name, fc.array(line, { maxLength: 3 }))
    .map(([path, lines]) => [`*** Add File: ${path}`, ...lines.map((text) => `+${text}`)]),
  name.map((path) => [`*** Delete File: ${path}`]),
  fc
    .tuple(
      name,
      fc.option(name),
      fc.array(fc.oneof(fitting, fitting, chunkLines), { minLength: 1, maxLength: 3 }),
    )
    .map(([path, moveTo, chunks]) => [
      `*** Update File: ${path}`,
      ...(moveTo === null ? [] : [`*** Move to: ${moveTo}`]),
      ...chunks.flat(),
    ]),
);

/** Patches of a tree in which names lead to one another, most of which fit or nearly do. */
const treePatch = fc
  .array(hunk, { minLength: 1, maxLength: 4 })
  .map((hunks) => ["*** Begin Patch", ...hunks.flat(), "*** End Patch"].join("\n"));

/** A tree and a patch for it. */
export const patchCase: fc.Arbitrary<{ tree: PatchTree; patch: string }> = fc.record({
  tree: fc
    .tuple(fileText, fc.constantFrom("a\n", "b\nx\n", "a\r\nb\r\n", "x\na\nb", ""))
    .map(([text, short]) => ({
      "a.txt": short,
      "b.txt": text,
      "sub/c.txt": "a\nb\n",
      link: "-> a.txt",
      chain: "-> link",
      twin: "-> sub/c.txt",
      dangling: "-> sub/made",
      "dir/": "",
      "run.sh": "a\nb\n",
      bytes: Buffer.from([0x61, 0x0a, 0xff, 0x62]),
    })),
  // Half of a character pair is no UTF-8, and no patch at all is another use of the program.
  patch: fc
    .oneof(treePatch, treePatch, mutatedPatch)
    .map((patch) => Buffer.from(patch).toString())
    .filter((patch) => patch !== ""),
});
