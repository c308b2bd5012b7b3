import type { Opened } from "../../../../src/sandbox/changes/take-snapshot.js";
import type { SecretMask } from "../../../../src/sandbox/egress/secrets/secret-mask.js";
import { type PlayedTree, playedTree } from "../overlay/played-tree.js";
import { newHome } from "./apply/apply-of.js";

interface Given {
  tree?: PlayedTree | null;
  brigHome?: string;
  hasBranch?: boolean;
  mask?: SecretMask;
  protectedNames?: readonly string[];
}

/** An opened sandbox, as far as what works on its tree looks at it. */
export async function opened({ brigHome = newHome(), hasBranch = false, mask, ...given }: Given = {}) {
  const tree = given.tree === undefined ? await playedTree() : given.tree;
  const warnings: unknown[] = [];
  const settings = {
    ...{
      environment: { brigHome },
      policy: { policy: { workspace: { protected: given.protectedNames ?? [] } } },
    },
    ...(mask && { inspection: { mask } }),
  };
  const sandbox = {
    ...{ tree, settings, options: {}, engine: {}, plan: {}, branch: hasBranch ? {} : null },
    warn: (warning: unknown) => void warnings.push(warning),
  } as unknown as Opened;
  return { sandbox, tree: tree as PlayedTree, brigHome, warnings };
}
