import { z } from "zod";
import { LONGEST_TIMER_MS } from "../lib/time/pause.js";

export const httpUrl = z.url({ protocol: /^https?$/, error: "it must be an http or https URL" });

/** A timer that is set for longer would end at once. */
export const milliseconds = z.int().min(1).max(LONGEST_TIMER_MS);

/** A key of Codex's that brig accepts and does nothing with, so that one file serves both. */
export const unused = z.unknown().optional();
