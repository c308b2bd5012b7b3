import type { BrigError } from "../../errors.js";
import { AgentRecords } from "./agent-records.js";
import { type AgentsOptions, DEFAULT_MAX_DEPTH, DEFAULT_MAX_THREADS } from "./agents-options.js";
import { AgentBudget } from "./budget.js";
import { refused } from "./refused.js";

/** Shared by all agents of a session, at whatever depth they are. */
export class AgentTree {
  readonly options: AgentsOptions;
  readonly budget: AgentBudget;
  readonly records: AgentRecords;
  /** Names that were given to agents; none is given twice. */
  readonly nicknames = new Set<string>();
  /** Ends the turn of the session itself. */
  readonly abort: (error: BrigError) => void;
  #openCount = 0;

  constructor(options: AgentsOptions, parts: { now: () => Date; abort(error: BrigError): void }) {
    this.options = options;
    this.abort = parts.abort;
    this.budget = new AgentBudget(options);
    this.records = new AgentRecords(options.home, parts.now);
  }

  /**
   * Reserves a place for an agent at this depth. Dispose of it when the agent is closed. Error: `tool.failed`
   * if the agent would be too deep or one too many.
   */
  takePlace(depth: number): Disposable {
    const { maxDepth = DEFAULT_MAX_DEPTH, maxThreads = DEFAULT_MAX_THREADS } = this.options;
    if (depth > maxDepth) throw refused("Agent depth limit reached. Solve the task yourself.");
    if (this.#openCount >= maxThreads)
      throw refused(`collab spawn failed: agent thread limit reached (max ${maxThreads})`);
    this.#openCount++;
    let isTaken = true;
    return {
      [Symbol.dispose]: () => {
        if (isTaken) this.#openCount--;
        isTaken = false;
      },
    };
  }
}
