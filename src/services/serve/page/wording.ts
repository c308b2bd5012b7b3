import { formatBytes } from "../../../lib/bytes.js";
import type { CommandRow, SandboxRow } from "../wire/overview-schemas.js";

/** `12 s`, `5 min`, `2 h 10 min`, `3 d 4 h`: as exact as a glance needs. */
export function spanText(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function tookText(ms: number | null): string {
  if (ms === null) return "–";
  return ms < 1000 ? `${ms} ms` : spanText(ms);
}

export function countText(count: number): string {
  return count.toLocaleString("en");
}

export function cpuText({ cpuPercent }: Pick<SandboxRow, "cpuPercent">): string {
  return cpuPercent === null ? "–" : `${cpuPercent.toFixed(cpuPercent < 10 ? 1 : 0)} % CPU`;
}

export function memoryText({
  memoryBytes,
  memoryLimitBytes,
}: Pick<SandboxRow, "memoryBytes" | "memoryLimitBytes">): string {
  const used = memoryBytes === null ? "–" : formatBytes(memoryBytes);
  return `${used} of ${formatBytes(memoryLimitBytes)}`;
}

export function idleText({ idleForMs }: Pick<SandboxRow, "idleForMs">): string {
  return idleForMs === null ? "in use" : spanText(idleForMs);
}

/** How a command is, or how it has ended. */
export function endText({ state, exitCode, signal, timedOut }: CommandRow): string {
  if (state === "running") return "running";
  if (timedOut) return "out of time";
  if (signal !== null) return signal;
  return exitCode === null ? "given up" : `exit ${exitCode}`;
}

export function endClass({ state, exitCode }: CommandRow): string {
  if (state === "running") return "badge";
  return exitCode === 0 ? "badge good" : "badge bad";
}

/** The beginning of an id: the whole is in the address of its link. */
export function shortId(id: string): string {
  return id.slice(0, 12);
}
