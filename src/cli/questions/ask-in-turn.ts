import type { Approver } from "../../agent/approvals/approvals.js";
import { QuestionQueue } from "../../agent/approvals/question-queue.js";
import type { AskedUser } from "../../tools/session/request-user-input.js";

interface Askers {
  user: AskedUser;
  approver: Approver;
}

/**
 * One person at one keyboard: one question at a time, whoever asks. What is typed as an answer to the model, which may ask for a `y`, is
 * no approval of what waits beside it.
 */
export function askInTurn({ user, approver }: Askers): Askers {
  const queue = new QuestionQueue();
  const inTurn = <Answer>(signal: AbortSignal | undefined, ask: () => Promise<Answer>) =>
    queue.inTurn({ position: 0, signal }, ask);
  return {
    user: { ask: (questions, { signal }) => inTurn(signal, () => user.ask(questions, { signal })) },
    approver: { ask: (request, { signal }) => inTurn(signal, () => approver.ask(request, { signal })) },
  };
}
