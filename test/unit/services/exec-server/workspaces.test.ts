import { beforeEach, expect, it } from "vitest";
import { type SandboxContext, sandboxContext } from "../../../../src/services/exec-server/permissions.js";
import { type Sandboxes, Workspaces } from "../../../../src/services/exec-server/workspaces.js";
import { sandboxOf } from "../../../support/exec-client.js";

let asked: string[];
let workspaces: Workspaces;

beforeEach(() => {
  asked = [];
  const sandboxes = {
    get: async ({ base, workspace }: { base: string; workspace: string }) =>
      void asked.push(`${base} ${workspace}`),
    toLook: async (workspace: string) => void asked.push(`look ${workspace}`),
    isPlaceholder: () => false,
  };
  workspaces = new Workspaces(sandboxes as unknown as Sandboxes);
});

function profile(workspace: string): SandboxContext {
  return sandboxContext.parse(sandboxOf("workspace-write", workspace));
}

it("the first file that is asked for shows where the client works, until it says so", async () => {
  for (const path of ["/home/me/project/.git", "/home/me/.git", "/.git"]) await workspaces.toLook(path);
  workspaces.name("/home/me/project");
  await workspaces.toLook("/home/me/project/AGENTS.md");
  await workspaces.toLook("/etc/passwd");
  expect(asked).toEqual(Array(5).fill("look /home/me/project"));
});

it("what was presumed counts no more when the client has said where it works", async () => {
  await workspaces.toLook("/home/me/.git");
  workspaces.name("/home/me/project");
  await workspaces.toLook("/home/me/.git");
  await workspaces.sandboxFor(null, "/home/me/project/src");
  expect(asked).toEqual(["look /home/me", "look /home/me/project", "danger-full-access /home/me/project"]);
});

it("each workspace has its own sandbox, the innermost one counts", async () => {
  for (const directory of ["/a", "/a/b"]) await workspaces.sandboxFor(profile(directory), directory);
  await workspaces.toLook("/a/x");
  await workspaces.toLook("/a/b/x");
  expect(asked).toEqual(["workspace-write /a", "workspace-write /a/b", "look /a", "look /a/b"]);
});

it("no path of a command makes a workspace", async () => {
  await expect(workspaces.sandboxFor(null, "/anywhere")).rejects.toThrow(/lies outside of the workspace/);
  workspaces.name("/a");
  await workspaces.sandboxFor(null, "/etc/x");
  workspaces.name("/b");
  await expect(workspaces.sandboxFor(null, "/etc/x")).rejects.toThrow(/lies outside of the workspace/);
  expect(asked).toEqual(["danger-full-access /a"]);
});

it("there are so many at most", () => {
  for (let count = 0; count < 64; count++) workspaces.name(`/w${count}`);
  workspaces.name("/w0");
  expect(() => workspaces.name("/one-more")).toThrow(/at most 64/);
});

it("neither does the directory that a command's profile names, where the profile has no roots", async () => {
  const chosen = sandboxContext.parse({
    ...sandboxOf("workspace-write", "/elsewhere"),
    workspaceRoots: null,
    cwd: "file:///elsewhere",
  });
  await expect(workspaces.sandboxFor(chosen, "/elsewhere")).rejects.toThrow(/lies outside of the workspace/);
  workspaces.name("/a");
  await workspaces.sandboxFor(chosen, "/elsewhere");
  expect(asked).toEqual(["workspace-write /a"]);
});
