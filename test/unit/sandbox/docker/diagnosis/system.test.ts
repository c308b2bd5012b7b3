import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  engineCommand,
  readSystem,
  type System,
} from "../../../../../src/sandbox/docker/diagnosis/system.js";

const debian: System = {
  platform: "linux",
  distributions: ["debian"],
  hasDockerd: false,
  hasSystemd: true,
  isRoot: false,
};
const missing = [Object.assign(new Error("no"), { code: "ENOENT" })];
const denied = [...missing, Object.assign(new Error("no"), { code: "EACCES" })];

describe("engineCommand", () => {
  it("installs and starts Docker where there is none", () => {
    expect(engineCommand(debian, missing)).toBe(
      "sudo apt-get install -y docker.io && sudo systemctl start docker",
    );
  });

  it("needs no sudo for root", () => {
    expect(engineCommand({ ...debian, isRoot: true }, missing)).not.toContain("sudo");
  });

  it("only starts what is installed, with or without systemd", () => {
    expect(engineCommand({ ...debian, hasDockerd: true }, missing)).toBe("sudo systemctl start docker");
    expect(engineCommand({ ...debian, hasDockerd: true, hasSystemd: false }, missing)).toMatch(
      /setsid dockerd/,
    );
  });

  it("joins the docker group when the socket may not be opened", () => {
    expect(engineCommand({ ...debian, hasDockerd: true }, denied)).toMatch(/usermod -aG docker/);
  });

  it("knows a derivative by what it is like", () => {
    const mint = { ...debian, distributions: ["linuxmint", "ubuntu", "debian"] };
    expect(engineCommand(mint, missing)).toContain("apt-get");
    expect(engineCommand({ ...debian, distributions: ["fedora"] }, missing)).toContain("dnf");
    expect(engineCommand({ ...debian, distributions: ["void"] }, missing)).toContain("get.docker.com");
  });

  it.each([
    ["debian", "apt-get install -y docker.io"],
    ["ubuntu", "apt-get install -y docker.io"],
    ["fedora", "dnf install -y moby-engine"],
    ["rhel", "dnf install -y docker-ce"],
    ["arch", "pacman -S --noconfirm docker"],
    ["alpine", "apk add docker"],
    ["suse", "zypper install -y docker"],
    ["toString", "sh -c 'curl -fsSL https://get.docker.com | sh'"],
  ])("installs with the package manager of %s", (distribution, command) => {
    const root = { ...debian, isRoot: true };
    expect(engineCommand({ ...root, distributions: [distribution] }, missing)).toBe(
      `${command} && systemctl start docker`,
    );
  });

  it("asks for Docker Desktop on Windows", () => {
    expect(engineCommand({ ...debian, platform: "win32" }, denied)).toMatch(/^install Docker Desktop/);
  });

  it("speaks of Docker Desktop on a Mac", () => {
    expect(engineCommand({ ...debian, platform: "darwin", distributions: [] }, missing)).toContain("brew");
  });
});

describe("readSystem", () => {
  it("reads this machine", async () => {
    const system = await readSystem();
    expect(system.platform).toBe(process.platform);
    expect(system.isRoot).toBe(process.getuid?.() === 0);
    const places = ["/usr/bin/dockerd", "/usr/sbin/dockerd", "/usr/local/bin/dockerd"];
    expect(system.hasDockerd).toBe(places.some((path) => existsSync(path)));
    expect(system.hasSystemd).toBe(existsSync("/run/systemd/system"));
    if (process.platform === "linux") expect(system.distributions.length).toBeGreaterThan(0);
  });
});
