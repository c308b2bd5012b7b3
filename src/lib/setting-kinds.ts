import { z } from "zod";
import { LONGEST_TIMER_MS } from "./time/pause.js";

export const httpUrl = z.url({ protocol: /^https?$/, error: "it must be an http or https URL" });

/** Node fires a timer with a longer delay at once. */
export const milliseconds = z.int().min(1).max(LONGEST_TIMER_MS);

/** A key of another program that is accepted and ignored, so that both can share one file. */
export const unused = z.unknown().optional();
