import type { AskAboutHost } from "../../sandbox/index.js";
import type { ConversationOptions } from "../conversation-options.js";
import type { SessionSetting } from "../session/setting.js";

interface QuestionSituation {
  setting: () => SessionSetting;
  /** Signal of the current turn; null between turns. */
  signal: () => AbortSignal | null;
}

/** Loads the code at the first question. Undefined if nobody can be asked. */
export function lazyHostQuestions(
  { toolOptions, rememberHost }: Pick<ConversationOptions, "toolOptions" | "rememberHost">,
  { setting, signal }: QuestionSituation,
): AskAboutHost | undefined {
  const user = toolOptions?.user;
  if (user === undefined || user === null) return undefined;
  let asking: Promise<AskAboutHost> | null = null;
  return async (asked) => {
    const { approvalPolicy = "never", network } = setting();
    // The allow-list is empty then, and only there because the set-up needed one.
    if (network.kind === "none") return { kind: "not-asked" };
    const refuses = typeof approvalPolicy === "object" && !approvalPolicy.granular.sandbox_approval;
    if (approvalPolicy === "never" || refuses) return { kind: "not-asked" };
    asking ??= import("./host-questions.js").then(
      ({ HostQuestions }) => new HostQuestions(user, { signal, remember: rememberHost }).ask,
    );
    return await (await asking)(asked);
  };
}
