import type { Assertion } from "./assertion.js";
import { authority } from "./authority.js";
import { commands } from "./commands.js";
import { hostSide } from "./host-side.js";
import { lifecycle } from "./lifecycle.js";
import { mounts } from "./mounts.js";
import { network } from "./network.js";
import { resources } from "./resources.js";
import { rules } from "./rules.js";
import { secretsOutside } from "./secrets.js";
import { systemCalls } from "./system-calls.js";

/** Every assertion that has a test. */
export const catalogue: readonly Assertion[] = [
  ...authority,
  ...systemCalls,
  ...mounts,
  ...hostSide,
  ...network,
  ...secretsOutside,
  ...resources,
  ...commands,
  ...lifecycle,
  ...rules,
];
