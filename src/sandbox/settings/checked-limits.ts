import { z } from "zod";
import { BrigError } from "../../errors.js";
import { chosenLimitsSchema, type SandboxLimits } from "../policy/policy.js";

const optionSchema = z.object({ limits: chosenLimitsSchema });

/** The limits of `Sandbox.create`. Error: `usage.invalid`, which names each that is wrong. */
export function checkedLimits(limits: SandboxLimits): SandboxLimits {
  const parsed = optionSchema.safeParse({ limits });
  if (parsed.success) return parsed.data.limits;
  throw new BrigError(`the limits of the sandbox are not valid:\n${z.prettifyError(parsed.error)}`, {
    code: "usage.invalid",
    hint: "for example limits: { memoryMb: 512, cpus: 1.5, pids: 200 }",
    cause: parsed.error,
  });
}
