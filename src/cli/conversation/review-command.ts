import type { AgentEvent, TurnResult } from "../../agent/index.js";
import { openAside } from "../../agent/index.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import { readReview, reviewJsonSchema, reviewText } from "../review/findings.js";
import { type ReviewedChange, reviewPrompt } from "../review/review-prompt.js";
import { chooserOf, type ListEntry } from "./chooser.js";
import { chooseFrom } from "./question.js";
import { notice, warning } from "./screen/block.js";
import type { SlashCall, SlashParts } from "./slash-call.js";
import { type Git, gitIn } from "./workspace-diff.js";

/** A review of the change, with what the person wants to have looked at. */
interface Wanted {
  change: ReviewedChange;
  words: string | null;
  /** For the model of the conversation. */
  what: string;
}

const LISTED = 200;

/** `/review`: has the model review a change beside the conversation, which then has the findings. */
export async function reviewCommand(call: SlashCall, parts: SlashParts): Promise<void> {
  const { conversation, show } = parts;
  const git = gitIn(await conversation.sandbox, { cwd: conversation.setting.cwd, signal: call.signal });
  const wanted = call.argument === "" ? await chosen(git, call, parts) : await named(call.argument, git);
  if (wanted === null) return;
  const prompt = reviewPrompt(wanted.change, wanted.words);
  const { status, lastMessage, usage } = await review(prompt, { wanted, signal: call.signal, parts });
  if (status === "interrupted") show(warning("the review was interrupted; nothing of it is kept"));
  if (status !== "completed") return;
  const found = readReview(lastMessage ?? "");
  const text = found === null ? (lastMessage ?? "") : reviewText(found);
  const results = text === "" ? "The review ended without a word." : text;
  conversation.addMessages(
    [
      { role: "user", text: handover(wanted, results) },
      { role: "assistant", text: results },
    ],
    { usage },
  );
}

/** Returns once nothing of the reviewer is left, so that whatever is typed then goes to the session. */
async function review(
  prompt: string,
  { wanted, signal, parts }: { wanted: Wanted; signal: AbortSignal; parts: SlashParts },
): Promise<TurnResult> {
  const { conversation, setup, show, sessions } = parts;
  const onEvent = sessions?.listener();
  // What a reviewer reads could talk it into changing something.
  const isReadOnly = conversation.setting.sandboxMode === "read-only";
  const place = isReadOnly ? undefined : await setup.readOnly();
  show(notice(`reviewing ${neutraliseLine(wanted.what)}`));
  const aside = openAside(conversation, setup.options, {
    gates: { apply_patch: false, multi_agent: false, update_plan: false, request_user_input: false },
    outputSchema: reviewJsonSchema(),
    place,
    onEvent: (event) => {
      if (isShown(event)) onEvent?.(event);
    },
  });
  try {
    return await aside.runTurn({ prompt, signal, isLast: true });
  } finally {
    await aside.close();
  }
}

/** The findings are shown once they are complete, and the session begins and ends without the review. */
function isShown({ kind }: AgentEvent): boolean {
  return kind !== "text-delta" && kind !== "message" && kind !== "session-started" && kind !== "receipt";
}

/** What the model of the conversation is told, in Codex's frame. */
function handover({ what, words }: Wanted, results: string): string {
  const asked = words === null ? "" : ` and wrote: ${words}`;
  return `<user_action>
  <context>The user has had ${what} reviewed${asked}. These are the findings of the reviewer. The user may come back to some of them.</context>
  <action>review</action>
  <results>
${results}
  </results>
</user_action>`;
}

/** A branch or commit, if git knows one of this name, else what the person wants to have reviewed. */
async function named(argument: string, git: Git): Promise<Wanted> {
  if (/^[^\s-]\S*$/.test(argument)) {
    const succeeds = async (...argv: string[]) => (await git(argv)).exitCode === 0;
    for (const refs of REFS)
      if (await succeeds("show-ref", "--verify", "--quiet", `${refs}/${argument}`))
        return againstBranch(argument);
    if (await succeeds("rev-parse", "--verify", "--quiet", `${argument}^{commit}`)) return ofCommit(argument);
  }
  return inOwnWords(argument);
}

function againstBranch(base: string): Wanted {
  return { change: { base }, words: null, what: `what has changed since ${base} was left` };
}

function ofCommit(commit: string): Wanted {
  return { change: { commit }, words: null, what: `the commit ${commit}` };
}

function inOwnWords(words: string): Wanted {
  return { change: {}, words, what: "something" };
}

const uncommitted: Wanted = { change: { uncommitted: true }, words: null, what: "what is not committed" };

/** Null if the person chooses nothing. */
async function chosen(git: Git, { signal }: SlashCall, parts: SlashParts): Promise<Wanted | null> {
  const choose = async (title: string, entries: readonly ListEntry[]) =>
    await chooseFrom(
      parts.questions,
      { title, list: chooserOf(entries), dismissal: "no review" },
      { signal },
    );
  const kind = await choose("What should be reviewed?", [
    { key: "uncommitted", label: "what is not committed", about: "staged, unstaged and untracked" },
    { key: "base", label: "against a branch", about: "what has changed since it was left" },
    { key: "commit", label: "a commit" },
    { key: "words", label: "in your own words" },
  ]);
  if (kind === null) return null;
  if (kind === "uncommitted") return uncommitted;
  if (kind === "words") return await askedFor(parts, signal);
  const found =
    kind === "base"
      ? await linesOf(git, ["for-each-ref", "--sort=-committerdate", `--count=${LISTED}`, BRANCHES, ...REFS])
      : await linesOf(git, ["log", `--max-count=${LISTED}`, COMMITS]);
  if (found === null) {
    parts.show(warning("git cannot list them here; name one: /review NAME"));
    return null;
  }
  const key = await choose(kind === "base" ? "Against which branch?" : "Which commit?", found);
  if (key === null) return null;
  return kind === "base" ? againstBranch(key) : ofCommit(key);
}

const BRANCHES = "--format=%(refname:short)%09%(committerdate:relative)";
const REFS = ["refs/heads", "refs/remotes"];
const COMMITS = "--format=%h%x09%s%x09%cr";

async function linesOf(git: Git, argv: readonly string[]): Promise<ListEntry[] | null> {
  const { exitCode, text } = await git(argv);
  if (exitCode !== 0) return null;
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [key = "", ...about] = line.split("\t");
      return { key, label: neutraliseLine(key), about: neutraliseLine(about.join(" · ")) };
    });
}

async function askedFor({ questions }: SlashParts, signal: AbortSignal): Promise<Wanted | null> {
  const question = {
    lines: [{ text: "What should be reviewed, or looked at in particular?", tone: "warning" as const }],
    choices: [],
    takesText: true,
    dismissal: "no review",
  };
  const answer = await questions.ask(question, { signal });
  return answer.kind === "text" ? inOwnWords(answer.text) : null;
}
