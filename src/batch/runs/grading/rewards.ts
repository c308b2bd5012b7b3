import { buffer } from "node:stream/consumers";
import { parseJson } from "../../../lib/json/parse-json.js";
import type { ReceivedEntry } from "../../../sandbox/index.js";
import type { Task } from "../../tasks/task.js";
import { ofFirstEntry, type ReadableContainer } from "../place/image-files.js";
import type { AttemptResult } from "../results/attempt-result.js";
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
  container: ReadableContainer,
  origin: RewardOrigin,
): Promise<Pick<Verification, "rewards" | "verifier" | "message">> {
  const json = await readRewardFile(container, { name: "reward.json", origin });
  const text = await readRewardFile(container, { name: "reward.txt", origin });
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
  { engine, containerId }: ReadableContainer,
  { name, origin }: { name: string; origin: RewardOrigin },
): Promise<FoundFile> {
  const archive = await engine.readArchive(containerId, `${VERIFIER_LOGS}/${name}`);
  const found = await ofFirstEntry(archive, async (entry): Promise<FoundFile> => {
    const reason = whyRefused(entry, origin);
    if (reason !== null) return { kind: "refused", reason: `${name} ${reason}` };
    return { kind: "read", text: (await buffer(entry.content)).toString("utf8") };
  });
  return found ?? { kind: "missing" };
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

/** The contents of the reward files; null for one that does not exist. */
interface RewardTexts {
  json: string | null;
  text: string | null;
}

export type ParsedRewards =
  | { kind: "rewards"; rewards: Record<string, number> }
  | { kind: "none" }
  | { kind: "invalid"; reason: string };

/**
 * Reads the rewards that a verifier wrote. `reward.json` wins: its numbers count, and everything else in it is
 * left out. Without a key "reward" there, the number in `reward.txt` becomes it.
 */
export function parseRewards({ json, text }: RewardTexts): ParsedRewards {
  if (json === null) return text === null ? { kind: "none" } : parseText(text);
  const parsed = parseObject(json);
  if (parsed.kind !== "rewards" || "reward" in parsed.rewards || text === null) return parsed;
  const reward = parseText(text);
  return reward.kind === "rewards"
    ? { kind: "rewards", rewards: { ...parsed.rewards, ...reward.rewards } }
    : reward;
}

/** The number that counts: the reward of that name, else the only one. Null if there is neither. */
export function mainReward(rewards: Readonly<Record<string, number>>): number | null {
  const [only, ...others] = Object.values(rewards);
  return rewards.reward ?? (others.length === 0 ? (only ?? null) : null);
}

function parseObject(json: string): ParsedRewards {
  const value = parseJson(json);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return { kind: "invalid", reason: "reward.json is not a JSON object" };
  const twice = repeatedKey(json);
  if (twice !== null)
    return { kind: "invalid", reason: `reward.json names ${JSON.stringify(twice.slice(0, 100))} twice` };
  const numbers = Object.entries(value).filter(
    (entry): entry is [string, number] => typeof entry[1] === "number",
  );
  const endless = numbers.find(([, number]) => !Number.isFinite(number));
  if (endless !== undefined)
    return {
      kind: "invalid",
      reason: `reward.json has no finite number for ${JSON.stringify(endless[0].slice(0, 100))}`,
    };
  return { kind: "rewards", rewards: Object.fromEntries(numbers) };
}

/**
 * Programs that write JSON never name a key twice, but text of the agent that tests put between quotes can. `json` is a
 * valid object; what is in its values is left out anyway.
 */
function repeatedKey(json: string): string | null {
  const keys = new Set<string>();
  let depth = 0;
  for (const [token, text, colon] of json.matchAll(/("(?:[^"\\]|\\.)*")\s*(:?)|[{}[\]]/g)) {
    if (token === "{" || token === "[") depth++;
    else if (token === "}" || token === "]") depth--;
    else if (depth === 1 && colon === ":") {
      const key = String(JSON.parse(text ?? '""'));
      if (keys.has(key)) return key;
      keys.add(key);
    }
  }
  return null;
}

const decimal = /^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?$/;

function parseText(text: string): ParsedRewards {
  const trimmed = text.trim();
  const reward = Number(trimmed);
  if (decimal.test(trimmed) && Number.isFinite(reward)) return { kind: "rewards", rewards: { reward } };
  return { kind: "invalid", reason: trimmed === "" ? "reward.txt is empty" : "reward.txt is not one number" };
}

/** Steps that were not reached, and those without a valid reward, count as 0. */
export function gradeOf(
  task: Pick<Task, "steps" | "rewardStrategy">,
  steps: AttemptResult["steps"],
): Pick<AttemptResult, "reward" | "rewards"> {
  const perStep = task.steps.map((_, index) => steps[index]?.rewards ?? {});
  const main = perStep.map((rewards) => mainReward(rewards) ?? 0);
  if (task.rewardStrategy === "final" || task.steps.length === 1)
    return { reward: main.at(-1) ?? 0, rewards: perStep.at(-1) ?? {} };
  const keys = [...new Set(perStep.flatMap((rewards) => Object.keys(rewards)))];
  const rewards = Object.fromEntries(keys.map((key) => [key, mean(perStep.map((one) => one[key] ?? 0))]));
  return { reward: mean(main), rewards };
}

function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0) / Math.max(1, numbers.length);
}
