import { buffer } from "node:stream/consumers";
import type { Engine, ReceivedEntry } from "../../../sandbox/index.js";
import { readTar } from "../../../sandbox/index.js";
import { parseRewards, type RewardTexts } from "./parse-rewards.js";
import type { Verification } from "./verification.js";

export const VERIFIER_LOGS = "/logs/verifier";

const REWARD_MAX_BYTES = 64 * 1024;
/** Tar archives have times in whole seconds, and the kernel's clock for files is some milliseconds behind. */
const CLOCK_TOLERANCE_MS = 2000;
/** `reward.json` that goes on and on hides what the number is. */
const MAX_REWARDS = 100;

/** Properties of reward files that the verifier itself wrote. Others are not trusted. */
export interface RewardOrigin {
  uid: number;
  /** Times by the clock of the container. */
  from: Date;
  to: Date;
}

type FoundFile = { kind: "missing" } | { kind: "refused"; reason: string } | { kind: "read"; text: string };

/**
 * Reads the reward files of a stopped container through the engine. A file that is a link or no regular file, that
 * another user wrote, or that was not written while the verifier ran, is a sign of tampering.
 */
export async function readRewardFiles(
  { engine, containerId }: { engine: Pick<Engine, "readArchive">; containerId: string },
  origin: RewardOrigin,
): Promise<Pick<Verification, "rewards" | "verifier" | "message">> {
  const json = await readRewardFile(engine, containerId, { name: "reward.json", origin });
  const text = await readRewardFile(engine, containerId, { name: "reward.txt", origin });
  for (const found of [json, text])
    if (found.kind === "refused") return { rewards: null, verifier: "tampered", message: found.reason };
  return parsed({
    json: json.kind === "read" ? json.text : null,
    text: text.kind === "read" ? text.text : null,
  });
}

function parsed(texts: RewardTexts): Pick<Verification, "rewards" | "verifier" | "message"> {
  const found = parseRewards(texts);
  if (found.kind === "none")
    return {
      rewards: null,
      verifier: "no-reward",
      message: "the tests wrote neither reward.json nor reward.txt",
    };
  if (found.kind === "invalid") return { rewards: null, verifier: "invalid-reward", message: found.reason };
  if (Object.keys(found.rewards).length > MAX_REWARDS)
    return {
      rewards: null,
      verifier: "invalid-reward",
      message: `reward.json has more than ${MAX_REWARDS} rewards`,
    };
  return { rewards: found.rewards, verifier: "scored", message: null };
}

async function readRewardFile(
  engine: Pick<Engine, "readArchive">,
  containerId: string,
  { name, origin }: { name: string; origin: RewardOrigin },
): Promise<FoundFile> {
  const archive = await engine.readArchive(containerId, `${VERIFIER_LOGS}/${name}`);
  if (archive === null) return { kind: "missing" };
  for await (const entry of readTar(archive)) {
    const reason = whyRefused(entry, origin);
    if (reason !== null) return { kind: "refused", reason: `${name} ${reason}` };
    return { kind: "read", text: (await buffer(entry.content)).toString("utf8") };
  }
  return { kind: "missing" };
}

function whyRefused(
  { kind, uid, sizeBytes, modifiedAt }: ReceivedEntry,
  origin: RewardOrigin,
): string | null {
  if (kind !== "file") return "is not a regular file";
  if (sizeBytes > REWARD_MAX_BYTES) return `has ${sizeBytes} bytes`;
  if (uid !== origin.uid) return `belongs to user ${uid}, and the tests ran as user ${origin.uid}`;
  const time = modifiedAt.getTime();
  if (time < origin.from.getTime() - CLOCK_TOLERANCE_MS) return "was written before the tests ran";
  if (time > origin.to.getTime() + CLOCK_TOLERANCE_MS) return "claims to be written after the tests ran";
  return null;
}
