import { styleText } from "node:util";
import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { isColoured, say, writeJson, writeTable } from "../../command/index.js";
import type { Check } from "../../sandbox/index.js";
import {
  connectEngine,
  diagnose,
  diagnoseImages,
  diagnoseOverlay,
  diagnoseRuntimes,
} from "../../sandbox/index.js";
import { type AttackFlags, addAttackOptions, refuseWithoutAttack } from "../attack/attack-flags.js";
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
    const engine = await connectEngine({ env: context.environment });
    const checks = [
      ...(await diagnose(engine)),
      ...(await diagnoseImages(engine)),
      ...(await diagnoseRuntimes(engine, { environment: context.environment })),
      ...(await diagnoseOverlay(engine, { environment: context.environment })),
      checkProxies(context.environment),
    ];
    if (flags.json === true) await writeJson(context.stdout, checks);
    else await writeChecks(flags.verbose === true ? checks : withoutDetails(checks), context);
    if (checks.some(({ status }) => status === "fail")) context.setExitStatus(1);
  });
}

const colours = { ok: "green", warn: "yellow", fail: "red" } as const;

async function writeChecks(checks: Check[], { stdout, environment }: CliContext): Promise<void> {
  const usesColour = isColoured(stdout, environment);
  const rows = checks.toSorted(byUrgency).flatMap(({ status, title, found, advice }) => {
    const shown = usesColour ? styleText(colours[status], status, { validateStream: false }) : status;
    return [[shown, title, found], ...(advice === null ? [] : [["", "", `→ ${advice}`]])];
  });
  await writeTable(stdout, rows);
  await say(stdout, verdict(checks));
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

function verdict(checks: Check[]): string {
  const count = (status: Check["status"]) => checks.filter((one) => one.status === status).length;
  const outcome = count("fail") > 0 ? "this machine cannot run brig yet" : "this machine can run brig";
  return `\n${outcome}: ${count("ok")} ok, ${count("warn")} to consider, ${count("fail")} failed\n`;
}
