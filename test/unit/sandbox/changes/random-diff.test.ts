import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import fc from "fast-check";
import { expect, it } from "vitest";
import { diffWorkspace } from "../../../../src/sandbox/changes/diff-workspace.js";
import { LiveChanges } from "../../../../src/sandbox/changes/live-changes.js";
import { changeRecord, type RecordState } from "../../../support/change-records.js";
import { runs } from "../../../support/fuzz.js";
import { listEntry, scanResult } from "../channel/played-files.js";
import { playedTree } from "../overlay/played-tree.js";

/** Names and contents are bytes as latin1. */
type Node =
  | { kind: "file"; content: string; isExecutable: boolean }
  | { kind: "link"; target: string }
  | { kind: "directory" };
type Tree = Map<string, Node>;

const names = ["a", "b", "c d", 'q"', "caf\xe9", "\xc3\xbc", "n\nl"];
const contents = ["", "one\n", "one", "one\ntwo\n", "\0\x01", "\xff\n", "a\r\nb\r\n", "x\n".repeat(50)];
const path = fc
  .array(fc.constantFrom(...names), { minLength: 1, maxLength: 3 })
  .map((parts) => parts.join("/"));
const leaf: fc.Arbitrary<Node> = fc.oneof(
  fc.record({
    kind: fc.constant("file" as const),
    content: fc.constantFrom(...contents),
    isExecutable: fc.boolean(),
  }),
  fc.record({ kind: fc.constant("link" as const), target: fc.constantFrom("../x", "\xff", "no where") }),
);
// No link leads to a link in the tree: git applies nothing to a path below a link that leads to itself.
const tree = fc.array(fc.tuple(path, leaf), { maxLength: 12 }).map(treeOf);

/** What comes later takes the place of what is in its way. */
function treeOf(leaves: readonly (readonly [string, Node])[]): Tree {
  const made: Tree = new Map();
  for (const [path, node] of leaves) {
    for (const key of [...made.keys()]) if (key === path || key.startsWith(`${path}/`)) made.delete(key);
    for (let end = path.indexOf("/"); end > 0; end = path.indexOf("/", end + 1))
      made.set(path.slice(0, end), { kind: "directory" });
    made.set(path, node);
  }
  return made;
}

function stateOf(node: Node): RecordState {
  if (node.kind === "directory") return { type: 2, mode: 0o755, links: 1 };
  if (node.kind === "link") return { type: 3, mode: 0o777, links: 1, target: node.target };
  return { type: 1, mode: node.isExecutable ? 0o755 : 0o644, links: 1, size: BigInt(node.content.length) };
}

/** What the runner says that one tree differs in from another. */
function recordsOf(before: Tree, after: Tree): Buffer[] {
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort((one, other) =>
    one < other ? -1 : 1,
  );
  return paths.flatMap((path) => {
    const [was, is] = [before.get(path), after.get(path)];
    const above = path.slice(0, Math.max(0, path.lastIndexOf("/")));
    if (is === undefined && was !== undefined) {
      // What was in a directory that is gone is not reported.
      const isHidden = above !== "" && after.get(above)?.kind !== "directory";
      return isHidden ? [] : [changeRecord({ change: 3, path, before: withoutTarget(was) })];
    }
    if (is === undefined || JSON.stringify(is) === JSON.stringify(was)) return [];
    // The host's directory is not looked into where something else is above.
    const old = was === undefined ? undefined : withoutTarget(was);
    return [
      changeRecord({
        change: old === undefined ? 1 : 2,
        path,
        now: stateOf(is),
        ...(old && { before: old }),
      }),
    ];
  });
}

function withoutTarget(node: Node): RecordState {
  const { target, links, ...state } = stateOf(node);
  return state;
}

const types = { file: 1, directory: 2, link: 3 };

function entriesIn(tree: Tree, directory: string): Buffer[] {
  return [...tree].flatMap(([path, { kind }]) => {
    const slash = path.lastIndexOf("/");
    const isInside = path.slice(0, Math.max(0, slash)) === directory;
    return isInside ? [listEntry(types[kind], Buffer.from(path.slice(slash + 1), "latin1"))] : [];
  });
}

