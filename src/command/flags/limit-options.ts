import { type Command, InvalidArgumentError } from "commander";
import type { SandboxLimits } from "../../sandbox/index.js";
import { LIMIT_BOUNDS } from "../../sandbox/index.js";

/** The flags of every command that opens a sandbox. */
export interface LimitFlags {
  /** In MiB. */
  memory?: number;
  cpus?: number;
  pids?: number;
}

/** @param usual The default that the help names. */
export function addLimitOptions(command: Command, usual = "the policy's"): Command {
  return command
    .option(
      "--memory <size>",
      `memory of all processes together, files in memory included: 512m, 2g (default: ${usual})`,
      memoryArgument,
    )
    .option("--cpus <number>", `CPU cores: 2, 0.5 (default: ${usual})`, cpusArgument)
    .option("--pids <number>", `processes and threads at the same time (default: ${usual})`, pidsArgument);
}

/** Undefined if no flag sets a limit. */
export function flaggedLimits({ memory: memoryMb, cpus, pids }: LimitFlags): SandboxLimits | undefined {
  const isGiven = [memoryMb, cpus, pids].some((limit) => limit !== undefined);
  return isGiven ? { memoryMb, cpus, pids } : undefined;
}

const KIB = 1024;
const UNIT_BYTES: Readonly<Record<string, number>> = {
  "": 1,
  b: 1,
  k: KIB,
  m: KIB ** 2,
  g: KIB ** 3,
  t: KIB ** 4,
};

/** Parses a size as Docker writes it, with powers of 1024. Rounds down to whole MiB. */
function memoryArgument(text: string): number {
  const [, number = "", unit = ""] = /^([0-9]{1,12}(?:\.[0-9]{1,6})?) ?([bkmgt]?)(?:i?b)?$/i.exec(text) ?? [];
  if (number === "") throw new InvalidArgumentError("It must be a size such as 512m or 2g.");
  const memoryMb = Math.floor((Number(number) * (UNIT_BYTES[unit.toLowerCase()] ?? 1)) / KIB ** 2);
  const { min } = LIMIT_BOUNDS.memoryMb;
  if (memoryMb >= min) return memoryMb;
  const unitless = unit === "" ? "; a number without a unit is in bytes" : "";
  throw new InvalidArgumentError(`It must be at least ${min}m${unitless}.`);
}

function cpusArgument(text: string): number {
  const { min } = LIMIT_BOUNDS.cpus;
  const cpus = /^(?:[0-9]{1,6}(?:\.[0-9]*)?|\.[0-9]+)$/.test(text) ? Number(text) : Number.NaN;
  if (cpus >= min) return cpus;
  throw new InvalidArgumentError(`It must be a number of cores such as 2 or 0.5, at least ${min}.`);
}

function pidsArgument(text: string): number {
  const { min, max } = LIMIT_BOUNDS.pids;
  const pids = Number(text);
  if (/^[0-9]{1,10}$/.test(text) && pids >= min && pids <= max) return pids;
  throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
}
