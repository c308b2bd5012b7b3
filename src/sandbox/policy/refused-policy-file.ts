import { BrigError } from "../../errors.js";

export function refusedPolicyFile(where: string, reason: string, cause?: unknown): BrigError {
  return new BrigError(`the policy file ${where} ${reason}`, {
    code: "policy.invalid",
    hint: "brig never runs without the policy that was asked for",
    cause,
  });
}
