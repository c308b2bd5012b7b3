/** The contents of the reward files; null for one that does not exist. */
export interface RewardTexts {
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
  const value = parsedJson(json);
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

function parsedJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

const decimal = /^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?$/;

function parseText(text: string): ParsedRewards {
  const trimmed = text.trim();
  const reward = Number(trimmed);
  if (decimal.test(trimmed) && Number.isFinite(reward)) return { kind: "rewards", rewards: { reward } };
  return { kind: "invalid", reason: trimmed === "" ? "reward.txt is empty" : "reward.txt is not one number" };
}
