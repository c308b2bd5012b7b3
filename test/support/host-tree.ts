import { createHash } from "node:crypto";
import { lstat, readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";

/** Names, types, modes, owners and contents of a tree of the host: two equal digests are two equal trees. */
export async function treeDigest(root: string): Promise<string> {
  const hash = createHash("sha256");
  for (const line of await describeTree(root, "")) hash.update(`${line}\n`);
  return hash.digest("hex");
}

async function describeTree(root: string, below: string): Promise<string[]> {
  const path = join(root, below);
  const stat = await lstat(path);
  const head = `${JSON.stringify(below)} ${stat.mode.toString(8)} ${stat.uid}:${stat.gid}`;
  if (stat.isSymbolicLink()) return [`${head} ${JSON.stringify(await readlink(path))}`];
  if (stat.isFile())
    return [
      `${head} ${createHash("sha256")
        .update(await readFile(path))
        .digest("hex")}`,
    ];
  if (!stat.isDirectory()) return [head];
  const names = (await readdir(path)).sort();
  const lines = await Promise.all(names.map((name) => describeTree(root, join(below, name))));
  return [head, ...lines.flat()];
}

/** Every path below a directory of the host: `null` for a directory, the target for a link, else the text. */
export async function readTree(root: string, below = ""): Promise<Record<string, string | null>> {
  const tree: Record<string, string | null> = {};
  for (const entry of await readdir(join(root, below), { withFileTypes: true })) {
    const name = join(below, entry.name);
    if (entry.isDirectory()) Object.assign(tree, { [`${name}/`]: null }, await readTree(root, name));
    else if (entry.isSymbolicLink()) tree[name] = `-> ${await readlink(join(root, name))}`;
    else tree[name] = await readFile(join(root, name), "latin1");
  }
  return tree;
}
