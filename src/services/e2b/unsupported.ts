import { Refusal } from "../serve/http/refusal.js";

const NOT_IMPLEMENTED = 501;

/** What E2B has, and brig has not. */
export function unsupported(feature: string): Refusal {
  return new Refusal(`brig does not support ${feature}`, {
    status: NOT_IMPLEMENTED,
    code: "usage.invalid",
    hint: "docs/e2b.md says what there is",
  });
}
