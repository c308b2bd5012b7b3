import type { Approver } from "../../agent/index.js";
import { QuestionQueue } from "../../agent/index.js";
import type { AskedUser } from "../../tools/index.js";

interface Askers {
  user: AskedUser;
  approver: Approver;
}

/**
 * Makes the two ask one question at a time. Otherwise the model could ask for a `y` that approves a command
 * which is waiting at the same time.
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
