import { chmod, mkdir, symlink, writeFile } from "node:fs/promises";
import { arch } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { findHostProgram } from "../../../../../src/services/wrap/program/host-program.js";
import { temporaryDirectory } from "../../../../support/sandbox.js";

async function place() {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  const { path } = directory;
  return {
    path,
    write: async (name: string, text: string) => {
      await mkdir(dirname(join(path, name)), { recursive: true });
      await writeFile(join(path, name), text);
      await chmod(join(path, name), 0o755);
    },
    find: (name: string, writable: string[] = []) =>
      findHostProgram(name, { searchPath: `relative:${path}/empty:${path}/bin`, writable }),
  };
}

describe("a program of this machine for a sandbox", () => {
  it("a program for Linux is mounted by itself, and needs the loader that it names", async () => {
    const { find, path } = await place();
    await mkdir(join(path, "bin"));
    await symlink(process.execPath, join(path, "bin", "claude"));
    expect(await find("claude")).toMatchObject({
      kind: "found",
      program: {
        hostPath: process.execPath,
        mount: { source: process.execPath, path: "/opt/brig-agent/node" },
        path: "/opt/brig-agent/node",
        needs: expect.stringMatching(/^\/lib.*\/ld-/),
      },
    });
  });

  it("of a script for Node, its package is mounted, with the packages beside it if it has none of its own", async () => {
    const { find, path, write } = await place();
    await write("lib/node_modules/gemini/bundle/cli.js", "#!/usr/bin/env node\n");
    await write("lib/node_modules/gemini/package.json", "{}");
    await mkdir(join(path, "bin"));
    await symlink("../lib/node_modules/gemini/bundle/cli.js", join(path, "bin", "gemini"));
    const modules = join(path, "lib/node_modules");
    expect(await find("gemini")).toMatchObject({
      program: {
        mount: { source: modules, path: "/opt/brig-agent/node_modules" },
        path: "/opt/brig-agent/node_modules/gemini/bundle/cli.js",
        needs: "node",
      },
    });
    await mkdir(join(modules, "gemini/node_modules"));
    expect(await find("gemini")).toMatchObject({
      program: { mount: { source: join(modules, "gemini") }, path: "/opt/brig-agent/gemini/bundle/cli.js" },
    });
  });

  it("of Codex's package, the static program that it starts", async () => {
    const { find, path, write } = await place();
    const target = arch() === "arm64" ? "aarch64-unknown-linux-musl" : "x86_64-unknown-linux-musl";
    const vendor = `node_modules/@openai/codex-linux-${arch()}/vendor/${target}`;
    await write("node_modules/@openai/codex/bin/codex.js", "#!/usr/bin/env node\n");
    await write("node_modules/@openai/codex/package.json", "{}");
    await write(`${vendor}/bin/codex`, "program");
    await mkdir(join(path, "bin"));
    await symlink("../node_modules/@openai/codex/bin/codex.js", join(path, "bin", "codex"));
    expect(await find("codex")).toMatchObject({
      program: {
        mount: { source: join(path, vendor), path: "/opt/brig-agent/codex" },
        path: "/opt/brig-agent/codex/bin/codex",
        needs: null,
      },
    });
  });

  it("says why a program in Python cannot run elsewhere, and finds nothing by a path", async () => {
    const { find, write, path } = await place();
    await write("bin/aider", "#!/home/me/venv/bin/python3\n");
    expect(await find("aider")).toEqual({
      kind: "unusable",
      hostPath: join(path, "bin/aider"),
      reason: expect.stringContaining("is a Python program"),
    });
    expect(await find(join(path, "bin/aider"))).toEqual({ kind: "missing" });
    expect(await find("gemini")).toEqual({ kind: "missing" });
  });

  it("passes over a program that commands of a sandbox could have put there", async () => {
    const { find, write, path } = await place();
    await write("bin/codex", "#!/bin/sh\n");
    expect(await find("codex", [path])).toEqual({ kind: "missing" });
    expect(await find("codex", [join(path, "elsewhere")])).toMatchObject({ kind: "unusable" });
  });
});
