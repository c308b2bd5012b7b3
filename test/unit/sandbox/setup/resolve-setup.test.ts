import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { loadPolicy } from "../../../../src/sandbox/policy/load-policy.js";
import { loadChosenPolicy, type PolicyChoice } from "../../../../src/sandbox/settings/chosen-policy.js";
import { resolveSetup, type SetupChoice } from "../../../../src/sandbox/setup/resolve-setup.js";

async function resolved(choice: PolicyChoice, setup: Partial<SetupChoice> = {}) {
  const chosen = await loadChosenPolicy(choice);
  return await resolveSetup({ command: ["npm", "ci"], ...setup }, { chosen, choice });
}

describe("a set-up", () => {
  it("has the network of its sandbox, and ten minutes, unless it says otherwise", async () => {
    const choice = { mode: "workspace-write", network: "allowlist:a.test" } as const;
    const network = { kind: "allowlist", hosts: ["a.test"] };
    expect(await resolved(choice)).toEqual({ argv: ["npm", "ci"], network, timeoutMs: 600_000 });
    expect(await resolved(choice, { timeoutMs: 1 })).toMatchObject({ network, timeoutMs: 1 });
  });

  it.for<[string, PolicyChoice, string, string]>([
    [
      "an allow-list where its sandbox has none",
      { mode: "workspace-write" },
      "allowlist:a.test",
      "allowlist",
    ],
    ["none where its sandbox has an allow-list", { network: "allowlist:a.test" }, "none", "none"],
    ["what its sandbox has", { network: "full" }, "full", "full"],
    ["none in a mode that opens no network", { mode: "read-only" }, "none", "none"],
  ])("may have %s", async ([, choice, network, kind]) => {
    expect(await resolved(choice, { network })).toMatchObject({ network: { kind } });
  });

  it("may have all that its policy has, though its sandbox has less of it, and no more", async () => {
    const directory = await mkdtemp(join(tmpdir(), "brig-set-up-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    const policyFile = join(directory, "own.toml");
    const { file } = await loadPolicy("read-only");
    const text = await readFile(file, "utf8");
    await writeFile(policyFile, text.replace('network = "none"', 'network = "allowlist:a.test"'));
    const choice = { policyFile, network: "none" };
    expect(await resolved(choice, { network: "allowlist:a.test" })).toMatchObject({
      network: { kind: "allowlist", hosts: ["a.test"] },
    });
    await expect(resolved(choice, { network: "allowlist:b.test" })).rejects.toThrow(/does not let/);
  });

  it.for<[string, PolicyChoice, Partial<SetupChoice>, RegExp]>([
    ["no command", {}, { command: [] }, /is empty/],
    ["no program", {}, { command: ["", "a"] }, /is empty/],
    ["an interface that its sandbox lacks", {}, { network: "full" }, /own is not/],
    ["no interface where its sandbox has one", { network: "full" }, { network: "none" }, /own is full/],
    [
      "an allow-list beside an interface",
      { network: "full" },
      { network: "allowlist:a.test" },
      /own is full/,
    ],
    ["a network that nobody knows", {}, { network: "some" }, /"some" of the set-up is not valid/],
    ["an allow-list that is learned", {}, { network: "learn" }, /cannot be learned/],
    ["more than its mode opens", { mode: "read-only" }, { network: "allowlist:a.test" }, /does not let/],
  ])("is refused with %s", async ([, choice, setup, message]) => {
    await expect(resolved(choice, setup)).rejects.toMatchObject({
      code: "usage.invalid",
      message: expect.stringMatching(message),
    });
  });
});
