import { BrigError } from "../../../errors.js";
import type { Attack } from "./attack.js";
import { background } from "./library/background.js";
import { buildHooks } from "./library/build-hooks.js";
import { hostileArtifacts } from "./library/hostile-artifacts.js";
import { hostilePrograms } from "./library/hostile-programs.js";
import { leakedAnswers } from "./library/leaked-answers.js";
import { loadedCode } from "./library/loaded-code.js";
import { plantedRewards } from "./library/planted-rewards.js";
import { pytestHooks } from "./library/pytest-hooks.js";
import { pythonHooks } from "./library/python-hooks.js";
import { searchPaths } from "./library/search-paths.js";
import { shellStartup } from "./library/shell-startup.js";
import { toolSettings } from "./library/tool-settings.js";
import { trojans } from "./library/trojans.js";

export const attackLibrary: readonly Attack[] = [
  ...plantedRewards,
  ...trojans,
  ...shellStartup,
  ...pythonHooks,
  ...pytestHooks,
  ...buildHooks,
  ...loadedCode,
  ...searchPaths,
  ...toolSettings,
  ...background,
  ...leakedAnswers,
  ...hostilePrograms,
  ...hostileArtifacts,
];

/** Error: `usage.invalid` for a name that no attack has. */
export function findAttack(name: string): Attack {
  const found = attackLibrary.find((attack) => attack.name === name);
  if (found !== undefined) return found;
  throw new BrigError(`there is no attack ${JSON.stringify(name)}`, {
    code: "usage.invalid",
    hint: `the attacks are: ${attackLibrary.map((attack) => attack.name).join(", ")}`,
  });
}

/** Groups attacks so that no two in a batch replace the same thing. A simple search: there may be a smaller number of batches. */
export function attackBatches(attacks: readonly Attack[] = attackLibrary): Attack[][] {
  const batches: { claimed: Set<string>; attacks: Attack[] }[] = [];
  for (const attack of attacks) {
    const free = batches.find(({ claimed }) => !attack.claims.some((claim) => claimed.has(claim)));
    const batch = free ?? { claimed: new Set<string>(), attacks: [] };
    if (free === undefined) batches.push(batch);
    for (const claim of attack.claims) batch.claimed.add(claim);
    batch.attacks.push(attack);
  }
  return batches.map((batch) => batch.attacks);
}
