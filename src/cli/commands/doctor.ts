import { styleText } from "node:util";
import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { isColoured, say, writeJson, writeTable } from "../../command/index.js";
import { type BrigError, isBrigError } from "../../errors.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import type { Check, Engine } from "../../sandbox/index.js";
import {
  connectEngine,
  diagnose,
  diagnoseImages,
  diagnoseOverlay,
  diagnoseRuntimes,
} from "../../sandbox/index.js";
import { type AttackFlags, addAttackOptions, refuseWithoutAttack } from "../attack/attack-flags.js";
import { exitStatusOf } from "../exit-status.js";
import { checkProxies } from "./proxy-check.js";

interface DoctorFlags extends AttackFlags {
  json?: boolean;
  verbose?: boolean;
}

export function defineDoctor(command: Command, context: CliContext): void {
  command
    .option(
      "-v, --verbose",
      "list each known vulnerability; with --attack, also how each attempt went without protection",
    )
    .option("--json", "print the result as JSON");
  addAttackOptions(command).action(async (flags: DoctorFlags) => {
    if (flags.attack === true) {
      const { runAttack } = await import("../attack/run-attack.js");
      await runAttack(flags, context);
      return;
    }
    refuseWithoutAttack(flags);
    const { checks, exitStatus } = await allChecks(context);
    const sentence = verdict(withoutDetails(checks));
    if (flags.json === true) {
      const ready = exitStatus === 0;
      await writeJson(context.stdout, { ready, verdict: sentence, checks });
    } else {
      await say(context.stdout, `${neutraliseLine(sentence)}\n\n`);
      await writeChecks(flags.verbose === true ? checks : withoutDetails(checks), context);
      await say(context.stdout, `\n${neutraliseLine(sentence)}\n`);
    }
    if (exitStatus !== 0) context.setExitStatus(exitStatus);
  });
}

interface Diagnosis {
  checks: Check[];
  exitStatus: number;
}

async function allChecks({ environment }: CliContext): Promise<Diagnosis> {
  const proxies = checkProxies(environment);
  let engine: Engine;
  try {
    engine = await connectEngine({ env: environment });
  } catch (error) {
    if (!isBrigError(error)) throw error;
    return { checks: [noEngine(error), proxies], exitStatus: exitStatusOf(error) };
  }
  const checks = [
    ...(await diagnose(engine)),
    ...(await diagnoseImages(engine)),
    ...(await diagnoseRuntimes(engine, { environment })),
    ...(await diagnoseOverlay(engine, { environment })),
    proxies,
  ];
  return { checks, exitStatus: checks.some(({ status }) => status === "fail") ? 1 : 0 };
}

/** That there is none is what a diagnosis has to say first. */
function noEngine({ message, hint }: BrigError): Check {
  return {
    ...{ id: "engine", title: "container engine", status: "fail" },
    ...{ found: message.replaceAll("\n", " "), advice: hint ?? "install Docker or Podman, or start it" },
  };
}

const colours = { ok: "green", warn: "yellow", fail: "red" } as const;

async function writeChecks(checks: Check[], { stdout, environment }: CliContext): Promise<void> {
  const usesColour = isColoured(stdout, environment);
  const rows = checks.toSorted(byUrgency).flatMap(({ status, title, found, advice }) => {
    const shown = usesColour ? styleText(colours[status], status, { validateStream: false }) : status;
    return [[shown, title, found], ...(advice === null ? [] : [["", "", `→ ${advice}`]])];
  });
  await writeTable(stdout, rows);
}

const urgencies: readonly Check["status"][] = ["fail", "warn", "ok"];

function byUrgency(one: Check, other: Check): number {
  return urgencies.indexOf(one.status) - urgencies.indexOf(other.status);
}

export function withoutDetails(checks: readonly Check[]): Check[] {
  const isKnown = ({ id }: Check) => id.startsWith("CVE-");
  const known = checks.filter(isKnown);
  const open = known.filter(({ status }) => status !== "ok").map(({ id }) => id);
  if (known.length === 0) return [...checks];
  const about = { id: "vulnerabilities", title: "known vulnerabilities" };
  const line: Check =
    open.length === 0
      ? { ...about, status: "ok", found: `none of ${known.length} affects this engine`, advice: null }
      : {
          ...about,
          status: known.some(({ status }) => status === "fail") ? "fail" : "warn",
          found: `${open.length} of ${known.length} may affect this engine: ${open.join(", ")}`,
          advice: "brig doctor -v describes each one and says what to do",
        };
  return [...checks.filter((one) => !isKnown(one)), line];
}

/** "ready", or what keeps brig from working, in one line. */
export function verdict(checks: readonly Check[]): string {
  const titles = (status: Check["status"]) =>
    checks.filter((one) => one.status === status).map(({ title }) => title);
  const [failed, open] = [titles("fail"), titles("warn")];
  const consider = open.length === 0 ? "" : `; to consider: ${open.join(", ")}`;
  if (failed.length === 0) return `ready: this machine can run brig${consider}`;
  const count = failed.length === 1 ? "1 thing keeps" : `${failed.length} things keep`;
  return `${count} brig from working: ${failed.join(", ")}${consider}`;
}
