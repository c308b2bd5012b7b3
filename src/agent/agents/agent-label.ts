/** Names the agent that something is about. */
export interface AgentLabel {
  id: string;
  /** A name for people. */
  nickname: string;
  /** Null for an ordinary agent. */
  role: string | null;
}

/** An agent and its place among the others. */
export interface AgentPlacement extends AgentLabel {
  /** The session or agent that started it. */
  parentId: string;
  /** 1 for an agent that the session itself has started. */
  depth: number;
  isForked: boolean;
}
