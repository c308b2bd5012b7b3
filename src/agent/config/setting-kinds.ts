import { z } from "zod";
import { LONGEST_TIMER_MS } from "../../lib/time/pause.js";
import { parseNetwork } from "../../sandbox/index.js";

export const httpUrl = z.url({ protocol: /^https?$/, error: "it must be an http or https URL" });

/** Node fires a timer with a longer delay at once. */
export const milliseconds = z.int().min(1).max(LONGEST_TIMER_MS);

/** A key of Codex's that brig accepts and ignores, so that both can share one file. */
export const unused = z.unknown().optional();

export const networkSetting = z.string().check(({ value, issues }) => {
  const network = parseNetwork(value);
  if (network.kind === "refused") issues.push({ code: "custom", message: network.reason, input: value });
});
