import { describe, expect, it } from "vitest";
import type { OverlayLayers, SandboxPlan } from "../../../../src/sandbox/plan/plan.js";
import { compareOverlay } from "../../../../src/sandbox/proof/compare-mounts.js";
import { parseReport } from "../../../../src/sandbox/proof/kernel-report.js";

const overlay: OverlayLayers = {
  id: "id",
  path: "/a repo",
  lower: "/a repo",
  identity: { dev: "1", ino: "2" },
  upper: "/v/upper/_data",
  work: "/v/work/_data",
  witnesses: [
    { path: "/a repo/one", ino: "7" },
    { path: "/a repo/two", ino: "8" },
  ],
};
const layers = "lowerdir=/a\\040repo,upperdir=/v/upper/_data,workdir=/v/work/_data";

interface Kernel {
  fileSystem?: string;
  options?: string;
  /** Inode numbers, by name. */
  inodes?: Record<string, string>;
}

function differences(
  { fileSystem = "overlay", options = `rw,${layers}`, inodes = { one: "7", two: "8" } }: Kernel,
  changed: Partial<OverlayLayers> = {},
) {
  const line = `9 1 0:41 / /a\\040repo rw - ${fileSystem} overlay ${options}\n`;
  const stats = Object.entries(inodes).map(([name, ino]): [string, Buffer] => [
    `stat//a repo/${name}`,
    Buffer.from(`41 ${ino} 100644 0 0 1`),
  ]);
  const report = parseReport(new Map([["/proc/self/mountinfo", Buffer.from(line)], ...stats]));
  const plan = { overlay: { ...overlay, ...changed } } as unknown as SandboxPlan;
  return compareOverlay(plan, report).map(({ assertion }) => assertion);
}

describe("the proof of a copy-on-write workspace", () => {
  it("is satisfied by exactly the planned layers", () => {
    expect(differences({})).toEqual([]);
  });

  it.each<[string, Kernel]>([
    ["another file system", { fileSystem: "ext4" }],
    ["another lower layer", { options: `rw,${layers.replace("repo", "other")}` }],
    ["a second lower layer", { options: `rw,${layers.replace("repo", "repo:/etc")}` }],
    ["one more option of a lower layer", { options: `rw,${layers},lowerdir+=/etc` }],
    ["another upper layer", { options: `rw,${layers.replace("/v/upper", "/v/other")}` }],
    ["another work directory", { options: `rw,${layers.replace("/v/work", "/v/other")}` }],
    ["directories that lose their files with the host's", { options: `rw,${layers},redirect_dir=on` }],
    ["a file system that the kernel made read-only", { options: `ro,${layers}` }],
  ])("finds %s", (_, kernel) => {
    expect(differences(kernel)).toEqual(["B19-overlay"]);
  });

  it("finds that the path led to other files when it was mounted", () => {
    expect(differences({ inodes: { one: "70", two: "80" } })).toEqual(["B10-identity"]);
    expect(differences({ inodes: {} })).toEqual(["B10-identity"]);
  });

  it("allows that a program of the host replaced one of the entries meanwhile", () => {
    expect(differences({ inodes: { one: "7" } })).toEqual([]);
    expect(differences({ inodes: { one: "70", two: "8" } })).toEqual([]);
  });

  it("knows an inode of another file system, whose number the kernel extends", () => {
    expect(differences({ inodes: { one: String((1n << 62n) + 7n) } })).toEqual([]);
  });

  it("has nothing to recognise an empty workspace by", () => {
    expect(differences({ inodes: {} }, { witnesses: [] })).toEqual([]);
  });
});
