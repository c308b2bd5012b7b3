import { describe, expect, it } from "vitest";
import { permissionFor } from "../../../../../src/sandbox/attack/attempt.js";
import { allAttempts } from "../../../../../src/sandbox/attack/attempts.js";
import { loadPolicy } from "../../../../../src/sandbox/policy/load-policy.js";

async function permittedBy(mode: string): Promise<string[]> {
  const { policy } = await loadPolicy(mode);
  return allAttempts.filter((one) => permissionFor(one, policy) !== null).map(({ attempt }) => attempt);
}

/** More here would mean that fewer attempts have to be refused, by `brig doctor --attack` and by the tests of isolation. */
describe("what a mode of brig allows", () => {
  it("is nothing in read-only, and the workspace in workspace-write", async () => {
    expect(await permittedBy("read-only")).toEqual([]);
    expect(await permittedBy("workspace-write")).toEqual(["workspace-change"]);
  });

  it("is the network, the image's files and more for root in danger-full-access", async () => {
    expect((await permittedBy("danger-full-access")).toSorted()).toEqual([
      "datagram-out",
      "files-without-limit",
      "host-address",
      "interfaces",
      "memory-without-size",
      "metadata-service",
      "metadata-service-6",
      "name-lookup",
      "other-root",
      "programs-in-scratch-space",
      "protected-names",
      "public-addresses",
      "public-addresses-6",
      "setuid-program",
      "system-write",
      "workspace-change",
      "writable-places",
    ]);
  });
});

describe("a setting that allows an attempt", () => {
  it("is named as it is written, with what to write instead", async () => {
    const { policy } = await loadPolicy("workspace-write");
    const tmpfs = policy.tmpfs.map((one) => (one.path === "/run" ? { ...one, exec: true } : one));
    const of = (name: string, changed: Partial<typeof policy>) => {
      const attempt = allAttempts.find((one) => one.attempt === name);
      return attempt === undefined ? undefined : permissionFor(attempt, { ...policy, ...changed });
    };
    expect(of("programs-in-scratch-space", { tmpfs })).toEqual({
      setting: "exec = true for the tmpfs /run",
      instead: "exec = false",
    });
    expect(of("device-in-workspace", { capabilities: "engine-default" })?.setting).toBe(
      'capabilities = "engine-default"',
    );
    expect(of("lease", { seccomp: "engine-default" })?.instead).toBe('seccomp = "brig"');
    expect(of("setuid-program", { noNewPrivileges: false })?.setting).toBe("noNewPrivileges = false");
    expect(of("protected-names", { workspace: { access: "ro", protected: [] } })).toBeNull();
    expect(of("engine-socket", { network: { kind: "full" } })).toBeNull();
  });
});
