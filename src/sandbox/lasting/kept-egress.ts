import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readTextNow } from "../../lib/files/read-text-now.js";
import { parseJson } from "../../lib/json/parse-json.js";
import { seal, unseal } from "../../lib/seal.js";
import type { InspectionOptions } from "../egress/inspection.js";
import { inspectionOf, type KeptInspection, keptInspection } from "../network/egress/read-egress.js";
import type { EarlierEgress } from "../network/egress/sandbox-egress.js";
import type { SandboxSettings } from "../settings/sandbox-settings.js";

const FILE = "egress.json";
const MAX_BYTES = 16 * 1024 * 1024;

/** Whether this may be written where another process finds it: secrets only with a key that is not in the same place. */
export function canKeepEgress(
  { secrets, awsSecrets = [], sentHeaders }: InspectionOptions,
  key: Buffer | undefined,
): boolean {
  return key !== undefined || (secrets.length + awsSecrets.length === 0 && sentHeaders === undefined);
}

interface EnforcedEgress {
  inspection: InspectionOptions;
  earlier: EarlierEgress;
}

/** The same as plain data. */
interface KeptEgress {
  inspection: KeptInspection;
  earlier: EarlierEgress;
}

/**
 * Writes down what is enforced outside of a sandbox with an allow-list, so that another process can go on with the same placeholders, certificates and
 * rules. Errors: those of the file system.
 */
export function writeKeptEgress(
  directory: string,
  { inspection, earlier }: EnforcedEgress,
  sealKey: Buffer | undefined,
): void {
  const kept: KeptEgress = { inspection: keptInspection(inspection), earlier };
  const isSealed = sealKey !== undefined && !canKeepEgress(inspection, undefined);
  const written = isSealed ? { sealed: seal(JSON.stringify(kept), sealKey) } : { kept };
  const temporary = join(directory, `.${FILE}.tmp`);
  try {
    writeFileSync(temporary, `${JSON.stringify(written)}\n`, { mode: 0o600 });
    renameSync(temporary, join(directory, FILE));
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** Null if there is nothing that can be read with this key. */
export function readKeptEgress(
  directory: string,
  { sealKey, environment }: { sealKey: Buffer | undefined } & Pick<SandboxSettings, "environment">,
): EnforcedEgress | null {
  const text = readTextNow(join(directory, FILE), MAX_BYTES);
  const written = text === null ? undefined : (parseJson(text) as { kept?: KeptEgress; sealed?: string });
  const unsealed =
    written?.sealed === undefined || sealKey === undefined ? null : unseal(written.sealed, sealKey);
  const kept = written?.kept ?? (unsealed === null ? undefined : (parseJson(unsealed) as KeptEgress));
  if (kept === undefined) return null;
  return { inspection: inspectionOf(kept.inspection, environment), earlier: kept.earlier };
}
