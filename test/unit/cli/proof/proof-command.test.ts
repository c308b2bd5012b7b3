import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { expect, it, onTestFinished } from "vitest";
import { defineProof } from "../../../../src/cli/proof/proof-command.js";
import { testContext } from "../../../support/cli-context.js";

const summary = {
  ...{
    kernel: "shared",
    uid: "1000",
    gid: "1000",
    groups: "1000",
    noNewPrivileges: "true",
    seccompMode: "2",
  },
  ...{ capabilities: "CapInh 0, CapPrm 0, CapEff 0, CapBnd 0, CapAmb 0", interfaces: "lo", mounts: "64" },
  ...{ memoryBytes: "4294967296", swapBytes: "0", pids: "1024", cpus: "2" },
  probes: "bpf 1, clone3 38, statx 0, ptrace 1",
};
const proof = {
  ...{ policy: "workspace-write", differences: [], notProvable: [], summary, runtime: "runc" },
  engine: { product: "docker", version: "26.1", kernel: "6.1", cgroupVersion: "2" },
  imageId: `sha256:${"ab".repeat(32)}`,
};
const payload = { id: "sandbox-1", image: "brig/base", start_ms: 12, proof };

async function print(payloads: readonly unknown[], ...flags: string[]) {
  const folder = await mkdtemp(join(tmpdir(), "brig-test-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, "session.jsonl");
  const lines = payloads.map((one) => `${JSON.stringify({ type: "brig.sandbox", payload: one })}\n`);
  await writeFile(file, lines.join(""));
  const context = testContext();
  const command = new Command("proof").exitOverride();
  defineProof(command, context, async (session = "") => session);
  await command.parseAsync([file, ...flags], { from: "user" });
  return context.written();
}

it("says in words what the kernel confirmed", async () => {
  const { stdout } = await print([payload]);
  expect(stdout.replace(/ {2,}/g, " ").split("\n")).toEqual([
    "sandbox sandbox-1",
    "policy workspace-write, confirmed by the kernel before the first command",
    "engine docker 26.1 with runc, kernel 6.1",
    "image brig/base (sha256:abababababab…)",
    "user 1000:1000, groups 1000",
    "capabilities none",
    "new privileges cannot be gained",
    "system calls filtered",
    "interfaces loopback alone",
    "mounts 64, compared one by one",
    "memory 4.0 GiB at most, no swap",
    "processes 1024 at most, on 2 processors",
    "tried: EPERM bpf, ptrace",
    "tried: ENOSYS clone3",
    "",
  ]);
});

it("confirms nothing that the kernel did not say", async () => {
  const weak = {
    capabilities: "CapInh 0, CapEff 400, CapBnd 0",
    noNewPrivileges: "unknown",
    seccompMode: "0",
  };
  const one = { assertion: "A3-capabilities", promised: "none", kernel: "400" };
  const withReason = { ...one, assertion: "F2-swap", reason: "swap is not counted" };
  const { stdout } = await print([
    {
      ...payload,
      escalated: true,
      proof: { ...proof, summary: weak, differences: [one], notProvable: [withReason] },
    },
  ]);
  expect(stdout).toContain("sandbox-1, for commands that were allowed full access");
  expect(stdout).toContain("NOT confirmed by the kernel");
  expect(stdout).toMatch(/^capabilities +CapInh 0, CapEff 400, CapBnd 0$/m);
  expect(stdout).toMatch(/^new privileges +can be gained$/m);
  expect(stdout).toMatch(/^system calls +not filtered$/m);
  expect(stdout).toMatch(/^interfaces +unknown$/m);
  expect(stdout).toMatch(/^user +unknown:unknown, groups unknown$/m);
  expect(stdout).toMatch(/^memory +unknown at most, unknown of swap$/m);
  expect(stdout).toMatch(/^difference +A3-capabilities: promised none, the kernel says 400$/m);
  expect(stdout).toMatch(/^not provable +F2-swap: .*: swap is not counted$/m);
});

it("shows nothing of a file that somebody else wrote without making it visible, and leaves out what is no proof", async () => {
  const hostile = { ...proof, policy: "\u001b[2Jmine\nforged  row", imageId: "x".repeat(1000) };
  const { stdout } = await print([
    { ...payload, proof: hostile },
    ...[null, [], {}, { ...payload, proof: null }, { ...payload, proof: { ...proof, engine: "docker" } }],
    { ...payload, proof: { ...proof, policy: "p".repeat(100_000) } },
  ]);
  expect(stdout).not.toContain("\u001b");
  expect(stdout).toContain("␛[2Jmine␊forged");
  expect(stdout).not.toMatch(/^forged/m);
  expect(stdout.match(/^sandbox /gm)).toHaveLength(1);
  expect(stdout.length).toBeLessThan(3000);
});

it("prints an object for each sandbox with --json, and says so where there is none", async () => {
  const { stdout } = await print([payload, { ...payload, id: "sandbox-2" }], "--json");
  const printed = stdout.trimEnd().split("\n");
  expect(printed.map((line) => JSON.parse(line))).toEqual([
    { sandbox: "sandbox-1", image: "brig/base", isEscalated: false, startMs: 12, proof },
    expect.objectContaining({ sandbox: "sandbox-2" }),
  ]);
  expect((await print([])).stderr).toBe("brig: no sandbox was opened in this session\n");
});

it("names the rules, secrets and canaries that were in force", async () => {
  const egress = {
    ruledHosts: ["a.example", "b.example:8443"],
    secrets: [{ name: "TOKEN", hosts: ["a.example"] }],
    awsKeys: [{ name: "AWS", hosts: ["*.amazonaws.com"] }],
    canaries: ["trap\u001b[31m"],
  };
  const { stdout } = await print([{ ...payload, proof: { ...proof, egress } }]);
  const lines = stdout.replace(/ {2,}/g, " ").split("\n");
  expect(lines).toEqual(
    expect.arrayContaining([
      "requests ruled by brig to a.example, b.example:8443",
      "secret outside TOKEN, for a.example",
      "keys outside AWS, which sign for *.amazonaws.com",
    ]),
  );
  expect(lines.find((line) => line.startsWith("canaries trap"))).not.toContain("\u001b");
});
