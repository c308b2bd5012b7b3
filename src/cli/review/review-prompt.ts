import { invalidUsage } from "../../errors.js";

/** Which change is reviewed. Default: what is not committed. */
export interface ReviewedChange {
  uncommitted?: boolean;
  /** What has changed since this branch was left. */
  base?: string;
  commit?: string;
  /** Of the commit. */
  title?: string;
}

/** What a model is asked to review, and how. `words` are the user's own. Error: `usage.invalid`, as for `taskOf`. */
export function reviewPrompt(change: ReviewedChange, words: string | null): string {
  return `${GUIDELINES}\n\n${taskOf(change, words)}`;
}

/** Error: `usage.invalid` for several kinds of changes, and for what is no name of a commit. */
function taskOf({ uncommitted, base, commit, title }: ReviewedChange, words: string | null): string {
  const chosen = [uncommitted === true, base !== undefined, commit !== undefined].filter(Boolean).length;
  if (chosen > 1)
    throw invalidUsage("--uncommitted, --base and --commit exclude each other", "give one of them");
  if (title !== undefined && commit === undefined)
    throw invalidUsage("--title is for the commit of --commit", "leave it out, or add --commit SHA");
  for (const name of [base, commit]) requireRevision(name);
  const own = words === null || words.trim() === "" ? null : words.trim();
  if (chosen === 0 && own !== null) return own;
  const more = own === null ? "" : `\n\nLook at this in particular:\n\n${own}`;
  if (base !== undefined)
    return `Review what has changed since ${base} was left. Show it with: git diff "$(git merge-base HEAD '${base}')"${more}`;
  if (commit !== undefined)
    return `Review what the commit ${commit}${title === undefined ? "" : ` (${title})`} has changed. Show it with: git show '${commit}'${more}`;
  return `Review what is not committed yet: staged, unstaged and untracked files. Begin with: git status --short${more}`;
}

/** What a model may put into a command line as it is. */
function requireRevision(name: string | undefined): void {
  if (name === undefined || (/^[A-Za-z0-9_./@^~{}+-]{1,250}$/.test(name) && !name.startsWith("-"))) return;
  throw invalidUsage(
    `${JSON.stringify(name)} is not the name of a branch or commit`,
    "give a name such as main or origin/main, or the hash of a commit",
  );
}

const GUIDELINES = `Review a change that somebody else proposes. You cannot change files, and need not: read the change and the code around it, and report what its author would want to fix before it is merged.

Report a finding only if all of this holds:
- The change introduces it. What was wrong before is not part of this review.
- It matters: wrong results, crashes, lost data, holes in security, needless slowness, or code that the next person will misread.
- You can name the input or the situation in which it shows. If it depends on other code, you have read that code.
- It is one thing, and there is something definite to do about it.
- It asks for no more care than the rest of this code base shows. Style counts only where it hides the meaning.

Report everything that qualifies, not only the first finding, and nothing if nothing does. For each:
- title: what to do, in at most 80 characters, with the priority in front: [P0] blocks a release whatever the input, [P1] is urgent, [P2] should be fixed, [P3] would be nice. priority is the same number.
- body: one short, factual paragraph, without praise or blame, with code of at most three lines.
- code_location: the absolute path, and the shortest range of lines that shows it, which overlaps the change.
- confidence_score: how sure you are, from 0 to 1.

Then judge the change as a whole: overall_correctness is "patch is correct" if nothing existing breaks and there is no finding that blocks it, else "patch is incorrect"; overall_explanation says why in one to three sentences. Answer with the JSON object alone.`;
