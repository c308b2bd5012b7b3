import { chmod, lstat, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import fc from "fast-check";
import type { PatchFiles } from "../../src/tools/patch/patch-files.js";
import { summary } from "../../src/tools/patch/patch-output.js";
import { createPatcher } from "../../src/tools/patch/patcher.js";
import { fileText, line, mutatedPatch } from "../unit/tools/patch/patches.js";
import { readTree } from "./host-tree.js";

/** Files by their names; a link says `-> ` and where it leads, a name that ends with a slash is an empty directory. */
export type PatchTree = Readonly<Record<string, string | Buffer>>;

/** What is left of a tree, and what was said. */
export interface Patched {
  exitCode: number;
  said: string;
  tree: Record<string, string | null>;
}

/** Applies a patch in a directory and says what the program is to say. */
export type PatchEngine = (patch: string, directory: string) => Promise<{ exitCode: number; said: string }>;

/** The engine of the tools on the files of a sandbox, in the words of the program. */
export const toolsEngine =
  (files: PatchFiles): PatchEngine =>
  async (patch, directory) => {
    const outcome = await createPatcher(() => files).applyPatch(patch, { cwd: directory });
    if (outcome.kind === "applied") return { exitCode: 0, said: summary(outcome.changes) };
    const reason = outcome.kind === "empty" ? "No files were modified." : outcome.reason;
    const said = reason
      .replace(/^invalid patch: /, "Invalid patch: ")
      .replace(/^invalid hunk at line (\d+), /, "Invalid patch hunk on line $1: ");
    return { exitCode: 1, said: `${said}\n` };
  };

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
    return { exitCode, said: shown, tree: await treeWithModes(directory) };
  } finally {
    await rm(own, { recursive: true, force: true });
  }
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

/** As `readTree`, with the mode of each file behind its name. */
async function treeWithModes(root: string): Promise<Record<string, string | null>> {
  const tree = await readTree(root);
  const entries = Object.entries(tree).map(async ([path, content]) => {
    const { mode } = await lstat(join(root, path));
    return [`${path} ${(mode & 0o7777).toString(8)}`, content] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
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
