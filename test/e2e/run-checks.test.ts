import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { brigHere } from "../support/cli-here.js";
import { messageDone, respond, startResponsesServer } from "../support/responses-server.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";

let folder: TemporaryDirectory;
let workspace = "";

beforeAll(async () => {
  folder = await temporaryDirectory();
  workspace = join(folder.path, "project");
  await mkdir(workspace);
  await writeFile(join(folder.path, "file"), "");
  await writeFile(join(folder.path, "policy.toml"), 'rootfs = "rw"\n');
  await symlink("/proc/nonexistent", join(folder.path, "dangling"));
});

afterAll(() => folder[Symbol.asyncDispose]());

/** What went wrong, and how many requests it cost. */
async function spoiled(args: string[], env: Record<string, string> = {}) {
  await using server = await startResponsesServer([respond([messageDone("hi")])]);
  const home = join(folder.path, "home");
  const provider = ["-c", `openai_base_url="${server.url}"`];
  const given = args.map((arg) => arg.replace("FOLDER", folder.path));
  const done = await brigHere(["run", ...provider, ...given, "go"], {
    cwd: workspace,
    env: { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "key", OPENAI_BASE_URL: "", ...env },
  });
  return { ...done, requests: server.requests.length };
}

describe("what keeps a sandbox from starting is said before a model is paid", () => {
  it.each<[string, string[], number, string]>([
    ["a workspace that is not there", ["-C", "/proc/nonexistent"], 2, '"/proc/nonexistent" does not exist'],
    ["a workspace that is a file", ["-C", "FOLDER/file"], 2, "is not a directory"],
    ["a workspace that no sandbox may have", ["-C", "/etc"], 2, "may not be the workspace"],
    ["a further directory that is not there", ["--add-dir", "FOLDER/dangling"], 2, "does not exist"],
    [
      "a further directory where the mode takes none",
      ["-s", "read-only", "--add-dir", "FOLDER"],
      2,
      "takes no further writable directories",
    ],
    ["a mode that is none", ["-s", "hi"], 2, '"hi" is not a sandbox mode'],
    ["a network that the mode does not give", ["-s", "read-only", "--network", "full"], 2, "network"],
    ["a list of hosts that cannot be read", ["--network", "allowlist:*"], 2, "write @public"],
    ["a policy that is not there", ["--policy", "FOLDER/none.toml"], 2, "none.toml does not exist"],
    ["a policy that is not whole", ["--policy", "FOLDER/policy.toml"], 2, "not a valid policy"],
    ["a runtime that the engine has not got", ["--runtime", "runq"], 2, 'no runtime "runq"'],
    ["an image that the engine has not got", ["--container-image", "brig-test/none:1"], 125, "docker pull"],
    ["an image that cannot be", ["--container-image", "Node:22"], 2, "no capital letters"],
    ["a schema that is not there", ["--output-schema", "FOLDER/none"], 2, "no such file"],
    ["a picture that is not there", ["-i", "FOLDER/none"], 2, "no such file"],
  ])("%s", async (_, args, exitCode, message) => {
    const done = await spoiled(args);
    expect(done.stderr).toContain(message);
    expect(done.exitCode).toBe(exitCode);
    expect(done.requests).toBe(0);
  });

  it("a mode that is none, where there is no prompt either", async () => {
    const done = await brigHere(["run", "-s", "hi"], { cwd: workspace, env: { BRIG_HOME: folder.path } });
    expect(done.stderr).toContain('"hi" is not a sandbox mode');
    expect(done.exitCode).toBe(2);
  });

  it("an engine that is not there", async () => {
    const done = await spoiled([], { DOCKER_HOST: "unix:///proc/nonexistent.sock" });
    expect(done.stderr).toContain("unix:///proc/nonexistent.sock");
    expect(done.exitCode).toBe(125);
    expect(done.requests).toBe(0);
  });
});