async function patchBetween(before: Tree, after: Tree): Promise<string> {
  const played = await playedTree();
  played.scans = [{ records: recordsOf(before, after) }];
  for (const [side, tree] of [["/base", before] as const, ["/merged", after] as const])
    for (const [path, node] of tree)
      if (node.kind === "file") played.contents.set(`${side}/${path}`, Buffer.from(node.content, "latin1"));
      else if (node.kind === "link")
        played.stats.set(`${side}/${path}`, { type: 3, target: Buffer.from(node.target, "latin1") });
  for (const [path, node] of before)
    if (node.kind === "directory") played.lists.set(`/base/${path}`, entriesIn(before, path));
  played.answer = ({ operation, path }) => {
    const inside = path.toString("latin1");
    if (operation !== "changes" || !inside.startsWith("/base/")) return null;
    const directory = inside.slice("/base/".length);
    const below = [...before].flatMap(([name, node]): [string, Node][] =>
      name.startsWith(`${directory}/`) ? [[name.slice(directory.length + 1), node]] : [],
    );
    const output = recordsOf(new Map(), new Map(below));
    return { output, result: scanResult({ count: output.length }) };
  };
  const { changes, tooLarge } = await diffWorkspace(new LiveChanges(played), { withoutRepository: false });
  expect(tooLarge).toBe(0);
  return changes.map(({ patch }) => patch ?? "").join("");
}

function pathBelow(root: string, path: string): Buffer {
  return Buffer.concat([Buffer.from(`${root}/`), Buffer.from(path, "latin1")]);
}

function place(root: string, tree: Tree): void {
  mkdirSync(root, { recursive: true });
  for (const [path, node] of [...tree].sort(([one], [other]) => (one < other ? -1 : 1))) {
    const at = pathBelow(root, path);
    if (node.kind === "directory") mkdirSync(at);
    else if (node.kind === "link") symlinkSync(Buffer.from(node.target, "latin1"), at);
    else {
      writeFileSync(at, node.content, "latin1");
      chmodSync(at, node.isExecutable ? 0o755 : 0o644);
    }
  }
}

/** Its files and links; git knows no directories. */
function leavesIn(root: string, below = ""): Record<string, Node> {
  const found: Record<string, Node> = {};
  for (const name of readdirSync(pathBelow(root, below), { encoding: "buffer" })) {
    const path = `${below === "" ? "" : `${below}/`}${name.toString("latin1")}`;
    const at = pathBelow(root, path);
    const stat = lstatSync(at);
    if (stat.isDirectory()) Object.assign(found, leavesIn(root, path));
    else if (stat.isSymbolicLink())
      found[path] = { kind: "link", target: readlinkSync(at, { encoding: "buffer" }).toString("latin1") };
    else {
      const content = readFileSync(at, "latin1");
      found[path] = { kind: "file", content, isExecutable: (stat.mode & 0o100) !== 0 };
    }
  }
  return found;
}

async function expectGitToAgree(before: Tree, after: Tree): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "brig-random-diff-"));
  try {
    place(join(directory, "is"), before);
    place(join(directory, "wanted"), after);
    const input = await patchBetween(before, after);
    const env = { GIT_CEILING_DIRECTORIES: directory };
    const options = { cwd: join(directory, "is"), env, input };
    if (input !== "") await execa("git", ["apply", "--whitespace=nowarn", "-"], options);
    expect(leavesIn(join(directory, "is"))).toEqual(leavesIn(join(directory, "wanted")));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const text = (content: string): Node => ({ kind: "file", content, isExecutable: false });
const link = (target: string): Node => ({ kind: "link", target });
const deep = [
  ["d/x", text("x\n")],
  ["d/e/y", text("y\n")],
  ["d/l", link("x")],
] as const;

it.each<[string, Tree, Tree]>([
  ["a directory that is gone", treeOf([...deep, ["z", text("z\n")]]), treeOf([["z", text("z\n")]])],
  [
    "a directory that was moved",
    treeOf(deep),
    treeOf(deep.map(([path, node]) => [path.replace("d/", "moved/"), node] as const)),
  ],
  ["a directory that is a file now", treeOf(deep), treeOf([["d", text("now\n")]])],
  ["a directory that is a link now", treeOf(deep), treeOf([["d", link("elsewhere")]])],
  ["a file that is a directory now", treeOf([["d", text("was\n")]]), treeOf(deep)],
  ["a link that is a directory now", treeOf([["d", link("x")]]), treeOf(deep)],
])("git makes the same of %s", async (_name, before, after) => {
  await expectGitToAgree(before, after);
});

it("git makes the same tree of any other", async () => {
  await fc.assert(fc.asyncProperty(tree, tree, expectGitToAgree), {
    numRuns: runs({ short: 15, deep: 500 }),
  });
});
