import { z } from "zod";
import { milliseconds } from "../../lib/setting-kinds.js";
import { parseNetwork } from "../../sandbox/index.js";

export const networkSetting = z.string().check(({ value, issues }) => {
  const network = parseNetwork(value);
  if (network.kind === "refused") issues.push({ code: "custom", message: network.reason, input: value });
});

/** `[setup]` of config.toml. */
export const setupSchema = z.object({
  command: z
    .array(z.string())
    .default([])
    .describe(
      "A program and its arguments, run in the sandbox of a new session before its first call: see docs/setup.md",
    ),
  network: networkSetting
    .optional()
    .describe("What that reaches, if the policy permits it")
    .meta({ fallback: "the session's" }),
  timeout_ms: milliseconds
    .default(600_000)
    .describe("Milliseconds after which it is stopped, and has failed"),
});
