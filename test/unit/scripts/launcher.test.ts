import { existsSync, readFileSync, realpathSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { describe, expect, it } from "vitest";
import { temporaryDirectory } from "../../support/sandbox.js";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const launcher = readFileSync(join(root, "scripts/bundle/launcher.cjs"), "utf8");

/** A program with brig's launcher that prints its arguments, in a workspace whose .env makes Node run another program. */
async function hostileWorkspace({ leastNode = "20, 19" } = {}) {
  const folder = await temporaryDirectory();
  const program = join(folder.path, "dist", "main.js");
  const workspace = join(folder.path, "workspace");
  await mkdir(join(folder.path, "dist"));
  await mkdir(workspace);
  const text = launcher.replace("LEAST_NODE", leastNode).replace("ENTRY", "chunk-entry.js");
  await writeFile(program, text);
  await chmod(program, 0o755);
  const chunk = "(function () { console.log(JSON.stringify(process.argv.slice(2))) })";
  await writeFile(join(folder.path, "dist", "chunk-entry.js"), chunk);
  await writeFile(join(workspace, "evil.cjs"), 'require("node:fs").writeFileSync("ran", "")');
  await writeFile(join(workspace, ".env"), "NODE_OPTIONS=--require=./evil.cjs\n");
  return {
    program,
    /** What the program prints if it is started by this command, and whether the workspace's own program ran. */
    start: async (command: string, args: string[]) => {
      const { stdout, stderr, exitCode } = await execa(command, args, { cwd: workspace, reject: false });
      return { stdout, stderr, exitCode, ran: existsSync(join(workspace, "ran")) };
    },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

const calls = [
  ["exec", "node", "--env-file=.env", "app.cjs"],
  ["exec", "node", "--env-file", ".env", "app.cjs"],
  ["exec", "--env-file-if-exists=.env", "--", "node", "app.cjs"],
  ["run", "--inspect", "--require=./evil.cjs", "--import", "./evil.cjs"],
];

it.each(calls)("leaves the arguments %s %s %s to brig, and obeys no file that they name", async (...args) => {
  await using hostile = await hostileWorkspace();
  const { stdout, ran } = await hostile.start(hostile.program, args);
  expect([JSON.parse(stdout), ran]).toEqual([args, false]);
});

it("would run a program of the workspace if Node were started without --", async () => {
  await using hostile = await hostileWorkspace();
  const [args = []] = calls;
  const { stdout, ran } = await hostile.start(process.execPath, [hostile.program, ...args]);
  expect([JSON.parse(stdout), ran]).toEqual([args, true]);
});

it("makes npm's shims start Node with --, for sh, cmd and PowerShell", async () => {
  await using hostile = await hostileWorkspace();
  const [npm] = (process.env.PATH ?? "")
    .split(delimiter)
    .map((directory) => join(directory, "npm"))
    .filter(existsSync);
  const cmdShim: (from: string, to: string) => Promise<void> = createRequire(realpathSync(npm!))("cmd-shim");
  const shim = join(hostile.program, "..", "brig");
  await cmdShim(hostile.program, shim);
  for (const ending of [".cmd", ".ps1"])
    expect((await readFile(`${shim}${ending}`, "utf8")).replace(/ +/g, " ")).toMatch(
      / -- "(?:%dp0%\\|\$basedir\/)main\.js" (?:%\*|\$args)/,
    );
  const [args = []] = calls;
  const { stdout, ran } = await hostile.start(shim, args);
  expect([JSON.parse(stdout), ran]).toEqual([args, false]);
});

it("says which Node brig needs to somebody who has an older one", async () => {
  await using hostile = await hostileWorkspace({ leastNode: "99, 1" });
  const { stdout, stderr, exitCode } = await hostile.start(hostile.program, ["--version"]);
  expect([stdout, exitCode]).toEqual(["", 125]);
  expect(stderr).toContain(`this is Node ${process.versions.node}, and brig needs Node 99.1 or newer`);
});

describe("an option that Node obeys even after --", () => {
  const start = async (node: string, args: string[]) => {
    await using hostile = await hostileWorkspace();
    const disguise = join(hostile.program, "..", "disguise.cjs");
    const versions = `{ value: { ...process.versions, node: ${JSON.stringify(node)} } }`;
    await writeFile(disguise, `Object.defineProperty(process, "versions", ${versions});`);
    return await hostile.start(process.execPath, ["--require", disguise, "--", hostile.program, ...args]);
  };

  it.each([
    ["--experimental-config-file=settings.json"],
    ["--experimental-config-file", "settings.json"],
    ["--experimental-default-config-file"],
  ])("is refused by the versions that do: %s", async (...words) => {
    for (const node of ["22.10.0", "26.10.0"]) {
      const { stdout, stderr, exitCode } = await start(node, ["exec", "--", "node", ...words, "app.js"]);
      expect([stdout, exitCode]).toEqual(["", 125]);
      expect(stderr).toMatch(`obeys ${words[0]?.split("=")[0]} itself`);
      expect(stderr).toContain("hint: write the command as one text");
    }
  });

  it("is the command's where Node does not obey it", async () => {
    const others = ["--experimental-config-files", "--inspect", "node --experimental-config-file=x"];
    expect(JSON.parse((await start("26.10.0", others)).stdout)).toEqual(others);
    const words = ["--experimental-config-file=settings.json"];
    expect(JSON.parse((await start("20.19.0", words)).stdout)).toEqual(words);
  });
});

it("is started with -- by every script, image and document", async () => {
  const folders = [".ci", "deploy", "docs", "examples", "scripts"];
  const inFolders = folders.map(async (folder) => {
    const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  });
  const documents = (await readdir(root)).filter((name) => name.endsWith(".md"));
  const files = [...(await Promise.all(inFolders)).flat(), ...documents.map((name) => join(root, name))];
  const texts = await Promise.all(files.map(async (file) => [file, await readFile(file, "utf8")] as const));
  const starts = texts.flatMap(([file, text]) =>
    [...text.matchAll(/(?:\bnode"?|execPath),?\s.{0,40}?dist\/cli\/(?:main|codex)\.js/gs)].map(([start]) => ({
      file,
      start,
    })),
  );
  expect(starts.length).toBeGreaterThan(8);
  expect(starts.filter(({ start }) => !/^\w+"?,?\s+\[?"?--"?[\s,]/.test(start))).toEqual([]);
});
