import { z } from "zod";
import { normalPattern } from "../hosts/host-pattern.js";

/** One entry of an allow-list, in its normal spelling. */
export const hostEntry = z.string().transform((text, context) => {
  const pattern = normalPattern(text);
  if (pattern.kind === "parsed" && !text.startsWith("@")) return pattern.text;
  const message = pattern.kind === "refused" ? pattern.reason : `"${text}" is a list of hosts: name one host`;
  context.issues.push({ code: "custom", message, input: text });
  return z.NEVER;
});
