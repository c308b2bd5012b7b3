import { existsSync } from "node:fs";
import { errnoOf } from "../../../lib/errno.js";

/** Facts about this machine that determine how to install or start an engine on it. */
export interface System {
  platform: NodeJS.Platform;
  /** `ID` and `ID_LIKE` of os-release, e.g. ["ubuntu", "debian"]; empty on other systems than Linux. */
  distributions: string[];
  hasDockerd: boolean;
  hasSystemd: boolean;
  isRoot: boolean;
}

export async function readSystem(): Promise<System> {
  // Loaded on demand, because every start of a sandbox loads this file.
  const { readFile } = process.getBuiltinModule("node:fs/promises");
  const release = await readFile("/etc/os-release", "utf8").catch(() => "");
  const programs = ["/usr/bin/dockerd", "/usr/sbin/dockerd", "/usr/local/bin/dockerd"];
  return {
    platform: process.platform,
    distributions: [...field(release, "ID"), ...field(release, "ID_LIKE")],
    hasDockerd: programs.some((path) => existsSync(path)),
    hasSystemd: existsSync("/run/systemd/system"),
    isRoot: process.getuid?.() === 0,
  };
}

/** The command that installs or starts an engine on this machine, or gives this user access to it. */
export function engineCommand(system: System, failures: unknown[]): string {
  const sudo = system.isRoot ? "" : "sudo ";
  if (system.platform === "darwin") return "brew install --cask docker && open -a Docker";
  if (system.platform !== "linux")
    return "install Docker Desktop, then: DOCKER_HOST=unix:///path/to/its/docker.sock";
  if (failures.some((failure) => errnoOf(failure) === "EACCES"))
    return 'sudo usermod -aG docker "$USER" && newgrp docker';
  if (system.hasDockerd) return sudo + startCommand(system);
  return `${sudo}${installCommand(system)} && ${sudo}${startCommand(system)}`;
}

function startCommand({ hasSystemd }: System): string {
  return hasSystemd ? "systemctl start docker" : "sh -c 'setsid dockerd >/var/log/dockerd.log 2>&1 &'";
}

const installCommands: Record<string, string> = {
  debian: "apt-get install -y docker.io",
  ubuntu: "apt-get install -y docker.io",
  fedora: "dnf install -y moby-engine",
  rhel: "dnf install -y docker-ce",
  arch: "pacman -S --noconfirm docker",
  alpine: "apk add docker",
  suse: "zypper install -y docker",
};

function installCommand({ distributions }: System): string {
  const known = distributions.find((id) => Object.hasOwn(installCommands, id));
  return installCommands[known ?? ""] ?? "sh -c 'curl -fsSL https://get.docker.com | sh'";
}

function field(release: string, name: string): string[] {
  const value = new RegExp(`^${name}="?([^"\n]*)"?$`, "m").exec(release)?.[1] ?? "";
  return value.split(" ").filter((word) => word !== "");
}
